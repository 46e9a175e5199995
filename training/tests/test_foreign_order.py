"""The attack encoder of the multilingual bundle."""

import sys
from pathlib import Path

import numpy as np
import onnx
import yaml
from onnx import numpy_helper

HERE = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(HERE))

from signalbox_training import foreign_order  # noqa: E402

SHIPPED = HERE.parent / "models" / "foreign"


def test_weights_that_are_taken_out_and_put_back_are_the_same():
    proto = onnx.load(SHIPPED / "model_int8.onnx")
    again = foreign_order.put(foreign_order.restored(proto), proto)
    for a, b in zip(proto.graph.initializer, again.graph.initializer, strict=True):
        assert np.array_equal(numpy_helper.to_array(a), numpy_helper.to_array(b)), a.name


def test_another_reader_changes_the_graph_and_what_is_said_of_it(tmp_path):
    for name in ("bundle.yaml", "model_int8.onnx"):
        (tmp_path / name).write_bytes((SHIPPED / name).read_bytes())
    proto = onnx.load(SHIPPED / "model_int8.onnx")
    net = foreign_order.restored(proto)
    net.head.bias.data += 1
    foreign_order.rewrite(tmp_path, foreign_order.put(net, proto))
    before, after = (yaml.safe_load((folder / "bundle.yaml").read_text(encoding="utf-8")) for folder in (SHIPPED, tmp_path))
    assert before["graphs"][0].pop("sha256") != after["graphs"][0].pop("sha256")
    assert before == after
