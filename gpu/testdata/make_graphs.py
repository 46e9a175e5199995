"""Writes the small ONNX graphs that the tests of package gpu run, and the probe embedded in it.

    python -m venv /tmp/venv && /tmp/venv/bin/pip install onnx==1.23.2 && /tmp/venv/bin/python make_graphs.py

The output is deterministic: a second run changes no byte.
"""

import pathlib

import numpy as np
import onnx
from onnx import TensorProto, external_data_helper, helper, numpy_helper

HERE = pathlib.Path(__file__).parent
FLOAT, HALF, BF16, DOUBLE = TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16, TensorProto.DOUBLE
INT32, INT64 = TensorProto.INT32, TensorProto.INT64


def save(path, nodes, inputs, outputs, initializers=(), domains=()):
    """Checks a graph and writes it without anything that changes from run to run."""
    info = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes, path.stem, [info(*i) for i in inputs], [info(*o) for o in outputs], initializer=list(initializers)
    )
    opsets = [helper.make_opsetid("", 17), *(helper.make_opsetid(d, 1) for d in domains)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=9)
    onnx.checker.check_model(model, full_check=True)
    path.write_bytes(model.SerializeToString(deterministic=True))


def loop_body(width):
    """One step of slow.onnx: x <- tanh(x W), a little arithmetic that no optimiser can remove."""
    rng = np.random.default_rng(1)
    weights = numpy_helper.from_array(rng.normal(0, 1 / np.sqrt(width), (width, width)).astype(np.float32), "w")
    info = helper.make_tensor_value_info
    return helper.make_graph(
        [
            helper.make_node("MatMul", ["state", "w"], ["product"]),
            helper.make_node("Tanh", ["product"], ["next"]),
            helper.make_node("Identity", ["go"], ["go_on"]),
        ],
        "step",
        [info("i", INT64, []), info("go", TensorProto.BOOL, []), info("state", FLOAT, ["batch", width])],
        [info("go_on", TensorProto.BOOL, []), info("next", FLOAT, ["batch", width])],
        initializer=[weights],
    )


def save_layers():
    """8-bit layers as the embedded bundles have them: smoothed or not, with shared weights, and some that gpu.fuse has to leave alone."""
    rng, nodes, constants = np.random.default_rng(2), [], []
    node = helper.make_node

    def constant(name, value):
        constants.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def weights(name, width, out):
        constant(name + ".w", rng.integers(-127, 128, (width, out)).astype(np.int8))

    def product(x, name, out, width=None, shared=None, zero=0):
        """Rounds x and multiplies it; smooths it before where width is given."""
        if width:
            nodes.append(node("Mul", [x, constant(name + ".smooth", rng.uniform(0.5, 2, width).astype(np.float32))], [name + ".smoothed"]))
            x = name + ".smoothed"
        step, middle = constant(name + ".step", np.float32(rng.uniform(0.02, 0.03))), constant(name + ".middle", np.uint8(rng.integers(90, 160)))
        nodes.append(node("QuantizeLinear", [x, step, middle], [name + ".rounded"]))
        scale = constant(name + ".scale", rng.uniform(1e-3, 1e-2, out).astype(np.float32))
        bias = constant(name + ".bias", rng.normal(size=out).astype(np.float32))
        zeros = constant(name + ".zero", np.full(out, zero, np.int8))
        inputs = [name + ".rounded", (shared or name) + ".w", step, scale, middle, zeros, bias]
        nodes.append(node("MatMulIntegerToFloat", inputs, [name], domain="com.microsoft"))
        return name

    norm = [constant("norm.gain", rng.uniform(0.5, 2, 48).astype(np.float32)), constant("norm.shift", rng.normal(size=48).astype(np.float32))]
    nodes.append(node("LayerNormalization", ["x", *norm], ["h"], axis=-1, epsilon=1e-12))
    for name, width, out in (("up", 48, 144), ("down", 144, 48), ("bare", 48, 96), ("narrow", 48, 50), ("shifted", 48, 48), ("open", 48, 48)):
        weights(name, width, out)
    nodes.append(node("Gelu", [product("h", "up", 144, width=48)], ["inner"], domain="com.microsoft"))
    nodes.append(node("Sum", ["h", product("inner", "down", 48, width=144)], ["y"]))
    product("h", "again", 144, width=48, shared="up")  # the weights of another layer
    product("x", "bare", 96)
    product("h", "narrow", 50)  # no whole number of groups
    product("h", "shifted", 48, zero=1)  # weights with a zero point
    product("x", "open", 48, width=48)  # nobody knows that x is 48 wide: it stays multiplied outside
    outputs = [("y", 48), ("again", 144), ("bare", 96), ("narrow", 50), ("shifted", 48), ("open", 48)]
    save(
        HERE / "layers.onnx",
        nodes,
        [("x", FLOAT, ["batch", "sequence", 48])],
        [(name, FLOAT, ["batch", "sequence", out]) for name, out in outputs],
        constants,
        ["com.microsoft"],
    )


def main():
    save_layers()
    node = helper.make_node
    vector = ["batch", "width"]
    tokens = ["batch", "sequence"]

    add = ([node("Add", ["x", "y"], ["sum"])], [("x", FLOAT, vector), ("y", FLOAT, vector)], [("sum", FLOAT, vector)])
    save(HERE / "add.onnx", *add)
    save(HERE.parent / "probe.onnx", *add)

    save(
        HERE / "echo.onnx",
        [node("Cast", ["input_ids"], ["values"], to=FLOAT), node("Identity", ["input_ids"], ["ids"])],
        [("input_ids", INT64, tokens)],
        [("values", FLOAT, tokens), ("ids", INT64, tokens)],
    )
    # A number for every token, and one for every row that padding does not change.
    save(
        HERE / "tokens.onnx",
        [
            node("Cast", ["input_ids"], ["values"], to=FLOAT),
            node("Unsqueeze", ["values", "last"], ["each"]),
            node("ReduceMax", ["values"], ["most"], axes=[1], keepdims=1),
        ],
        [("input_ids", INT64, tokens)],
        [("each", FLOAT, ["batch", "sequence", 1]), ("most", FLOAT, ["batch", 1])],
        [numpy_helper.from_array(np.array([2], np.int64), "last")],
    )
    save(HERE / "fixed.onnx", [node("Relu", ["x"], ["y"])], [("x", FLOAT, [2, 3])], [("y", FLOAT, [2, 3])])
    save(HERE / "nan.onnx", [node("Log", ["x"], ["y"])], [("x", FLOAT, vector)], [("y", FLOAT, vector)])
    save(
        HERE / "half.onnx",
        [
            node("Cast", ["x"], ["half"], to=HALF),
            node("Cast", ["x"], ["brain"], to=BF16),
            node("Cast", ["x"], ["double"], to=DOUBLE),
            node("Identity", ["x"], ["single"]),
        ],
        [("x", FLOAT, vector)],
        [("half", HALF, vector), ("brain", BF16, vector), ("double", DOUBLE, vector), ("single", FLOAT, vector)],
    )
    for name, elem in [("int32", INT32), ("float16", HALF), ("uint8", TensorProto.UINT8)]:
        save(HERE / f"{name}.onnx", [node("Cast", ["x"], ["y"], to=FLOAT)], [("x", elem, vector)], [("y", FLOAT, vector)])
    save(
        HERE / "scalar.onnx",
        [node("ReduceSum", ["x"], ["total"], keepdims=0), node("Identity", ["x"], ["y"])],
        [("x", FLOAT, vector)],
        [("total", FLOAT, []), ("y", FLOAT, vector)],
    )

    for name, elem in [("cache", FLOAT), ("cache_float16", HALF)]:
        save(
            HERE / f"{name}.onnx",
            [
                node("Cast", ["x"], ["new"], to=elem),
                node("Concat", ["past_key_values.0.key", "new"], ["all"], axis=2),
                node("Cast", ["all"], ["y"], to=FLOAT),
            ],
            [("past_key_values.0.key", elem, ["batch", 2, "past", 3]), ("x", FLOAT, ["batch", 2, "sequence", 3])],
            [("y", FLOAT, ["batch", 2, "all", 3])],
        )

    save(
        HERE / "weights_float16.onnx",
        [node("Cast", ["w"], ["wide"], to=FLOAT), node("Add", ["x", "wide"], ["y"])],
        [("x", FLOAT, ["batch", 4])],
        [("y", FLOAT, ["batch", 4])],
        [numpy_helper.from_array(np.ones(4, np.float16), "w")],
    )

    # Two products of bytes that share their weights; sums of two products overflow 16 bits.
    save(
        HERE / "bytes.onnx",
        [
            node("Cast", ["x"], ["bytes"], to=TensorProto.UINT8),
            node("MatMulInteger", ["bytes", "w", "", "zero"], ["y32"]),
            node("Identity", ["bytes"], ["again"]),
            node("MatMulInteger", ["again", "w", "", "zero"], ["z32"]),
            node("Cast", ["y32"], ["y"], to=FLOAT),
            node("Cast", ["z32"], ["z"], to=FLOAT),
        ],
        [("x", FLOAT, ["batch", 32])],
        [("y", FLOAT, ["batch", 16]), ("z", FLOAT, ["batch", 16])],
        [numpy_helper.from_array(np.full((32, 16), 127, np.int8), "w"), numpy_helper.from_array(np.array(0, np.int8), "zero")],
    )

    # Weights in another file, which lies beside the graph: four numbers, one each.
    weights = numpy_helper.from_array(np.ones(4, np.float32), "w")
    external_data_helper.set_external_data(weights, "weights.data", 0, 16)
    weights.ClearField("raw_data")
    weights.data_location = TensorProto.EXTERNAL
    outside = helper.make_graph(
        [node("Add", ["x", "w"], ["y"])],
        "external",
        [helper.make_tensor_value_info("x", FLOAT, vector)],
        [helper.make_tensor_value_info("y", FLOAT, vector)],
        initializer=[weights],
    )
    outside = helper.make_model(outside, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    (HERE / "external.onnx").write_bytes(outside.SerializeToString(deterministic=True))
    (HERE / "weights.data").write_bytes(np.ones(4, np.float32).tobytes())

    width = 64
    save(
        HERE / "slow.onnx",
        [
            node("Squeeze", ["steps"], ["trips"]),
            node("Loop", ["trips", "always", "x"], ["y"], body=loop_body(width)),
        ],
        [("steps", INT64, [1]), ("x", FLOAT, ["batch", width])],
        [("y", FLOAT, ["batch", width])],
        [numpy_helper.from_array(np.array(True), "always")],
    )

    # One operator that is not interrupted, for as long as the input wants: about 50 us for each number beyond the kernel.
    save(
        HERE / "stuck.onnx",
        [node("AveragePool", ["x"], ["y"], kernel_shape=[1 << 16], strides=[1])],
        [("x", FLOAT, [1, 1, "n"])],
        [("y", FLOAT, [1, 1, "m"])],
    )


if __name__ == "__main__":
    main()
