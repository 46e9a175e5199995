"""Claims about conversations: who wants what, what was chosen and what turned down, who said it, what came of it.

Conversations and what is said in each turn are those of the Schema-Guided Dialogue data (CC BY-SA 4.0), which is
not in the data folder: put its train/dialogues_*.json into one. The claims are sentences of this project. A false
claim has the frame of a true one and most often a value of the same conversation in the wrong place: the city of
arrival as that of departure, the offer that was turned down, the other speaker.
"""

from __future__ import annotations

import json
import random
from collections import defaultdict
from pathlib import Path

from . import nli_data
from .nli_data import SURE, UNSUPPORTED, Pair
from .nli_facts import PEOPLE

YES, EITHER = SURE["entailment"], UNSUPPORTED
SPEAKERS = [("User", "Assistant"), ("Customer", "Agent"), ("Client", "Adviser"), ("Caller", "Operator"),
            ("Customer", "Sales representative"), ("Guest", "Host"), ("Speaker A", "Speaker B")]
# What somebody wants, by the name of an intent; without an entry no claim is made.
AIMS = {
    "CheckBalance": "check the balance of an account", "TransferMoney": "send money to somebody",
    "FindBus": "find a bus", "BuyBusTicket": "buy bus tickets", "GetEvents": "look at the calendar",
    "AddEvent": "put something into the calendar", "FindEvents": "find an event", "BuyEventTickets": "buy tickets for an event",
    "SearchOnewayFlight": "find a flight", "SearchRoundtripFlights": "find a return flight",
    "ReserveOnewayFlight": "book a flight", "ReserveRoundtripFlights": "book a return flight",
    "FindApartment": "find a flat", "ScheduleVisit": "visit a flat", "ReserveHotel": "book a hotel",
    "SearchHotel": "find a hotel", "BookHouse": "rent a house", "SearchHouse": "find a house to rent",
    "FindMovies": "find a film", "PlayMovie": "watch a film", "BuyMovieTickets": "buy cinema tickets",
    "GetTimesForMovie": "know when a film is on", "LookupSong": "find a song", "PlaySong": "hear a song",
    "LookupMusic": "find a song", "PlayMedia": "hear a song", "GetCarsAvailable": "find a rental car",
    "ReserveCar": "rent a car", "ReserveRestaurant": "reserve a table", "FindRestaurants": "find a restaurant",
    "GetRide": "order a ride", "BookAppointment": "make an appointment", "FindProvider": "find somebody to go to",
    "FindAttractions": "find something to see", "GetWeather": "know the weather"}
# How a value is added to that, and of what sort it is: values of one sort can be mistaken for each other.
SLOTS = {
    "from_location": ("from {v}", "place"), "to_location": ("to {v}", "place"), "origin": ("from {v}", "place"),
    "origin_city": ("from {v}", "place"), "destination_city": ("to {v}", "place"), "city": ("in {v}", "place"),
    "location": ("in {v}", "place"), "where_to": ("in {v}", "place"), "area": ("in {v}", "place"),
    "city_of_event": ("in {v}", "place"), "pickup_city": ("in {v}", "place"),
    "leaving_date": ("leaving on {v}", "date"), "departure_date": ("leaving on {v}", "date"),
    "return_date": ("coming back on {v}", "date"), "check_in_date": ("arriving on {v}", "date"),
    "check_out_date": ("staying until {v}", "date"), "date": ("on {v}", "date"), "visit_date": ("on {v}", "date"),
    "show_date": ("on {v}", "date"), "event_date": ("on {v}", "date"), "appointment_date": ("on {v}", "date"),
    "pickup_date": ("from {v}", "date"), "dropoff_date": ("until {v}", "date"),
    "leaving_time": ("leaving at {v}", "time"), "departure_time": ("leaving at {v}", "time"),
    "time": ("at {v}", "time"), "show_time": ("at {v}", "time"), "event_time": ("at {v}", "time"),
    "appointment_time": ("at {v}", "time"), "pickup_time": ("picked up at {v}", "time"),
    "travelers": ("for a party of {v}", "count"), "group_size": ("for a party of {v}", "count"),
    "passengers": ("for a party of {v}", "count"), "party_size": ("for a party of {v}", "count"),
    "number_of_adults": ("for a party of {v}", "count"), "number_of_riders": ("for a party of {v}", "count"),
    "number_of_rooms": ("with {v} as the number of rooms", "count"),
    "number_of_beds": ("with {v} as the number of bedrooms", "count"),
    "number_of_baths": ("with {v} as the number of bathrooms", "count"),
    "number_of_days": ("for a stay of {v} days", "count"), "number_of_tickets": ("for {v} as the number of tickets", "count"),
    "number_of_seats": ("for {v} as the number of seats", "count"), "cuisine": ("with {v} food", "kind"),
    "price_range": ("in the {v} price range", "price"), "genre": ("of the genre {v}", "kind"),
    "artist": ("by {v}", "name"), "directed_by": ("directed by {v}", "name"), "album": ("on the album {v}", "name"),
    "playback_device": ("on the {v}", "device"), "seating_class": ("in {v}", "class"), "airlines": ("with {v}", "line"),
    "car_type": ("of the type {v}", "car"), "type": ("of the type {v}", "car"), "star_rating": ("with {v} stars", "count"),
    "restaurant_name": ("at {v}", "venue"), "hotel_name": ("at {v}", "venue"), "event_name": ("called {v}", "title"),
    "movie_name": ("called {v}", "title"), "title": ("called {v}", "title"), "song_name": ("called {v}", "title"),
    "amount": ("with {v} as the amount", "price"), "recipient_account_name": ("with {v} as the one who gets it", "name"),
    "dentist_name": ("with {v}", "name"), "doctor_name": ("with {v}", "name"), "stylist_name": ("with {v}", "name"),
    "pickup_location": ("picked up at {v}", "venue"), "category": ("of the kind {v}", "kind")}
MAIN = ("restaurant_name", "hotel_name", "event_name", "movie_name", "title", "song_name", "property_name", "dentist_name",
        "doctor_name", "stylist_name", "car_name", "attraction_name")  # what an offer is about
TELLS = {"street_address": "the address is {v}", "address": "the address is {v}", "phone_number": "the phone number is {v}",
         "rating": "the rating is {v}", "average_rating": "the rating is {v}", "price": "the price is {v}",
         "total_price": "the whole price is {v}", "fare": "the fare is {v}", "ride_fare": "the ride costs {v}",
         "price_per_night": "a night costs {v}", "wait_time": "the wait is {v} minutes", "temperature": "it will be {v} degrees",
         "wind": "the wind will blow at {v} miles an hour", "humidity": "the humidity will be {v} per cent",
         "balance": "the balance is {v}", "artist": "the artist is {v}", "album": "the album is {v}", "year": "the year is {v}",
         "outbound_arrival_time": "the arrival there is at {v}", "inbound_arrival_time": "the arrival back home is at {v}",
         "cuisine": "they serve {v} food", "rent": "the rent is {v}", "venue": "it takes place at {v}",
         "event_location": "it takes place at {v}", "theater_name": "it is shown at {v}", "venue_address": "the address is {v}"}
WANTS = ["{n} wants to {a}", "{n} would like to {a}", "{n} is hoping to {a}", "{n} asks for help to {a}", "What {n} is after is to {a}"]
TAKES = ["{n} decides on {v}", "{n} is happy with {v}", "{n} goes for {v}", "{n} picks {v}", "{v} is what {n} accepts"]
REFUSES = ["{n} turns down {v}", "{n} is not satisfied with {v}", "{n} asks for something other than {v}", "{v} is not what {n} goes for"]
AGREES = ["{n} agrees to {a}", "{n} accepts the offer to {a}", "{n} wants to {a} right away"]
DECLINES = ["{n} does not want to {a} for now", "{n} declines the offer to {a}", "{n} has no wish to {a} at this point"]
WELL = ["The request went through", "What was asked for has been arranged", "The transaction succeeded"]
BADLY = ["The request failed", "What was asked for could not be arranged", "The transaction did not succeed"]


class Talk:
    """A conversation with its speakers, and by sort the values that it mentions."""

    def __init__(self, turns: list[dict], rng: random.Random):
        self.turns = turns
        if rng.random() < 0.35:
            first, second = (p.split()[0] for p in rng.sample(PEOPLE, 2))
            self.user, self.system = first, second
        else:
            first, second = rng.choice(SPEAKERS)
            the = "" if first.startswith("Speaker") else "the "
            self.user, self.system = the + first.lower() if the else first, the + second.lower() if the else second
        self.text = "\n".join(f"{first if t['speaker'] == 'USER' else second}: {t['utterance']}" for t in turns)
        self.low = self.text.lower()
        self.values = defaultdict(list)
        for act in self.acts():
            if act["slot"] in SLOTS:
                self.values[SLOTS[act["slot"]][1]] += [v for v in act["values"][:1] if v.lower() in self.low]

    def acts(self, turn: dict | None = None):
        for t in self.turns if turn is None else [turn]:
            for f in t["frames"]:
                yield from f["actions"]

    def other(self, sort: str, value: str, stock: dict, rng) -> str | None:
        """Another value of a sort, of this conversation if there is one."""
        near = [v for v in dict.fromkeys(self.values[sort]) if v.lower() != value.lower()]
        far = stock.get(sort, [])
        if near and rng.random() < 0.75:
            return rng.choice(near)
        picked = rng.choice(far) if far else None
        return picked if picked and picked.lower() != value.lower() else None


def upper(text: str) -> str:
    return text[0].upper() + text[1:]


def wishes(talk: Talk, stock, rng):
    """What is wanted, with one to three of its details; and the same with one of them wrong."""
    last = {}
    for t in talk.turns:
        for f in t["frames"]:
            state = f.get("state")
            if state and state["active_intent"] in AIMS:
                last[f["service"], state["active_intent"]] = state["slot_values"]
    for (_, intent), slots in last.items():
        known = {s: next((v for v in vs if v.lower() in talk.low), None) for s, vs in slots.items() if s in SLOTS}
        known = {s: v for s, v in known.items() if v and v != "dontcare"}
        if not known:
            continue
        picked = rng.sample(sorted(known), min(len(known), rng.choice([1, 2, 2, 3])))
        say = lambda values: AIMS[intent] + "".join(" " + SLOTS[s][0].format(v=values[s]) for s in picked)
        frame, name = rng.choice(WANTS), talk.user
        yield frame.format(n=name, a=say(known)), YES, [known[s] for s in picked]
        wrong, kind = dict(known), rng.random()
        at = rng.choice(picked)
        same = [s for s in known if s != at and SLOTS[s][1] == SLOTS[at][1] and known[s] != known[at]]
        if same and kind < 0.5:
            other = rng.choice(same)
            wrong[at] = known[other]
            if other in picked:
                wrong[other] = known[at]
        elif kind > 0.93:
            name = talk.system
        else:
            wrong[at] = talk.other(SLOTS[at][1], known[at], stock, rng)
            if wrong[at] is None or any(wrong[at].lower() == v.lower() for v in slots.get(at, [])):
                continue
        yield rng.choice([frame, *WANTS]).format(n=name, a=say(wrong)), EITHER, []


def choices(talk: Talk, stock, rng):
    offer, taken, refused = None, [], []
    for t in talk.turns:
        acts = list(talk.acts(t))
        if t["speaker"] == "SYSTEM":
            found = [a["values"][0] for a in acts if a["act"] == "OFFER" and a["slot"] in MAIN and a["values"]]
            offer = found[0] if found and found[0].lower() in talk.low else offer if not found else None
        elif offer:
            if any(a["act"] == "SELECT" for a in acts):
                taken.append(offer)
            elif any(a["act"] == "REQUEST_ALTS" for a in acts):
                refused.append(offer)
    refused = [v for v in dict.fromkeys(refused) if v not in taken]
    for value in dict.fromkeys(taken):
        yield rng.choice(TAKES).format(n=talk.user, v=value), YES, [value]
        if rng.random() < 0.5:
            yield rng.choice(REFUSES).format(n=talk.user, v=value), EITHER, []
    for value in refused:
        yield rng.choice(REFUSES).format(n=talk.user, v=value), YES, [value]
        yield rng.choice(TAKES).format(n=talk.user, v=value), EITHER, []


def tellings(talk: Talk, stock, rng):
    found = [(a["slot"], a["values"][0]) for t in talk.turns if t["speaker"] == "SYSTEM" for a in talk.acts(t)
             if a["act"] in ("INFORM", "OFFER") and a["slot"] in TELLS and a["values"] and a["values"][0].lower() in talk.low]
    for slot, value in rng.sample(found, min(2, len(found))):
        said = TELLS[slot].format(v=value)
        frame = rng.choice(["{n} says that {s}", "According to {n}, {s}", "{n} tells {m} that {s}"])
        yield frame.format(n=talk.system, m=talk.user, s=said), YES, [value]
        if rng.random() < 0.4:
            yield frame.format(n=talk.user, m=talk.system, s=said), EITHER, []
            continue
        there = [v for s, v in found if v != value and TELLS[s] != TELLS[slot]]
        wrong = rng.choice(there) if there and rng.random() < 0.4 else rng.choice(stock["told/" + slot])
        if wrong.lower() != value.lower():
            yield frame.format(n=talk.system, m=talk.user, s=TELLS[slot].format(v=wrong)), EITHER, []


def results(talk: Talk, stock, rng):
    offered = None
    for n, t in enumerate(talk.turns):
        for a in talk.acts(t):
            if a["act"] == "OFFER_INTENT":
                offered = AIMS.get(a["values"][0])
            elif a["act"] in ("AFFIRM_INTENT", "NEGATE_INTENT") and offered:
                yes = a["act"] == "AFFIRM_INTENT"
                ways = (AGREES, DECLINES) if yes else (DECLINES, AGREES)
                told = offered.split()[-1]
                for frames, may in zip(ways, (YES, EITHER)):
                    yield rng.choice(frames).format(n=talk.user, a=offered), may, [told] if may is YES else []
                offered = None
            elif a["act"] in ("NOTIFY_SUCCESS", "NOTIFY_FAILURE") and rng.random() < 0.3:
                ways = (WELL, BADLY) if a["act"] == "NOTIFY_SUCCESS" else (BADLY, WELL)
                part = "\n".join(talk.text.split("\n")[max(0, n - 1) : n + 1])
                for frames, may in zip(ways, (YES, EITHER)):
                    yield rng.choice(frames), may, part


def build(folder: Path, files: int = 60, seed: int = 211) -> list[Pair]:
    """Pairs of conversations of so many files; the premise is what the product would gather of the conversation."""
    rng, out, stock, told = random.Random(seed), [], defaultdict(list), []
    for path in sorted(folder.glob("dialogues_*.json"))[:files]:
        told += json.loads(path.read_text())
    for d in told:
        for t in d["turns"]:
            for f in t["frames"]:
                for a in f["actions"]:
                    if a["values"] and a["slot"] in SLOTS:
                        stock[SLOTS[a["slot"]][1]].append(a["values"][0])
                    if a["values"] and a["slot"] in TELLS:
                        stock["told/" + a["slot"]].append(a["values"][0])
    for d in told:
        talk = Talk(d["turns"], rng)
        for family in (wishes, choices, tellings, results):
            for claim, may, needed in family(talk, stock, rng):
                claim = upper(claim) + rng.choice([".", ".", ""])
                if isinstance(needed, str):
                    premise = needed
                else:
                    premise = nli_data.gathered(talk.text, claim, rng.choice([72, 72, 96]))
                    if any(v.lower() not in premise.lower() for v in needed):
                        continue
                if premise:
                    out.append(Pair(premise, claim, may, "own/talks", family.__name__))
    return out
