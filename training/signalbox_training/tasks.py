"""Rows of complexity, factcheck and personal data.

Two traps of the sources are met here. Complexity: the sets' simple prompts are short and the hard
ones long, so a rule on length alone is right on 97 % of them; short hard prompts and long simple
ones of our own are added, and sources are balanced inside bands of length. Factcheck: the class
follows the source; own prompts give the same topics to both classes, and both classes what public sets
have in one of them only (see assistant.py).
"""

from __future__ import annotations

import random
import re
from collections import Counter
from pathlib import Path

from . import assistant, personal, synth
from .data import Row, read, subsample

BANDS = (60, 200)  # characters: short, middle, long
LOW, MEDIUM, HIGH = (0.92, 0.08, 0.0), (0.2, 0.65, 0.15), (0.0, 0.1, 0.9)


def band(text: str) -> int:
    """0 for short, 1 for middle, 2 for long prompts."""
    return sum(len(text) >= edge for edge in BANDS)


def grade(row: Row) -> int:
    """The most probable level of a graded row."""
    return max(range(3), key=lambda i: row.complexity[i])


def level_weights(rows: list[Row]) -> dict[tuple[int, int], float]:
    """Weight of (band, level): every level counts the same inside a band of length, so that length alone says nothing."""
    count = Counter((band(r.text), grade(r)) for r in rows if r.complexity)
    total = Counter()
    for (b, _), n in count.items():
        total[b] += n
    return {k: min(6.0, max(0.25, total[k[0]] / (3 * n))) for k, n in count.items()}


def by_solve_rate(rate: float) -> tuple[float, float, float]:
    """Difficulty of an exam question from the share of 29 models that solved it."""
    if rate >= 0.8:
        return (0.25, 0.6, 0.15)
    return (0.0, 0.5, 0.5) if rate >= 0.45 else (0.0, 0.25, 0.75)


def complexity_rows(data: Path, leave_out: tuple[str, ...] = ()) -> list[Row]:
    """Coarse labels by source, graded ones for exam questions, and own prompts against the length trap."""
    rows = [
        Row(r["text"], src=r["src"], complexity=LOW if r["label"] == "simple" else HIGH)
        for r in read(data, "complexity_coarse") if not r["src"].startswith(leave_out)
    ]
    rows = subsample(rows, 1200, lambda r: r.src.split("/")[0] + str(r.complexity == LOW))
    rows += [
        Row(r["text"], src="router_mmlu_pro", complexity=by_solve_rate(r["solve_rate"]))
        for r in subsample(read(data, "complexity_mmlu_pro"), 400, lambda r: r["category"])
    ]
    paragraphs = [r["text"] for r in subsample(read(data, "openstax_text"), 40, lambda r: r.get("src"))]
    rows += [Row(t, src="own/complexity", complexity=c) for t, c in complexity_texts(paragraphs)]
    return rows


EASY = [
    "What is the capital of {c}?", "Which language do people speak in {c}?", "How many letters are in the word {w}?", "Say hello in {l}.",
    "What colour do you get from blue and yellow?", "Set a timer for {n} minutes.", "What day comes after Tuesday?", "Tell me a joke about {w}s.",
    "What is {n} plus {m}?", "Spell the word {w}.", "Who is the president of {c}?", "Play some music.", "Give me another word for {w}.",
    "Translate {w} into {l}.", "Is it going to rain in {c} tomorrow?", "What is the opposite of hot?", "Thanks, that was all for today.",
    "How do I say thank you in {l}?", "Remind me to buy a {w}.", "What time is it in {c}?", "Define the word {w}.", "Name three fruits.",
]
CHAT = [
    "Hi there, I hope you had a good weekend. ", "Hello! This is my first time here and I really like it so far. ", "Good morning. I am on the train and have only a minute. ",
    "Sorry to bother you again, you have been so helpful already. ", "My daughter and I have a small bet going on. ", "Quick one before I close the laptop for today. ",
    "I asked my neighbour but she was not sure either, so I thought I would try you. ", "No rush at all, whenever you have time. ", "Just curious. ",
    "I am filling in a form for the school trip and one field is left. ", "We are playing a quiz at the pub and it is our turn. ",
]
CLOSE = ["", " Thanks a lot!", " A single word is enough.", " Please keep it short.", " That is all I need, have a nice day.", " No explanation needed."]
LIGHT = [
    "Fix the typos in this text: {p}", "Translate this into {l}: {p}", "Put this paragraph in upper case: {p}", "What is the first word of this text? {p}",
    "{p}\n\nWhat language is the text above written in?", "Please repeat this text exactly: {p}", "How many sentences does this have? {p}", "Give this text a title. {p}",
    "I found this in a book: {p} By the way, {q}", "{p}\n\nThanks for the text. {q}", "Copy the following note for me: {p}", "Is this text about animals? {p}",
]
PROOFS = [
    "the square root of {n} is irrational", "there are infinitely many primes of the form 4k+3", "every bounded monotone sequence converges", "n^3 - n is divisible by 6",
    "the sum of the first n odd numbers is n^2", "a graph with n vertices and n edges has a cycle", "a continuous function on [0,1] is bounded", "log_2 {n} is irrational",
    "the halting problem is undecidable", "any comparison sort needs n log n steps", "two commuting matrices share an eigenvector", "a group of prime order is cyclic",
]
HARD = [
    "Prove that {t}.", "Show step by step that {t}.", "Find the flaw in the usual proof that {t}.", "Is it true that {t}? Justify your answer.",
    "What is the remainder of {n}^{m} divided by {k}?", "Find all integers x with x^2 + {n}x + {m} = 0.", "Integrate x^{k} e^{n}x dx.", "Minimise x + {n}/x for x > 0 and prove it.",
    "In how many ways can {n} people sit at {k} tables?", "Solve y'' + {k}y' + {n}y = 0 with y(0)=1, y'(0)=0.", "Which is larger, {n}^{m} or {m}^{n}? Why?",
    "Design a lock-free queue and argue that it is correct.", "Find the bug: two goroutines wait on each other's channel after {n} messages.",
    "Give an O(n log n) algorithm for counting inversions and prove it.", "Write a parser for arithmetic with precedence, without libraries.",
    "Plan {k} deliveries for {m} vans so that no van drives over {n} km.", "A and B always lie, C never does. A says C took it. Who did?",
    "Derive the period of a pendulum of length {k} m for small angles.", "A {n} kg sled slides {m} m down a {k} degree slope; find its speed with friction 0.1.",
    "Compute the equilibrium of a duopoly with demand {n} - {k}q and cost {m}.", "How many moles of gas leave a {n} litre tank when {m} K becomes {k} K?",
    "Schedule {n} exams in {k} rooms so that no student has two at once.", "Refute the claim that correlation of {n} % implies causation, with a counterexample.",
    "Explain why quicksort degrades on sorted input and fix it.", "Compare three database designs for {n} million events a day and choose one.",
]
HARDLONG = [
    "{p}\n\nUsing only the text above, derive which of its claims depend on each other and find one that does not follow.", "{p}\n\nWork through the reasoning step by step and point out every hidden assumption. {h}",
    "Read this carefully: {p} Now, unrelated to it, {h}", "{h} Show all steps, check the result in a second way and discuss how it changes when the numbers double. Explain why the simple approach fails.",
    "Background: {p}\n\nBuild a quantitative model of this, state its equations and estimate the parameters.", "{p}\n\nWrite a program that simulates what is described, choose the data structures and analyse the running time.",
]
WORDS = "bridge apple river pencil window dragon bottle garden mirror candle rocket blanket forest saddle lantern turtle".split()
COUNTRIES = "France Kenya Japan Brazil Norway Egypt Canada Peru India Poland Chile Ghana".split()
LANGUAGES = "Spanish German Italian Polish Turkish Dutch Swedish Portuguese".split()


def complexity_texts(paragraphs: list[str]) -> list[tuple[str, tuple[float, float, float]]]:
    """Own prompts: simple and hard ones of every length, and plain questions about a topic in between."""
    rng = random.Random(31)
    pick = rng.choice

    def fill(form: str) -> str:
        text = form.format(c=pick(COUNTRIES), w=pick(WORDS), l=pick(LANGUAGES), n=rng.randint(2, 60), m=rng.randint(3, 90), k=rng.randint(2, 17),
                           t=pick(PROOFS).format(n=rng.choice([2, 3, 5, 7, 11])), p="{p}", q="{q}", h="{h}")
        return text.lower().rstrip(".?") if rng.random() < 0.2 else text

    def paragraph() -> str:
        return pick(paragraphs)[: rng.randint(150, 700)]

    out = []
    for _ in range(900):
        out.append((fill(pick(EASY)), LOW))
        out.append((pick(CHAT) + pick([pick(CHAT), "", ""]) + fill(pick(EASY)) + pick(CLOSE), LOW))
        out.append((fill(pick(LIGHT)).replace("{q}", fill(pick(EASY))).replace("{p}", paragraph()), LOW))
        out.append((fill(pick(HARD)), HIGH))
        out.append((pick(CHAT) + fill(pick(HARD)) + pick(CLOSE), HIGH))
        out.append((fill(pick(HARDLONG)).replace("{h}", fill(pick(HARD))).replace("{p}", paragraph()), HIGH))
    for domain, topics in synth.TOPICS.items():
        for topic in topics.split("; "):
            out += [(form.format(topic), MEDIUM if domain != "other" else LOW) for form in rng.sample(synth.QUESTION_FORMS, 2)]
    return out


FACTUAL = [
    "When was {} discovered?", "Who first described {}?", "What is {} and where does the name come from?", "Is it true that {} has been proven wrong?", "What are the facts about {}?",
    "Which year was {} first mentioned?", "Tell me about {}", "What do scientists say about {}?", "Explain the history of {}.", "What causes problems with {}?", "how does {} work",
    "Give me statistics on {}.", "Which countries are known for {}?", "Who invented {}?", "What evidence supports {}?", "How common is {}?", "Name three experts on {}.", "Does {} affect children?",
    "I read that {} was banned in 1987, is that correct?", "What is the difference between {} and its closest alternative?",
]
UNFACTUAL = [
    "Write a poem about {}.", "Make up a short story about {}.", "Imagine you could talk to {}; what would you say?", "Brainstorm names for a podcast about {}.", "Help me plan my week around {}.",
    "Translate 'I like {}' into Spanish.", "Rewrite this sentence more politely: stop talking about {}.", "Write a tweet that makes {} sound fun.", "Pretend you are {} and introduce yourself.",
    "I feel overwhelmed by {}, can we talk?", "Write a Python function that counts how often {} occurs in a list.", "Draft an e-mail that invites my team to a talk on {}.", "Play a guessing game with me about {}.",
    "Give this essay about {} a catchy title.", "Do you like {}?", "Write song lyrics about {}.", "Set a reminder to read about {} tonight.", "Turn my notes on {} into bullet points.", "Write a dialogue in which two friends argue over {}.",
    "Create a quiz night theme around {}.",
]


def factcheck_rows(data: Path, leave_out: tuple[str, ...] = ()) -> list[Row]:
    """Labels by source, at most a share of each, and own prompts that give both classes the same topics."""
    rows = [
        Row(r["text"], src=r["src"], factcheck=int(r["label"] == "fact_check"))
        for r in read(data, "fact_check") if not r["src"].startswith(leave_out)
    ]
    rows = subsample(rows, 1300, lambda r: r.src)
    rng = random.Random(32)
    for topics in synth.TOPICS.values():
        for topic in topics.split("; "):
            rows += [Row(f.format(topic), src="own/factcheck", factcheck=1) for f in rng.sample(FACTUAL, 4)]
            rows += [Row(f.format(topic), src="own/factcheck", factcheck=0) for f in rng.sample(UNFACTUAL, 4)]
    rows += [Row(t, src="own/factcheck", factcheck=0) for t in hard_arithmetic(rng, 250)]
    rows += [Row(t, src="own/factcheck", factcheck=y) for t, y in assistant.texts()]
    return rows


def hard_arithmetic(rng: random.Random, count: int) -> list[str]:
    """Calculations: they need thought, not sources."""
    texts = complexity_texts(["A short text."])
    return rng.sample([t for t, c in texts if c == HIGH and "{" not in t], count)


def pii_rows(data: Path) -> list[Row]:
    """Generated texts with 17 types (other types are not judged), tweets with people, places and organisations, texts without any."""
    rows = [Row(r["text"], src="syn/faker", entities=r["entities"]) for r in read(data, "pii_synthetic")]
    rows += [Row(r["text"], src="ner/" + r["src"], entities=r["entities"], partial=True) for r in subsample(read(data, "ner_real"), 4000, lambda r: r["src"])]
    rows += [Row(r["text"], src="ner/" + r["src"], entities=r["entities"], partial=True) for r in subsample(read(data, "ner_uner"), 3000, lambda r: r["src"])]
    rows += [Row(r["text"], src="neg", entities=[]) for r in subsample(read(data, "pii_negatives"), 5000, lambda r: 0)]
    rows += [Row(t, src="own/pii", entities=e) for t, e in personal.texts(read(data, "pii_synthetic"))]
    return rows + technical_rows(data)


NAMED = re.compile(r"@|©|\b(?:copyright|author|maintainer|contact|written by|signed-off|licen[cs]e)\b", re.I)


def technical_rows(data: Path) -> list[Row]:
    """Pieces of code, configuration and results of tools without any sign of a person: no personal data."""
    from . import attacks

    rng, rows = random.Random(34), []
    for r in attacks.documents(data, False):
        if r["kind"] in ("code", "configuration", "tool schemas", "diffs and commits"):
            rows += [Row(t, src="neg/" + r["kind"], entities=[]) for t in attacks.pieces(r["text"], 1, rng) if not NAMED.search(t)]
    return subsample(rows, 900, lambda r: r.src)
