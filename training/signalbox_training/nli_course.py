"""Trains the NLI model from the base weights in steps that each have one thing to learn, and then everything together.

Among other pairs the order of words is never learnt: true and false twins stay at one half. By themselves, first in
short sentences, they are told apart after some hundred steps, and what was learnt so stays when other pairs come
back. Sentences of documents with a mistake have a step of their own too. Claims about pages (WiCE) are left out, so
that the weights can read all of them for the fusion (`nli_build --fresh`).
"""

from __future__ import annotations

import argparse
import random
from dataclasses import dataclass
from pathlib import Path

from . import nli_cited, nli_data, nli_order, nli_plain, nli_retold, nli_similar, nli_talks, nli_train

RULES = ("ext", "para", "near", "neg", "ent", "ant", "num", "added", "unneg", "own/facts", "own/changes")
SHARES = nli_train.SHARES | {k: 0.45 * nli_train.SHARES[k] for k in RULES} | {
    "far": 0.5, "conjnli_adv": 0.6, "own/plain": 0.7, "own/retold": 0.9, "own/order": 0.8, "own/talks": 0.5, "expertqa": 1.2,
    "fool_me_twice": 1.7, "fever_symmetric": 1.7}
HOW = {"rate": 1.5e-4, "rounding": False}


@dataclass
class Step:
    """A part of the training: of which pairs, how long, and what an epoch has of them."""

    name: str
    sources: tuple[str, ...]
    minutes: float
    shares: dict[str, float]
    floor: float = 1.0


# Minutes are those of two cores to themselves, and of both together.
STEPS = [
    Step("start", ("old", "plain", "retold"), 5, SHARES),
    Step("easy", ("easy",), 0.7, {}),
    Step("order", ("order", "plain"), 2, {"own/plain": 0.4}),
    Step("retold", ("retold", "order", "plain", "talks", "cited"), 2.5,
         {"own/order": 0.25, "own/plain": 0.2, "own/talks": 0.35}),
    Step("all", ("old", "plain", "order", "talks", "cited", "retold"), 13, SHARES, 0.0),
]


def sources(data: Path, cited: Path, talks: Path, retold: list[Path]) -> dict[str, list[nli_data.Pair]]:
    """The pairs of each name, none about pages."""
    return {"old": [r for r in nli_train.pairs(data) if not r.root] + nli_similar.build(data), "plain": nli_plain.build(30_000),
            "easy": nli_order.easy(80_000), "order": nli_order.build(30_000), "talks": nli_talks.build(talks, 28),
            "cited": nli_cited.build(cited, data), "retold": sum((nli_retold.read(p) for p in retold), [])}


def lighter(rows: list[nli_data.Pair], shares: dict[str, float], rng: random.Random) -> tuple[list[nli_data.Pair], dict[str, float]]:
    """Rows for some two epochs, so that none is read for nothing, and the shares that fit them."""
    keep = {k: min(1.0, 1.8 * v) for k, v in shares.items()}
    return [rows[i] for i in nli_data.mix(rows, keep, rng)], {k: v / keep[k] for k, v in shares.items() if v}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--cited", type=Path, required=True, help="folder with the folders expertqa, fool_me_twice, fever_symmetric")
    parser.add_argument("--talks", type=Path, required=True, help="folder of dialogues_*.json")
    parser.add_argument("--retold", type=Path, nargs="+", required=True, help="files of nli_retold")
    parser.add_argument("--out", type=Path, default=Path("build"), help="folder of a checkpoint for each step")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    found, rng, last = sources(args.data, args.cited, args.talks, args.retold), random.Random(args.seed), None
    nli_train.SEED = args.seed
    for step in STEPS:
        rows, shares = lighter(sum((found[s] for s in step.sources), []), step.shares, rng)
        out = args.out / f"course_{step.name}.pt"
        nli_train.train(rows, out, step.minutes, last, floor=step.floor, shares=shares, **HOW)
        last = out


if __name__ == "__main__":
    main()
