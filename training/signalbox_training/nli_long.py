"""What the fusion adds beside long evidence: trees fitted on edited summaries of conversations and mails, and a flatter curve.

Graph and the rest of the fusion stay. Real summaries, and sentences that people write about real texts, are what the fusion had not
seen: the trees are boosted on the features of edited summaries, of the twins of `nli_written` that the model was not trained on, and
of made pages, which keep changed copies sure, and are added to the sum where the best premise is of a page. As a command it prints
the figures of every kind of text by trees that have not seen it, and puts trees that have seen all of them into the bundle.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import yaml
from sklearn.ensemble import HistGradientBoostingClassifier

from . import data, nli_bundle, nli_evaluate, nli_fusion, nli_product, nli_written

TREES = 100
PAGES_SHARE, TWINS_SHARE = 0.15, 0.5  # of the weight, for made pages and for twins
CURVE = 0.49  # of the slope of the log odds on twins by trees that have not seen their texts
# Beside long evidence. Where one sentence in ten is false, flags on neutral ones above "alone" are more often wrong than right (faithful
# answers, ADR 71).
CUTS = {"supported": 0.6, "unsupported": 0.4, "alone": 0.25}
SHORT_ALONE = 0.25  # beside shorter evidence: all that is unsupported there; sets 6 to 10 of bench/guard have such texts
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


def every(rows: Rows) -> np.ndarray:
    return np.ones(len(rows.given), bool)


def fit(sets: list[tuple[Rows, np.ndarray, float]]) -> HistGradientBoostingClassifier:
    """Trees over the chosen rows of each set, with its share of the weight."""
    kept = [(rows, rows.counted(chosen), share) for rows, chosen, share in sets]
    x = np.concatenate([rows.x[keep] for rows, keep, _ in kept])
    true = [~rows.wrong[rows.row][keep] for rows, keep, _ in kept]
    weight = np.concatenate([weights(t, share) for t, (_, _, share) in zip(true, kept)])
    model = HistGradientBoostingClassifier(
        learning_rate=0.06, max_iter=TREES, max_leaf_nodes=8, min_samples_leaf=60, l2_regularization=10.0, early_stopping=False,
        monotonic_cst=[nli_fusion.DIRECTION.get(n, 0) for n in sets[0][0].names], random_state=1)
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
    short = fusion.get("thresholds_short", fusion["thresholds"])
    short = short | {"alone": min(SHORT_ALONE, short["unsupported"])}
    return rest | {"thresholds": fusion["thresholds"] | CUTS, "thresholds_short": short, "long": section(model, fusion)}


def twins(folder: Path, clones: Path) -> list[dict]:
    """Twins about long texts that the model was not trained on, as labelled answers."""
    held = [t for t in nli_written.read(nli_written.texts(folder, clones)) if nli_written.held_out(t) and len(t.text.split()) > WORDS]
    return [{"facts": t.text, "question": "", "answer": a, "label": label, "src": "twins"} for t in held for a, label in ((t.true, "supported"), (t.false, "unsupported"))]


@dataclass
class Sets:
    """What the trees are fitted on."""

    summaries: Rows
    pages: Rows
    twins: Rows

    def fit(self, summaries: np.ndarray, twins: np.ndarray) -> HistGradientBoostingClassifier:
        """Trees over these summaries and twins, and all pages."""
        return fit([(self.summaries, summaries, 1 - PAGES_SHARE - TWINS_SHARE), (self.pages, every(self.pages), PAGES_SHARE), (self.twins, twins, TWINS_SHARE)])

    def all(self) -> HistGradientBoostingClassifier:
        return self.fit(every(self.summaries), every(self.twins))

    def unseen(self) -> tuple[np.ndarray, np.ndarray]:
        """Log odds of every claim of a summary by trees that have not seen its kind, and of every twin by trees that have not seen its
        text."""
        kind, fold = np.array([r["src"] for r in self.summaries.given]), np.array([data.bucket(r["facts"], nli_fusion.FOLDS) for r in self.twins.given])
        summaries, twins = self.summaries.odds.copy(), self.twins.odds.copy()
        for k in sorted(set(kind)):
            there = (kind == k)[self.summaries.row]
            summaries[there] += self.fit(kind != k, every(self.twins)).decision_function(self.summaries.x[there])
        for k in sorted(set(fold)):
            there = (fold == k)[self.twins.row]
            twins[there] += self.fit(every(self.summaries), fold != k).decision_function(self.twins.x[there])
        return summaries, twins


def left_out(args, fusion: dict) -> tuple[dict, Sets]:
    """Figures of every kind of text by trees that have not seen it, {kind: (answers, AUC without these trees, with, its interval)}, all
    summaries as ""; and the rows."""
    sets = Sets(*(Rows(args, given, fusion) for given in (
        data.read(args.data, "grounding_summedits"), nli_product.made_pages(args.data)[::5], twins(args.data, args.clones))))
    if sets.summaries.names != fusion["features"]:
        raise SystemExit("fusion.json was fitted on other features")
    out = {}
    for rows, odds in zip((sets.twins, sets.summaries), sets.unseen()[::-1]):
        before, after, kind = rows.doubt(rows.odds), rows.doubt(odds), np.array([r["src"] for r in rows.given])
        for k in sorted(set(kind)) + [""] * (rows is sets.summaries):
            of = kind == k if k else kind != ""
            wrong = rows.wrong[of]
            out[k] = (int(of.sum()), nli_evaluate.auc(before[of], wrong), nli_evaluate.auc(after[of], wrong), nli_evaluate.interval(after[of], wrong))
    return out, sets


def main() -> None:
    args = nli_product.arguments(__doc__).parse_args()
    fusion = json.loads((args.out / "fusion.json").read_text())
    figures, sets = left_out(args, fusion)
    for kind, f in figures.items():
        print(kind or "all", f)
    manifest = yaml.safe_load((args.out / "bundle.yaml").read_text())
    nli_bundle.write(args.out, (args.out / "model_int8.onnx").read_bytes(), manifest["tasks"][0]["temperature"], added(fusion, sets.all()))


if __name__ == "__main__":
    main()
