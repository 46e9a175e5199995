"""Facts of this project's own making, with claims about them: what people pin to a request, and what answers say of it.

A thing of some kind has attributes; every attribute can be put in several ways. Facts use one way and
claims another, with the value written differently, changed, or taken from another thing beside it.
"""

from __future__ import annotations

import datetime
import random
from dataclasses import dataclass

from . import nli_values as values
from .nli_data import SURE, UNSUPPORTED, Pair

FIRST = ["Alder", "Brook", "Corvin", "Delmar", "Elston", "Farrow", "Garnet", "Hollis", "Ivers", "Jasper", "Kestrel", "Lorne", "Marlow", "Norden",
         "Orwin", "Pavo", "Quill", "Rowan", "Selwyn", "Tamsin", "Upton", "Verra", "Wexford", "Yarrow", "Zephyr", "Amber", "Calder", "Dorset",
         "Fenwick", "Halden", "Linden", "Meridian", "Northgate", "Oakfield", "Riverton", "Stanmore", "Tarn", "Vantage", "Westbrook", "Argus"]
PEOPLE = ["Maria Santos", "James Okafor", "Elena Petrova", "David Chen", "Aisha Rahman", "Tom Becker", "Priya Nair", "Lucas Martin", "Hannah Weiss",
          "Kenji Mori", "Sofia Rossi", "Daniel Kowalski", "Grace Adeyemi", "Omar Haddad", "Ingrid Larsen", "Peter Novak", "Claire Dubois",
          "Samuel Ortiz", "Nina Fischer", "Victor Hugo Lima", "Emma Clarke", "Raj Patel", "Laura Jensen", "Michael Doyle", "Yuki Tanaka"]
CITIES = ["Lisbon", "Oslo", "Toronto", "Vienna", "Dublin", "Nairobi", "Lyon", "Kyoto", "Bremen", "Austin", "Porto", "Zurich", "Tallinn", "Madrid",
          "Warsaw", "Cape Town", "Boston", "Milan", "Helsinki", "Lima", "Seattle", "Ghent", "Prague", "Mumbai", "Chicago", "Denver", "Berlin", "Paris"]
JOBS = ["engineer", "architect", "nurse", "economist", "chemist", "translator", "pilot", "lawyer", "biologist", "designer", "teacher", "surgeon"]
COLOURS = ["red", "blue", "green", "black", "white", "silver", "grey", "yellow"]
MATERIALS = ["steel", "glass", "oak", "granite", "aluminium", "concrete", "brick", "cotton", "leather", "titanium"]
PAYMENT = ["credit card", "bank transfer", "PayPal", "cash", "invoice"]


@dataclass
class Attribute:
    """`ways` hold {n} for the name and {v} for the value. `kind` says how values are drawn and written."""

    kind: str
    low: float
    high: float
    unit: str
    ways: list[str]


def A(kind: str, ways: str, low: float = 0, high: float = 0, unit: str = "") -> Attribute:
    return Attribute(kind, low, high, unit, ways.split(" | "))


KINDS: dict[str, list[Attribute]] = {
    "the {f} Tower": [
        A("amount", "{n} is {v} tall | {n} has a height of {v} | The height of {n} is {v} | {n} rises {v} above the ground | At {v}, {n} is a landmark", 40, 800, "metres"),
        A("year", "{n} was completed in {v} | Construction of {n} ended in {v} | {n} was finished in {v} | Work on {n} was done by {v}", 1850, 2023),
        A("person", "{n} was designed by {v} | The architect of {n} is {v} | {v} designed {n} | {v} drew up the plans for {n}"),
        A("count", "{n} has {v} floors | There are {v} floors in {n} | {n} counts {v} storeys", 5, 120, "floors"),
        A("city", "{n} stands in {v} | {n} is located in {v} | {n} is in {v} | You can find {n} in {v}"),
        A("material", "{n} is built of {v} | {n} is made mainly of {v} | The main material of {n} is {v}"),
        A("count", "{n} receives {v} visitors a year | Every year {v} people visit {n} | {n} had {v} visitors per year", 2000, 7000000, "visitors")],
    "{f} Industries": [
        A("money", "{n} reported revenue of {v} | The revenue of {n} was {v} | {n} had {v} in revenue | {n} brought in {v} in sales", 2e6, 9e9),
        A("count", "{n} employs {v} people | {n} has {v} employees | The workforce of {n} numbers {v} | {v} people work for {n}", 20, 90000, "people"),
        A("year", "{n} was founded in {v} | {n} was established in {v} | {n} has existed since {v} | The company {n} dates from {v}", 1880, 2021),
        A("city", "{n} has its headquarters in {v} | {n} is based in {v} | The head office of {n} is in {v} | {n} is headquartered in {v}"),
        A("person", "{v} is the chief executive of {n} | {n} is led by {v} | The CEO of {n} is {v} | {v} runs {n}"),
        A("percent", "Sales of {n} grew by {v} | {n} increased its sales by {v} | {n} saw sales rise {v} | Growth of sales at {n} was {v}", 1, 60),
        A("percent", "The operating margin of {n} was {v} | {n} had an operating margin of {v} | {n} made {v} of its revenue as operating profit", 2, 45),
        A("count", "{n} runs {v} factories | There are {v} factories of {n} | {n} operates {v} plants", 2, 60, "factories")],
    "the {f} {m}": [
        A("price", "{n} costs {v} | The price of {n} is {v} | {n} is sold for {v} | You pay {v} for {n}", 9, 2500),
        A("amount", "{n} weighs {v} | The weight of {n} is {v} | {n} has a weight of {v}", 1, 60, "kg"),
        A("amount", "The battery of {n} lasts {v} | {n} runs for {v} on one charge | On a full charge {n} works {v}", 3, 48, "hours"),
        A("amount", "{n} comes with a warranty of {v} | {n} is covered by warranty for {v} | The warranty of {n} lasts {v}", 1, 10, "years"),
        A("colour", "{n} is available in {v} | {n} is sold in {v} | You can buy {n} in {v} | The colour of {n} is {v}"),
        A("amount", "{n} has {v} of storage | {n} stores up to {v} | The storage of {n} is {v}", 8, 2000, "GB"),
        A("date", "{n} was released on {v} | {n} went on sale on {v} | The release date of {n} was {v}")],
    "{p}": [
        A("year", "{n} was born in {v} | {n} has {v} as year of birth | The birth year of {n} is {v}", 1930, 2002),
        A("job", "{n} works as a {v} | {n} is a {v} | {n} is a {v} by profession | The profession of {n} is {v}"),
        A("city", "{n} lives in {v} | {n} is a resident of {v} | The home of {n} is in {v} | {n} has an apartment in {v}"),
        A("year", "{n} joined the company in {v} | {n} has worked for the company since {v} | {n} was hired in {v}", 1995, 2024),
        A("count", "{n} has written {v} books | {n} is the author of {v} books | {v} books were written by {n}", 2, 40, "books"),
        A("price", "{n} earns {v} a month | The monthly salary of {n} is {v} | {n} is paid {v} per month", 1500, 15000)],
    "the {f} Conference": [
        A("date", "{n} takes place on {v} | {n} will be held on {v} | The date of {n} is {v} | {n} is scheduled for {v}"),
        A("city", "{n} is held in {v} | {n} takes place in {v} | The venue of {n} is in {v} | {v} hosts {n}"),
        A("count", "{n} expects {v} participants | {v} people will attend {n} | The number of participants of {n} is {v}", 30, 20000, "participants"),
        A("price", "A ticket for {n} costs {v} | Tickets for {n} are {v} | Entry to {n} costs {v}", 10, 1200),
        A("person", "{v} opens {n} | The keynote of {n} is given by {v} | {v} is the keynote speaker of {n}"),
        A("amount", "{n} lasts {v} | The duration of {n} is {v} | {n} runs for {v}", 2, 9, "days")],
    "the {f} Store": [
        A("amount", "{n} accepts returns within {v} | You can return items to {n} within {v} | Returns to {n} are possible for {v}", 7, 90, "days"),
        A("price", "Shipping by {n} costs {v} | {n} charges {v} for shipping | The shipping fee of {n} is {v}", 3, 40),
        A("clock", "{n} opens at {v} | The opening time of {n} is {v} | Doors of {n} open at {v}"),
        A("weekday", "{n} is closed on {v} | On {v} {n} stays closed | {n} does not open on {v}"),
        A("payment", "{n} accepts payment by {v} | You can pay by {v} at {n} | At {n} {v} is accepted"),
        A("percent", "Members of {n} get a discount of {v} | {n} gives members {v} off | The discount for members of {n} is {v}", 3, 40)],
    "{f}ol": [
        A("amount", "The usual dose of {n} is {v} | {n} is given in doses of {v} | Adults take {v} of {n}", 5, 900, "mg"),
        A("count", "{n} is taken {v} times a day | Patients take {n} {v} times daily | {n} must be taken {v} times per day", 2, 6, "times"),
        A("amount", "{n} should not be taken for longer than {v} | The longest treatment with {n} is {v}", 3, 30, "days"),
        A("percent", "{n} reduced symptoms in {v} of patients | {v} of patients had fewer symptoms with {n} | With {n}, symptoms eased in {v} of patients", 8, 96),
        A("count", "The trial of {n} had {v} participants | {v} people took part in the trial of {n} | {n} was tested on {v} participants", 40, 9000, "participants"),
        A("year", "{n} was approved in {v} | The approval of {n} came in {v} | Regulators approved {n} in {v}", 1985, 2024)],
    "{f} Valley": [
        A("count", "{n} has {v} inhabitants | The population of {n} is {v} | {v} people live in {n} | {n} is home to {v} people", 500, 4000000, "inhabitants"),
        A("amount", "{n} is {v} long | The length of {n} is {v} | {n} extends over {v}", 3, 900, "km"),
        A("amount", "{n} lies {v} above sea level | The altitude of {n} is {v} | {n} is situated at {v} above the sea", 20, 3500, "m"),
        A("amount", "{n} is {v} from the capital | The distance from the capital to {n} is {v} | From the capital it is {v} to {n}", 5, 1200, "km"),
        A("percent", "Forest covers {v} of {n} | {v} of {n} is forest | {n} is {v} forest", 3, 90),
        A("year", "{n} became a national park in {v} | The national park of {n} was created in {v} | {n} has been a park since {v}", 1890, 2020)],
    "order {d}": [
        A("count", "{n} contains {v} items | There are {v} items in {n} | {n} consists of {v} items", 1, 40, "items"),
        A("price", "The total of {n} is {v} | {n} amounts to {v} | {n} comes to {v} in total", 8, 3000),
        A("date", "{n} was shipped on {v} | {n} left the warehouse on {v} | The shipping date of {n} is {v}"),
        A("city", "{n} goes to {v} | {n} will be delivered to {v} | The destination of {n} is {v}"),
        A("payment", "{n} was paid by {v} | The customer paid for {n} by {v} | Payment for {n} was made by {v}"),
        A("weekday", "{n} arrives on {v} | {n} will be delivered on {v} | Delivery of {n} is planned for {v}")],
    "version {x} of {f}": [
        A("date", "{n} was released on {v} | {n} came out on {v} | The release of {n} was on {v}"),
        A("amount", "{n} needs {v} of memory | {n} requires {v} of RAM | The memory requirement of {n} is {v}", 1, 128, "GB"),
        A("percent", "{n} is {v} faster than the one before | {n} improves speed by {v} | Speed is up by {v} in {n}", 3, 90),
        A("count", "{n} fixes {v} bugs | {v} bugs are fixed in {n} | In {n}, {v} bugs were fixed", 3, 400, "bugs"),
        A("amount", "{n} is supported for {v} | Support of {n} lasts {v} | Updates for {n} are provided for {v}", 2, 10, "years")],
}
LISTS = {"city": CITIES, "person": PEOPLE, "job": JOBS, "colour": COLOURS, "material": MATERIALS, "payment": PAYMENT, "weekday": values.DAYS}


def draw(a: Attribute, rng: random.Random):
    """A value of the attribute."""
    if a.kind in LISTS:
        return rng.choice(LISTS[a.kind])
    if a.kind == "year":
        return rng.randint(int(a.low), int(a.high))
    if a.kind == "date":
        return datetime.date(rng.randint(2005, 2026), rng.randint(1, 12), rng.randint(1, 28))
    if a.kind == "clock":
        return rng.randint(6, 11) * 60 + rng.choice([0, 15, 30, 45])
    value = a.low * (a.high / a.low) ** rng.random()  # as many small as large ones
    if a.kind == "price" and value < 400 and rng.random() < 0.6:
        return round(value) - 0.01 if value > 2 else 1.99
    if a.kind in ("percent", "amount") and rng.random() < 0.3:
        return round(value, 1) if round(value, 1) != round(value) else float(round(value))
    if a.kind in ("count", "money") or rng.random() < 0.6:
        value = round(value) if a.kind != "money" and rng.random() < 0.6 else round(values.rounded(value, 2))
    return float(max(2, values.rounded(value, 2) if value < 10 and a.kind == "amount" else round(value)))


def clock(minutes: int, style: int) -> str:
    hour, minute = divmod(minutes, 60)
    return [f"{hour}:{minute:02d}", f"{hour}:{minute:02d} am", f"{hour} am" if minute == 0 else f"{hour:02d}:{minute:02d}"][style % 3]


def write(a: Attribute, value, rng: random.Random, exact: bool, currency: int) -> str:
    """The value in words: exactly and plainly, as facts have it, or in any true way."""
    if a.kind in LISTS:
        return str(value)
    if a.kind == "year":
        return str(value)
    if a.kind == "date":
        return rng.choice(values.date_forms(value)[:3] if exact else values.date_forms(value))
    if a.kind == "clock":
        return clock(value, rng.randrange(3))
    number = values.commas(value) if exact else values.true_form(value, rng)
    if a.kind in ("price", "money"):
        sign, word = values.CURRENCIES[currency]
        if exact and rng.random() < 0.5 and values.scaled(value):
            number = values.scaled(value)
        if not number[0].isdigit():
            return f"{number} {word}"
        return f"{sign}{number}" if rng.random() < 0.7 else f"{number} {word}"
    if a.kind == "percent":
        number = values.plain(value) if exact or rng.random() < 0.7 else values.true_form(value, rng)
        return number + rng.choice(["%", " percent", " per cent"])
    if a.kind == "count":
        return number
    return values.true_amount(value, a.unit, rng) if not exact else f"{number} {a.unit}"


def wrong(a: Attribute, value, rng: random.Random):
    """Another value of the attribute."""
    if a.kind in LISTS:
        return rng.choice([x for x in LISTS[a.kind] if x != value])
    if a.kind == "year":
        return values.false_year(value, rng)
    if a.kind == "date":
        return values.false_date(value, rng)
    if a.kind == "clock":
        return value + rng.choice([-120, -60, -30, 30, 60, 120])
    return values.false_value(value, rng)


@dataclass
class Thing:
    name: str
    attributes: list[Attribute]
    held: list  # values, one for each attribute
    currency: int


def thing(pattern: str, rng: random.Random) -> Thing:
    name = pattern.format(f=rng.choice(FIRST), p=rng.choice(PEOPLE), d=rng.randint(1000, 99999), x=f"{rng.randint(1, 12)}.{rng.randint(0, 9)}",
                          m=rng.choice(["Lamp", "Drill", "Tablet", "Scooter", "Camera", "Speaker", "Watch", "Vacuum", "Printer", "Router"]))
    attributes = KINDS[pattern]
    return Thing(name, attributes, [draw(a, rng) for a in attributes], rng.randrange(3))


def sentence(t: Thing, i: int, way: str, value: str, name: str | None = None) -> str:
    text = way.format(n=name or t.name, v=value)
    if value in JOBS and value[0] in "aeiou":
        text = text.replace(f" a {value}", f" an {value}")
    return text[0].upper() + text[1:]


def negated(text: str, rng: random.Random) -> str | None:
    """The sentence denied, where its verb allows it."""
    if " not " in text:
        return text.replace(" not ", " ", 1)
    for verb in (" is ", " was ", " has ", " can ", " are ", " were ", " will be ", " should "):
        if verb in text:
            if verb == " has ":
                return text.replace(verb, " does not have ", 1)
            if verb == " will be ":
                return text.replace(verb, " will not be ", 1)
            return text.replace(verb, verb + rng.choice(["not ", "not ", "never "] if verb == " was " else ["not "]), 1)
    return None


def spans(text: str, part: str) -> list[tuple[int, int]]:
    at = text.lower().find(part.lower())
    return [(at, at + len(part))] if at >= 0 else []


def pairs(rng: random.Random) -> list[Pair]:
    """One premise about one or two things, and a claim about every attribute of the first that it tells."""
    pattern = rng.choice(list(KINDS))
    one = thing(pattern, rng)
    two = thing(pattern, rng) if rng.random() < 0.45 else None
    if two and two.name == one.name:
        two = None
    count = rng.randint(1, 4 if not two else 2)
    told = rng.sample(range(len(one.attributes)), count)
    used, facts = {}, []
    for i in told:
        used[i] = rng.choice(one.attributes[i].ways)
        facts.append(sentence(one, i, used[i], write(one.attributes[i], one.held[i], rng, True, one.currency)))
        if two:
            facts.append(sentence(two, i, rng.choice(two.attributes[i].ways), write(two.attributes[i], two.held[i], rng, True, two.currency)))
    if rng.random() < 0.3:
        rng.shuffle(facts)
    premise = ". ".join(facts) + "."
    out = [claim(one, two, i, used[i], premise, rng) for i in told]
    silent = [i for i in range(len(one.attributes)) if i not in told]
    if silent and rng.random() < 0.6:
        i = rng.choice(silent)
        way = rng.choice(one.attributes[i].ways)
        text = sentence(one, i, way, write(one.attributes[i], one.held[i], rng, False, one.currency))
        out.append(Pair(premise, text + ".", SURE["neutral"], "own/facts", "silent"))
    return out


def claim(one: Thing, two: Thing | None, i: int, told: str, premise: str, rng: random.Random) -> Pair:
    """A claim about attribute i of the first thing: true, changed, of the other thing, or denied."""
    a, value = one.attributes[i], one.held[i]
    way = rng.choice([w for w in a.ways if w != told] or a.ways) if rng.random() < 0.7 else told
    name = one.name
    if not two and rng.random() < 0.12 and way.startswith("{n}"):
        name = "it" if not one.name in PEOPLE else "this person"
    result = rng.random()
    if result < 0.42:
        text = sentence(one, i, way, write(a, value, rng, False, one.currency), name)
        return Pair(premise, text + ".", SURE["entailment"], "own/facts", "true", [])
    if result < 0.62 and two and two.held[i] != value:
        shown = write(a, two.held[i], rng, False, two.currency)
        text = sentence(one, i, way, shown, name)
        near = isinstance(value, float) and abs(two.held[i] - value) < 0.1 * value
        return Pair(premise, text + ".", UNSUPPORTED if near else SURE["contradiction"], "own/facts", "swapped", spans(text, shown))
    if result < 0.68 and a.kind in ("year", "amount", "price", "percent", "count", "clock"):
        text = negated(sentence(one, i, way, write(a, wrong(a, value, rng), rng, True, one.currency), name), rng)
        if text and " not " in text:
            return Pair(premise, text + ".", SURE["entailment"], "own/facts", "rightly denied", [])
    if result < 0.74:
        text = negated(sentence(one, i, way, write(a, value, rng, True, one.currency), name), rng)
        if text:
            return Pair(premise, text + ".", SURE["contradiction"], "own/facts", "denied", spans(text, " not ") or spans(text, " never "))
    if a.kind == "amount" and rng.random() < 0.5:
        shown = values.false_amount(value, a.unit, rng)
    else:
        shown = write(a, wrong(a, value, rng), rng, rng.random() < 0.6, one.currency)
    text = sentence(one, i, way, shown, name)
    return Pair(premise, text + ".", SURE["contradiction"], "own/facts", "value" if a.kind not in LISTS else "word", spans(text, shown))


def build(count: int, seed: int = 23) -> list[Pair]:
    """About `count` pairs."""
    rng, out = random.Random(seed), []
    while len(out) < count:
        out += pairs(rng)
    return out
