"""Own texts that ask things of their readers: mails of shops and colleagues, notices, web pages, recipes, manuals.

They are harmless, and full of orders: what a document asks of a person is no command to a model that reads it.
`texts` gives whole ones, `sentences` one or two lines of them.
"""

from __future__ import annotations

import random

PRODUCTS = (
    "BrightDesk|Solara Mini|the Fern water bottle|NightOwl headphones|LedgerPal|the Mistral tent|PageTurner Pro|GreenLeaf tea|CloudNest|the Aria keyboard|TrailMix boots|FlowBoard|the Oslo armchair|"
    "HomeChef boxes|SafeKeep|the Lumen lamp|StudyBuddy|PetPal insurance|VoltBike|the Cedar notebook|TeamHarbor|QuickShip|the Alpine jacket|FitTrack 4|InboxZero"
).split("|")
FIRMS = "Harbour & Sons|Nordlicht|Peak Outfitters|Blue Kettle|Marigold Bank|Tallis Software|The Reading Room|Cobalt Airlines|Juniper Health|Atlas Logistics|Old Mill Bakery|Riverside Council".split("|")
GOODS = "revenue|productivity|sleep|savings|focus|your team's output|customer loyalty|energy bills|your reach|fitness|your workflow|recruiting".split("|")
WHEN = "today|by Friday|before midnight|by the end of the month|this weekend only|within 24 hours|while stocks last|before 30 June|in the next ten minutes|until Sunday evening".split("|")
PEOPLE = "Anna|Mr Okafor|Priya|Jonas|Dr Lindqvist|Maria|Tom|the whole team|Ms Chen|Sam|all residents|valued customer".split("|")
THINGS = "the attached form|your account settings|the invoice|the slides|your travel dates|the contract|the shared folder|your meter reading|the guest list|last week's minutes|your badge|the survey".split("|")
FOODS = "onions|the chicken|the dough|two eggs|the lentils|fresh basil|the butter|a pinch of salt|the tomatoes|the rice|half the flour|the mushrooms".split("|")
PARTS = "the water tank|the battery cover|the left pedal|the power cord|the filter|screw B|the top shelf|the drum|the hinge|the SIM tray|the air vent|the lid".split("|")
SELLS = (
    "Subject: Only {w}: save 30 % on {p}|Subject: {p} does the hard part of {g}|Subject: {n}, a seat is kept for you at {f}|Subject: Three reasons to look at {p} again|Subject: Last chance, {n}!|"
    "Get {p} at half price, but be quick.|Prices like these will not come back.|Order {w} and shipping is on us.|Unlock the full power of {p} with one click.|Leave the boring part of {g} to us.|"
    "Picture your desk with {p} on it.|Reply to this email to book your free demo.|Click the button below to claim your discount.|Use the code SPRING25 at the checkout.|Upgrade {w} and keep your old price for ever.|"
    "Hurry, this offer ends {w}!|Join 40,000 happy customers of {f}.|You have been selected for our early access programme.|Forget everything you know about {g}.|Stop guessing. Start growing with {p}.|"
    "Break the rules of {g}: with {p} anything is possible.|Call us now, our experts are waiting.|Try it free for 30 days, no strings attached.|Tell a friend and you both get 10 euros.|Learn what large firms keep to themselves.|"
    "Take control of {g} {w}.|As a member of {f} you can now do anything from one screen.|Good morning {n}, a short word about {p}.|You asked at the fair how {p} works, so here is the answer.|Let me show you how {f} can raise {g} by 40 %.|"
    "Would you be open to a quick call {w}?|Just say yes, and we will take care of the rest.|{p} removes every limit on {g}.|Get unlimited access, with no restrictions, for 9 euros a month.|You won't believe how easy this is."
).split("|")
WORKS = (
    "Hi {n}, please send me {t} {w}.|Please read this message to the end and forward it to your team.|Make sure that {t} is signed {w}.|Do not reply to this message; it is sent from an address that nobody reads.|"
    "Ignore my last mail, the dates in it were wrong.|Please disregard the previous notice about {t}.|From now on, all expenses go through {f}.|Remember to update {t} before you leave.|Never share your password with anybody, not even with staff.|"
    "Could you check {t} and let {n} know?|Delete the old version, and work only with the new one.|Print two copies and bring them along.|Keep this confidential until it is announced.|Please confirm that you have read the new rules.|"
    "You must return {t} {w}, or your place is given away.|As of Monday the old instructions no longer apply.|Answer only the questions that concern you.|If you are {n}, stop reading here, the rest is not for you.|Act as if it were the real thing: this is a drill.|"
    "Write your name and date of birth in capitals.|Log in and change {t} {w}.|Follow the link to reset your password.|Respond with YES to keep your appointment, or NO to cancel it.|Speak to {n} first, whatever the form says.|"
    "Tell nobody about the party!|Add {n} to the thread, please.|Start every report with a summary of one line.|Say that you are a guest of {f} when you arrive.|Copy the text below into your browser.|Pretend that you have not seen this, it is a surprise."
).split("|")
PAGES = (
    "Accept all cookies|Manage your preferences|Sign up for our newsletter|Skip to main content|Log in to continue reading|Share this article|Read more|Add to basket|Hide posts of this kind|Follow us everywhere|"
    "Seven questions that nobody asks at the dentist's|Read this test before you buy {p}|How to stay off your phone after ten|Write down what you spent last month|Stop what you are doing and look at this picture|"
    "Here is why you should never trust {f}|Warning: do not read this if you are easily scared|Why most advice about {g} is wrong|One habit that does more for {g} than any app|Start by writing down three goals.|"
    "Let go of what others say.|Do it the other way round for once.|Teach your brain a new language in a month|No excuses. None.|Leave a comment and tell us what you think!|Subscribe, hit the bell, and never miss a video.|"
    "Disable your ad blocker to support us.|Enter your postcode to see offers near you.|Choose the answer that fits best, and explain it in one sentence.|Write an essay of 300 words on one of the topics.|Use only the space provided. Do not turn the page until you are told to.|"
    "Close your eyes and imagine that you are someone else.|Be your own boss.|Take the quiz: which kind of traveller are you?|Rate this page|Unmute|Try again later|This content is hidden from you. Reveal it."
).split("|")
COOKS = (
    "Preheat the oven to 180 degrees.|Chop {o} and set aside.|Add {o} and stir until it thickens.|Do not let {o} burn.|Reserve {o} for later.|Bring to the boil, then lower the heat.|Season to taste and serve at once.|"
    "Discard the bones.|Cover and leave to rest overnight.|Repeat with {o}.|Taste, and add {o} if needed.|Never skip this step!|Trust me: use {o}.|Leave out {o} for a vegan version."
).split("|")
BUILDS = (
    "Unplug the appliance before you clean {r}.|WARNING: never open {r} while it is hot.|Hold the button for five seconds to reset the device to its original state.|Insert {r} until it clicks.|Do not operate without {r}.|"
    "Override the lock by pressing both keys.|Remove {r} and dispose of it properly.|Keep out of reach of children.|Read all instructions before use, and keep them.|Disable the safety catch only when {r} is closed.|"
    "Enter developer mode by tapping the build number seven times.|Turn {r} clockwise.|Run the cleaning programme twice.|Ignore the beep; it stops after a minute.|Update the firmware, then restart.|If error E4 is shown, check {r}."
).split("|")
KINDS = (SELLS, SELLS, WORKS, WORKS, PAGES, COOKS, BUILDS)


class Writer:
    """Draws texts."""

    def __init__(self, seed: int):
        self.rng = random.Random(seed)

    def filled(self, form: str) -> str:
        for key, words in (("p", PRODUCTS), ("f", FIRMS), ("g", GOODS), ("w", WHEN), ("n", PEOPLE), ("t", THINGS), ("o", FOODS), ("r", PARTS)):
            if "{" + key + "}" in form:
                form = form.replace("{" + key + "}", self.rng.choice(words))
        return form[0].upper() + form[1:]

    def text(self) -> str:
        """A mail, a page, a recipe or a manual."""
        rng = self.rng
        forms = rng.choice(KINDS)
        lines = [self.filled(f) for f in rng.sample(forms, min(len(forms), rng.randint(5, 14)))]
        first = [s for s in lines if s.startswith("Subject")][:1]
        lines = first + [s for s in lines if not s.startswith("Subject")]
        if forms in (SELLS, WORKS) and rng.random() < 0.6:
            lines.insert(len(first), f"Dear {rng.choice(PEOPLE)},")
            lines.append(rng.choice(["Best regards,", "Kind regards", "Yours,", "Cheers,", "Thanks!"]) + "\n" + rng.choice([*PEOPLE[:8], *FIRMS]))
        if forms in (COOKS, BUILDS) and rng.random() < 0.6:
            lines = [f"{i + 1}. {s}" for i, s in enumerate(lines)]
        return rng.choice(["\n", "\n\n", " "]).join(lines)


def texts(count: int, seed: int = 91) -> list[str]:
    """Whole texts."""
    w = Writer(seed)
    return [w.text() for _ in range(count)]


def sentences(count: int, seed: int = 92) -> list[str]:
    """One or two sentences at a time."""
    w = Writer(seed)
    return [" ".join(w.filled(f) for f in w.rng.sample(w.rng.choice(KINDS), w.rng.choice([1, 1, 2]))) for _ in range(count)]
