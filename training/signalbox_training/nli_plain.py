"""Claims in plain words that only their meaning tells apart: who did what to whom, of which of two things, how many, whether it may
or must be, on what condition, what a "not" reaches, who said it, what came first.

Every family makes its true and its false claims with the same frames, in both directions, so that the wording alone tells nothing.
Facts are about people, firms and things that do not exist.
"""

from __future__ import annotations

import random

from .nli_data import SURE, UNSUPPORTED, Pair
from .nli_facts import CITIES, FIRST, PEOPLE

YES, NO, OPEN, EITHER = SURE["entailment"], SURE["contradiction"], SURE["neutral"], UNSUPPORTED

ROLES = ["the pilot", "the surgeon", "the mechanic", "the tailor", "the baker", "the clerk", "the captain", "the librarian", "the banker", "the farmer",
         "the singer", "the painter", "the lawyer", "the judge", "the witness", "the driver", "the cook", "the guest", "the buyer", "the seller",
         "the manager", "the intern", "the director", "the actor", "the producer", "the critic", "the mentor", "the pupil", "the trainer", "the runner",
         "the analyst", "the auditor", "the treasurer", "the chairman", "the senator", "the governor", "the minister", "the ambassador", "the general",
         "the soldier", "the sheriff", "the suspect", "the patient", "the dentist", "the tourist", "the guide", "the carpenter", "the plumber"]
GROUPS = ["the museum", "the university", "the ministry", "the hospital", "the regional court", "the airline", "the shipyard", "the theatre", "the publisher",
          "the insurer", "the airport", "the orchestra", "the cooperative", "the embassy", "the club", "the agency", "the laboratory", "the foundation",
          "the newspaper", "the bank", "the committee", "the parliament", "the charity", "the port authority", "the water company", "the research team"]
# Present, past, participle, and two other ways to say it of subject and object.
ACTS = [("warns", "warned", "warned", "{o} received a warning from {s}", "{s} gave {o} a warning"),
        ("visits", "visited", "visited", "{o} had a visit from {s}", "{s} paid {o} a visit"),
        ("criticises", "criticised", "criticised", "{o} drew criticism from {s}", "{s} found fault with {o}"),
        ("supports", "supported", "supported", "{o} had the backing of {s}", "{s} stood behind {o}"),
        ("invites", "invited", "invited", "{o} got an invitation from {s}", "{s} asked {o} to come"),
        ("trains", "trained", "trained", "{o} learnt the trade from {s}", "{s} gave {o} training"),
        ("hires", "hired", "hired", "{o} got a job from {s}", "{s} took {o} on"),
        ("dismisses", "dismissed", "dismissed", "{o} lost the job with {s}", "{s} let {o} go"),
        ("sues", "sued", "sued", "{o} was taken to court by {s}", "{s} went to court against {o}"),
        ("pays", "paid", "paid", "{o} got money from {s}", "{s} gave {o} money"),
        ("defeats", "defeated", "defeated", "{o} lost to {s}", "{s} won against {o}"),
        ("follows", "followed", "followed", "{o} had {s} behind", "{s} went after {o}"),
        ("replaces", "replaced", "replaced", "{o} made way for {s}", "{s} took the place of {o}"),
        ("rescues", "rescued", "rescued", "{o} owes the rescue to {s}", "{s} saved {o}"),
        ("finances", "financed", "financed", "{o} got the funds from {s}", "{s} put up the money for {o}"),
        ("inspects", "inspected", "inspected", "{o} underwent an inspection by {s}", "{s} carried out an inspection of {o}"),
        ("helps", "helped", "helped", "{o} had help from {s}", "{s} gave {o} a hand"),
        ("accuses", "accused", "accused", "{o} faced accusations from {s}", "{s} made accusations against {o}"),
        ("praises", "praised", "praised", "{o} got praise from {s}", "{s} spoke well of {o}"),
        ("calls", "called", "called", "{o} got a call from {s}", "{s} rang {o}"),
        ("deceives", "deceived", "deceived", "{o} fell for a trick of {s}", "{s} played a trick on {o}"),
        ("interviews", "interviewed", "interviewed", "{o} answered the questions of {s}", "{s} put questions to {o}"),
        ("represents", "represented", "represented", "{o} had {s} to speak for them", "{s} spoke for {o}"),
        ("informs", "informed", "informed", "{o} learnt the news from {s}", "{s} told {o} the news"),
        ("blocks", "blocked", "blocked", "{o} could not get past {s}", "{s} stood in the way of {o}"),
        ("buys out", "bought out", "bought out", "{o} passed into the hands of {s}", "{s} took over {o}")]
# The same event from both sides: {a} first side, {b} second side, {t} thing.
CONVERSES = [("{a} sold {t} to {b}", "{b} bought {t} from {a}"), ("{a} lent {t} to {b}", "{b} borrowed {t} from {a}"),
             ("{a} gave {t} to {b}", "{b} received {t} from {a}"), ("{a} rented {t} out to {b}", "{b} was the tenant of {a} for {t}"),
             ("{a} sent {t} to {b}", "{t} came to {b} from {a}"), ("{a} inherited {t} from {b}", "{b} left {t} to {a}"),
             ("{a} taught {b} how to repair {t}", "{b} learnt from {a} how to repair {t}"), ("{a} stole {t} from {b}", "{b} lost {t} to {a}, the thief"),
             ("{a} showed {t} to {b}", "{b} was shown {t} by {a}"), ("{a} returned {t} to {b}", "{b} got {t} back from {a}"),
             ("{a} is older than {b}", "{b} is younger than {a}"), ("{a} lives north of {b}", "{b} lives south of {a}"),
             ("{a} arrived before {b}", "{b} arrived after {a}"), ("{a} is the parent of {b}", "{b} is the child of {a}"),
             ("{a} is the employer of {b}", "{b} works for {a}"), ("{a} earns more than {b}", "{b} earns less than {a}"),
             ("{a} owes money to {b}", "{b} is waiting for money from {a}"), ("{a} is taller than {b}", "{b} is shorter than {a}"),
             ("{a} leads the team of {b}", "{b} reports to {a}"), ("{a} finished ahead of {b}", "{b} finished behind {a}")]
THINGS = ["the boat", "the old piano", "a set of maps", "the van", "the workshop", "a telescope", "the manuscript", "the vineyard", "a silver watch",
          "the farmhouse", "the drone", "a box of letters", "the printing press", "the camera", "the garage", "a tractor", "the painting", "the bakery"]
# A subject and pairs of predicates that cannot both hold of it; each predicate said in two ways.
OPPOSED = [("{x}", ("is open to the public", "can be visited by anyone"), ("is closed to the public", "cannot be visited by outsiders")),
           ("{x}", ("was approved", "got the go-ahead"), ("was rejected", "was turned down")),
           ("{x}", ("became cheaper", "went down in price"), ("became more expensive", "went up in price")),
           ("{x}", ("is mandatory", "is compulsory for all"), ("is voluntary", "is left to each person's choice")),
           ("{x}", ("succeeded", "reached its goal"), ("failed", "missed its goal")),
           ("{x}", ("started early", "began ahead of time"), ("started late", "began behind time")),
           ("{x}", ("was kept secret", "was not made known"), ("was made public", "was published")),
           ("{x}", ("is full", "has no places left"), ("still has room", "has places left")),
           ("{x}", ("grew", "became larger"), ("shrank", "became smaller")),
           ("{x}", ("is run by volunteers", "has no paid staff"), ("is run by paid staff", "employs the people who run it")),
           ("{x}", ("was well received", "met with approval"), ("was badly received", "met with disapproval")),
           ("{x}", ("is temporary", "will not stay for good"), ("is permanent", "will stay for good")),
           ("{x}", ("works without a connection", "can be used offline"), ("needs a connection", "cannot be used offline")),
           ("{x}", ("was built for the first time", "is a new building"), ("was rebuilt", "had been there before")),
           ("{x}", ("is getting safer", "has fewer accidents than before"), ("is getting more dangerous", "has more accidents than before")),
           ("{x}", ("was welcomed by residents", "pleased the people who live there"), ("was opposed by residents", "angered the people who live there")),
           ("{x}", ("is free of charge", "costs nothing"), ("has to be paid for", "costs money")),
           ("{x}", ("was postponed", "was moved to a later date"), ("was brought forward", "was moved to an earlier date")),
           ("{x}", ("is alone in its field", "has no competitors"), ("has several rivals", "has to compete with others")),
           ("{x}", ("was finished", "is complete"), ("was abandoned", "was never completed"))]
SUBJECTS = ["the new library", "the {f} bridge", "the {f} festival", "the training course", "the {f} project", "the northern line", "the {f} plan", "the winter market",
            "the second phase", "the {f} programme", "the pilot study", "the night service", "the {f} exhibition", "the youth tournament", "the old mill",
            "the {f} app", "the harbour tour", "the coding workshop", "the {f} clinic", "the city archive"]
PREDICATES = ["has a red roof", "opens on Sundays", "is run by a family", "was built of stone", "needs a permit", "has been repaired", "lies by the river", "is heated with wood",
              "is used by students", "was paid for by donors", "has two entrances", "is guarded at night", "was designed abroad", "is written in two languages", "needs fresh batteries",
              "serves hot meals", "was moved to the cellar", "keeps its own records", "has won a prize", "stands empty", "was painted last year", "is shared by four families",
              "is insured", "belongs to the town", "is closed for repairs", "offers evening classes", "uses solar power", "was damaged by the storm", "is known for its gardens",
              "has a new director", "publishes its figures", "is older than the church", "sells tickets online", "was sold at auction"]
PAIRED = [("the upper floor", "the ground floor"), ("the left panel", "the right panel"), ("the morning class", "the evening class"), ("the cheaper model", "the dearer model"),
          ("the blue line", "the green line"), ("the first edition", "the second edition"), ("the coastal road", "the mountain road"), ("the old wing", "the new wing"),
          ("the boys' team", "the girls' team"), ("the eastern gate", "the western gate"), ("the small hall", "the large hall"), ("the paper form", "the online form"),
          ("the summer menu", "the winter menu"), ("the front door", "the back door"), ("the inner ring", "the outer ring"), ("the red folder", "the black folder"),
          ("the French version", "the Dutch version"), ("the wooden cabin", "the stone cabin"), ("the night bus", "the day bus"), ("the elder sister", "the younger sister")]
CROWD = ["students", "members", "guests", "rooms", "shops", "villages", "patients", "drivers", "engines", "letters", "farmers", "samples", "teachers", "tenants", "players", "servers",
         "invoices", "trees", "passengers", "applicants"]
SHARED = ["were tested", "came back", "were inspected", "agreed to the change", "had to wait", "received a letter", "took part in the survey", "were insured", "paid in advance",
          "were moved", "complained about the noise", "got a refund", "were damaged", "asked for help", "passed the check", "use the new system"]
# From the strongest to the weakest; each with ways to say it.
MANY = [("all", ("All of the {c} {p}", "Every one of the {c} {p1}", "The {c} {p} without exception")),
        ("most", ("Most of the {c} {p}", "The majority of the {c} {p}", "More than half of the {c} {p}")),
        ("some", ("Some of the {c} {p}", "A few of the {c} {p}", "At least some of the {c} {p}")),
        ("none", ("None of the {c} {p}", "Not one of the {c} {p1}", "No {c} {p}"))]
IMPLIED = {("all", "most"), ("all", "some"), ("most", "some")}
BASE = [("apply for a refund", "applying for a refund"), ("bring a dog", "bringing a dog"), ("use the side entrance", "using the side entrance"), ("work from home", "working from home"),
        ("change the password", "changing the password"), ("wear a helmet", "wearing a helmet"), ("sign the form", "signing the form"), ("park in the yard", "parking in the yard"),
        ("cancel the order", "cancelling the order"), ("show a ticket", "showing a ticket"), ("stay overnight", "staying overnight"), ("share the report", "sharing the report"),
        ("switch the account", "switching the account"), ("take photographs", "taking photographs"), ("leave early", "leaving early"), ("pay in cash", "paying in cash"),
        ("attend the meeting", "attending the meeting"), ("return the keys", "returning the keys"), ("book in advance", "booking in advance"), ("carry a spare battery", "carrying a spare battery")]
MODALS = {"may": ("{S} may {v}", "{S} are allowed to {v}", "It is up to {s} whether they {v}", "{G} is permitted for {s}"),
          "must": ("{S} must {v}", "{S} have to {v}", "{G} is an obligation for {s}", "{S} are required to {v}"),
          "must not": ("{S} must not {v}", "{S} are not allowed to {v}", "{G} is forbidden for {s}", "{S} are banned from {g}"),
          "need not": ("{S} need not {v}", "{S} do not have to {v}", "{G} is not an obligation for {s}", "Nobody makes {s} {v}")}
MODAL = {("may", "must"): EITHER, ("may", "must not"): NO, ("may", "need not"): EITHER, ("must", "may"): None, ("must", "must not"): NO, ("must", "need not"): NO,
         ("must not", "may"): NO, ("must not", "must"): NO, ("must not", "need not"): None, ("need not", "may"): None, ("need not", "must"): NO, ("need not", "must not"): EITHER}
WHO = ["visitors", "staff", "students", "tenants", "members", "guests", "contractors", "nurses", "customers", "drivers", "residents", "volunteers"]
EVENTS = ["the roof was repaired", "the contract was signed", "the road was closed", "the results were published", "the alarm went off", "the lights were switched off",
          "the guests were seated", "the director resigned", "the snow melted", "the shop moved to the square", "the engine was replaced", "the vote was counted",
          "the bridge was opened", "the parcel was delivered", "the tank was emptied", "the lawsuit was settled", "the film was released", "the school got a new head",
          "the database was backed up", "the patient left the hospital", "the price went up", "the old version was withdrawn", "the tickets sold out", "the storm passed"]
CONDITIONS = [("the fee is paid", "payment of the fee"), ("the weather is dry", "dry weather"), ("the manager agrees", "the consent of the manager"), ("two witnesses are there", "two witnesses"),
              ("the sensor is covered", "a covered sensor"), ("the order is above the limit", "an order above the limit"), ("the pupil has a note", "a note of the pupil"),
              ("the account is older than a year", "an account older than a year"), ("the valve is shut", "a shut valve"), ("the licence is renewed", "a renewed licence")]
OUTCOMES = [("the gate opens", "the gate stays shut"), ("the loan is granted", "the loan is refused"), ("the race takes place", "the race is called off"),
            ("delivery is free", "delivery costs extra"), ("the pump starts", "the pump stays off"), ("the request is answered", "the request is ignored"),
            ("the room can be used", "the room cannot be used"), ("the backup runs", "the backup does not run"), ("the discount applies", "the discount does not apply"),
            ("the ferry sails", "the ferry stays in port")]
SAYINGS = ["the plan is too costly", "the dam is safe", "the figures are wrong", "the town needs a new school", "the merger will fail", "the drug has side effects",
           "the work will be done by spring", "the road should be wider", "the tax hurts small shops", "the software is ready", "the harvest will be poor", "the painting is a copy",
           "the strike is over", "the river is clean again", "the old rule was better", "the team needs more time", "the price is fair", "the law goes too far"]
DEEDS = [("send the figures", "sent the figures", "sending the figures"), ("book the room", "booked the room", "booking the room"), ("call the supplier", "called the supplier", "calling the supplier"),
         ("write the summary", "wrote the summary", "writing the summary"), ("fix the login page", "fixed the login page", "fixing the login page"), ("order new chairs", "ordered new chairs", "ordering new chairs"),
         ("check the budget", "checked the budget", "checking the budget"), ("visit the client", "visited the client", "visiting the client"), ("test the backup", "tested the backup", "testing the backup"),
         ("train the new staff", "trained the new staff", "training the new staff"), ("draft the contract", "drafted the contract", "drafting the contract"), ("water the plants", "watered the plants", "watering the plants"),
         ("pick up the keys", "picked up the keys", "picking up the keys"), ("cancel the subscription", "cancelled the subscription", "cancelling the subscription"), ("print the posters", "printed the posters", "printing the posters"),
         ("look for a new office", "looked for a new office", "looking for a new office"), ("review the design", "reviewed the design", "reviewing the design"), ("clean the kitchen", "cleaned the kitchen", "cleaning the kitchen")]
MOODS = [("will", ("I will {v}.", "I'll {v} this week.", "Leave it to me, I am going to {v}.", "Yes, I can {v}."), ("{n} will {v}", "{n} offers to {v}", "{n} is going to {v}", "{n} promises to {v}")),
         ("did", ("I {d} yesterday.", "I have already {d2}.", "Done: I {d} this morning."), ("{n} {d}", "{n} has already {d2}", "{n} says that they {d}")),
         ("wont", ("I won't {v}.", "Sorry, I have no time to {v}.", "I am not going to {v}."), ("{n} will not {v}", "{n} refuses to {v}", "{n} is not going to {v}")),
         ("asks", ("Could you {v}?", "Would you mind {g}?", "Can somebody {v}, please?"), ("{n} asks somebody else to {v}", "{n} wants somebody else to {v}")),
         ("doubts", ("I am not sure whether we should {v}.", "Do we really have to {v}?"), ("{n} is not sure that it is right to {v}", "{n} has doubts about {g}"))]
TALK = ["Good morning, everyone.", "Thanks for coming.", "All right.", "That sounds good.", "Let me see.", "Okay, next point.", "Right.", "Before I forget it.", "Fine with me.",
        "How was your weekend?", "We are short of time today.", "I see.", "Let us move on.", "Any questions so far?"]
JOBS = ["Agent", "Client", "Customer", "Sales representative", "Support", "Manager", "Doctor", "Patient", "Host", "Guest", "Professor", "Student", "Speaker A", "Speaker B", "User", "Assistant"]
LEADS = ["According to the text, {c}", "The text says that {c}", "It is reported that {c}", "As the document states, {c}"]


def upper(text: str) -> str:
    return text[0].upper() + text[1:]


def names(rng: random.Random, count: int) -> list[str]:
    """So many who can act: of one sort, so that nothing but the sentence tells their parts."""
    sort = rng.random()
    if sort < 0.35:
        return rng.sample(ROLES, count)
    if sort < 0.55:
        return rng.sample(GROUPS, count)
    if sort < 0.8:
        return [p if rng.random() < 0.5 else p.split()[0] for p in rng.sample(PEOPLE, count)]
    return [f"{f} {rng.choice(['Foods', 'Systems', 'Motors', 'Books', 'Media', 'Energy', 'Bank', 'Labs'])}" for f in rng.sample(FIRST, count)]


def act_ways(act, s: str, o: str) -> list[str]:
    return [f"{s} {act[1]} {o}", f"{o} was {act[2]} by {s}", act[3].format(s=s, o=o), act[4].format(s=s, o=o), f"it was {s} who {act[1]} {o}", f"it was {o} that {s} {act[1]}"]


def roles(rng):
    act = rng.choice(ACTS)
    s, o, third = names(rng, 3)
    told = rng.choice(act_ways(act, s, o)[:5])
    result = rng.random()
    where = rng.choice(["", "", f" in {rng.choice(CITIES)}", " last year", " in spring", " after the meeting"])
    if result < 0.46:
        return told + where, rng.choice([w for w in act_ways(act, s, o) if w != told]), YES
    if result < 0.86:
        return told + where, rng.choice(act_ways(act, o, s)), EITHER
    if result < 0.93:
        return told + where, rng.choice(act_ways(act, third, o)), EITHER
    other = rng.choice([a for a in ACTS if a is not act])
    return told + where, rng.choice(act_ways(other, s, o)), EITHER


def chains(rng):
    """Two events with one in both: who did which."""
    one, two = rng.sample(ACTS, 2)
    a, b, c = names(rng, 3)
    told = rng.choice([f"{a} {one[1]} {b}, and {b} {two[1]} {c}", f"{a} {one[1]} {b}, who {two[1]} {c}", f"{b}, who was {one[2]} by {a}, {two[1]} {c}"])
    true = [(one, a, b), (two, b, c)]
    false = [(one, b, a), (two, c, b), (one, a, c), (two, a, c), (one, c, b), (two, a, b)]
    right = rng.random() < 0.5
    return told, rng.choice(act_ways(*rng.choice(true if right else false))), YES if right else EITHER


def converses(rng):
    ways = rng.choice(CONVERSES)
    a, b = names(rng, 2)
    t = rng.choice(THINGS)
    told = rng.randrange(2)
    right = rng.random() < 0.5
    x, y = (a, b) if right else (b, a)
    claim = ways[1 - told if rng.random() < 0.75 else told] if not right or rng.random() < 0.9 else ways[told]
    return ways[told].format(a=a, b=b, t=t), claim.format(a=x, b=y, t=t), YES if right else EITHER


def opposites(rng):
    x, plus, minus = rng.choice(OPPOSED)
    x = rng.choice(SUBJECTS).format(f=rng.choice(FIRST))
    told, other = (plus, minus) if rng.random() < 0.5 else (minus, plus)
    k = rng.randrange(2)
    right = rng.random() < 0.5
    claim = (told[1 - k] if rng.random() < 0.8 else told[k]) if right else rng.choice(other)
    return f"{x} {told[k]}", f"{x} {claim}", YES if right else NO


def subjects(rng):
    a, b = rng.choice(PAIRED) if rng.random() < 0.6 else [n for n in rng.sample(SUBJECTS[:1] + SUBJECTS[3:4] + SUBJECTS[5:6] + SUBJECTS[7:9] + SUBJECTS[10:12] + SUBJECTS[13:15], 2)]
    if rng.random() < 0.5:
        a, b = b, a
    p, q, r = rng.sample(PREDICATES, 3)
    told = rng.choice([f"{a} {p}, and {b} {q}", f"{a} {p}, while {b} {q}", f"{a} {p}. {upper(b)} {q}", f"unlike {a}, which {p}, {b} {q}", f"{a} {p}; {b} {q}"])
    result = rng.random()
    if result < 0.25:
        return told, f"{a} {p}", YES
    if result < 0.45:
        return told, f"{b} {q}", YES
    if result < 0.52:
        return told, rng.choice([f"{b} {q}, and {a} {p}", f"{b} {q}, whereas {a} {p}"]), YES
    if result < 0.6:
        return told, rng.choice([f"{a} {q}, and {b} {p}", f"{b} {p}, whereas {a} {q}", f"both {a} and {b} are described: {a} {q}"]), EITHER
    if result < 0.78:
        return told, f"{a} {q}", EITHER
    if result < 0.94:
        return told, f"{b} {p}", EITHER
    return told, f"{rng.choice((a, b))} {r}", OPEN


def quantities(rng):
    c, p = rng.choice(CROWD), rng.choice(SHARED)
    single = p.replace("were ", "was ", 1) if p.startswith("were ") else p.replace("had ", "had ", 1).replace("use ", "uses ", 1) if p.startswith("use ") else p
    (one, ways), (two, others) = rng.choice(MANY), rng.choice(MANY)
    if rng.random() < 0.4:
        two, others = one, ways
    k = rng.randrange(len(ways))
    told = ways[k].format(c=c, p=p, p1=single)
    said = [w.format(c=c, p=p, p1=single) for w in others]
    claim = rng.choice([s for s in said if s != told])
    if one == two or (one, two) in IMPLIED:
        return told, claim, YES
    if one == "none" or two == "none":
        return told, claim, NO
    return told, claim, EITHER


def modality(rng):
    s, (v, g) = rng.choice(WHO), rng.choice(BASE)
    fill = lambda w: w.format(S=upper(s), s=s, v=v, g=g, G=upper(g))
    one = rng.choice(list(MODALS))
    two = one if rng.random() < 0.48 else rng.choice([m for m in MODALS if m != one and MODAL[one, m] is not None])
    told = rng.choice(MODALS[one])
    claim = rng.choice([w for w in MODALS[two] if w != told])
    return fill(told), fill(claim), YES if one == two else MODAL[one, two]


CERTAIN = [("{x} may have {q}", "it is possible that {x} {d}", "perhaps {x} {d}"), ("{x} {d}", "it is certain that {x} {d}", "there is no doubt that {x} {d}"),
           ("{x} is expected to {v}", "people expect {x} to {v}", "{x} will probably {v}"), ("{x} is certain to {v}", "{x} will {v} in any case", "nothing will keep {x} from {g}")]
VERBS = [("fail", "failed", "failed", "failing"), ("grow", "grew", "grown", "growing"), ("move", "moved", "moved", "moving"), ("close", "closed", "closed", "closing"),
         ("change", "changed", "changed", "changing"), ("lose money", "lost money", "lost money", "losing money"), ("reopen", "reopened", "reopened", "reopening"),
         ("win the contract", "won the contract", "won the contract", "winning the contract"), ("cause the delay", "caused the delay", "caused the delay", "causing the delay"),
         ("save energy", "saved energy", "saved energy", "saving energy"), ("replace the older one", "replaced the older one", "replaced the older one", "replacing the older one")]


def certainty(rng):
    x = rng.choice(SUBJECTS).format(f=rng.choice(FIRST))
    v, d, q, g = rng.choice(VERBS)
    weak, sure = (CERTAIN[0], CERTAIN[1]) if rng.random() < 0.5 else (CERTAIN[2], CERTAIN[3])
    fill = lambda w: w.format(x=x, v=v, d=d, q=q, g=g)
    result = rng.random()
    if result < 0.25:
        told, claim = rng.sample(weak, 2)
        return fill(told), fill(claim), YES
    if result < 0.5:
        told, claim = rng.sample(sure, 2)
        return fill(told), fill(claim), YES
    return fill(rng.choice(weak)), fill(rng.choice(sure)), OPEN


def conditions(rng):
    (c, noun), (y, n) = rng.choice(CONDITIONS), rng.choice(OUTCOMES)
    c2 = rng.choice([x[0] for x in CONDITIONS if x[0] != c])
    told = rng.choice(["if", "only if", "unless", "plain"])
    if told == "if":
        say = [f"if {c}, {y}", f"{y} if {c}", f"{y} whenever {c}", f"{noun} is enough: then {y}"]
        true, false = say, [f"{y} in any case", f"{y} whether or not {c}", f"{n} if {c}", f"{y} if {c2}", f"{y} without {noun}"]
    elif told == "only if":
        say = [f"{y} only if {c}", f"only if {c} {y.replace(' opens', ' does open')}" if y == "the gate opens" else f"it takes {noun}, or {n}", f"unless {c}, {n}", f"without {noun}, {n}"]
        true, false = say, [f"{y} even if it is not the case that {c}", f"{y} without {noun}", f"{y} in any case", f"{y} only if {c2}"]
    elif told == "unless":
        say = [f"{y} unless {c}", f"unless {c}, {y}", f"{y} except when {c}"]
        true, false = say, [f"{y} only if {c}", f"{y} even when {c}", f"{y} unless {c2}", f"{y} in any case"]
    else:
        say = [f"{y} in any case", f"{y}, whatever happens"]
        true, false = [f"{y} even if it rains", f"{y} in any case"], [f"{n}", f"{y} only if {c}", f"{n} unless {c}"]
    first = rng.choice(say)
    right = rng.random() < 0.5
    rest = [w for w in true if w != first] or true
    return first, rng.choice(rest if right else false), YES if right else EITHER


def negations(rng):
    """What a "not" reaches."""
    a, b = names(rng, 2)
    one, two = rng.sample(ACTS, 2)
    c = rng.choice(CITIES)
    t = rng.choice(THINGS)
    cases = [
        (f"{a} {one[1]} {b}, but not in {c}", [f"{a} {one[1]} {b} somewhere other than {c}", f"{b} was {one[2]} by {a}"], [f"{a} did not do it at all: {b} was never {one[2]}", f"{a} {one[1]} {b} in {c}"]),
        (f"{a} did not sell {t} but rented it out", [f"{a} rented {t} out", f"{t} was rented out, not sold"], [f"{a} sold {t}", f"{a} did not rent {t} out"]),
        (f"not {a} but {b} bought {t}", [f"{b} bought {t}", f"{t} was not bought by {a}"], [f"{a} bought {t}", f"{b} did not buy {t}", f"both bought {t}"]),
        (f"{a} never {one[1]} {b} without a reason", [f"{a} had a reason whenever {b} was {one[2]}"], [f"{a} {one[1]} {b} without any reason", f"{a} had no reason to do it"]),
        (f"{a} did not fail to return {t}", [f"{a} returned {t}", f"{t} was brought back by {a}"], [f"{a} did not return {t}", f"{a} kept {t}"]),
        (f"{a} forgot to lock {t}", [f"{t} was not locked by {a}", f"{a} did not lock {t}"], [f"{a} locked {t}", f"{t} was locked by {a}"]),
        (f"{a} remembered to lock {t}", [f"{a} locked {t}", f"{t} was locked by {a}"], [f"{a} did not lock {t}", f"{a} left {t} unlocked"]),
        (f"{a} denied that {b} had stolen {t}", [f"{a} said that {b} had not stolen {t}", f"in the words of {a}, {b} was no thief"], [f"{a} said that {b} had stolen {t}", f"{a} admitted that {b} was the thief"]),
        (f"{a} managed to repair {t}", [f"{a} repaired {t}", f"{t} works again thanks to {a}"], [f"{a} could not repair {t}", f"{a} did not repair {t}"]),
        (f"{a} was unable to repair {t}", [f"{a} did not repair {t}", f"{a} could not repair {t}"], [f"{a} repaired {t}", f"{t} works again thanks to {a}"]),
        (f"neither {a} nor {b} came to {c}", [f"{a} did not come to {c}", f"{b} stayed away from {c}"], [f"{a} came to {c}", f"only {b} stayed away from {c}", f"both came to {c}"]),
        (f"{a}, but not {b}, came to {c}", [f"{a} came to {c}", f"{b} did not come to {c}"], [f"{b} came to {c}", f"{a} did not come to {c}", f"both came to {c}"]),
        (f"nobody but {a} knew about {t}", [f"{a} knew about {t}", f"{b} did not know about {t}", f"only {a} knew about {t}"], [f"{a} did not know about {t}", f"nobody at all knew about {t}", f"{b} knew about {t} too"]),
        (f"{a} stopped using {t}", [f"{a} used {t} before", f"{a} no longer uses {t}"], [f"{a} still uses {t}", f"{a} started to use {t}"]),
        (f"{a} would have bought {t} if there had been money", [f"{a} did not buy {t}", f"{a} lacked the money for {t}"], [f"{a} bought {t}", f"{a} had the money for {t}"]),
        (f"{a} almost lost {t}", [f"{a} did not lose {t}", f"{a} still has {t}, though only just"], [f"{a} lost {t}", f"{a} no longer has {t}"])]
    told, true, false = rng.choice(cases)
    right = rng.random() < 0.5
    return told, rng.choice(true if right else false), YES if right else NO


def speakers(rng):
    a, b = names(rng, 2)
    p, q = rng.sample(SAYINGS, 2)
    say = lambda n, s: rng.choice([f"{n} said that {s}", f"according to {n}, {s}", f"{n} argued that {s}", f"in the opinion of {n}, {s}", f"{s}, {n} believes", f"{n} is convinced that {s}"])
    told = rng.choice([f"{say(a, p)}. {upper(say(b, q))}", f"{a} said that {p}, but {b} replied that {q}", f"{a} thinks that {p}; {b} thinks that {q}"])
    result = rng.random()
    if result < 0.5:
        return told, say(*rng.choice([(a, p), (b, q)])), YES
    if result < 0.8:
        return told, say(*rng.choice([(a, q), (b, p)])), EITHER
    if result < 0.92:
        return told, rng.choice([p, q, f"it has been shown that {p}", f"it is a fact that {q}"]), OPEN
    return told, rng.choice([f"{a} denied that {p}", f"{b} doubts that {q}", f"{a} and {b} agreed that {p}"]), EITHER


def order(rng):
    x, y, z = rng.sample(EVENTS, 3)
    say = lambda p, q: [f"{p} before {q}", f"{q} after {p}", f"after {p}, {q}", f"before {q}, {p}", f"first {p}, then {q}", f"{p}, and later {q}", f"{q}, but only once {p}", f"when {q}, it had already happened that {p}"]
    if rng.random() < 0.3:
        told = f"first {x}, then {y}, and finally {z}"
        p, q = rng.choice([(x, y), (y, z), (x, z)])
    else:
        told, p, q = rng.choice(say(x, y)), x, y
    right = rng.random() < 0.5
    ways = say(p, q) if right else say(q, p)
    return told, rng.choice([w for w in ways if w != told]), YES if right else NO


REASONS = [("because", "{y} because {x}", "{x}, and so {y}", "{x} led to this: {y}", "the reason why {y} is that {x}"), ("although", "{y} although {x}", "{x}, and yet {y}", "in spite of the fact that {x}, {y}", "even though {x}, {y}")]


def reasons(rng):
    """What was the reason of what, and what happened in spite of it."""
    x, y, z = rng.sample(EVENTS, 3)
    (one, *ways), (two, *others) = rng.sample(REASONS, 2)
    told = rng.choice(ways)
    fill = lambda w, p=x, q=y: w.format(x=p, y=q)
    result = rng.random()
    if result < 0.35:
        return fill(told), fill(rng.choice([w for w in ways if w != told])), YES
    if result < 0.5:
        return fill(told), rng.choice([x, y]), YES
    if result < 0.7:
        return fill(told), fill(rng.choice(others)), EITHER
    if result < 0.9 and one == "because":
        return fill(told), fill(rng.choice(ways), y, x), EITHER
    return fill(told), fill(rng.choice(ways), z, y), EITHER


def talk(rng):
    """A conversation of several lines, and what one of them said, did, offered or asked."""
    people = [p.split()[0] for p in rng.sample(PEOPLE, 3)] if rng.random() < 0.6 else rng.sample(JOBS, 2) * 2
    people = list(dict.fromkeys(people))
    lines, acts = [], []
    for deed in rng.sample(DEEDS, rng.randint(2, 4)):
        who = rng.choice(people)
        mood = rng.choice(MOODS)
        d2 = {"wrote the summary": "written the summary"}.get(deed[1], deed[1])
        given = dict(v=deed[0], d=deed[1], d2=d2, g=deed[2])
        text = rng.choice(mood[1]).format(**given)
        text = (rng.choice(TALK) + " " + text) if rng.random() < 0.5 else text
        lines.append(f"{who}: {text}")
        if rng.random() < 0.35:
            lines.append(f"{rng.choice([p for p in people if p != who])}: {rng.choice(TALK)}")
        acts.append((who, mood, given))
    premise = rng.choice(["\n", " "]).join(lines)
    show = lambda n: n if n in [p.split()[0] for p in PEOPLE] or n.startswith("Speaker") else "the " + n.lower()
    say = lambda who, mood, given: rng.choice(mood[2]).format(n=show(who), **given)
    who, mood, given = rng.choice(acts)
    result = rng.random()
    if result < 0.36:
        return premise, say(who, mood, given), YES
    if result < 0.5 and len(acts) > 1:
        one, two = rng.sample(acts, 2)
        return premise, say(*one) + ", and " + say(*two), YES
    if result < 0.68:
        other = rng.choice([p for p in people if p != who])
        return premise, say(other, mood, given), EITHER
    if result < 0.9:
        different = rng.choice([m for m in MOODS if m is not mood and not {m[0], mood[0]} <= {"asks", "doubts"}])
        return premise, say(who, different, given), EITHER
    w2, m2, g2 = rng.choice(acts)
    missing = rng.choice([d for d in DEEDS if all(d[0] != g["v"] for _, _, g in acts)])
    return premise, say(w2, m2, dict(v=missing[0], d=missing[1], d2=missing[1], g=missing[2])), OPEN


FAMILIES = {"roles": (roles, 3), "chains": (chains, 2), "converses": (converses, 2), "opposites": (opposites, 2), "subjects": (subjects, 2), "quantities": (quantities, 1.5),
            "modality": (modality, 1.5), "certainty": (certainty, 1), "conditions": (conditions, 2), "negations": (negations, 2), "speakers": (speakers, 2), "order": (order, 1.5),
            "reasons": (reasons, 1.5), "talk": (talk, 2.5)}


def fact(rng: random.Random) -> str:
    """A sentence of any family, to stand beside another."""
    name = rng.choice([n for n in FAMILIES if n != "talk"])
    return stop(FAMILIES[name][0](rng)[0])


def stop(text: str) -> str:
    text = upper(text.strip())
    return text if text[-1] in ".?!" else text + "."


def pair(rng: random.Random) -> Pair:
    kinds = list(FAMILIES)
    kind = rng.choices(kinds, [FAMILIES[k][1] for k in kinds])[0]
    premise, claim, may = FAMILIES[kind][0](rng)
    if kind != "talk":
        premise = stop(premise)
        beside = [fact(rng) for _ in range(rng.choice([0, 0, 0, 1, 1, 2]))]
        at = rng.randint(0, len(beside))
        premise = " ".join(beside[:at] + [premise] + beside[at:])
    if rng.random() < 0.12 and not claim.startswith(("According", "according", "It is up")):
        claim = rng.choice(LEADS).format(c=claim)
    return Pair(premise, stop(claim), may, "own/plain", kind, [] if may == YES else None)


def build(count: int, seed: int = 31) -> list[Pair]:
    """`count` pairs."""
    rng = random.Random(seed)
    return [pair(rng) for _ in range(count)]
