"""Prepares the linear layers for dynamic int8 quantisation.

Dynamic quantisation has one activation scale per matrix, so a single token with a
huge value in a single channel costs precision everywhere. Four remedies, all from
activation statistics of a few hundred texts:

- outlier channels: the few input channels with the largest values are multiplied in
  fp32, the rest are clipped to their common range and go through int8;
- smoothing: input channels are divided by a factor and the weight rows multiplied by it,
  so that channels of different size share the int8 range better;
- two steps: the rounding error of the activations is quantised again and multiplied in a
  second int8 product (for the layer after GELU, where a small error matters most);
- rounding: weights are rounded one input channel after the other, and the error of each
  is moved to the channels that come after it, weighted by how the inputs correlate.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from . import batches
from .model import LAYERS, Bundle

PARTS = ("qkv", "out", "up", "down")


@dataclass
class Statistics:
    """Input statistics of one linear layer."""

    gram: np.ndarray  # X^T X
    peak: np.ndarray  # largest magnitude per channel


@dataclass
class Quantised:
    """One int8 linear layer: weights are [in, out]."""

    weight: np.ndarray
    scale: np.ndarray
    smooth: np.ndarray | None
    limit: float
    outliers: np.ndarray
    outlier_weight: np.ndarray
    two_step: bool


def collect(net: Bundle, tok, texts: list[str]) -> dict[str, Statistics]:
    """Run the texts through the model and gather the inputs of every linear layer of the trunk."""
    seen: dict[str, Statistics] = {}

    def hook(name):
        def run(_, inputs):
            x = inputs[0].detach().float().reshape(-1, inputs[0].shape[-1]).numpy()
            gram, peak = x.T @ x, np.abs(x).max(0)
            if name in seen:
                seen[name].gram += gram
                np.maximum(seen[name].peak, peak, out=seen[name].peak)
            else:
                seen[name] = Statistics(gram, peak)
        return run

    hooks = [getattr(net.layers[i], part).register_forward_pre_hook(hook(f"layers.{i}.{part}"))
             for i in range(LAYERS) for part in PARTS]
    net.eval()
    with torch.no_grad():
        for content in batches.content(tok, texts):
            net(*batches.pad(batches.windows(content)[:1]))
    for h in hooks:
        h.remove()
    return seen


def scales(matrix: np.ndarray) -> np.ndarray:
    """Per-column scale with the least squared rounding error among a few shrunken ranges."""
    full = np.maximum(np.abs(matrix).max(0), 1e-8) / 127
    best, best_error = full, np.full(matrix.shape[1], np.inf)
    for shrink in (1.0, 0.95, 0.9, 0.85, 0.8):
        s = full * shrink
        error = ((np.clip(np.rint(matrix / s), -127, 127) * s - matrix) ** 2).sum(0)
        best, best_error = np.where(error < best_error, s, best), np.minimum(error, best_error)
    return best


def round_weights(matrix: np.ndarray, gram: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Round to int8 channel by channel with error feedback; returns (int8 [in, out], scale [out])."""
    scale = scales(matrix)
    n = len(matrix)
    h = gram.astype(np.float64) + np.eye(n) * (0.01 * np.trace(gram) / n + 1e-8)
    upper = np.linalg.cholesky(np.linalg.inv(h)).T.astype(np.float32)
    work, out = matrix.astype(np.float32).copy(), np.zeros(matrix.shape, np.int8)
    block = 64
    for begin in range(0, n, block):
        end = min(begin + block, n)
        errors = np.zeros((end - begin, matrix.shape[1]), np.float32)
        for i in range(begin, end):
            out[i] = np.clip(np.rint(work[i] / scale), -127, 127)
            errors[i - begin] = (work[i] - out[i] * scale) / upper[i, i]
            work[i + 1 : end] -= np.outer(upper[i, i + 1 : end], errors[i - begin])
        work[end:] -= upper[begin:end, end:].T @ errors
    return out, scale


def quantise(weight: np.ndarray, stats: Statistics, outliers: int, alpha: float, two_step: bool) -> Quantised:
    """Quantise one weight of shape [out, in]."""
    matrix = weight.T.astype(np.float32).copy()
    order = np.argsort(-stats.peak)
    chosen = np.sort(order[:outliers]).astype(np.int64)
    exact = matrix[chosen].copy()
    matrix[chosen] = 0
    peak = np.maximum(stats.peak, 1e-5)
    gram = stats.gram.copy()
    gram[chosen] = 0
    gram[:, chosen] = 0
    rest = np.setdiff1d(np.arange(len(matrix)), chosen)
    smooth = None
    if alpha:
        smooth = np.ones(len(matrix), np.float32)
        size = np.maximum(np.abs(matrix[rest]).max(1), 1e-5)
        factor = peak[rest] ** alpha / size ** (1 - alpha)
        smooth[rest] = factor / np.exp(np.log(factor).mean())
        matrix *= smooth[:, None]
        gram /= np.outer(smooth, smooth)
        peak = peak / smooth
    quantised, scale = round_weights(matrix, gram)
    quantised[chosen] = 0
    return Quantised(quantised, scale.astype(np.float32), smooth, float(peak[rest].max() * 1.1), chosen, exact, two_step)
