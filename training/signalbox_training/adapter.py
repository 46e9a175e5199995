"""Trains an adapter on the frozen base: a task of its own for the embedded bundle, one small ONNX file.

    python -m signalbox_training.adapter --name toxicity --data rows.jsonl --out ~/.cache/signalbox/models

The rows are those of `signalbox fit`: {"text", "label"}, or {"text", "labels": [...]} where a text has several or
none. What is trained is what `model.py` calls a tail: low-rank changes to the last layer, first token only, and a
head on that token and the mean of the un-adapted layer. Everything else is the shipped int8 graph, which is run once
over every row; what it shows at its taps (bundle.yaml) is all that the training reads, so an epoch takes seconds.

The last layer is computed as its int8 twin computes it (inputs rounded over the fixed ranges of the graph), and the
file holds it in int8: the product computes what was trained. `--fused FILE` also writes base and adapter as one graph.

Rows are split by a hash of their text: eight parts train, one chooses the epoch, calibrates and sets thresholds, one
is for the report. A text that is longer than a row is read by its start here; the product reads its skeleton.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import re
import time
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import torch
import torch.nn.functional as F
import yaml
from onnx import TensorProto, helper, numpy_helper
from scipy.optimize import minimize
from sklearn.metrics import f1_score, roc_auc_score
from tokenizers import Tokenizer
from torch import nn

from . import batches
from .bundle import replace
from .export import CONTRIB, taps
from .model import HEADS, HIDDEN, INTER, LAYERS, LN_EPS

KEY = "signalbox.adapter"
LAST = f"layers.{LAYERS - 1}."
TAKEN = ("first", "query", "keys", "values", "mean")  # the taps that a tail goes on from
HARMLESS = {"benign", "clean", "fine", "ham", "harmless", "neither", "neutral", "no", "none", "normal", "not", "0", "negative", "ok", "other", "safe", "false"}


# ---- rows ----

def read_rows(path: Path) -> tuple[list[str], list[list[str]], bool]:
    """Texts, their labels, and whether a text may have several."""
    texts, labels, several = {}, [], None
    for number, line in enumerate(path.read_text().split("\n"), 1):
        if not line.strip():
            continue
        row = json.loads(line)
        own = row["labels"] if "labels" in row else [row["label"]]
        if several not in (None, "labels" in row):
            raise SystemExit(f"line {number}: some lines have label and others labels")
        several = "labels" in row
        key = " ".join(row["text"].lower().split())
        if not key or key in texts:
            continue
        texts[key] = row["text"]
        labels.append(sorted(set(own)))
    return list(texts.values()), labels, bool(several)


def order(labels: list[list[str]], several: bool, positive: str | None) -> tuple[list[str], str]:
    """The labels, and how they go together; of two the one that is looked for comes second."""
    counts: dict[str, int] = {}
    for own in labels:
        for label in own:
            counts[label] = counts.get(label, 0) + 1
    names = sorted(counts)
    if several:
        return names, "tags"
    if len(names) != 2:
        return names, "classes"
    if positive is None:
        rare = min(names, key=lambda n: counts[n])
        positive = next((n for n in names if n.lower() not in HARMLESS and (set(names) - {n}).pop().lower() in HARMLESS), rare)
    return [next(n for n in names if n != positive), positive], "binary"


def part_of(text: str) -> int:
    return int(hashlib.sha256(text.encode()).hexdigest()[:8], 16) % 10


# ---- the frozen base ----

class Base:
    """A shipped bundle: its tokenizer, and its graph with the taps among the outputs."""

    def __init__(self, folder: Path, threads: int):
        self.manifest = yaml.safe_load((folder / "bundle.yaml").read_text())
        entry = self.manifest["graphs"][0]
        self.file = (folder / entry["file"]).read_bytes()
        self.sha256 = hashlib.sha256(self.file).hexdigest()
        if self.sha256 != entry["sha256"]:
            raise SystemExit(f"{entry['file']} is not the file that bundle.yaml names")
        self.proto = onnx.load_from_string(self.file)
        self.taps = {t["name"]: t for t in entry.get("taps") or taps(self.proto)}
        self.weights = {t.name: numpy_helper.to_array(t) for t in self.proto.graph.initializer}
        embedding = next(t for t in self.manifest["tasks"] if t["kind"] == "embedding")
        self.tokens, self.skeleton = embedding["window"]["tokens"], embedding["window"].get("skeleton", 0)
        self.tokenizer = Tokenizer.from_file(str(folder / self.manifest["tokenizer"]["file"]))
        self.session = session(exposed(self.proto, [self.taps[n] for n in TAKEN]), threads)

    def rows(self, texts: list[str]) -> list[list[int]]:
        """Token ids with the special ones, cut to one row."""
        return [batches.wrap(ids[: self.tokens - 2]) for ids in batches.content(self.tokenizer, texts)]

    def read(self, ids: np.ndarray, mask: np.ndarray) -> dict[str, np.ndarray]:
        out = self.session.run([self.taps[n]["value"] for n in TAKEN], {"input_ids": ids, "attention_mask": mask})
        return dict(zip(TAKEN, out))


def exposed(proto: onnx.ModelProto, shown: list[dict]) -> onnx.ModelProto:
    """The model with taps among its outputs."""
    out = onnx.ModelProto()
    out.CopyFrom(proto)
    for t in shown:
        shape = [None if d < 0 else d for d in t["shape"]]
        out.graph.output.append(helper.make_tensor_value_info(t["value"], TensorProto.FLOAT, shape))
    return out


def session(proto: onnx.ModelProto, threads: int) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return onnxruntime.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])


class Features:
    """What the base says of rows. Keys and values, by far the most of it, are kept in half precision."""

    def __init__(self, base: Base, rows: list[list[int]]):
        self.lengths = np.array([len(r) for r in rows])
        self.starts = np.concatenate([[0], np.cumsum(self.lengths)])
        self.keys = np.empty((self.starts[-1], HIDDEN), np.float16)
        self.values = np.empty_like(self.keys)
        self.first, self.query, self.mean = (np.empty((len(rows), HIDDEN), np.float32) for _ in range(3))
        for batch in batches.by_length([len(r) for r in rows], 4096, 32):
            ids, mask = batches.pad([rows[i] for i in batch])
            out = base.read(ids.numpy(), mask.numpy())
            for k, i in enumerate(batch):
                at = slice(self.starts[i], self.starts[i + 1])
                self.keys[at], self.values[at] = out["keys"][k, : len(rows[i])], out["values"][k, : len(rows[i])]
                self.first[i], self.query[i], self.mean[i] = out["first"][k, 0], out["query"][k, 0], out["mean"][k]

    def batch(self, picked: list[int]) -> dict[str, torch.Tensor]:
        width = int(self.lengths[picked].max())
        keys, values = np.zeros((2, len(picked), width, HIDDEN), np.float32)
        mask = np.zeros((len(picked), width), np.int64)
        for k, i in enumerate(picked):
            at, n = slice(self.starts[i], self.starts[i + 1]), self.lengths[i]
            keys[k, :n], values[k, :n], mask[k, :n] = self.keys[at], self.values[at], 1
        out = {"first": self.first[picked][:, None], "query": self.query[picked][:, None], "keys": keys, "values": values, "mean": self.mean[picked]}
        return {"attention_mask": torch.from_numpy(mask)} | {n: torch.from_numpy(v) for n, v in out.items()}


# ---- the tail ----

class Frozen(nn.Module):
    """A linear layer of the base as the int8 graph computes it; the gradient passes as if nothing were rounded."""

    def __init__(self, weights: dict, name: str):
        super().__init__()
        real = lambda part: torch.from_numpy(np.array(weights[name + part], np.float32))
        self.register_buffer("weight", real(".q") * real(".scale"))
        self.register_buffer("bias", real(".bias"))
        self.register_buffer("factors", real(".smooth") if name + ".smooth" in weights else torch.ones(self.weight.shape[0]))
        self.step, self.middle = float(weights[name + ".step"]), float(weights[name + ".middle"])

    def forward(self, x):
        x = x * self.factors
        with torch.no_grad():
            rounded = (torch.round(x / self.step) + self.middle).clamp(0, 255).sub(self.middle) * self.step
            delta = rounded - x
        return (x + delta) @ self.weight + self.bias


class Tail(nn.Module):
    """The last layer for one task, first token only, adapted; and its head."""

    def __init__(self, weights: dict, outputs: int, rank: int, width: int):
        super().__init__()
        sizes = {"query": (HIDDEN, HIDDEN), "out": (HIDDEN, HIDDEN), "up": (HIDDEN, INTER), "down": (INTER, HIDDEN)}
        self.a = nn.ParameterDict({n: nn.Parameter(torch.randn(i, rank) / math.sqrt(i)) for n, (i, _) in sizes.items()})
        self.b = nn.ParameterDict({n: nn.Parameter(torch.zeros(rank, o)) for n, (_, o) in sizes.items()})
        self.frozen = nn.ModuleDict({n: Frozen(weights, LAST + n) for n in ("out", "up", "down")})
        for n in ("ln1", "ln2"):
            self.register_buffer(n + "_gain", torch.from_numpy(np.array(weights[LAST + n + ".gain"])))
            self.register_buffer(n + "_shift", torch.from_numpy(np.array(weights[LAST + n + ".shift"])))
        self.hidden, self.logits = nn.Linear(2 * HIDDEN, width), nn.Linear(width, outputs)
        self.drop = nn.Dropout(0.1)

    def adapted(self, part, x):
        return self.frozen[part](x) + (x @ self.a[part]) @ self.b[part]

    def norm(self, x, name):
        return F.layer_norm(x, (HIDDEN,), getattr(self, name + "_gain"), getattr(self, name + "_shift"), LN_EPS)

    def forward(self, first, query, keys, values, mean, attention_mask):
        query = query + (first @ self.a["query"]) @ self.b["query"]
        split = lambda t: t.view(*t.shape[:2], HEADS, HIDDEN // HEADS).transpose(1, 2)
        scores = split(query) @ split(keys).transpose(-1, -2) / math.sqrt(HIDDEN // HEADS)
        scores = scores.masked_fill(attention_mask[:, None, None] == 0, -1e4)
        context = (scores.softmax(-1) @ split(values)).transpose(1, 2).flatten(2)
        x = self.norm(first + self.adapted("out", context), "ln1")
        x = self.norm(x + self.adapted("down", F.gelu(self.adapted("up", x))), "ln2")
        features = torch.cat([x[:, 0], mean], -1)
        return self.logits(self.drop(F.gelu(self.hidden(self.drop(features)))))


def graph_of(tail: Tail, weights: dict) -> tuple[onnx.GraphProto, list[str]]:
    """The tail as a graph, with the operators of export.py, and the names of the values that are its own.

    Between Unsqueeze and Squeeze values are [rows, adapters, 1, features]. What is the tail's own has a first axis of
    adapters, of 1 here: the product lays several adapters along it, and the frozen layers run over the rows of all.
    """
    nodes, tensors, stack = [], {}, []

    def const(name, value):
        tensors.setdefault(name, numpy_helper.from_array(np.ascontiguousarray(value).reshape(np.shape(value)), name))
        return name

    def op(kind, inputs, domain="", **attributes):
        name = f"{kind}_{len(nodes)}"
        nodes.append(helper.make_node(kind, inputs, [name + ".0"], name=name, domain=domain, **attributes))
        return name + ".0"

    shipped = lambda name: const(name, weights[name])
    axes = lambda *at: const("axes" + "".join(map(str, at)), np.array(at, np.int64))

    def own(name, value):
        stack.append(name)
        return const(name, value.detach().numpy()[None])

    def changed(part, x):
        return op("MatMul", [op("MatMul", [x, own(f"{part}.a", tail.a[part])]), own(f"{part}.b", tail.b[part])])

    def product(part, x):
        p = LAST + part
        if p + ".smooth" in weights and part != "out":
            x = op("Mul", [x, shipped(p + ".smooth")])
        x = op("QuantizeLinear", [x, shipped(p + ".step"), shipped(p + ".middle")])
        return op("MatMulIntegerToFloat", [x, *(shipped(p + s) for s in (".q", ".step", ".scale", ".middle", ".zero", ".bias"))], CONTRIB)

    def norm_of_sum(terms, name):
        return op("LayerNormalization", [op("Sum", terms), shipped(LAST + name + ".gain"), shipped(LAST + name + ".shift")], axis=-1, epsilon=LN_EPS)

    first = op("Unsqueeze", ["first", axes(2)])
    query = op("Add", [op("Unsqueeze", ["query", axes(2)]), changed("query", first)])
    padding = op("Cast", ["attention_mask"], to=TensorProto.INT32)
    # One query of the first token for each adapter.
    context = op("MultiHeadAttention", [op("Squeeze", [query, axes(2)]), "keys", "values", "", padding], CONTRIB, num_heads=HEADS)
    context = op("Unsqueeze", [context, axes(2)])
    x = norm_of_sum([first, product("out", context), changed("out", context)], "ln1")
    inner = op("Gelu", [op("Add", [product("up", x), changed("up", x)])], CONTRIB)
    x = norm_of_sum([x, product("down", inner), changed("down", inner)], "ln2")
    mean = op("Add", [op("Unsqueeze", ["mean", axes(1, 2)]), own("nothing", torch.zeros(1, HIDDEN))])  # once for each adapter
    x = op("Concat", [x, mean], axis=-1)
    for name in ("hidden", "logits"):
        layer = getattr(tail, name)
        x = op("Add", [op("MatMul", [x, own(name + ".weight", layer.weight.T)]), own(name + ".bias", layer.bias[None])])
        x = op("Gelu", [x], CONTRIB) if name == "hidden" else x
    nodes.append(helper.make_node("Squeeze", [x, axes(2)], ["logits"], name="out"))
    value = helper.make_tensor_value_info
    shapes = {"first": ["rows", 1, HIDDEN], "query": ["rows", 1, HIDDEN], "keys": ["rows", "tokens", HIDDEN],
              "values": ["rows", "tokens", HIDDEN], "mean": ["rows", HIDDEN]}
    inputs = [value(n, TensorProto.FLOAT, s) for n, s in shapes.items()] + [value("attention_mask", TensorProto.INT64, ["rows", "tokens"])]
    outputs = [value("logits", TensorProto.FLOAT, ["rows", "adapters", "labels"])]
    return helper.make_graph(nodes, "adapter", inputs, outputs, list(tensors.values())), stack


def model_of(graph: onnx.GraphProto) -> onnx.ModelProto:
    proto = helper.make_model(graph, producer_name="signalbox-training", opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid(CONTRIB, 1)])
    proto.ir_version = 8
    return proto


def fused(base: Base, tail: onnx.GraphProto) -> onnx.ModelProto:
    """Base and tail as one graph, with the tail's logits among the outputs as `adapter_logits`."""
    out = onnx.ModelProto()
    out.CopyFrom(base.proto)
    renamed = {n: base.taps[n]["value"] for n in TAKEN} | {"attention_mask": "attention_mask", "logits": "adapter_logits", "": ""}
    called = lambda name: renamed.get(name, "adapter/" + name)
    for t in tail.initializer:
        t = onnx.TensorProto.FromString(t.SerializeToString())
        t.name = called(t.name)
        out.graph.initializer.append(t)
    for n in tail.node:
        n = onnx.NodeProto.FromString(n.SerializeToString())
        n.name = "adapter/" + n.name
        n.input[:], n.output[:] = [called(x) for x in n.input], [called(x) for x in n.output]
        out.graph.node.append(n)
    out.graph.output.append(helper.make_tensor_value_info("adapter_logits", TensorProto.FLOAT, ["rows", 1, "labels"]))
    return out


# ---- training ----

def targets(labels: list[list[str]], names: list[str], mode: str) -> torch.Tensor:
    if mode == "classes":
        return torch.tensor([names.index(own[0]) for own in labels])
    if mode == "binary":
        return torch.tensor([[float(own[0] == names[1])] for own in labels])
    return torch.tensor([[float(n in own) for n in names] for own in labels])


def loss_of(mode: str, y: torch.Tensor, train: np.ndarray, balanced: bool):
    """The loss; with `balanced` rare labels count as much as frequent ones."""
    if mode == "classes":
        counts = torch.bincount(y[train], minlength=int(y.max()) + 1).clamp(min=1).float()
        weight = counts.sum() / len(counts) / counts if balanced else None
        return lambda logits, want: F.cross_entropy(logits, want, weight)
    yes = y[train].mean(0).clamp(1e-4, 1 - 1e-4)
    weight = (1 - yes) / yes if balanced else None
    return lambda logits, want: F.binary_cross_entropy_with_logits(logits, want, pos_weight=weight)


def logits_of(tail: Tail, features: Features, picked: np.ndarray) -> torch.Tensor:
    tail.eval()
    out = torch.empty(len(picked), tail.logits.out_features)
    with torch.no_grad():
        for batch in batches.by_length(list(features.lengths[picked]), 16384, 256):
            out[batch] = tail(**features.batch(list(picked[batch])))
    return out


def train(base: Base, features: Features, y: torch.Tensor, mode: str, outputs: int, parts: np.ndarray, o: argparse.Namespace) -> tuple[Tail, int]:
    torch.manual_seed(o.seed)
    rng = np.random.default_rng(o.seed)
    tail = Tail(base.weights, outputs, o.rank, o.width)
    learn, choose = np.flatnonzero(parts < 8), np.flatnonzero(parts == 8)
    loss = loss_of(mode, y, learn, not o.no_balance)
    head = [*tail.hidden.parameters(), *tail.logits.parameters()]
    low = [*tail.a.parameters(), *tail.b.parameters()]
    optimizer = torch.optim.AdamW([{"params": head, "lr": 2e-3}, {"params": low, "lr": 1e-3}], weight_decay=0.01)
    steps = o.epochs * math.ceil(len(learn) / o.batch)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda s: min(1, (s + 1) / (0.1 * steps + 1)) * 0.5 * (1 + math.cos(math.pi * s / steps)))
    best, kept, at = math.inf, None, 0
    for epoch in range(o.epochs):
        tail.train()
        # Rows of similar length share a batch; the batches come in random order.
        mixed = rng.permutation(learn)
        mixed = mixed[np.argsort(features.lengths[mixed] + rng.uniform(-4, 4, len(mixed)), kind="stable")]
        chunks = [mixed[i : i + o.batch] for i in range(0, len(mixed), o.batch)]
        total = 0.0
        for k in rng.permutation(len(chunks)):
            optimizer.zero_grad()
            value = loss(tail(**features.batch(list(chunks[k]))), y[chunks[k]])
            value.backward()
            nn.utils.clip_grad_norm_(tail.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            total += value.item() * len(chunks[k])
        held = loss(logits_of(tail, features, choose), y[choose]).item()
        print(f"epoch {epoch + 1}: loss {total / len(learn):.4f}, held out {held:.4f}", flush=True)
        if held < best:
            best, at, kept = held, epoch + 1, {n: t.clone() for n, t in tail.state_dict().items()}
    tail.load_state_dict(kept)
    return tail.eval(), at


def calibrate(logits: np.ndarray, y: np.ndarray, mode: str) -> tuple[list[float], list[float]]:
    """A scale and a shift for each output, on rows that were not trained on: one temperature for labels that exclude each other."""
    if mode == "classes":
        def cost(t):
            z = logits * math.exp(t[0])
            z = z - z.max(1, keepdims=True)
            return -(z[np.arange(len(y)), y] - np.log(np.exp(z).sum(1))).mean()
        scale = math.exp(minimize(cost, [0.0], method="Nelder-Mead").x[0])
        return [scale] * logits.shape[1], [0.0] * logits.shape[1]
    scales, shifts = [], []
    for k in range(logits.shape[1]):
        def cost(p, z=logits[:, k], want=y[:, k]):
            z = math.exp(p[0]) * z + p[1]
            return (np.logaddexp(0, z) - want * z).mean() + 1e-4 * p[0] ** 2
        log, shift = minimize(cost, [0.0, 0.0], method="Nelder-Mead", options={"maxiter": 2000}).x
        scales.append(float(np.clip(math.exp(log), 1e-3, 1e3)))
        shifts.append(float(np.clip(shift, -1e3, 1e3)))
    return scales, shifts


def probabilities(logits: np.ndarray, scale: list[float], shift: list[float], mode: str) -> np.ndarray:
    z = logits * np.array(scale) + np.array(shift)
    if mode == "classes":
        z = np.exp(z - z.max(1, keepdims=True))
        return z / z.sum(1, keepdims=True)
    return 1 / (1 + np.exp(-z))


def thresholds(probs: np.ndarray, y: np.ndarray, share: float) -> list[float]:
    """The least probability that at most `share` of the rows without a label reach, by label."""
    out = []
    for k in range(probs.shape[1]):
        without = np.sort(probs[y[:, k] == 0, k])[::-1]
        over = int(share * len(without))
        least = float(min(1.0, np.nextafter(without[over], 1) if over < len(without) else 0.5))
        rounded = math.ceil(least * 1e6) / 1e6  # people read thresholds
        out.append(rounded if rounded < 1 else least)
    return out


def report(probs: np.ndarray, y: np.ndarray, mode: str, marks: list[float]) -> dict:
    if mode == "classes":
        told = probs.argmax(1)
        return {"accuracy": float((told == y).mean()), "macro_f1": float(f1_score(y, told, average="macro"))}
    out = {"accuracy": float(((probs >= 0.5) == y).mean()), "recall_at_threshold": [], "false_positives": []}
    if mode == "binary":
        out["auc"] = float(roc_auc_score(y[:, 0], probs[:, 0]))
    for k, mark in enumerate(marks):
        hit = probs[:, k] >= mark
        out["recall_at_threshold"].append(float(hit[y[:, k] == 1].mean()))
        out["false_positives"].append(float(hit[y[:, k] == 0].mean()))
    return out


# ---- the file ----

def write(path: Path, graph: onnx.GraphProto, info: dict) -> None:
    proto = model_of(graph)
    info["graph_sha256"] = hashlib.sha256(proto.graph.SerializeToString()).hexdigest()
    entry = proto.metadata_props.add()
    entry.key, entry.value = KEY, json.dumps(info, ensure_ascii=False)
    replace(path, proto.SerializeToString())


def compare(base: Base, tail: Tail, graph: onnx.GraphProto, rows: list[list[int]], threads: int) -> dict:
    """The largest differences of a logit over rows: base and tail against both as one graph, and against PyTorch."""
    apart, whole = session(model_of(graph), threads), session(fused(base, graph), threads)
    out = {"rows": len(rows), "fused": 0.0, "pytorch": 0.0, "largest": 0.0}
    for batch in batches.by_length([len(r) for r in rows], 2048, 8):
        ids, mask = (t.numpy() for t in batches.pad([rows[i] for i in batch]))
        given = base.read(ids, mask) | {"attention_mask": mask}
        ours = apart.run(["logits"], given)[0][:, 0]
        together = whole.run(["adapter_logits"], {"input_ids": ids, "attention_mask": mask})[0][:, 0]
        with torch.no_grad():
            torches = tail(**{n: torch.from_numpy(v) for n, v in given.items()}).numpy()
        out["fused"] = max(out["fused"], float(np.abs(ours - together).max()))
        out["pytorch"] = max(out["pytorch"], float(np.abs(ours - torches).max()))
        out["largest"] = max(out["largest"], float(np.abs(ours).max()))
    return out


def main() -> None:
    here = Path(__file__).resolve().parent.parent
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--name", required=True, help="the file is NAME.onnx")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--test", type=Path, help="rows for the report in place of a tenth of the data")
    parser.add_argument("--out", type=Path, required=True, help="models_dir")
    parser.add_argument("--base", type=Path, default=here.parent / "models" / "default")
    parser.add_argument("--positive", help="of two labels the one that is looked for")
    parser.add_argument("--fpr", type=float, default=0.01, help="share of rows without a label that may be given it")
    parser.add_argument("--no-balance", action="store_true", help="frequent labels count more")
    parser.add_argument("--rank", type=int, default=16)
    parser.add_argument("--width", type=int, default=128, help="of the head's hidden layer")
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--fused", type=Path, help="also writes base and adapter as one graph")
    o = parser.parse_args()
    if not re.fullmatch(r"[A-Za-z0-9_](?:[A-Za-z0-9._-]*[A-Za-z0-9_])?", o.name):
        raise SystemExit("--name: letters, digits, '.', '_' and '-'")
    torch.set_num_threads(o.threads)
    texts, labels, several = read_rows(o.data)
    names, mode = order(labels, several, o.positive)
    parts = np.array([part_of(t) for t in texts])
    if o.test:
        parts = np.where(parts == 9, 0, parts)
        more, theirs, _ = read_rows(o.test)
        known = set(texts)
        fresh = [i for i, t in enumerate(more) if t not in known]
        texts, labels = texts + [more[i] for i in fresh], labels + [theirs[i] for i in fresh]
        parts = np.concatenate([parts, np.full(len(fresh), 9)])
    base = Base(o.base, o.threads)
    begun = time.time()
    rows = base.rows(texts)
    features = Features(base, rows)
    read = time.time() - begun
    print(f"{len(texts)} rows, {mode}, {len(names)} labels: the base read them in {read:.0f} s", flush=True)
    y = targets(labels, names, mode)
    outputs = 1 if mode == "binary" else len(names)
    tail, epoch = train(base, features, y, mode, outputs, parts, o)
    choose, judge = np.flatnonzero(parts == 8), np.flatnonzero(parts == 9)
    logits, want = logits_of(tail, features, choose).numpy(), y.numpy()
    scale, shift = calibrate(logits, want[choose], mode)
    marks = [] if mode == "classes" else thresholds(probabilities(logits, scale, shift, mode), want[choose], o.fpr)
    figures = report(probabilities(logits_of(tail, features, judge).numpy(), scale, shift, mode), want[judge], mode, marks)
    took = time.time() - begun
    graph, stack = graph_of(tail, base.weights)
    agreement = compare(base, tail, graph, [rows[i] for i in judge[:200]], o.threads)
    figures |= {"rows": int((parts < 9).sum()), "held_out": len(judge), "epoch": epoch, "seconds": round(took), "parity": agreement}
    write(o.out / f"{o.name}.onnx", graph, {
        "format": 2, "stack": stack, "base": {"name": base.manifest["name"], "version": base.manifest["version"], "sha256": base.sha256},
        "mode": mode, "labels": names, "scale": scale, "shift": shift,
        "thresholds": {"classes": [0.0] * len(names), "binary": [0.0, *marks], "tags": marks}[mode],
        "tokens": base.tokens, "skeleton": base.skeleton, "report": figures,
    })
    if o.fused:
        replace(o.fused, fused(base, graph).SerializeToString())
    print(json.dumps(figures, indent=1))
    if agreement["fused"] > 1e-4:
        raise SystemExit("the adapter does not compute what the fused graph computes")


if __name__ == "__main__":
    main()
