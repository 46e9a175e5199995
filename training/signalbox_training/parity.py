"""Reference outputs of the training framework for the texts in parity_texts.txt, and the int8 graph against them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import torch

from . import batches, evaluate, wide
from .model import Bundle

TEXTS = Path(__file__).parent.parent / "parity_texts.txt"


def texts() -> list[str]:
    """One text per line; a line break inside a text is written as \\n."""
    return [line.replace("\\n", "\n") for line in TEXTS.read_text(encoding="utf-8").splitlines() if line.strip()]


# A label can only be compared where the two best logits are further apart than twice the allowed difference.
MARGIN = 0.3


def reference(net: Bundle, tok, fusion: wide.Fusion) -> list[dict]:
    """fp32 outputs, rounded to five decimals; longer texts are cut to one row, near ties are left out."""
    out = []
    net.eval()
    for text, content in zip(texts(), batches.content(tok, texts())):
        row = batches.windows(content)[0]
        with torch.no_grad():
            d, j, e = (t.numpy() for t in net(*batches.pad([row])))
        d, j, e = (v[0].tolist() for v in (*fusion.reference([row], [d, j]), e))
        if min(sorted(v)[-1] - sorted(v)[-2] for v in (d, j)) < MARGIN:
            continue
        short = lambda values: [round(v, 5) for v in values]
        out.append({"text": text, "ids": row, "domain_logits": short(d), "jailbreak_logits": short(j), "embedding": short(e[:8])})
    return out


def compare(sess, rows: list[dict]) -> dict:
    """Largest differences between the graph and the reference."""
    worst = {"domain": 0.0, "jailbreak": 0.0, "embedding": 0.0}
    agree = {"domain": 0, "jailbreak": 0}
    mean = {"domain": [], "jailbreak": []}
    for row in rows:
        got = dict(zip(("domain", "jailbreak", "embedding"), (o[0] for o in evaluate.run(sess, [row["ids"]]))))
        for task in ("domain", "jailbreak"):
            want = np.array(row[task + "_logits"])
            difference = float(np.abs(got[task] - want).max())
            worst[task] = max(worst[task], difference)
            mean[task].append(difference)
            agree[task] += int(got[task].argmax() == want.argmax())
        worst["embedding"] = max(worst["embedding"], float(np.abs(got["embedding"][:8] - row["embedding"]).max()))
    return {"texts": len(rows), "max_difference": worst, "mean_of_max": {t: float(np.mean(v)) for t, v in mean.items()}, "labels_equal": agree}


def write(rows: list[dict], path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("[\n" + ",\n".join(json.dumps(r, ensure_ascii=False, separators=(",", ":")) for r in rows) + "\n]\n", encoding="utf-8")
