"""The network that reads a premise and a claim together: the MiniLM trunk with a pair head.

A row is `[CLS] premise [SEP] claim [SEP]`, premise and separator of type 0, claim of type 1. The head
reads the first token, the mean of the claim's tokens and the largest value of every channel over
them: one word that the premise does not bear out must be enough. A second head says of every token of
the claim whether the premise bears it out; it is trained alongside and is not part of the bundle.
"""

from __future__ import annotations

import math
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn

from .batches import CLS, SEP
from .model import HIDDEN, LAYERS, LN_EPS, POSITIONS, VOCAB, Layer, Linear, from_base as trunk_from_base
from .model import base_folder, load_file

LABELS = ["entailment", "neutral", "contradiction"]
WIDTH = 256  # of the head's hidden layer
FAR = 1e4  # added to what must not win a maximum or a softmax


def pair(premise: list[int], claim: list[int], most: int) -> list[int]:
    """The row of a pair, at most `most` tokens. As in the product the premise loses its end, down to a
    quarter of the row, and only then the claim."""
    room = most - 3
    claim = claim[: room - min(len(premise), room // 4)]
    return [CLS, *premise[: room - len(claim)], SEP, *claim, SEP]


def types_of(ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """1 for the tokens after the first separator, the last separator included, 0 for the others and padding."""
    ends = (ids == SEP).long()
    return ((ends.cumsum(1) - ends) > 0).long() * mask


class Pair(nn.Module):
    """Logits of entailment, neutral and contradiction for rows of pairs."""

    def __init__(self, dropout: float = 0.1):
        super().__init__()
        self.words = nn.Embedding(VOCAB, HIDDEN)
        self.positions = nn.Embedding(POSITIONS, HIDDEN)
        self.types = nn.Embedding(2, HIDDEN)
        self.ln = nn.LayerNorm(HIDDEN, eps=LN_EPS)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.hidden = nn.Linear(3 * HIDDEN, WIDTH)
        self.logits = nn.Linear(WIDTH, len(LABELS))
        self.tokens = nn.Linear(HIDDEN, 1)
        self.dropout = dropout  # of the head; drawing it for the trunk would cost more than its products on a CPU

    def round(self, on: bool):
        """Turn rounding on or off in every layer that has been calibrated for it."""
        for module in self.modules():
            if isinstance(module, Linear):
                module.rounding = on

    def forward(self, ids, mask):
        """Returns (logits [batch, 3], and of every token [batch, seq] how little the premise bears it out)."""
        seq = ids.shape[1]
        types = types_of(ids, mask)
        x = self.words(ids) + self.positions(torch.arange(seq)) + self.types(types)
        x = self.ln(x)
        bias = ((1.0 - mask[:, None, None, :].float()) * -FAR).expand(-1, 1, seq, -1)
        for layer in self.layers:
            x = layer(x, bias, 0.0)
        x, claim = x.float(), types.unsqueeze(-1).float()
        mean = (x * claim).sum(1) / claim.sum(1).clamp(min=1)
        peak = (x - (1 - claim) * FAR).amax(1)
        features = torch.cat([x[:, 0], mean, peak], -1)
        inner = F.gelu(self.hidden(F.dropout(features, self.dropout, self.training)))
        return self.logits(F.dropout(inner, self.dropout, self.training)), self.tokens(x).squeeze(-1)


def from_base(dropout: float = 0.1) -> Pair:
    """The network with the base weights; the heads start at random."""
    trunk = trunk_from_base().state_dict()
    kinds = load_file(base_folder() / "model.safetensors")
    kinds = next(t for n, t in kinds.items() if n.endswith("token_type_embeddings.weight"))
    net = Pair(dropout)
    state = {n: t for n, t in trunk.items() if n.startswith(("words.", "positions.", "ln.", "layers."))}
    state["types.weight"] = kinds - kinds[:1]  # the vector of type 0 is in the positions already
    for layer in (net.hidden, net.logits, net.tokens):
        nn.init.normal_(layer.weight, std=1 / math.sqrt(layer.in_features))
        nn.init.zeros_(layer.bias)
    lacking, unknown = net.load_state_dict(state, strict=False)
    if unknown or any(not n.startswith(("hidden.", "logits.", "tokens.")) for n in lacking):
        raise ValueError(f"base weights do not fit: {lacking} {unknown}")
    return net


def load(path: Path, dropout: float = 0.0) -> Pair:
    """A checkpoint of nli_train."""
    net = Pair(dropout)
    net.load_state_dict(torch.load(path))
    return net
