"""Checks of the pieces that need neither data nor weights."""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from signalbox_training import batches, evaluate, quantise, synth  # noqa: E402
from signalbox_training.model import DOMAINS  # noqa: E402


def test_windows_cover_every_token():
    for length in (0, 1, 254, 255, 446, 447, 2000):
        ids = list(range(1000, 1000 + length))
        rows = batches.windows(ids)
        assert all(len(r) <= batches.WINDOW and r[0] == batches.CLS and r[-1] == batches.SEP for r in rows)
        assert set(ids) == {t for r in rows for t in r[1:-1]}
    assert len(batches.windows(list(range(5000)), 4)) == 4


def test_batches_hold_every_row_once():
    lengths = [3, 100, 7, 50, 3, 90]
    groups = batches.by_length(lengths, 128, 4)
    assert sorted(i for g in groups for i in g) == list(range(len(lengths)))
    assert all(max(lengths[i] for i in g) * len(g) <= 128 for g in groups)


def test_rounding_with_feedback_beats_plain_rounding():
    rng = np.random.default_rng(0)
    mix = rng.standard_normal((64, 64))
    x, w = rng.standard_normal((500, 64)) @ mix, rng.standard_normal((64, 8)).astype(np.float32)
    q, scale = quantise.round_weights(w, x.T @ x)
    plain = np.clip(np.rint(w / scale), -127, 127) * scale
    assert np.square(x @ (q * scale - w)).sum() < np.square(x @ (plain - w)).sum()


def test_metrics():
    assert evaluate.auc(np.array([0.1, 0.9, 0.8]), np.array([False, True, True])) == 1.0
    assert evaluate.ece(np.array([1.0, 1.0]), np.array([True, True])) == 0.0


def test_own_texts():
    assert {d for _, d in synth.domain_texts()} == set(DOMAINS)
    assert {y for _, y in synth.jailbreak_texts()} == {0, 1}
