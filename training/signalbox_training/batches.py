"""Tokenising, windows and length-bucketed batches."""

from __future__ import annotations

import random

import numpy as np
import torch
from tokenizers import Tokenizer

from .model import base_folder

CLS, SEP, PAD = 101, 102, 0
WINDOW, STRIDE = 256, 192
SAFETY_WINDOW, SAFETY_STRIDE = 128, 96  # attacks are short; a small window does not drown them


def tokenizer() -> Tokenizer:
    """The base tokenizer without truncation and padding."""
    tok = Tokenizer.from_file(str(base_folder() / "tokenizer.json"))
    tok.no_truncation()
    tok.no_padding()
    return tok


def content(tok: Tokenizer, texts: list[str], limit_chars: int = 40_000) -> list[list[int]]:
    """Token ids without [CLS] and [SEP]."""
    encoded = tok.encode_batch([t[:limit_chars] for t in texts], add_special_tokens=False)
    return [e.ids for e in encoded]


def wrap(ids: list[int]) -> list[int]:
    return [CLS, *ids, SEP]


def windows(ids: list[int], count: int = 0, size: int = WINDOW, stride: int = STRIDE) -> list[list[int]]:
    """Overlapping rows of at most `size` tokens; `count` keeps the first ones and the last (0 = all)."""
    size -= 2
    starts = [0]
    while starts[-1] + size < len(ids):
        starts.append(starts[-1] + stride)
    if count and len(starts) > count:
        starts = starts[: count - 1] + starts[-1:]
    return [wrap(ids[s : s + size]) for s in starts]


def pad(rows: list[list[int]]) -> tuple[torch.Tensor, torch.Tensor]:
    """Pad rows to one length; returns (ids, mask) as int64."""
    width = max(map(len, rows))
    ids = np.zeros((len(rows), width), np.int64)
    mask = np.zeros_like(ids)
    for i, row in enumerate(rows):
        ids[i, : len(row)], mask[i, : len(row)] = row, 1
    return torch.from_numpy(ids), torch.from_numpy(mask)


def by_length(lengths: list[int], tokens: int, largest: int, rng: random.Random | None = None, with_last: list[bool] | None = None) -> list[list[int]]:
    """Batches of similar length: at most `tokens` padded tokens and `largest` rows each, in random order. A row that is `with_last`
    stays beside the one before it."""
    jitter = (lambda: rng.uniform(-2, 2)) if rng else (lambda: 0)
    keys = [n + jitter() for n in lengths]
    for i in range(1, len(keys)):
        if with_last and with_last[i]:
            keys[i] = keys[i - 1]
    order = sorted(range(len(lengths)), key=keys.__getitem__)
    out, current, widest = [], [], 0
    for i in order:
        widest_now = max(widest, lengths[i])
        if current and (len(current) >= largest or widest_now * (len(current) + 1) > tokens):
            out.append(current)
            current, widest_now = [], lengths[i]
        current.append(i)
        widest = widest_now
    if current:
        out.append(current)
    if rng:
        rng.shuffle(out)
    return out
