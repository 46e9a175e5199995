"""What the fusion adds beside long evidence: trees fitted on edited summaries of conversations and mails, and a flatter curve.

Graph and the rest of the fusion stay. Real summaries are what the fusion had not seen: the trees are boosted on the features of
edited ones and of made pages, which keep changed copies sure, and are added to the sum where the best premise is of a page. As a
command it prints the figures of every kind of text by trees that have not seen it, and puts trees that have seen all of them into
the bundle.
"""

from __future__ import annotations

import json

import numpy as np
import yaml
from sklearn.ensemble import HistGradientBoostingClassifier

from . import data, nli_bundle, nli_evaluate, nli_fusion, nli_product

TREES = 100
PAGES_SHARE = 0.15  # of the weight, for made pages
CURVE = 0.37  # of the slope of the log odds on summaries by trees that have not seen their kind (0.366)
CUTS = {"supported": 0.6, "unsupported": 0.4}  # beside long evidence; chosen on the same
WORDS = 150  # of a source, from which on it is long: pageFrom of stream/check


class Rows:
    """Labelled answers with the features of their claims."""

    def __init__(self, args, given: list[dict], fusion: dict):
        self.given, self.wrong = given, np.array([r["label"] == "unsupported" for r in given])
        self.names, lines = nli_fusion.features(args.repository, given, args.out)
        self.row = np.array([l["row"] for l in lines])
        self.x = np.array([l["features"] for l in lines])
        scale = fusion["calibration"]
        self.odds = scale["slope"] * (fusion["base"] + nli_product.total(fusion["trees"], self.x)) + scale["offset"]

    def counted(self, chosen: np.ndarray) -> np.ndarray:
        """The claims to fit on: all of true answers, of a false one the claim that the model doubts most."""
        entail, keep, least = self.names.index("entail_max"), np.zeros(len(self.row), bool), {}
        for i in np.flatnonzero(chosen[self.row]):
            r = self.row[i]
            if not self.wrong[r]:
                keep[i] = True
            elif r not in least or self.x[i, entail] < self.x[least[r], entail]:
                least[r] = i
        keep[list(least.values())] = True
        return keep

    def doubt(self, odds: np.ndarray) -> np.ndarray:
        """Of every answer, the most doubt about a claim."""
        out = np.full(len(self.given), -99.0)
        np.maximum.at(out, self.row, -odds)
        return out


def weights(true: np.ndarray, share: float) -> np.ndarray:
    """As much for true claims as for false ones, `share` together."""
    return share * np.where(true, 0.5 / max(1, true.sum()), 0.5 / max(1, (~true).sum()))


def fit(summaries: Rows, pages: Rows, chosen: np.ndarray) -> HistGradientBoostingClassifier:
    parts = [(summaries, summaries.counted(chosen), 1 - PAGES_SHARE), (pages, pages.counted(np.ones(len(pages.given), bool)), PAGES_SHARE)]
    x = np.concatenate([p.x[keep] for p, keep, _ in parts])
    true = [~p.wrong[p.row][keep] for p, keep, _ in parts]
    weight = np.concatenate([weights(t, share) for t, (_, _, share) in zip(true, parts)])
    model = HistGradientBoostingClassifier(
        learning_rate=0.06, max_iter=TREES, max_leaf_nodes=8, min_samples_leaf=60, l2_regularization=10.0, early_stopping=False,
        monotonic_cst=[nli_fusion.DIRECTION.get(n, 0) for n in summaries.names], random_state=1)
    return model.fit(x, np.concatenate(true), weight * len(weight))


def section(model: HistGradientBoostingClassifier, fusion: dict) -> dict:
    """The part "long" of fusion.json. Its trees add to a sum that the slope turns into log odds."""
    scale, columns = fusion["calibration"], list(range(len(fusion["features"])))
    return {"base": float(np.ravel(model._baseline_prediction)[0]) / scale["slope"],
            "trees": [nli_fusion.tree(step[0].nodes, 1 / scale["slope"], columns) for step in model._predictors],
            "calibration": {"slope": CURVE * scale["slope"], "offset": CURVE * scale["offset"]}}


def added(fusion: dict, model: HistGradientBoostingClassifier) -> dict:
    """The fusion with what it adds beside long evidence."""
    rest = {k: v for k, v in fusion.items() if k != "long"}
    return rest | {"thresholds": fusion["thresholds"] | CUTS, "long": section(model, fusion)}


def unseen(summaries: Rows, pages: Rows) -> tuple[np.ndarray, np.ndarray]:
    """(kind of text of every answer, log odds of every claim by trees that have not seen its kind)."""
    kind = np.array([r["src"] for r in summaries.given])
    odds = summaries.odds.copy()
    for k in sorted(set(kind)):
        there = kind[summaries.row] == k
        odds[there] += fit(summaries, pages, kind != k).decision_function(summaries.x[there])
    return kind, odds


def left_out(args, fusion: dict) -> tuple[dict, Rows, Rows]:
    """Figures of every kind of text by trees that have not seen it, {kind: (answers, AUC without these trees, with, its interval)}, the
    whole as ""; and the rows."""
    summaries = Rows(args, data.read(args.data, "grounding_summedits"), fusion)
    pages = Rows(args, nli_product.made_pages(args.data)[::5], fusion)
    if summaries.names != fusion["features"]:
        raise SystemExit("fusion.json was fitted on other features")
    kind, odds = unseen(summaries, pages)
    before, after, out = summaries.doubt(summaries.odds), summaries.doubt(odds), {}
    for k in (*sorted(set(kind)), ""):
        of = kind == k if k else kind != ""
        wrong = summaries.wrong[of]
        out[k] = (int(of.sum()), nli_evaluate.auc(before[of], wrong), nli_evaluate.auc(after[of], wrong), nli_evaluate.interval(after[of], wrong))
    return out, summaries, pages


def main() -> None:
    args = nli_product.arguments(__doc__).parse_args()
    fusion = json.loads((args.out / "fusion.json").read_text())
    figures, summaries, pages = left_out(args, fusion)
    for kind, f in figures.items():
        print(kind or "all", f)
    manifest = yaml.safe_load((args.out / "bundle.yaml").read_text())
    model = fit(summaries, pages, np.ones(len(summaries.given), bool))
    nli_bundle.write(args.out, (args.out / "model_int8.onnx").read_bytes(), manifest["tasks"][0]["temperature"], added(fusion, model))


if __name__ == "__main__":
    main()
