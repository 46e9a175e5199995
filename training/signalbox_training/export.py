"""Writes the trained model as an ONNX graph: int8 for the CPU, fp16 or fp32 for other uses.

The graph is laid out node by node with the fused operators of ONNX Runtime, so
that no export tool is needed and the quantised layout is exactly what is asked for:

- linear layers: `MatMulIntegerToFloat`, weights int8 with one scale per output column, inputs
  smoothed and rounded over a fixed range (see quantise.py). Fixed, not found anew for every run:
  so a row's answer does not depend on the rows that share its batch, and nothing looks for the
  largest value;
- embedding table: int8 with one scale per row, gathered first and scaled after;
- attention, GELU: fused fp32 operators; skip connections with layer norm in two steps for the CPU, fused for a GPU (fp16);
- padding: a mask for the CPU; for a GPU the number of tokens of each row, which the fused attention kernels of the CUDA provider take
  (a mask by token sends it to the unfused one). Rows are padded at their ends;
- adapters and heads: fp32 (they are small, and logits stay close to those of the training framework);
- the wide part (see wide.py): hashes by integer arithmetic, table int8 with one scale per row.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import torch
from onnx import TensorProto, helper, numpy_helper
from torch import nn

from . import wide
from .model import HEADS, HIDDEN, LAYERS, LN_EPS, PII, SEQUENCE, Bundle, Linear, Spots
from .quantise import Quantised

CONTRIB = "com.microsoft"
SPOTS = "spots/"  # what the names of the nodes of model.Spots begin with


def array(t: torch.Tensor) -> np.ndarray:
    return t.detach().float().cpu().numpy()


def rounded_rows(table: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Int8 rows and the scale of each, [rows, 1]."""
    scale = np.maximum(np.abs(table).max(1, keepdims=True), 1e-8) / 127
    return np.clip(np.rint(table / scale), -127, 127).astype(np.int8), scale.astype(np.float32)


class Graph:
    """Collects nodes and initializers. The names of nodes begin with the prefix."""

    def __init__(self, precision: str, layers: dict[str, Quantised] | None = None):
        self.precision, self.layers, self.prefix = precision, layers or {}, ""
        self.real = np.float16 if precision == "fp16" else np.float32
        self.nodes, self.tensors, self.names = [], [], set()

    def const(self, name: str, value) -> str:
        if name not in self.names:
            self.names.add(name)
            self.tensors.append(numpy_helper.from_array(np.ascontiguousarray(value).reshape(np.shape(value)), name))
        return name

    def floats(self, name: str, value) -> str:
        return self.const(name, np.asarray(value).astype(self.real))

    def op(self, kind: str, inputs: list[str], outputs: int = 1, domain: str = "", **attributes):
        stem = f"{self.prefix}{kind}_{len(self.nodes)}"
        names = [f"{stem}.{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(kind, inputs, names, name=stem, domain=domain, **attributes))
        return names[0] if outputs == 1 else names

    def linear(self, x: str, name: str, layer: nn.Linear, smoothed: bool = False, after: np.ndarray | None = None) -> str:
        """y = ((x / smooth, clipped) (W * smooth)^T + b) * after for a weight of shape [out, in]. With `smoothed`
        x is divided already; `after` is a factor per output, the reciprocal of the smoothing of what follows."""
        weight, bias = array(layer.weight), array(layer.bias)
        after = np.float32(1) if after is None else after
        if isinstance(layer, Linear) and torch.isfinite(layer.limit):
            smooth, low, high = array(layer.smooth), layer.floor(), layer.limit.item()
            weight = weight * smooth
            if not smoothed:
                x = self.op("Mul", [x, self.floats(name + ".smooth", 1 / smooth)])
            if self.precision == "int8":
                return self.integers(x, name, low, high, bias * after, after)
            x = self.op("Clip", [x, self.floats(name + ".low", low), self.floats(name + ".high", high)])
        y = self.op("MatMul", [x, self.floats(name + ".weight", np.ascontiguousarray(weight.T) * after)])
        return self.op("Add", [y, self.floats(name + ".bias", bias * after)])

    def integers(self, x: str, name: str, low: float, high: float, bias: np.ndarray, after: np.ndarray) -> str:
        """The int8 product. Rounding saturates, which is the clip."""
        rounded, step = self.layers[name], np.float32((high - low) / 255)
        size, middle = self.floats(name + ".step", step), self.const(name + ".middle", np.array(round(-low / step), np.uint8))
        x = self.op("QuantizeLinear", [x, size, middle])
        weights = [self.const(name + ".q", rounded.weight), size, self.const(name + ".scale", (rounded.scale * after).astype(np.float32))]
        zero = self.const(name + ".zero", np.zeros(len(bias), np.int8))
        return self.op("MatMulIntegerToFloat", [x, *weights, middle, zero, self.floats(name + ".bias", bias)], domain=CONTRIB)

    def embed(self, table: np.ndarray) -> str:
        """Look up `input_ids` in the word table."""
        if self.precision != "int8":
            return self.op("Gather", [self.floats("words", table), "input_ids"], axis=0)
        quantised, scale = rounded_rows(table)
        rows = self.op("Gather", [self.const("words.q", quantised), "input_ids"], axis=0)
        scales = self.op("Gather", [self.const("words.scale", scale), "input_ids"], axis=0)
        return self.op("Mul", [self.op("Cast", [rows], to=TensorProto.FLOAT), scales])


def add_wide(g: Graph, fusion: wide.Fusion, length: str) -> str:
    """The wide part: [batch, COLUMNS] sums of the table rows of every n-gram."""
    index = lambda name, value: g.const(name, np.array(value, np.int64))
    mask = g.op("Cast", ["attention_mask"], to=TensorProto.INT64)
    room = index("wide.room", [0, 0, 0, wide.ORDERS - 1])
    ids, real = g.op("Pad", ["input_ids", room]), g.op("Pad", [mask, room])
    buckets = index("wide.buckets", wide.BUCKETS)
    h, m = g.op("Mod", ["input_ids", buckets]), mask
    hashes, masks = [h], [m]
    for n in range(2, wide.ORDERS + 1):
        begin = index(f"wide.from{n}", [n - 1])
        end = g.op("Add", [length, begin])
        ahead = [g.op("Slice", [x, begin, end, index("one", [1])]) for x in (ids, real)]
        mixed = g.op("Add", [g.op("Mul", [h, index("wide.multiplier", wide.MULTIPLIER)]), g.op("Add", [ahead[0], index(f"wide.salt{n}", n * wide.SALT)])])
        h, m = g.op("Mod", [mixed, buckets]), g.op("Mul", [m, ahead[1]])
        hashes.append(h)
        masks.append(m)
    found = g.op("Concat", hashes, axis=1)
    count = g.op("Cast", [g.op("Concat", masks, axis=1)], to=TensorProto.FLOAT)
    rows = g.op("Cast", [g.op("Gather", [g.const("wide.table", fusion.table), found], axis=0)], to=TensorProto.FLOAT)
    scale = g.op("Squeeze", [g.op("Gather", [g.const("wide.scale", fusion.scale), found], axis=0), index("two", [2])])
    weights = g.op("Unsqueeze", [g.op("Mul", [scale, count]), index("one", [1])])
    total = g.op("Squeeze", [g.op("MatMul", [weights, rows]), index("one", [1])])
    return g.op("Div", [total, g.op("Sqrt", [g.op("ReduceSum", [count, index("one", [1])], keepdims=1)])])


def build(model: Bundle, precision: str = "int8", layers: dict[str, Quantised] | None = None,
          fusion: wide.Fusion | None = None, tasks: tuple[str, ...] = (*SEQUENCE, "pii", "embedding"), taps: bool = False) -> onnx.ModelProto:
    """Build the ONNX model. In an int8 graph the calibrated linear layers are int8, with the weights in
    `layers`, the others fp32. Without `fusion` the logits are those of the deep part alone. `tasks` are the outputs; a graph
    of one task is what a model of its own for that task would be. `taps` adds what `Bundle.read` gives the sequence tasks."""
    w = {name: array(tensor) for name, tensor in model.state_dict().items()}
    g = Graph(precision, layers)
    index = lambda name, value: g.const(name, np.array(value, np.int64))
    one = index("one", [1])

    length = g.op("Slice", [g.op("Shape", ["input_ids"]), one, index("two", [2])])
    positions = g.op("Slice", [g.floats("positions", w["positions.weight"]), index("zero", [0]), length])
    x = g.op("Add", [g.embed(w["words.weight"]), positions])
    norm = lambda n: [g.floats(n + ".gain", w[n + ".weight"]), g.floats(n + ".shift", w[n + ".bias"])]
    x = g.op("LayerNormalization", [x, *norm("ln")], axis=-1, epsilon=LN_EPS)
    on_gpu = precision == "fp16"
    padding = g.op("Cast", ["attention_mask"], to=TensorProto.INT32)
    if on_gpu:
        padding = g.op("ReduceSum", [padding, one], keepdims=0)

    def linear(x, name, **how):
        return g.linear(x, name, model.get_submodule(name), **how)

    def project(x, p):
        # Attention is linear in the values, channel by channel, so they carry the smoothing of its output.
        after = np.ones(3 * HIDDEN, np.float32)
        after[2 * HIDDEN :] = 1 / w[p + "out.smooth"]
        return g.op("Split", [linear(x, p + "qkv", after=after), index("thirds", [HIDDEN] * 3)], outputs=3, axis=-1)

    def attend(q, k, v):
        return g.op("MultiHeadAttention", [q, k, v, "", padding], domain=CONTRIB, num_heads=HEADS)

    def rest(x, context, p, adapt=lambda part, given: []):
        """Everything after attention; `adapt` gives what is added to the result of a linear layer."""
        # Not SkipLayerNormalization, which takes five times as long on the CPU as its two parts, and Sum,
        # because the runtime would fuse an Add.
        def norm_of_sum(terms, name):
            if on_gpu and len(terms) == 2:
                return g.op("SkipLayerNormalization", [*terms, *norm(name)], domain=CONTRIB, epsilon=LN_EPS)
            return g.op("LayerNormalization", [g.op("Sum", terms), *norm(name)], axis=-1, epsilon=LN_EPS)

        x = norm_of_sum([x, linear(context, p + "out", smoothed=True), *adapt("out", context)], p + "ln1")
        inner = [linear(x, p + "up"), *adapt("up", x)]
        inner = g.op("Gelu", [g.op("Add", inner) if len(inner) == 2 else inner[0]], domain=CONTRIB)
        return norm_of_sum([x, linear(inner, p + "down"), *adapt("down", inner)], p + "ln2")

    for i in range(LAYERS - 1):
        p = f"layers.{i}."
        x = rest(x, attend(*project(x, p)), p)
    p, below = f"layers.{LAYERS - 1}.", x
    q, k, v = project(below, p)
    final = rest(below, attend(q, k, v), p)
    sequence = [t for t in SEQUENCE if t in tasks]
    tapped = {}
    tails = add_tails(g, w, sequence, below, (q, k, v), attend, lambda x, c, adapt: rest(x, c, p, adapt), tapped) if sequence else None

    # Pooling and heads run in fp32 whatever the trunk's precision.
    if precision == "fp16":
        below, final = (g.op("Cast", [t], to=TensorProto.FLOAT) for t in (below, final))
        tails = g.op("Cast", [tails], to=TensorProto.FLOAT) if sequence else None
    g.real, g.precision = np.float32, "fp32"
    mask = g.op("Cast", ["attention_mask"], to=TensorProto.FLOAT)
    total = g.op("Squeeze", [g.op("MatMul", [g.op("Unsqueeze", [mask, one]), final]), one])
    mean = g.op("Div", [total, g.op("ReduceSum", [mask, one], keepdims=1)])
    outputs = {}
    each = []
    if sequence:
        flat = g.op("Reshape", [tails, index("flat", [0, -1])])
        each = [flat] if len(sequence) == 1 else g.op("Split", [flat, index("firsts", [HIDDEN] * len(sequence))], outputs=len(sequence), axis=1)
    for task, first in zip(sequence, each):
        inner = g.op("Gelu", [linear(g.op("Concat", [first, mean], axis=-1), f"heads.{task}.hidden")], domain=CONTRIB)
        outputs[task + "_logits"] = linear(inner, f"heads.{task}.logits")
    states = g.op("Concat", [below, final], axis=-1) if {"pii", "injection"} & set(tasks) else None
    if "injection" in tasks:
        outputs["injection_logits"] = add_spots(g, model.spots, outputs["injection_logits"], states)
    if "pii" in tasks:
        outputs["pii_logits"] = linear(states, "pii")
    if "embedding" in tasks:
        turned = g.op("MatMul", [mean, g.floats("metric", np.ascontiguousarray(w["metric.weight"].T))])
        outputs["embedding"] = g.op("Div", [turned, g.op("Max", [
            g.op("ReduceL2", [turned], axes=[1], keepdims=1), g.floats("tiny", np.float32(1e-12))])])
    topics = [t for t in sequence if t in wide.TOPICS]
    if fusion is not None and topics:
        add_fusion(g, fusion, topics, outputs, mask, length)
    for name in outputs:
        g.nodes.append(helper.make_node("Identity", [outputs[name]], [name], name="out_" + name))

    tensor = helper.make_tensor_value_info
    shapes = {t + "_logits": ["batch", len(labels)] for t, labels in SEQUENCE.items()}
    shapes |= {"pii_logits": ["batch", "tokens", len(PII)], "embedding": ["batch", HIDDEN]}
    if taps:
        tapped["mean"] = mean
        shapes |= {"first": ["batch", 1, 1, HIDDEN], "context": ["batch", len(sequence), 1, HIDDEN], "mean": ["batch", HIDDEN]}
        g.nodes += [helper.make_node("Identity", [at], [name], name="tap_" + name) for name, at in tapped.items()]
        outputs |= tapped
    graph = helper.make_graph(
        g.nodes, "signalbox-minilm",
        [tensor(n, TensorProto.INT64, ["batch", "tokens"]) for n in ("input_ids", "attention_mask")],
        [tensor(n, TensorProto.FLOAT, shapes[n]) for n in outputs], g.tensors,
    )
    proto = helper.make_model(graph, producer_name="signalbox-training", opset_imports=[
        helper.make_opsetid("", 17), helper.make_opsetid(CONTRIB, 1)])
    proto.ir_version = 8
    return proto


def add_spots(g: Graph, spots: Spots, head: str, states: str) -> str:
    """The logits [batch, 2] of injection: those of the head, and what the states of the tokens say (model.Spots)."""
    g.prefix, mix, signs = SPOTS, array(spots.mix), np.array([[-1.0, 1.0]], np.float32)
    inner = g.op("Gelu", [g.linear(states, "spots.hidden", spots.hidden)], domain=CONTRIB)
    odds = g.linear(inner, "spots.logits", spots.logits)
    mask = g.op("Unsqueeze", [g.op("Cast", ["attention_mask"], to=TensorProto.FLOAT), g.const("spots.last", np.array([2], np.int64))])
    away = g.op("Mul", [g.op("Sub", [mask, g.floats("spots.one", 1.0)]), g.floats("spots.far", 1e4)])
    shares = g.op("Softmax", [g.op("Add", [odds, away])], axis=1)
    pooled = g.op("ReduceSum", [g.op("Mul", [shares, odds]), g.const("spots.axis", np.array([1], np.int64))], keepdims=0)
    margin = [g.op("MatMul", [head, g.floats("spots.head", mix[0] * signs.T)]), g.op("Mul", [pooled, g.floats("spots.weight", mix[1])])]
    both = g.op("MatMul", [g.op("Sum", [*margin, g.floats("spots.bias", mix[2])]), g.floats("spots.both", signs / 2)])
    g.prefix = ""
    return both


def add_tails(g: Graph, w: dict, sequence: list[str], below: str, qkv: tuple[str, str, str], attend, rest, tapped: dict) -> str:
    """The last layer of the sequence tasks, first token only, adapted per task: [batch, tasks, 1, hidden].
    What is the same for all tasks stays [batch, 1, 1, hidden]. `tapped` gets the names of what the tails are made of."""
    picked, one, two = [list(SEQUENCE).index(t) for t in sequence], g.const("one", np.array([1], np.int64)), g.const("two", np.array([2], np.int64))
    start, smooth = g.const("zero", np.array([0], np.int64)), w[f"layers.{LAYERS - 1}.out.smooth"]

    def delta(part, given):
        a = w[f"adapters.a.{part}"][picked]
        if part == "out":  # the context comes divided by the smoothing of the layer
            a = a * smooth[:, None]
        low = g.op("MatMul", [given, g.floats(f"adapters.{part}.a", a)])
        return g.op("MatMul", [low, g.floats(f"adapters.{part}.b", w[f"adapters.b.{part}"][picked])])

    q, k, v = qkv
    head = lambda t: g.op("Unsqueeze", [g.op("Slice", [t, start, one, one]), one])
    first = head(below)
    query = g.op("Add", [head(q), delta("query", first)])
    context = g.op("Unsqueeze", [attend(g.op("Squeeze", [query, two]), k, v), two])
    tapped |= {"first": first, "context": context}
    return rest(first, context, lambda part, given: [delta(part, given)])


def add_fusion(g: Graph, fusion: wide.Fusion, topics: list[str], outputs: dict[str, str], mask: str, length: str) -> None:
    """Add the wide part's logits to those of the trunk."""
    one = g.const("one", np.array([1], np.int64))
    both = add_wide(g, fusion, length)
    # The share of foreign pieces, special tokens included.
    strange = g.op("Mul", [g.op("Gather", [g.floats("wide.foreign", fusion.foreign), "input_ids"], axis=0), mask])
    share = g.op("Div", [g.op("ReduceSum", [x, one], keepdims=1) for x in (strange, mask)])
    # One vector over the labels of all tasks, each with the weights of its task.
    order = list(wide.TOPICS)
    picked = [order.index(t) for t in topics]
    columns = np.split(np.arange(sum(len(x) for x in fusion.shift)), np.cumsum([len(x) for x in fusion.shift])[:-1])
    if len(picked) < len(order):
        both = g.op("Gather", [both, g.const("wide.columns", np.concatenate([columns[i] for i in picked]))], axis=1)
    vector = lambda k: g.floats(f"wide.mix{k}", np.concatenate([np.full(len(columns[i]), fusion.mix[i][k], np.float32) for i in picked]))
    trust = lambda base, slope: g.op("Add", [g.op("Mul", [share, slope]), base])
    names = [t + "_logits" for t in topics]
    deep = g.op("Concat", [outputs[n] for n in names], axis=1) if len(names) > 1 else outputs[names[0]]
    total = g.op("Sum", [g.op("Mul", [deep, trust(vector(0), vector(1))]), g.op("Mul", [both, trust(vector(2), vector(3))]),
                         g.floats("wide.shift", np.concatenate([fusion.shift[i] for i in picked]))])
    parts = [total]
    if len(names) > 1:
        parts = g.op("Split", [total, g.const("wide.widths", np.array([len(columns[i]) for i in picked], np.int64))], outputs=len(names), axis=1)
    outputs.update(zip(names, parts))
    if fusion.noise and "domain" in topics:
        sure = g.op("Mul", [g.op("Softmax", [outputs["domain_logits"]], axis=-1), g.floats("noise.kept", np.float32(1 - fusion.noise))])
        outputs["domain_logits"] = g.op("Log", [g.op("Add", [sure, g.floats("noise.even", np.float32(fusion.noise / len(SEQUENCE["domain"])))])])


def taps(proto: onnx.ModelProto) -> list[dict]:
    """The values of a graph of `build` that adapters can go on from (bundle.yaml, adapter.py): the hidden states below
    the last layer, of all tokens and of the first one, the queries of the first token and the keys and values of all
    that the last layer has before any task changes it, and the mean of the un-adapted last layer. Values carry the
    smoothing of the layer behind the attention."""
    users: dict[str, list[onnx.NodeProto]] = {}
    made = {}
    for node in proto.graph.node:
        for name in node.input:
            users.setdefault(name, []).append(node)
        for name in node.output:
            made[name] = node
    product = next(n for n in proto.graph.node if f"layers.{LAYERS - 1}.qkv.q" in n.input)
    hidden = made[made[product.input[0]].input[0]].input[0]  # behind rounding and smoothing
    split = users[product.output[0]][0]
    first_of = lambda name: next(n.output[0] for n in users[name] if n.op_type == "Slice")
    mean = next(n.input[0] for n in proto.graph.node if "metric" in n.input)
    tokens, one, row = [-1, -1, HIDDEN], [-1, 1, HIDDEN], [-1, HIDDEN]
    return [{"name": name, "value": value, "shape": list(shape)} for name, value, shape in (
        ("hidden", hidden, tokens), ("first", first_of(hidden), one), ("query", first_of(split.output[0]), one),
        ("keys", split.output[1], tokens), ("values", split.output[2], tokens), ("mean", mean, row))]


def save(proto: onnx.ModelProto, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(proto.SerializeToString())
