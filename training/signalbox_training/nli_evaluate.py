"""Figures of the NLI model: AUC with intervals, by kind of change, int8 against fp32, milliseconds."""

from __future__ import annotations

import time
from collections import defaultdict
from pathlib import Path

import numpy as np
import onnxruntime as ort
from scipy.stats import rankdata

from . import batches, data, evaluate, nli_data, nli_model
from .nli_export import INPUTS

ROW = 160  # tokens of the longest row in the product


def session(graph: bytes, threads: int = 2) -> ort.InferenceSession:
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    if evaluate.saturates():
        options.add_session_config_entry("session.x64quantprecision", "1")
    return ort.InferenceSession(graph, options, providers=["CPUExecutionProvider"])


def feed(rows: list[list[int]]) -> dict[str, np.ndarray]:
    ids, mask = batches.pad(rows)
    return dict(zip(INPUTS, (t.numpy() for t in (ids, mask, nli_model.types_of(ids, mask)))))


def logits(sess, tok, pairs: list[tuple[str, str]], row: int = ROW) -> np.ndarray:
    """[pairs, 3]."""
    first, second = batches.content(tok, [p for p, _ in pairs], 4000), batches.content(tok, [c for _, c in pairs], 4000)
    rows = [nli_model.pair(a, b, row) for a, b in zip(first, second)]
    out = np.zeros((len(rows), len(nli_model.LABELS)), np.float32)
    for batch in batches.by_length([len(r) for r in rows], 2048, 32):
        out[batch] = sess.run(["logits"], feed([rows[i] for i in batch]))[0]
    return out


def softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def compare(logits: np.ndarray, exact: np.ndarray) -> dict:
    """How far probabilities of the int8 graph are from those of the fp32 graph."""
    gap = np.abs(softmax(logits) - softmax(exact)).max(1)
    same = float((logits.argmax(1) == exact.argmax(1)).mean())
    return {"same_label": same, "mean": float(gap.mean()), "p99": float(np.quantile(gap, 0.99))}


def auc(score: np.ndarray, positive: np.ndarray) -> float:
    """Area under the ROC curve (Mann-Whitney)."""
    positive = np.asarray(positive, bool)
    n, m = positive.sum(), (~positive).sum()
    if not n or not m:
        return float("nan")
    return float((rankdata(score)[positive].sum() - n * (n + 1) / 2) / (n * m))


def interval(score: np.ndarray, positive: np.ndarray, draws: int = 1000, seed: int = 1) -> tuple[float, float]:
    """95 % of the AUC by bootstrap over rows, drawn within each class."""
    rng, positive = np.random.default_rng(seed), np.asarray(positive, bool)
    yes, no = score[positive], score[~positive]
    flags = np.r_[np.ones(len(yes), bool), np.zeros(len(no), bool)]
    found = [auc(np.r_[rng.choice(yes, len(yes)), rng.choice(no, len(no))], flags) for _ in range(draws)]
    return tuple(float(x) for x in np.quantile(found, (0.025, 0.975)))


def grounding(sess, tok, folder: Path, name: str) -> tuple[np.ndarray, np.ndarray, list[dict]]:
    """(1 - support, unsupported, rows) of a dev file by the model alone: the highest entailment over the two best windows."""
    rows = data.read(folder, f"dev/{name}.jsonl")
    pairs, owner = [], []
    for i, r in enumerate(rows):
        for window in nli_data.best_windows(r["facts"], r["answer"], 2):
            pairs.append((window, r["answer"]))
            owner.append(i)
    entail = softmax(logits(sess, tok, pairs))[:, 0]
    support = np.zeros(len(rows))
    np.maximum.at(support, owner, entail)
    return 1 - support, np.array([r["label"] == "unsupported" for r in rows]), rows


def figures(score: np.ndarray, wrong: np.ndarray, rows: list[dict]) -> dict:
    """AUC of a dev file with its interval, and by source; of rows made by rule, the share of each kind that is
    caught at 2 % false alarms."""
    out = {"rows": len(rows), "auc": auc(score, wrong), "interval": interval(score, wrong)}
    groups = defaultdict(list)
    for i, r in enumerate(rows):
        groups[r["src"]].append(i)
    if len(groups) > 1:
        out["by_source"] = {s: (len(g), auc(score[g], wrong[g])) for s, g in sorted(groups.items())}
    at = float(np.quantile(score[~wrong], 0.98))
    out["threshold_at_2_percent"] = at
    kinds = defaultdict(list)
    for i, r in enumerate(rows):
        if r.get("type"):
            kinds[r["type"]].append(i)
    out["by_kind"] = {k: (len(g), float((score[g] > at).mean())) for k, g in sorted(kinds.items())}
    return out


def latency(sess, tokens: int, pairs: int, repeats: int = 200) -> tuple[float, float]:
    """(median, 99th percentile) milliseconds of one run over so many rows of so many tokens."""
    rng = np.random.default_rng(3)
    rows = [nli_model.pair(rng.integers(1000, 20000, tokens).tolist(), rng.integers(1000, 20000, tokens // 4).tolist(), tokens) for _ in range(pairs)]
    given, times = feed(rows), []
    for _ in range(repeats):
        start = time.perf_counter()
        sess.run(["logits"], given)
        times.append((time.perf_counter() - start) * 1000)
    return float(np.median(times)), float(np.quantile(times, 0.99))
