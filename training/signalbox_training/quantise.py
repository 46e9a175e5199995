"""Prepares the linear layers for int8.

There is one activation scale per matrix, so a single token with a huge value in a
single channel costs precision everywhere. Three remedies, all from activation
statistics of a few hundred texts:

- smoothing: input channels are divided by a factor and the weight rows multiplied by it,
  so that channels of different size share the int8 range better;
- clipping: what is left of the largest values is cut off, and the training goes on with the
  cut in place, so that the model does without them;
- rounding: weights are rounded one input channel after the other, and the error of each
  is moved to the channels that come after it, weighted by how the inputs correlate.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from . import batches
from .model import LAYERS, PARTS, Bundle


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


def collect(net: Bundle, rows: list[list[int]]) -> dict[str, Statistics]:
    """Run the rows through the model and gather the inputs of every linear layer of the trunk, smoothed where the layer is."""
    seen: dict[str, Statistics] = {}

    def hook(name):
        def run(layer, inputs):
            x = (inputs[0].detach().float() / layer.smooth).reshape(-1, inputs[0].shape[-1])
            x = x.clamp(-layer.limit, layer.limit).numpy()
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
        for row in rows:
            net(*batches.pad([row]))
    for h in hooks:
        h.remove()
    return seen


def smoothing(weight: np.ndarray, stats: Statistics, alpha: float = 0.5) -> tuple[np.ndarray, float]:
    """Factors per input channel (geometric mean 1) and the clip limit of the smoothed inputs.

    The factors are those of SmoothQuant (Xiao et al. 2022, equation 4). The limit lets a few of the
    largest values of every text go: training afterwards makes up for them."""
    peak, size = np.maximum(stats.peak, 1e-4), np.maximum(np.abs(weight).max(0), 1e-4)
    factor = peak**alpha / size ** (1 - alpha)
    factor /= np.exp(np.log(factor).mean())
    peaks = np.sort(stats.peak / factor)
    return factor.astype(np.float32), float(peaks[int(0.98 * len(peaks))])


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
    return out, scale.astype(np.float32)


def quantise(net: Bundle, rows: list[list[int]]) -> dict[str, Quantised]:
    """Round every linear layer of the trunk, with its smoothing applied, on the statistics of some rows."""
    out = {}
    for name, s in collect(net, rows).items():
        layer = net.get_submodule(name)
        out[name] = Quantised(*round_weights((layer.weight * layer.smooth).detach().numpy().T, s.gram))
    return out


def as_trained(net: Bundle) -> dict[str, Quantised]:
    """Round every linear layer of the trunk as the training simulated it (model.rounded_weights), for weights trained with rounding throughout."""
    out = {}
    for i in range(LAYERS):
        for part in PARTS:
            layer = getattr(net.layers[i], part)
            w = (layer.weight * layer.smooth).detach().numpy()
            step = np.abs(w).max(1, keepdims=True) / 127
            out[f"layers.{i}.{part}"] = Quantised(np.rint(w / step).astype(np.int8).T.copy(), step[:, 0].astype(np.float32))
    return out
