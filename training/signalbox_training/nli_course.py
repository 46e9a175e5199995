"""Trains the NLI model on from a shipped graph, in steps that each have one thing to learn, with that graph as a teacher.

Among other pairs the order of words is never learnt: true and false twins stay at one half. By themselves, first in short
sentences, they are told apart after some fifty steps, and what was learnt so stays when other pairs come back. Sentences of
documents with a mistake have a step of their own too. What the graph knew before (people's own pairs, claims about pages) it would
forget: in every step with such pairs the new weights are held to what the graph says of them, beside the labels.

`--learn order` is the course of 1.3.0. `--learn written` (1.4.0) learns sentences about real texts (`nli_written`) from that graph.

    python -m signalbox_training.nli_course --learn order --retold FILE... [--seed 1] [--out build]
    python -m signalbox_training.nli_course --learn written --clones FOLDER [--seed 1] [--out build]

`--mean` takes the mean of the last weights of several seeds:

    python -m signalbox_training.nli_course --mean A.pt B.pt [--out build]
"""

from __future__ import annotations

import argparse
import random
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import torch

from . import batches, data, nli_data, nli_evaluate, nli_order, nli_plain, nli_restore, nli_retold, nli_similar, nli_train, nli_written
from .nli_data import ANY, Pair

RULES = ("ext", "para", "near", "neg", "ent", "ant", "num", "added", "unneg", "own/facts", "own/changes")
SHARES = nli_train.SHARES | {k: 0.45 * nli_train.SHARES[k] for k in RULES} | {
    "far": 0.5, "conjnli_adv": 0.6, "own/plain": 0.35, "own/retold": 1.1, "own/order": 0.36, "wice_tokens": 0.5}
TAUGHT = ("own/", "nli_synthetic", "stsb")  # sources that begin otherwise are what the graph knows better than their rules do


@dataclass
class Step:
    """A part of the training: of which pairs, how long, and what an epoch has of them."""

    name: str
    sources: tuple[str, ...]
    minutes: float
    shares: dict[str, float]
    rate: float = 1.5e-4
    floor: float = 1.0
    rounding: bool = False


# Minutes of one core for each of two seeds; of the first two steps those of two cores together, for they were taken once.
STEPS = [
    Step("easy", ("easy",), 2, {}),
    Step("order", ("order", "plain"), 7, {"own/plain": 0.45}),
    Step("retold", ("retold", "order", "plain", "seen"), 6, {"own/order": 0.25, "own/plain": 0.2, "pages": 0.3}),
    Step("all", ("old", "pages", "seen", "plain", "order", "retold"), 52, SHARES, 1.3e-4, 0.0, True),
]
# What the graph knew beside what was written: a tenth of the sets, a third of what is made by rule.
BESIDE = {k: 0.24 * min(1.0, 0.6 * v) for k, v in SHARES.items()} | {"pages": 0.16, "own/plain": 0.12, "own/order": 0.12, "stsb": 0.4}
# The first part on two cores; the others, of the minutes of one core, for each of two seeds, the mean of both in between and after.
WRITTEN = [
    Step("written", ("written", "old", "pages", "seen", "plain", "order"), 13, BESIDE, 1.2e-4, 0.7),
    Step("more", ("written", "old", "pages", "seen", "plain", "order"), 7, BESIDE, 1.1e-4, 0.7),
    Step("last", ("written", "old", "pages", "seen", "plain", "order"), 25, BESIDE | {"wice": 1.0}, 1.2e-4, 0.0, True),
]
COURSES = {"order": STEPS, "written": WRITTEN}


def seen(folder: Path) -> list[Pair]:
    """Claims and sentences of pages beside what the product shows of those pages: no labels, the graph alone says what holds."""
    rng, out = random.Random(5), []
    whole, parts = nli_data.pages(folder, nli_data.dev_keys(folder))
    docs = [(r["premise"], r["hypothesis"]) for r in whole] + [(r["evidence"], nli_data.joined(r["tokens"], r["unsupported"])[0]) for r in parts]

    def add(premise: str, claim: str) -> None:
        if premise:
            out.append(Pair(premise, claim, ANY, "pages", root=claim))

    for page, claim in docs:
        shown = [nli_data.gathered(page, claim, n) for n in (48, nli_data.GATHERED_WORDS, 96)]
        shown += nli_data.best_windows(page, claim, 3) + nli_data.best_windows(page, claim, 1, rng.randint(20, 90))
        for premise in dict.fromkeys(shown):
            add(premise, claim)
    for page in dict.fromkeys(p for p, _ in docs):
        parts = nli_data.sentences(page)
        for i in rng.sample(range(len(parts)), min(len(parts), 6)):
            claim, rest = parts[i].strip(), " ".join(parts[:i] + parts[i + 1 :])
            if rest and 8 <= len(claim.split()) <= 40:
                add(rng.choice([nli_data.gathered(rest, claim), nli_data.gathered(rest, claim), nli_data.best_windows(rest, claim, 1)[0]]), claim)
        add(nli_data.gathered(page, other := rng.choice(docs)[1]), other)
    return out


def sources(folder: Path, retold: list[Path], clones: Path | None = None) -> dict[str, list[Pair]]:
    """The pairs of each name."""
    written = nli_written.read(nli_written.texts(folder, clones)) if clones else []  # the course that learns them asks for clones
    known = nli_train.pairs(folder)
    return {"old": [r for r in known if not r.root] + nli_similar.build(folder), "pages": [r for r in known if r.root], "seen": seen(folder),
            "plain": nli_plain.build(30_000), "easy": nli_order.easy(60_000), "order": nli_order.build(30_000),
            "retold": sum((nli_retold.read(p) for p in retold), []),
            "written": nli_written.pairs([t for t in written if not nli_written.held_out(t)])}


def teach(rows: list[Pair], graph: bytes) -> None:
    """Put down what the graph says of the pairs that it knows better than their rules do."""
    known = [r for r in rows if not r.src.startswith(TAUGHT)]
    said = nli_evaluate.logits(nli_evaluate.session(graph), batches.tokenizer(), [(r.premise, r.claim) for r in known])
    for row, logits in zip(known, said):
        row.taught = logits.tolist()


def free(state: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Weights without the limits of their int8 layers: the last step sets them anew."""
    plain = {".smooth": torch.ones_like, ".limit": lambda t: torch.full_like(t, float("inf"))}
    return {n: next((make(t) for end, make in plain.items() if n.endswith(end)), t) for n, t in state.items()}


def mean(files: list[Path]) -> dict[str, torch.Tensor]:
    states = [torch.load(f) for f in files]
    return {n: torch.stack([s[n].float() for s in states]).mean(0) for n in states[0]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--bundle", type=Path, default=Path(__file__).resolve().parents[2] / "models" / "grounding", help="whose graph is the start and the teacher")
    parser.add_argument("--learn", choices=sorted(COURSES), default="written", help="which course")
    parser.add_argument("--clones", type=Path, help="of the repositories of written/texts.tsv, a folder owner+name each")
    parser.add_argument("--retold", type=Path, nargs="+", default=[], help="files of nli_retold")
    parser.add_argument("--mean", type=Path, nargs="+", help="no training: the mean of these weights")
    parser.add_argument("--out", type=Path, default=Path("build"), help="folder of a checkpoint for each step")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--hurry", type=float, default=1.0, help="share of the minutes, to try the steps out")
    args = parser.parse_args()
    if args.learn == "written" and not args.clones and not args.mean:
        parser.error("--learn written needs --clones, a folder of clones")
    args.out.mkdir(parents=True, exist_ok=True)
    if args.mean:
        torch.save(mean(args.mean), args.out / "course.pt")
        return
    graph = (args.bundle / "model_int8.onnx").read_bytes()
    found, rng, last = sources(args.data, args.retold, args.clones), random.Random(args.seed), args.out / "course_start.pt"
    torch.save(free(nli_restore.checkpoint(onnx.load_from_string(graph))), last)
    for name in ("old", "pages", "seen"):
        teach(found[name], graph)
    nli_train.SEED = args.seed
    for step in COURSES[args.learn]:
        rows = sum((found[s] for s in step.sources), [])
        rows = [rows[i] for i in nli_data.mix(rows, {k: min(1.0, 1.8 * v) for k, v in step.shares.items()}, rng)]
        shares = {k: v / min(1.0, 1.8 * v) for k, v in step.shares.items() if v}
        out = args.out / f"course_{step.name}_{args.seed}.pt"
        nli_train.train(rows, out, step.minutes * args.hurry, last, step.rounding, step.rate, step.floor, 1, round_from=0.75, shares=shares)
        last = out


if __name__ == "__main__":
    main()
