"""Claims that differ from what is said by the order of words alone: who did what to whom, which was first, from where to where.

As nli_plain, but with the same few words in every claim about a sentence, so that only their places tell true and
false apart, and with a true and a false claim for every sentence: they are twins, and a training shows both in one
batch. Sentences have modifiers, relative clauses and other sentences beside them, as real ones have.

Among other pairs none of this is learnt, however many there are; by themselves, the easy ones first, it takes minutes
(nli_course).
"""

from __future__ import annotations

import random

from .nli_data import SURE, UNSUPPORTED, Pair
from .nli_facts import CITIES
from .nli_plain import EVENTS, PREDICATES, SUBJECTS, THINGS, names, upper

YES, EITHER = SURE["entailment"], UNSUPPORTED
# Verbs of which either side can be the one who acts; past tense and participle are the same.
ACTS = ("warned visited criticised supported invited trained hired dismissed sued paid defeated followed replaced rescued financed "
        "inspected helped accused praised called deceived interviewed represented informed blocked admired advised annoyed approached "
        "arrested assisted attacked avoided blamed challenged chased consulted contacted convinced copied defended despised distracted "
        "doubted encouraged engaged envied evicted examined excluded expected expelled flattered frightened funded greeted guarded guided "
        "hated honoured hurt ignored impressed influenced insulted introduced joined judged left liked located loved married mentored met "
        "missed mocked monitored nominated noticed obeyed offended opposed outbid outlived overtook passed persuaded photographed poisoned "
        "promoted protected punished questioned recognised recommended recruited rejected remembered reported respected robbed saved "
        "searched served sponsored stopped supervised surprised suspected taught tested thanked threatened tracked tricked trusted "
        "understood upset used wanted watched welcomed").split()
PARTICIPLES = {"overtook": "overtaken", "hurt": "hurt"}
EVEN = {"met", "married", "joined"}  # that hold both ways, or nearly
GIVES = [("gave", "given"), ("sent", "sent"), ("sold", "sold"), ("lent", "lent"), ("showed", "shown"), ("offered", "offered"), ("handed", "handed"),
         ("promised", "promised"), ("left", "left"), ("owed", "owed"), ("awarded", "awarded"), ("leased", "leased")]
MORE = [("older", "younger", "old"), ("taller", "shorter", "tall"), ("richer", "poorer", "rich"), ("faster", "slower", "fast"), ("stronger", "weaker", "strong"),
        ("heavier", "lighter", "heavy"), ("louder", "quieter", "loud"), ("better paid", "worse paid", "well paid"), ("busier", "less busy", "busy")]
WHERE = ["", "", "", " in {c}", " last year", " in spring", " after the meeting", " on Monday", " twice", " at the station", " during the strike", " without a reason"]
ALONE = ["slept", "left early", "smiled", "moved to {c}", "retired", "apologised", "was late", "had lunch", "resigned", "waited outside", "wrote a book", "won a prize", "lost a bag"]
KINDS = ["nurse", "cook", "welder", "poet", "teacher", "plumber", "dentist", "pilot", "chemist", "tailor", "violinist", "surveyor", "translator", "programmer"]
CHOICES = ["tea", "coffee", "the train", "the bus", "the blue design", "the red design", "a loan", "a grant", "email", "the phone", "the old supplier", "the new supplier",
           "steel", "timber", "the north site", "the south site", "a lease", "a purchase", "Monday", "Friday", "the paper version", "the web version"]


def noun(rng, name: str) -> str:
    """A name, sometimes with something said about it that does not matter."""
    way = rng.random()
    if way < 0.6 or not name.startswith("the "):
        return name
    if way < 0.75:
        return f"{name} from {rng.choice(CITIES)}"
    if way < 0.88:
        return f"{name} with the {rng.choice(['red hat', 'long coat', 'two dogs', 'broken arm', 'loud voice', 'old car'])}"
    return f"the {rng.choice(['young', 'tall', 'new', 'former', 'local', 'famous'])} {name[4:]}"


def acted(rng, s: str, verb: str, o: str, long: bool = False) -> str:
    """That one did something to the other, with the same words in all ways but the auxiliaries."""
    done = PARTICIPLES.get(verb, verb)
    ways = [f"{s} {verb} {o}", f"{s} {verb} {o}", f"{o} was {done} by {s}", f"{o} was {done} by {s}", f"it was {s} who {verb} {o}", f"it was {o} who was {done} by {s}"]
    if long:
        ways += [f"{s}, who {verb} {o}, {rng.choice(ALONE).format(c=rng.choice(CITIES))}", f"{o}, who was {done} by {s}, {rng.choice(ALONE).format(c=rng.choice(CITIES))}",
                 f"{s} did not wait and {verb} {o}", f"the one who {verb} {o} was {s}"]
    return rng.choice(ways)


def acts(rng):
    verb = rng.choice([v for v in ACTS if v not in EVEN])
    a, b = names(rng, 2)
    told = acted(rng, noun(rng, a), verb, noun(rng, b), True) + rng.choice(WHERE).format(c=rng.choice(CITIES))
    return told, acted(rng, a, verb, b), acted(rng, b, verb, a)


def inside(rng):
    """Two things said in one sentence with a clause in the middle: which of both each is about."""
    verb = rng.choice([v for v in ACTS if v not in EVEN])
    a, b = names(rng, 2)
    alone = rng.choice(ALONE).format(c=rng.choice(CITIES))
    done = PARTICIPLES.get(verb, verb)
    told, doer, whom, about, not_about = rng.choice([
        (f"{a}, who {verb} {b}, {alone}", a, b, a, b), (f"{a}, whom {b} {verb}, {alone}", b, a, a, b), (f"{a}, {done} by {b}, {alone}", b, a, a, b),
        (f"after {a} {verb} {b}, the latter {alone}", a, b, b, a), (f"{a} beside {b} {alone}", None, None, a, b), (f"{b} {alone} when {a} {verb} a friend", None, None, b, a)])
    if doer and rng.random() < 0.5:
        return told, acted(rng, doer, verb, whom), acted(rng, whom, verb, doer)
    return told, f"{about} {alone}", f"{not_about} {alone}"


def gifts(rng):
    past, done = rng.choice(GIVES)
    a, b = names(rng, 2)
    t = rng.choice(THINGS)
    way = lambda a, b: rng.choice([f"{a} {past} {b} {t}", f"{a} {past} {t} to {b}", f"{b} was {done} {t} by {a}", f"{t} was {done} to {b} by {a}", f"it was {a} who {past} {t} to {b}"])
    return way(a, b) + rng.choice(WHERE).format(c=rng.choice(CITIES)), way(a, b), way(b, a)


def degrees(rng):
    up, down, plain = rng.choice(MORE)
    a, b = names(rng, 2)
    way = lambda a, b: rng.choice([f"{a} is {up} than {b}", f"{b} is {down} than {a}", f"{b} is not as {plain} as {a}", f"{a}, compared with {b}, is {up}", f"of {a} and {b}, {a} is the {up} one"])
    return way(a, b), way(a, b), way(b, a)


def ways(rng):
    a = names(rng, 1)[0]
    x, y = rng.sample(CITIES, 2)
    who = rng.choice([a, a, "the parcel", "the train", "the flight", "the office", "the archive"])
    way = lambda x, y: rng.choice([f"{who} went from {x} to {y}", f"{who} came to {y} from {x}", f"{who} left {x} for {y}", f"{who} started in {x} and ended up in {y}", f"for {who}, {x} was the start and {y} the end"])
    return way(x, y) + rng.choice(["", " last week", " at night", " for good"]), way(x, y), way(y, x)


def times(rng):
    x, y = rng.sample(EVENTS, 2)
    way = lambda x, y: rng.choice([f"{x} before {y}", f"{y} after {x}", f"after {x}, {y}", f"before {y}, {x}", f"first {x}, then {y}", f"{x}, and later {y}", f"by the time that {y}, it was already the case that {x}"])
    return way(x, y), way(x, y), way(y, x)


def causes(rng):
    x, y = rng.sample(EVENTS, 2)
    way = lambda x, y: rng.choice([f"{y} because {x}", f"because {x}, {y}", f"{x}, which is why {y}", f"{x}; as a result, {y}", f"the reason why {y} is that {x}", f"since {x}, {y}"])
    return way(x, y), way(x, y), way(y, x)


def kinds(rng):
    a, b = names(rng, 2)
    x, y = rng.sample(KINDS, 2)
    n, m = rng.sample(range(19, 75), 2)
    told = rng.choice([f"{a} is a {x}, and {b} is a {y}", f"{a} works as a {x}, {b} as a {y}", f"while {a} is a {x}, {b} is a {y}", f"{a}, aged {n}, is a {x}. {upper(b)}, aged {m}, is a {y}",
                       f"the {x} is called {a} and the {y} {b}", f"{a} and {b} work as a {x} and a {y}, in this order"])
    if "aged" in told and rng.random() < 0.5:
        return told, rng.choice([f"{a} is {n}", f"the {y} is {m}"]), rng.choice([f"{a} is {m}", f"the {y} is {n}", f"{b} is {n}"])
    return told, rng.choice([f"{a} is a {x}", f"{b} is a {y}", f"the {x} is {a}"]), rng.choice([f"{a} is a {y}", f"{b} is a {x}", f"the {x} is {b}"])


def picks(rng):
    a = names(rng, 1)[0]
    x, y = rng.sample(CHOICES, 2)
    # what was chosen need not have come in the place of something that was there, so that neither kind follows from the other
    chose = [f"{a} chose {{x}} over {{y}}", f"{a} took {{x}} instead of {{y}}", f"{a} preferred {{x}} to {{y}}", f"{a} wanted {{x}} rather than {{y}}",
             f"{a} decided on {{x}} and against {{y}}", f"not {{y}} but {{x}} was what {a} took"]
    changed = [f"{a} gave up {{y}} for {{x}}", f"{a} replaced {{y}} with {{x}}", f"{a} had {{y}} before and has {{x}} now"]
    ways = rng.choice([chose, chose, changed])
    way = lambda x, y: rng.choice(ways).format(x=x, y=y)
    return way(x, y), way(x, y), way(y, x)


def trends(rng):
    low, high = sorted(rng.sample(range(3, 97), 2))
    what = rng.choice(["the price", "the share", "the number of members", "the fee", "the number of flights", "the rate", "the number of complaints", "the budget"])
    unit = rng.choice(["", " per cent", " thousand"])
    up = lambda a, b: rng.choice([f"{what} rose from {a}{unit} to {b}{unit}", f"{what} went up to {b}{unit} from {a}{unit}", f"{what} was {a}{unit} and is now {b}{unit}", f"{what} increased from {a} to {b}{unit}"])
    down = lambda a, b: rng.choice([f"{what} fell from {a}{unit} to {b}{unit}", f"{what} went down to {b}{unit} from {a}{unit}", f"{what} was {a}{unit} and is now {b}{unit}", f"{what} decreased from {a} to {b}{unit}"])
    return (up(low, high), up(low, high), down(high, low)) if rng.random() < 0.5 else (down(high, low), down(high, low), up(low, high))


def sayers(rng):
    a, b, c = names(rng, 3)
    verb = rng.choice([v for v in ACTS if v not in EVEN])
    say = rng.choice(["said", "claimed", "reported", "complained", "denied", "wrote"])
    told = rng.choice([f"{a} {say} that {b} {verb} {c}", f"according to {a}, {b} {verb} {c}" if say == "said" else f"that {b} {verb} {c} was what {a} {say}", f'{a} {say}: "{upper(b)} {verb} {c}"'])
    return told, f"{a} {say} that {b} {verb} {c}", rng.choice([f"{b} {say} that {a} {verb} {c}", f"{a} {say} that {c} {verb} {b}", f"{c} {say} that {b} {verb} {a}", f"{b} {say} that {c} {verb} {a}"])


FAMILIES = {f: w for f, w in zip((acts, inside, gifts, degrees, ways, times, causes, kinds, picks, trends, sayers), (6, 3, 2, 1, 1, 2, 1, 1, 1, 1, 1))}


def finished(rng, text: str) -> str:
    return upper(text) + ("." if rng.random() < 0.85 and text[-1] not in '."' else "")


def build(rows: int, seed: int = 71) -> list[Pair]:
    """So many pairs, half of them twins of the others: one sentence with a true and a false claim, or a claim under two sentences."""
    rng, out = random.Random(seed), []
    while len(out) < rows:
        family = rng.choices(list(FAMILIES), FAMILIES.values())[0]
        told, right, wrong = (finished(rng, t) for t in family(rng))
        beside = [f"{upper(rng.choice(SUBJECTS).format(f=rng.choice(CITIES)))} {rng.choice(PREDICATES)}." for _ in range(rng.choice([0, 0, 1, 1, 2, 3]))]
        parts = [told if told[-1] in ".\"" else told + "."] + beside
        rng.shuffle(parts)
        premise = " ".join(parts)
        out += [Pair(premise, right, YES, "own/order", family.__name__), Pair(premise, wrong, EITHER, "own/order", family.__name__)]
    return out[:rows]


def easy(rows: int, seed: int = 73) -> list[Pair]:
    """The same of acts alone, in the active and the passive voice and without anything beside them: what a model learns first."""
    rng, out = random.Random(seed), []
    while len(out) < rows:
        verb = rng.choice([v for v in ACTS if v not in EVEN])
        a, b = names(rng, 2)
        way = lambda a, b: upper(rng.choice([f"{a} {verb} {b}", f"{a} {verb} {b}", f"{b} was {PARTICIPLES.get(verb, verb)} by {a}"])) + "."
        premise = way(a, b)
        out += [Pair(premise, way(a, b), YES, "own/order", "acts"), Pair(premise, way(b, a), EITHER, "own/order", "acts")]
    return out[:rows]
