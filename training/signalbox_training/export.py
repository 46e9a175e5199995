"""Writes the trained model as an ONNX graph: int8 for the CPU, fp16 or fp32 for other uses.

The graph is laid out node by node with the fused operators of ONNX Runtime, so
that no export tool is needed and the quantised layout is exactly what is asked for:

- linear layers: `DynamicQuantizeMatMul`, weights int8 with one scale per output column, a few
  outlier channels in fp32 (see quantise.py);
- embedding table: int8 with one scale per row, gathered first and scaled after;
- attention, skip connections with layer norm, GELU: fused fp32 operators;
- heads: fp32 (they are small, and logits stay close to those of the training framework);
- the wide part (see wide.py): hashes by integer arithmetic, table int8 with one scale per row.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from . import wide
from .model import HEADS, HIDDEN, LAYERS, LN_EPS, Bundle
from .quantise import Quantised

CONTRIB = "com.microsoft"


class Graph:
    """Collects nodes and initializers."""

    def __init__(self, precision: str, layers: dict[str, Quantised] | None = None):
        self.precision, self.layers = precision, layers or {}
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
        stem = f"{kind}_{len(self.nodes)}"
        names = [f"{stem}.{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(kind, inputs, names, name=stem, domain=domain, **attributes))
        return names[0] if outputs == 1 else names

    def linear(self, x: str, name: str, weight: np.ndarray, bias: np.ndarray) -> str:
        """y = x W^T + b for a weight of shape [out, in]."""
        layer = self.layers.get(name) if self.precision == "int8" else None
        if layer is not None:
            if layer.smooth is not None:
                x_in = self.op("Mul", [x, self.floats(name + ".smooth", 1 / layer.smooth)])
            else:
                x_in = x
            weights = [self.const(name + ".q", layer.weight), self.const(name + ".scale", layer.scale)]
            zero, shift = self.const(name + ".zero", np.zeros(len(bias), np.int8)), self.floats(name + ".bias", bias)
            if layer.two_step:
                coarse, step, middle = self.op("DynamicQuantizeLinear", [x_in], outputs=3)
                y = self.op("MatMulIntegerToFloat", [coarse, weights[0], step, weights[1], middle, zero, shift], domain=CONTRIB)
                rest = self.op("Sub", [x_in, self.op("DequantizeLinear", [coarse, step, middle])])
                return self.op("Add", [y, self.op("DynamicQuantizeMatMul", [rest, *weights, zero], domain=CONTRIB)])
            rest = self.op("Clip", [x_in, self.floats(name + ".low", -layer.limit), self.floats(name + ".high", layer.limit)])
            y = self.op("DynamicQuantizeMatMul", [rest, *weights, zero, shift], domain=CONTRIB)
            if not len(layer.outliers):
                return y
            large = self.op("Gather", [x, self.const(name + ".outliers", layer.outliers)], axis=2)
            return self.op("Add", [y, self.op("MatMul", [large, self.floats(name + ".exact", layer.outlier_weight)])])
        matrix = np.ascontiguousarray(weight.T)
        y = self.op("MatMul", [x, self.floats(name + ".weight", matrix)])
        return self.op("Add", [y, self.floats(name + ".bias", bias)])

    def embed(self, table: np.ndarray) -> str:
        """Look up `input_ids` in the word table."""
        if self.precision != "int8":
            return self.op("Gather", [self.floats("words", table), "input_ids"], axis=0)
        scale = np.maximum(np.abs(table).max(1, keepdims=True), 1e-8) / 127
        quantised = np.clip(np.rint(table / scale), -127, 127).astype(np.int8)
        rows = self.op("Gather", [self.const("words.q", quantised), "input_ids"], axis=0)
        scales = self.op("Gather", [self.const("words.scale", scale.astype(np.float32)), "input_ids"], axis=0)
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
          fusion: wide.Fusion | None = None) -> onnx.ModelProto:
    """Build the ONNX model. In an int8 graph the linear layers named in `layers` are int8, the others
    fp32. Without `fusion` the logits are those of the deep part alone."""
    w = {name: tensor.detach().float().cpu().numpy() for name, tensor in model.state_dict().items()}
    g = Graph(precision, layers)
    index = lambda name, value: g.const(name, np.array(value, np.int64))

    length = g.op("Slice", [g.op("Shape", ["input_ids"]), index("one", [1]), index("two", [2])])
    positions = g.op("Slice", [g.floats("positions", w["positions.weight"]), index("zero", [0]), length])
    x = g.op("Add", [g.embed(w["words.weight"]), positions])
    norm = lambda n: [g.floats(n + ".gain", w[n + ".weight"]), g.floats(n + ".shift", w[n + ".bias"])]
    x = g.op("LayerNormalization", [x, *norm("ln")], axis=-1, epsilon=LN_EPS)
    padding = g.op("Cast", ["attention_mask"], to=TensorProto.INT32)

    def linear(x, name):
        return g.linear(x, name, w[name + ".weight"], w[name + ".bias"])

    def skip_norm(x, y, name):
        return g.op("SkipLayerNormalization", [x, y, *norm(name)], domain=CONTRIB, epsilon=LN_EPS)

    for i in range(LAYERS):
        p = f"layers.{i}."
        q, k, v = g.op("Split", [linear(x, p + "qkv"), index("thirds", [HIDDEN] * 3)], outputs=3, axis=-1)
        context = g.op("MultiHeadAttention", [q, k, v, "", padding], domain=CONTRIB, num_heads=HEADS)
        x = skip_norm(x, linear(context, p + "out"), p + "ln1")
        inner = g.op("Gelu", [linear(x, p + "up")], domain=CONTRIB)
        x = skip_norm(x, linear(inner, p + "down"), p + "ln2")

    # Pooling and heads run in fp32 whatever the trunk's precision.
    if precision == "fp16":
        x = g.op("Cast", [x], to=TensorProto.FLOAT)
    g.real, g.precision = np.float32, "fp32"
    first = g.op("Gather", [x, g.const("cls", np.array(0, np.int64))], axis=1)
    mask = g.op("Cast", ["attention_mask"], to=TensorProto.FLOAT)
    total = g.op("Squeeze", [g.op("MatMul", [g.op("Unsqueeze", [mask, index("one", [1])]), x]), index("one", [1])])
    mean = g.op("Div", [total, g.op("ReduceSum", [mask, index("one", [1])], keepdims=1)])
    features = g.op("Concat", [first, mean], axis=-1)
    outputs = {"embedding": g.op("Div", [mean, g.op("Max", [
        g.op("ReduceL2", [mean], axes=[1], keepdims=1), g.floats("tiny", np.float32(1e-12))])])}
    for task in ("domain", "jailbreak"):
        inner = g.op("Gelu", [linear(features, task + ".hidden")], domain=CONTRIB)
        outputs[task + "_logits"] = linear(inner, task + ".logits")
    order = ["domain_logits", "jailbreak_logits", "embedding"]
    if fusion is not None:
        both = add_wide(g, fusion, length)
        # The share of foreign pieces, special tokens included.
        strange = g.op("Mul", [g.op("Gather", [g.floats("wide.foreign", fusion.foreign), "input_ids"], axis=0), mask])
        share = g.op("Div", [g.op("ReduceSum", [x, index("one", [1])], keepdims=1) for x in (strange, mask)])
        parts = g.op("Split", [both, index("wide.widths", [len(s) for s in fusion.shift])], outputs=2, axis=1)
        for i, (name, part) in enumerate(zip(order, parts)):
            a0, a1, b0, b1 = (g.floats(f"{name}.mix{k}", np.float32(v)) for k, v in enumerate(fusion.mix[i]))
            trust = lambda base, slope: g.op("Add", [g.op("Mul", [share, slope]), base])
            deep, part = g.op("Mul", [outputs[name], trust(a0, a1)]), g.op("Mul", [part, trust(b0, b1)])
            outputs[name] = g.op("Add", [g.op("Add", [deep, part]), g.floats(name + ".shift", fusion.shift[i])])
    for name in order:
        g.nodes.append(helper.make_node("Identity", [outputs[name]], [name], name="out_" + name))

    widths = {"domain_logits": w["domain.logits.bias"].shape[0], "jailbreak_logits": 2, "embedding": HIDDEN}
    tensor = helper.make_tensor_value_info
    graph = helper.make_graph(
        g.nodes, "signalbox-minilm",
        [tensor(n, TensorProto.INT64, ["batch", "tokens"]) for n in ("input_ids", "attention_mask")],
        [tensor(n, TensorProto.FLOAT, ["batch", widths[n]]) for n in order], g.tensors,
    )
    proto = helper.make_model(graph, producer_name="signalbox-training", opset_imports=[
        helper.make_opsetid("", 17), helper.make_opsetid(CONTRIB, 1)])
    proto.ir_version = 8
    return proto


def save(proto: onnx.ModelProto, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(proto.SerializeToString())
