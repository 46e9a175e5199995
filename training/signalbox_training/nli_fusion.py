"""Fits how the guard weighs the NLI model against what it sees in words and numbers: fusion.json.

The features come from training/features, which computes what the product computes. A small forest of
boosted trees, most of whose features may only push one way, is fitted on rows that the NLI model was
not trained on; a logistic curve fitted on folds calibrates it.
"""

from __future__ import annotations

import json
import subprocess
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.optimize import minimize
from sklearn.ensemble import HistGradientBoostingClassifier

from . import data, nli_changes, nli_data, nli_facts

# Which way a feature may push the support. Those not named may do both.
DIRECTION = {name: 1 for name in ("entail_max", "entail_best", "sentence_share", "bigram_share", "run_share", "premise_score")}
DIRECTION |= {name: -1 for name in (
    "contra_max", "contra_best", "contra_min", "neutral_best", "words_missing", "missing_share", "missing_weight", "names_missing", "names_share",
    "numbers_contradicted", "numbers_absent", "negation_more", "negation_less", "opposites", "amount_differs", "inserted_words",
    "order_inverted")}
NLI = ("entail_max", "entail_best", "neutral_min", "neutral_best", "contra_max", "contra_min", "contra_best")
FOLDS = 5
# Weight of a group of rows in the fit, as a share of all; what is within a group counts the same.
GROUPS = {"synthetic": 0.22, "real": 0.35, "wice": 0.2, "own": 0.23}
WORDS_SHARE = 0.4  # of the sum: trees that do not see the NLI model, so that it cannot be wrong alone


@dataclass
class Fit:
    """Rows of the fit: features of a claim, whether it is supported, weight, the row it comes from and its fold."""

    x: np.ndarray
    y: np.ndarray
    weight: np.ndarray
    row: np.ndarray
    fold: np.ndarray
    ruled: np.ndarray  # of a group made by rule
    known: np.ndarray  # the NLI model was trained on it: words and numbers alone are fitted on it


def rows(folder: Path, own: int = 2000) -> list[dict]:
    """Grounding rows that are held out from the training of the NLI model, each with the group that weighs it and its kind.
    The facts are whole, as a request would carry them. Claims of WiCE are too few to hold out enough: all of them are here, to
    be read by models that were each trained without a fold of them."""
    banned, out = nli_data.dev_keys(folder), []

    def add(group, premise, claim, supported, kind, root=None):
        out.append({"facts": premise, "question": "", "answer": claim, "label": "supported" if supported else "unsupported", "group": group, "kind": kind,
                    "fold": data.bucket(root or claim, FOLDS)})

    for r in nli_data.read(folder, "nli_synthetic", banned):
        seen = nli_data.Pair(nli_data.synthetic_window(r), r["hypothesis"], nli_data.UNSUPPORTED, "")
        if nli_data.held_out(seen) and data.bucket(r["hypothesis"], 2):
            add("synthetic", r["premise"], r["hypothesis"], r["label"] == "entailment", r["type"])
    for r in nli_data.read(folder, "nli_real", banned) + nli_data.read(folder, "nli_mnli_snli_dev", banned):
        if len(r["premise"].split()) <= nli_data.WHOLE_WORDS and data.bucket(r["premise"], data.HELD_OUT_ONE_IN) == 0:
            add("real", r["premise"], r["hypothesis"], r["label"] == "entailment", r["src"])
    whole, parts = nli_data.pages(folder, banned)
    for r in whole:
        add("wice", r["premise"], r["hypothesis"], r["label"] == "entailment", "wice", r["root"])
    for r in parts:
        add("wice", r["evidence"], r["claim"], False, "wice_tokens", r["root"])
    made = nli_facts.build(own, seed=101) + nli_changes.build(folder, 6 * own, seed=103)
    made = [p for p in made if p.src == "own/facts" or nli_data.held_out(p)]
    for p in made:
        add("own", p.premise, p.claim, p.may == nli_data.SURE["entailment"], p.kind)
    return out


def features(repository: Path, given: list[dict], bundle: Path | None = None, fusion: Path | None = None) -> tuple[list[str], list[dict]]:
    """(names, one entry a claim) of what training/features prints for the rows."""
    command = ["go", "run", "./training/features", "--workers", "2"]
    command += ["--bundle", str(bundle.resolve())] if bundle else []
    command += ["--fusion", str(fusion.resolve())] if fusion else []
    keys = ("facts", "question", "answer", "label")
    text = "".join(json.dumps({k: r[k] for k in keys}) + "\n" for r in given)
    done = subprocess.run(command, cwd=repository, input=text.encode(), stdout=subprocess.PIPE, check=True)
    head, *lines = done.stdout.decode().splitlines()
    return json.loads(head)["features"], [json.loads(line) for line in lines]


def gather(names: list[str], lines: list[dict], given: list[dict], known: tuple[str, ...] = ()) -> Fit:
    """The claims to fit on. Of an unsupported answer with several claims only the one that the model doubts most counts as
    unsupported: the others may be true. `known` are the groups that the NLI model was trained on."""
    claims, entail = defaultdict(list), names.index("entail_max")
    for l in lines:
        claims[l["row"]].append(l["features"])
    x, y, row = [], [], []
    for i, found in sorted(claims.items()):
        supported = given[i]["label"] == "supported"
        picked = found if supported else [min(found, key=lambda f: f[entail])]
        x += picked
        y += [supported] * len(picked)
        row += [i] * len(picked)
    y, row = np.array(y), np.array(row)
    group = np.array([given[i]["group"] for i in row])
    weight = np.zeros(len(y))
    for name, share in GROUPS.items():
        for label in (False, True):
            chosen = (group == name) & (y == label)
            weight[chosen] = share / 2 / max(chosen.sum(), 1) * len(y)
    # WiCE asks about one claim with several parts of a page: all rows of an answer are in one fold.
    return Fit(np.array(x), y, weight, row, np.array([given[i]["fold"] for i in row]), np.isin(group, ("synthetic", "own")), np.isin(group, known))


def forest(names: list[str], used: list[str], fit: Fit, chosen: np.ndarray, trees: int, seed: int = 1) -> HistGradientBoostingClassifier:
    columns = [names.index(n) for n in used]
    model = HistGradientBoostingClassifier(
        learning_rate=0.06, max_iter=trees, max_leaf_nodes=8, min_samples_leaf=40, l2_regularization=5.0, max_bins=64, early_stopping=False,
        monotonic_cst=[DIRECTION.get(n, 0) for n in used], random_state=seed)
    return model.fit(fit.x[chosen][:, columns], fit.y[chosen], fit.weight[chosen])


# Of evidence of at most 150 words: a claim fails below it. Chosen on every other real dev row (RESULTS.md).
SHORT_UNSUPPORTED = 0.25


def calibration(raw: np.ndarray, y: np.ndarray, weight: np.ndarray) -> tuple[float, float]:
    """(slope, offset) of the logistic curve from sums of trees to support."""
    def loss(p):
        z = p[0] * raw + p[1]
        return (weight * (np.logaddexp(0, z) - y * z)).sum() / weight.sum()

    slope, offset = minimize(loss, (1.0, 0.0), method="L-BFGS-B", bounds=((0.05, 5), (-5, 5))).x
    return float(slope), float(offset)


def thresholds(names: list[str], fit: Fit, support: np.ndarray) -> dict[str, float]:
    """Cuts chosen on the folds. Below `unsupported` lie two in a hundred true claims of the groups made by rule, where labels are
    sure; of all claims above `supported` one in ten is wrong; `contradicted` is reached by the probability of contradiction
    of one in a hundred of those true claims."""
    sure, weight = fit.y & fit.ruled, fit.weight * ~fit.known
    low = float(np.quantile(support[sure], 0.02))
    order = np.argsort(-support)
    wrong = np.cumsum((weight * ~fit.y)[order]) / np.maximum(np.cumsum(weight[order]), 1e-9)
    fine = np.flatnonzero(wrong <= 0.1)
    high = max(low, float(support[order[fine[-1]]]) if len(fine) else 0.5)
    doubt = np.where(support < high, fit.x[:, names.index("contra_max")], 0)
    return {"supported": round(high, 4), "contradicted": round(max(0.5, float(np.quantile(doubt[sure], 0.99))), 4), "unsupported": round(low, 4)}


def fair(used: list[str], fit: Fit) -> np.ndarray:
    """The claims that trees over these features may be fitted on."""
    return ~fit.known if set(used) & set(NLI) else np.ones(len(fit.y), bool)


def folds(names: list[str], used: list[str], fit: Fit, trees: int) -> np.ndarray:
    """The sum of trees for every claim by a forest that has not seen its row."""
    raw = np.zeros(len(fit.y))
    columns = [names.index(n) for n in used]
    for k in range(FOLDS):
        model = forest(names, used, fit, (fit.fold != k) & fair(used, fit), trees)
        raw[fit.fold == k] = model.decision_function(fit.x[fit.fold == k][:, columns])
    return raw


def tree(nodes, share: float, columns: list[int]) -> dict:
    """One tree in the format of stream/check, its values times `share`, its features in the order of all; children come
    after their parent."""
    out = {k: [] for k in ("feature", "threshold", "left", "right", "value")}
    order, at = [0], {0: 0}
    for i in order:  # grows while it is read
        if not nodes[i]["is_leaf"]:
            for child in (nodes[i]["left"], nodes[i]["right"]):
                at[int(child)] = len(order)
                order.append(int(child))
    for i in order:
        n = nodes[i]
        leaf = bool(n["is_leaf"])
        out["feature"].append(-1 if leaf else columns[int(n["feature_idx"])])
        out["threshold"].append(0 if leaf else float(n["num_threshold"]))
        out["left"].append(0 if leaf else at[int(n["left"])])
        out["right"].append(0 if leaf else at[int(n["right"])])
        out["value"].append(float(f"{share * n['value']:.6g}") if leaf else 0)
    return out


def make(names: list[str], fit: Fit, trees: int = 100) -> tuple[dict, np.ndarray]:
    """(the content of fusion.json, support of every claim by a forest that has not seen its row).
    The fusion is the weighted sum of a forest over all features and one over words and numbers alone. What the NLI model was trained
    on decides neither curve nor thresholds."""
    parts = [(1 - WORDS_SHARE, names), (WORDS_SHARE, words(names))]
    raw = sum(share * folds(names, used, fit, trees) for share, used in parts)
    slope, offset = calibration(raw[~fit.known], fit.y[~fit.known], fit.weight[~fit.known])
    support = 1 / (1 + np.exp(-(slope * raw + offset)))
    base, found = 0.0, []
    for share, used in parts:
        model = forest(names, used, fit, fair(used, fit), trees)
        base += share * float(np.ravel(model._baseline_prediction)[0])
        found += [tree(step[0].nodes, share, [names.index(n) for n in used]) for step in model._predictors]
    cuts = thresholds(names, fit, support)
    content = {"format": 1, "features": names, "base": base, "trees": found, "calibration": {"slope": slope, "offset": offset},
               "thresholds": cuts, "thresholds_short": cuts | {"unsupported": min(cuts["unsupported"], SHORT_UNSUPPORTED)}}
    return content, support


def words(names: list[str]) -> list[str]:
    """The features that need no model."""
    return [n for n in names if n not in NLI]


def by_row(lines: list[dict], count: int, support=None) -> np.ndarray:
    """1 - the least support of a row's claims; 0 for rows without claims. `support` gives that of every line, by default
    what the product printed."""
    out = np.zeros(count)
    for i, l in enumerate(lines):
        s = l["score"] if support is None else support[i]
        out[l["row"]] = max(out[l["row"]], 1 - s)
    return out
