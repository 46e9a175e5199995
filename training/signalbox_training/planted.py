"""Attacks inside harmless text, window by window, as the safety signals read a long prompt.

An attack of one sentence is a tenth of its window. Whole prompts say nothing about whether it is still seen, so
the mix of trunk and wide part and the threshold of the jailbreak task are chosen on these windows as well, and
the model card counts how many planted attacks of the dev rows are found.
"""

from __future__ import annotations

import random
import re
from dataclasses import dataclass

from . import batches, data

LONGEST = 48  # tokens of an attack: one or two sentences
SIZE = batches.SAFETY_WINDOW - 2


@dataclass
class Windows:
    """Full windows: token ids with [CLS] and [SEP], and a row with the label of each."""

    ids: list[list[int]]
    rows: list[data.Row]


def sentences(text: str) -> list[str]:
    return [s for s in re.split(r"(?<=[.!?])\s+", text) if 20 <= len(s) <= 200]


def hosts(tok, rows: list[data.Row], count: int, rng: random.Random) -> list[list[int]]:
    """Windows of harmless text: texts in a row as they are, and every third a single sentence over and over, as forms, logs and contracts have it."""
    harmless = [r.text for r in rows if r.jailbreak == 0 and len(r.text) >= 120]
    lines = sorted({s for text in harmless for s in sentences(text)})
    out = []
    for i in range(count):
        ids: list[int] = []
        line = batches.content(tok, [rng.choice(lines)])[0]
        while len(ids) < SIZE:
            ids += line if i % 3 == 2 else batches.content(tok, [rng.choice(harmless)], 2000)[0]
        start = rng.randrange(len(ids) - SIZE + 1)
        out.append(ids[start : start + SIZE])
    return out


def windows(tok, rows: list[data.Row], count: int, seed: int) -> Windows:
    """`count` windows with an attack of the rows somewhere in them, and as many without one."""
    rng = random.Random(seed)
    attacks = [ids for ids in batches.content(tok, [r.text for r in rows if r.jailbreak == 1]) if len(ids) <= LONGEST]
    found, labels = [], []
    for i, host in enumerate(hosts(tok, rows, 2 * count, rng)):
        planted = i % 2 == 0
        if planted:
            attack = rng.choice(attacks)
            at = rng.randint(0, SIZE - len(attack))
            host = host[:at] + attack + host[at : SIZE - len(attack)]
        found.append(batches.wrap(host))
        labels.append(data.Row("", jailbreak=int(planted), src="planted" if planted else "host"))
    return Windows(found, labels)
