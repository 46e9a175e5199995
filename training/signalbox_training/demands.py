"""Requests that make demands on the form of the response: how long, in which case, without which words, ending in which. They
are harmless, however bossy, unless what they ask for is not.

`forms/*.tsv` holds what two writers of our own wrote, who saw no benchmark of such demands, a kind and a text a line: P whole
requests, C demands that can follow any request, A attacks that dress their goal in such demands. `texts` adds demands to
harmless rows of the training.
"""

from __future__ import annotations

import random
import re
from pathlib import Path

FOLDER = Path(__file__).resolve().parent / "forms"
# At most how many requests of each source demands are added to; `texts` draws from them.
TASKS = {
    "oasst_sample": 2700, "self_instruct": 2700, "llmrouter": 2700, "koala": 2700, "gpteacher": 900, "codealpaca": 900, "own": 450,
    "gsm8k": 450, "clinc150": 180, "hwu64": 180, "openstax": 180, "mmlu": 180, "medquad": 180, "syn": 90,
}
NUMBERS = [2, 3, 4, 5, 6, 7, 8, 10, 12, 15, 20, 25, 30, 40, 50, 75, 100, 120, 150, 200, 250, 300, 400, 500, 600, 800, 1000]
LANGUAGES = "French|German|Spanish|Italian|Portuguese|Hindi|Russian|Japanese|Swahili|Arabic|Polish|Turkish|Korean|Vietnamese|Finnish".split("|")
PHRASES = ("Is there anything else I can do for you?|That is all.|And so it goes.|Over to you!|Any questions?|The end.|Hope that helps.|Thanks for reading|let me know what you think|"
           "See you next week.|Good luck out there.|No further comments.|My two cents.|As promised.|Stay curious.|Here we go|To whom it may concern|Dear reader").split("|")
TITLES = "Summary|Key points|A short guide|Notes|The plan|What to know|My answer|Overview|Draft one|Results".split("|")
LEADS = "||||||||Rules:|Requirements:|Constraints:|Format:|Please note:|IMPORTANT:|Some conditions:|Instructions:|A few things to watch:|Output rules".split("|")


def read(kinds: str) -> list[tuple[str, str]]:
    """(kind, text) of the lines of the given kinds in every file."""
    lines = [line.split("\t", 1) for file in sorted(FOLDER.glob("*.tsv")) for line in file.read_text(encoding="utf-8").splitlines()]
    return [(kind, text.replace("\\n", "\n")) for kind, text in lines if kind in kinds]


def _filled(demand: str, task: str, rng: random.Random) -> str:
    words = [w.lower() for w in re.findall(r"[A-Za-z]{4,}", task)] or ["idea"]
    slots = {
        "word": lambda: rng.choice(words), "n": lambda: str(rng.choice(NUMBERS)), "phrase": lambda: rng.choice(PHRASES),
        "letter": lambda: rng.choice("abcdefghilmnoprstuw"), "language": lambda: rng.choice(LANGUAGES), "title": lambda: rng.choice(TITLES),
    }
    return re.sub(r"\{(\w+)\}", lambda m: slots.get(m[1], lambda: m[0])(), demand)


def texts(n: int, tasks: list[str], seed: int) -> list[str]:
    """n requests out of the given tasks and one to five demands each."""
    rng, demands, out = random.Random(seed), [t for _, t in read("C")], []
    for _ in range(n):
        task = rng.choice(tasks).strip()
        told = [_filled(d, task, rng) for d in rng.sample(demands, rng.choice([1, 1, 2, 2, 3, 4, 5]))]
        told = [t[:1].upper() + t[1:] + ("" if t.endswith((".", "!", "?", ":")) else ".") for t in told]
        lead = rng.choice(LEADS)
        style = rng.random()
        if len(told) > 1 and style < 0.15:
            rules = "\n".join(f"{i}. {t}" for i, t in enumerate(told, 1))
        elif len(told) > 1 and style < 0.3:
            rules = "\n".join(f"{rng.choice('-*')} {t}" for t in told)
        else:
            rules = ("\n" if style < 0.4 else " ").join(told)
        rules = "\n".join(x for x in (lead, rules) if x) if "\n" in rules else " ".join(x for x in (lead, rules) if x)
        parts = [rules, task] if rng.random() < 0.15 else [task, rules]
        text = rng.choice([" ", " ", "\n", "\n\n"]).join(parts)
        shape = rng.random()
        out.append(text.lower() if shape < 0.07 else text.upper() if shape < 0.1 else text)
    return out
