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


def save(path, nodes, inputs, outputs, initializers=()):
    """Checks a graph and writes it without anything that changes from run to run."""
    info = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes, path.stem, [info(*i) for i in inputs], [info(*o) for o in outputs], initializer=list(initializers)
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
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


def main():
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
