"""The alternatives that were tried, measured alike: what is tuned, with and without the wide part, and a
cascade that lets the wide part answer alone where it is sure. Writes a table."""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from . import batches, data, evaluate, export, model, train, wide
from .model import SEQUENCE

EVERY = 4  # share of the dev rows that is looked at
HEADER = ["variant", "domain_mmlu_pro", "domain_mixed", "jailbreak AUC", "complexity AUC", "factcheck accuracy"]


class Measure:
    """Scores logits of the dev rows."""

    def __init__(self, folder: Path, tok):
        self.dev = {n: rows[::EVERY] for n, rows in data.dev(folder).items() if n != "pii"}
        self.ids = {n: [batches.windows(c)[0] for c in batches.content(tok, [r.text for r in rows])] for n, rows in self.dev.items()}
        held = data.build(folder)[1][::3]
        self.held, self.held_ids = held, [batches.windows(c)[0] for c in batches.content(tok, [r.text for r in held], 6000)]
        self.tok = tok

    def deep(self, net) -> dict[str, dict[str, np.ndarray]]:
        """Logits of the first window of every row, by dev file ("held" for the held-out rows)."""
        sess = evaluate.session(export.build(net, "fp32", tasks=tuple(SEQUENCE)).SerializeToString())
        out = {}
        for name, ids in {**self.ids, "held": self.held_ids}.items():
            found = [evaluate.run(sess, [row]) for row in ids]
            out[name] = {t: np.concatenate([f[t] for f in found]) for t in SEQUENCE}
        return out

    def fuse(self, table, deep) -> dict[str, dict[str, np.ndarray]]:
        fusion = wide.fuse(table, self.tok, [deep["held"][t] for t in SEQUENCE], self.held_ids, self.held)
        return {n: dict(zip(SEQUENCE, fusion.reference(ids, [deep[n][t] for t in SEQUENCE]))) for n, ids in self.ids.items()}

    def row(self, name: str, logits: dict) -> list:
        right = lambda n: float((logits[n]["domain"].argmax(1) == [r.domain for r in self.dev[n]]).mean())
        p = lambda n, t: evaluate.softmax(logits[n][t], 1.0)[:, -1]
        attack = np.array([r.jailbreak == 1 for r in self.dev["jailbreak"]])
        high = np.array([r.complexity[2] > 0.5 for r in self.dev["complexity"]])
        fact = np.array([r.factcheck == 1 for r in self.dev["factcheck"]])
        return [name, f"{right('domain_mmlu_pro'):.3f}", f"{right('domain_mixed'):.3f}", f"{evaluate.auc(p('jailbreak', 'jailbreak'), attack):.4f}",
                f"{evaluate.auc(p('complexity', 'complexity'), high):.4f}", f"{((p('factcheck', 'factcheck') >= 0.5) == fact).mean():.3f}"]

    def cascade(self, alone: dict, both: dict) -> list[list]:
        """For a few limits of confidence: how many rows the wide part answers alone and what that costs."""
        out = []
        for limit in (0.99, 0.95, 0.9, 0.8):
            cells = [f"wide part alone from {limit}"]
            for n in ("domain_mmlu_pro", "domain_mixed"):
                p, y = evaluate.softmax(alone[n]["domain"], 1.0), np.array([r.domain for r in self.dev[n]])
                sure = p.max(1) >= limit
                guess = np.where(sure, p.argmax(1), both[n]["domain"].argmax(1))
                cells.append(f"{(guess == y).mean():.3f} ({sure.mean():.0%} skip the trunk)")
            out.append(cells)
        return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--work", type=Path, default=Path("build"))
    parser.add_argument("--epochs", type=float, default=0.5, help="training of every variant, the same steps for all")
    parser.add_argument("--table", type=Path, required=True, help="the n-gram table (wide.npy)")
    parser.add_argument("--shipped", type=Path, help="a checkpoint to measure as well")
    args = parser.parse_args()
    tok, table = batches.tokenizer(), np.load(args.table)
    measure, rows, nothing = Measure(args.data, tok), [], None
    nets = {}
    for name, tuned in (("frozen trunk, heads only", "heads"), ("frozen trunk, LoRA in the last layer and heads", "adapters"), ("everything tuned", "all")):
        nets[name] = train.train(args.data, args.work / "experiment.pt", args.epochs, 1e9, tuned=tuned, rounding=False)
    if args.shipped:
        nets["the shipped weights (more training)"] = model.load(args.shipped, 0.0).eval()
    for name, net in nets.items():
        deep = measure.deep(net)
        both = measure.fuse(table, deep)
        rows += [measure.row(name, deep), measure.row(name + ", with the wide part", both)]
        if nothing is None:
            nothing = measure.fuse(table, {n: {t: np.zeros_like(v) for t, v in d.items()} for n, d in deep.items()})
            rows.insert(0, measure.row("wide part alone", nothing))
        print(rows[-2:], flush=True)
    line = lambda cells: "| " + " | ".join(cells) + " |"
    text = [line(HEADER), line(["---"] * len(HEADER)), *map(line, rows), "", line(["cascade", "domain_mmlu_pro", "domain_mixed"]), line(["---"] * 3)]
    text += [line(c) for c in measure.cascade(nothing, both)]
    (args.work / "results.md").write_text("\n".join(text) + "\n")
    print("\n".join(text))


if __name__ == "__main__":
    main()
