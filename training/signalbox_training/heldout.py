"""Attacks of collections that nothing was learnt from.

    python -m signalbox_training.trunk --bundle FOLDER --books FILE --leave-out jbb/ sap200 ... --out left_out.pt
    python -m signalbox_training.heldout --checkpoint left_out.pt --leave-out jbb/ sap200 ...

Every attack of the left-out sources is judged against harmless texts of other repositories and prompts of the dev
files, window by window with the largest log-odds of at most MOST windows; recall is counted where one harmless text in a
hundred is flagged. The weights compute as their int8 twins do.
"""

from __future__ import annotations

import argparse
import json
import random
from pathlib import Path

import numpy as np
import torch

from . import batches, data, evaluate, model

PER_SOURCE, PER_KIND, CHATS, MOST = 100, 60, 300, 10


def odds(net: model.Bundle, tok, texts: list[str], rng: random.Random) -> np.ndarray:
    """The largest log-odds of each text, [texts, attacks]."""
    rows, owner = [], []
    for i, content in enumerate(batches.content(tok, texts, 24000)):
        found = batches.windows(content, size=batches.SAFETY_WINDOW, stride=batches.SAFETY_STRIDE)
        found = found if len(found) <= MOST else rng.sample(found, MOST)
        rows += found
        owner += [i] * len(found)
    out = np.full((len(texts), len(model.ATTACKS)), -np.inf, np.float32)
    order = sorted(range(len(rows)), key=lambda i: len(rows[i]))
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16, enabled=torch.cpu._is_avx512_bf16_supported()):
        for at in range(0, len(order), 32):
            picked = order[at : at + 32]
            got = net(*batches.pad([rows[i] for i in picked]))
            for k, task in enumerate(model.ATTACKS):
                z = (got[task][:, 1] - got[task][:, 0]).float().numpy()
                for i, value in zip(picked, z):
                    out[owner[i], k] = max(out[owner[i], k], value)
    return out


def measure(folder: Path, net: model.Bundle, tok, prefixes: tuple[str, ...]) -> dict:
    """Per task and source [attacks, AUC, recall at one percent false positives], the mean of the sources last."""
    rng, attacks, harmless = random.Random(5), {}, {}
    for r in data.read(folder, "jailbreak") + data.read(folder, "jailbreak2"):
        if r["src"].startswith(prefixes) and r["label"] in ("jailbreak", "injection"):
            attacks.setdefault(r["src"], []).append(r["text"])
    for r in data.read(folder, "dev/real_traffic.jsonl.gz"):
        harmless.setdefault(r["kind"], []).append(r["text"])
    harmless["chat"] = [r["text"] for r in data.read(folder, "dev/jailbreak.jsonl") if r["label"] == "benign"]
    pick = lambda texts, n: rng.sample(texts, min(n, len(texts)))
    low = np.concatenate([odds(net, tok, pick(v, CHATS if k == "chat" else PER_KIND), rng) for k, v in sorted(harmless.items())])
    high = {k: odds(net, tok, pick(v, PER_SOURCE), rng) for k, v in sorted(attacks.items()) if len(v) >= 5}
    out = {"harmless": len(low), "left_out": list(prefixes)}
    for k, task in enumerate(model.ATTACKS):
        at = np.quantile(low[:, k], 0.99)
        rows = {}
        for src, z in high.items():
            score, positive = np.concatenate([z[:, k], low[:, k]]), np.arange(len(z) + len(low)) < len(z)
            rows[src] = [len(z), evaluate.auc(score, positive), float((z[:, k] > at).mean())]
        rows["mean of sources"] = [sum(r[0] for r in rows.values()), *(float(np.mean([r[i] for r in rows.values()])) for i in (1, 2))]
        out[task] = rows
    return out


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--checkpoint", type=Path, required=True)
    parser.add_argument("--leave-out", nargs="+", required=True)
    parser.add_argument("--how", default="by `trunk --leave-out`", help="how the weights were trained, for the model card")
    parser.add_argument("--out", type=Path, default=Path("build/heldout.json"))
    args = parser.parse_args()
    net = model.load(args.checkpoint, 0.0).eval()
    net.round(True)
    found = measure(args.data, net, batches.tokenizer(), tuple(args.leave_out))
    args.out.write_text(json.dumps({**found, "how": args.how}, indent=1) + "\n")
