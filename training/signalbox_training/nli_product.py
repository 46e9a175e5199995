"""Figures of the NLI model and its fusion as the product computes them, on the dev files and on made pages.

As a command it keeps graph and fusion that are there, measures all dev files and writes the model card.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import re
from pathlib import Path

import numpy as np
import yaml

from . import data, nli_card, nli_data, nli_evaluate, nli_fusion
from .bundle import replace

COPIED = "### Labels of held-out pairs"  # from here on a model card tells of the graph


def made_pages(folder: Path) -> list[dict]:
    """Claims made by rule that no part of the fusion is fitted on, their premise put into a page of 200 to 900 words among
    paragraphs of other texts: to see that changed copies are still caught there."""
    banned, rng, out = nli_data.dev_keys(folder), random.Random(107), []
    with gzip.open(folder / "openstax_text" / "text.jsonl.gz", "rt") as f:
        texts = [r["text"] for r in map(json.loads, f) if r.get("lang") == "en" and 20 <= len(r["text"].split()) <= 200]
    for r in nli_data.read(folder, "nli_synthetic", banned):
        seen = nli_data.Pair(nli_data.synthetic_window(r), r["hypothesis"], nli_data.UNSUPPORTED, "")
        if not nli_data.held_out(seen) or data.bucket(r["hypothesis"], 2):
            continue
        wanted, parts, used = rng.randint(200, 900), [r["premise"]], len(r["premise"].split())
        while used < wanted:
            text = rng.choice(texts)
            parts.insert(rng.randint(0, len(parts)), text)
            used += len(text.split())
        out.append({"facts": "\n".join(parts), "question": "", "answer": r["hypothesis"], "label": "supported" if r["label"] == "entailment" else "unsupported",
                    "group": "pages", "kind": r["type"], "fold": data.bucket(r["hypothesis"], nli_fusion.FOLDS)})
    return out


def total(trees: list[dict], x: np.ndarray) -> np.ndarray:
    """The sum of trees as stream/check computes it, for every row of features."""
    out = np.zeros(len(x))
    for t in trees:
        feature, cut, left, right, value = (np.array(t[k]) for k in ("feature", "threshold", "left", "right", "value"))
        at = np.zeros(len(x), int)
        while (inner := feature[at] >= 0).any():
            down = np.where(x[np.arange(len(x)), np.maximum(feature[at], 0)] <= cut[at], left[at], right[at])
            at = np.where(inner, down, at)
        out += value[at]
    return out


def blind(names: list[str], fusion: dict) -> list[dict]:
    """The trees that do not see the NLI model."""
    return [t for t in fusion["trees"] if not {names[f] for f in t["feature"] if f >= 0} & set(nli_fusion.NLI)]


def by_words(names: list[str], fusion: dict, x: np.ndarray) -> np.ndarray:
    """Support without the NLI model: the trees that do not see it, as a number that ranks claims."""
    return 1 / (1 + np.exp(-total(blind(names, fusion), x)))


def measured(names: list[str], lines: list[dict], given: list[dict], fusion: dict) -> dict:
    """Figures of a dev file from what the product printed for it."""
    x = np.array([l["features"] for l in lines])
    wrong = np.array([r["label"] == "unsupported" for r in given])
    scores = {"fused": nli_fusion.by_row(lines, len(given)), "nli": nli_fusion.by_row(lines, len(given), x[:, names.index("entail_max")]),
              "words": nli_fusion.by_row(lines, len(given), by_words(names, fusion, x))}
    flagged, stated = np.zeros(len(given), bool), np.zeros(len(given), bool)
    for l in lines:
        stated[l["row"]] = True
        flagged[l["row"]] |= l["verdict"] in ("contradicted", "unsupported")
    out = {k: nli_evaluate.figures(s, wrong, given) for k, s in scores.items()}
    out["stated"] = {"rows": int(stated.sum()), "auc": nli_evaluate.auc(scores["fused"][stated], wrong[stated])}
    out["verdicts"] = {"caught": float(flagged[wrong].mean()), "false_alarms": float(flagged[~wrong].mean())}
    return out


def product(args, fusion: dict) -> dict:
    """Figures of the dev files as the product computes them: fused, the NLI model alone, and the trees without it."""
    out = {}
    for name in nli_data.DEV:
        given = data.read(args.data, f"dev/{name}.jsonl")
        names, lines = nli_fusion.features(args.repository, given, args.out, args.out / "fusion.json")
        out[name] = measured(names, lines, given, fusion)
        print(name, json.dumps(out[name]), flush=True)
    return out


def arguments(what: str) -> argparse.ArgumentParser:
    """A parser of the folders that a command over the model and its fusion reads and writes."""
    repository = Path(__file__).resolve().parents[2]
    parser = argparse.ArgumentParser(description=what)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--clones", type=Path, default=Path("build/clones"), help="of the repositories of written/texts.tsv, a folder owner+name each")
    parser.add_argument("--repository", type=Path, default=repository, help="where training/features is run")
    parser.add_argument("--out", type=Path, default=repository / "models" / "grounding")
    return parser


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--made", action="store_true", help="print the AUC of claims on made pages as well")
    args = parser.parse_args()
    fusion = json.loads((args.out / "fusion.json").read_text())
    if fusion["features"] != nli_fusion.features(args.repository, [])[0]:
        raise SystemExit("fusion.json was fitted on other features")
    manifest = yaml.safe_load((args.out / "bundle.yaml").read_text())
    graph, heat = (args.out / "model_int8.onnx").read_bytes(), manifest["tasks"][0]["temperature"]
    if args.made:
        given = made_pages(args.data)
        names, lines = nli_fusion.features(args.repository, given, args.out, args.out / "fusion.json")
        print("made pages", measured(names, lines, given, fusion)["fused"], flush=True)
    from . import nli_long  # which needs this module

    card = (args.out / "MODEL_CARD.md").read_text()
    figures = {"fresh": " ".join(nli_card.FRESH.split()) in " ".join(card.split()), "held_out": {"temperature": heat}, "bytes": len(graph), "training_rows": int(re.search(r"([\d,]+) pairs were", card)[1].replace(",", "")),
               "fit": nli_card.fitted(fusion), "left_out": nli_long.left_out(args, fusion)[0], "dev": product(args, fusion)}
    replace(args.out / "MODEL_CARD.md", nli_card.render(figures, card[card.index(COPIED):card.index(nli_card.LIMITS.split("\n")[1])]).encode())


if __name__ == "__main__":
    main()
