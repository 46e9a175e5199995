"""Writes the NLI model as an ONNX graph: int8 products over fixed ranges as in export.py, the head in fp32.

Inputs `input_ids`, `attention_mask`, `token_type_ids` [batch, tokens] int64, output `logits` [batch, 3] float32.
"""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, helper

from .export import CONTRIB, Graph, array
from .model import HEADS, HIDDEN, LAYERS, LN_EPS
from .nli_model import FAR, LABELS, Pair
from .quantise import Quantised

INPUTS = ("input_ids", "attention_mask", "token_type_ids")


class PairGraph(Graph):
    """A graph with the parts of this model."""

    def __init__(self, net: Pair, precision: str, layers: dict[str, Quantised] | None):
        super().__init__(precision, layers)
        self.net, self.weights = net, {name: array(t) for name, t in net.state_dict().items()}

    def index(self, name: str, value) -> str:
        return self.const(name, np.array(value, np.int64))

    def layer(self, x: str, name: str, **how) -> str:
        return self.linear(x, name, self.net.get_submodule(name), **how)

    def norm(self, x: str, name: str) -> str:
        gain, shift = (self.floats(f"{name}.{to}", self.weights[f"{name}.{part}"]) for to, part in (("gain", "weight"), ("shift", "bias")))
        return self.op("LayerNormalization", [x, gain, shift], axis=-1, epsilon=LN_EPS)

    def embedded(self) -> str:
        """Words, places and sides of every token, normalised."""
        length = self.op("Slice", [self.op("Shape", ["input_ids"]), self.index("one", [1]), self.index("two", [2])])
        places = self.op("Slice", [self.floats("positions", self.weights["positions.weight"]), self.index("zero", [0]), length])
        sides = self.op("Gather", [self.floats("types", self.weights["types.weight"]), "token_type_ids"], axis=0)
        return self.norm(self.op("Sum", [self.embed(self.weights["words.weight"]), places, sides]), "ln")

    def block(self, x: str, padding: str, p: str) -> str:
        """One transformer layer. Its values carry the smoothing of the attention's output, and a Sum is used because the
        runtime would fuse an Add into a slower operator (see export.py)."""
        after = np.ones(3 * HIDDEN, np.float32)
        after[2 * HIDDEN :] = 1 / self.weights[p + "out.smooth"]
        q, k, v = self.op("Split", [self.layer(x, p + "qkv", after=after), self.index("thirds", [HIDDEN] * 3)], outputs=3, axis=-1)
        context = self.op("MultiHeadAttention", [q, k, v, "", padding], domain=CONTRIB, num_heads=HEADS)
        x = self.norm(self.op("Sum", [x, self.layer(context, p + "out", smoothed=True)]), p + "ln1")
        inner = self.op("Gelu", [self.layer(x, p + "up")], domain=CONTRIB)
        return self.norm(self.op("Sum", [x, self.layer(inner, p + "down")]), p + "ln2")

    def head(self, x: str) -> str:
        """First token, mean and largest values of the claim's tokens, and the logits of these."""
        one, zero = self.index("one", [1]), self.index("zero", [0])
        sides = self.op("Mul", ["token_type_ids", "attention_mask"])
        claim = self.op("Cast", [sides], to=TensorProto.FLOAT)
        first = self.op("Squeeze", [self.op("Slice", [x, zero, one, one]), one])
        total = self.op("Squeeze", [self.op("MatMul", [self.op("Unsqueeze", [claim, one]), x]), one])
        count = self.op("Max", [self.op("ReduceSum", [claim, one], keepdims=1), self.floats("least", np.float32(1))])
        away = self.op("Mul", [self.op("Sub", [claim, self.floats("there", np.float32(1))]), self.floats("far", np.float32(FAR))])
        peak = self.op("ReduceMax", [self.op("Add", [x, self.op("Unsqueeze", [away, self.index("two", [2])])])], axes=[1], keepdims=0)
        features = self.op("Concat", [first, self.op("Div", [total, count]), peak], axis=-1)
        return self.layer(self.op("Gelu", [self.layer(features, "hidden")], domain=CONTRIB), "logits")


def build(net: Pair, precision: str = "int8", layers: dict[str, Quantised] | None = None) -> onnx.ModelProto:
    """The ONNX model, precision int8 (with the weights in `layers`), fp32 or fp16."""
    g = PairGraph(net, precision, layers)
    padding = g.op("Cast", ["attention_mask"], to=TensorProto.INT32)
    if precision == "fp16":  # as in export.py
        padding = g.op("ReduceSum", [padding, g.index("one", [1])], keepdims=0)
    x = g.embedded()
    for i in range(LAYERS):
        x = g.block(x, padding, f"layers.{i}.")
    if precision == "fp16":
        x = g.op("Cast", [x], to=TensorProto.FLOAT)
    g.real, g.precision = np.float32, "fp32"
    g.nodes.append(helper.make_node("Identity", [g.head(x)], ["logits"], name="out_logits"))
    info = helper.make_tensor_value_info
    graph = helper.make_graph(g.nodes, "signalbox-nli", [info(n, TensorProto.INT64, ["batch", "tokens"]) for n in INPUTS],
                              [info("logits", TensorProto.FLOAT, ["batch", len(LABELS)])], g.tensors)
    proto = helper.make_model(graph, producer_name="signalbox-training", opset_imports=[
        helper.make_opsetid("", 17), helper.make_opsetid(CONTRIB, 1)])
    proto.ir_version = 8
    return proto
