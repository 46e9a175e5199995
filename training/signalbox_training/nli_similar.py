"""Pairs of headlines, captions and forum sentences that people judged to say the same or something else (STS benchmark, English).
What says the same supports and is supported; what shares a topic at most supports nothing."""

from __future__ import annotations

from pathlib import Path

from . import data
from .nli_data import SURE, UNSUPPORTED, Pair, dev_keys

SAME, OTHER = 4.5, 1.0  # judged from 0 to 5; what is between may hold in one direction or in part


def build(folder: Path) -> list[Pair]:
    banned, out = dev_keys(folder), []
    for r in data.read(folder, "stsb_multi"):
        score = r["score"]
        if r["lang"] != "en" or OTHER < score < SAME or score < 0.5 or not banned.isdisjoint((data.key(r["a"]), data.key(r["b"]))):
            continue
        for premise, claim in ((r["a"], r["b"]), (r["b"], r["a"])):
            same = score >= SAME
            out.append(Pair(premise, claim, SURE["entailment"] if same else UNSUPPORTED, "stsb", "same" if same else "far", [] if same else None))
    return out
