"""Reference outputs of the training framework for the texts in parity_texts.txt, and the int8 graph against them."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import torch

from . import batches, evaluate, wide
from .model import SEQUENCE, Bundle

TEXTS = Path(__file__).parent.parent / "parity_texts.txt"


def texts() -> list[str]:
    """One text per line; a line break inside a text is written as \\n."""
    return [line.replace("\\n", "\n") for line in TEXTS.read_text(encoding="utf-8").splitlines() if line.strip()]


# A label can only be compared where the two best logits are further apart than twice the allowed difference.
MARGIN = 0.3


def reference(net: Bundle, tok, fusion: wide.Fusion) -> list[dict]:
    """What the network gives as it was trained, the rounding of its layers simulated, to five decimals; longer texts are cut to one row, near ties are left out.
    Of the personal data the label of every token is kept."""
    out = []
    net.eval()
    net.round(True)
    short = lambda values: [round(v, 5) for v in values.tolist()]
    for text, content in zip(texts(), batches.content(tok, texts())):
        row = batches.windows(content)[0]
        with torch.no_grad():
            found = {k: v.numpy() for k, v in net(*batches.pad([row])).items()}
        fused = {t: found[t][0] for t in SEQUENCE} | {t: v[0] for t, v in zip(wide.TOPICS, fusion.reference([row], [found[t] for t in wide.TOPICS]))}
        if min(sorted(fused[t])[-1] - sorted(fused[t])[-2] for t in ("domain", "jailbreak", "injection")) < MARGIN:
            continue
        out.append({"text": text, "ids": row, **{f"{t}_logits": short(v) for t, v in fused.items()},
                    "pii_labels": found["pii"][0].argmax(-1).tolist(), "embedding": short(found["embedding"][0, :8])})
    return out


def compare(sess, rows: list[dict]) -> dict:
    """Largest differences between the graph and the reference."""
    difference, agree, tokens = defaultdict(list), Counter(), []
    for row in rows:
        got = {t: v[0] for t, v in evaluate.run(sess, [row["ids"]]).items()}
        for task in SEQUENCE:
            want = np.array(row[task + "_logits"])
            difference[task].append(float(np.abs(got[task] - want).max()))
            agree[task] += int(got[task].argmax() == want.argmax())
        tokens += (got["pii"].argmax(-1) == np.array(row["pii_labels"])).tolist()
        difference["embedding"].append(float(np.abs(got["embedding"][:8] - row["embedding"]).max()))
    return {"texts": len(rows), "max_difference": {t: max(v) for t, v in difference.items()},
            "mean_of_max": {t: float(np.mean(v)) for t, v in difference.items()}, "labels_equal": dict(agree), "pii_labels_equal": float(np.mean(tokens))}


def write(rows: list[dict], path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("[\n" + ",\n".join(json.dumps(r, ensure_ascii=False, separators=(",", ":")) for r in rows) + "\n]\n", encoding="utf-8")
