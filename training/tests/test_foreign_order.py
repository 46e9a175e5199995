"""The attack encoder of the multilingual bundle."""

import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
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


def test_going_on_does_not_overwrite_the_shipped_bundle(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["foreign_order", "again", "--base", str(SHIPPED)])
    with pytest.raises(SystemExit):
        foreign_order.main()
    assert "again needs --out" in capsys.readouterr().err
