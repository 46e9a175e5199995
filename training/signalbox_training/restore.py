"""A checkpoint out of a shipped graph, so that training can go on from it.

What the graph holds is int8, so the weights come back as they are computed with, and the wide table
as it is looked up. The smoothing of the attention's output stays inside the values and the layer
after it; the product is the same.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import onnx
import torch
from onnx import numpy_helper

from .model import HIDDEN, LAYERS, PARTS, Bundle, grow
from .quantise import Quantised


def checkpoint(graph: onnx.ModelProto) -> tuple[dict[str, torch.Tensor], np.ndarray]:
    """The state of a `Bundle` and the wide table [BUCKETS, COLUMNS] float32 of an int8 graph of export.build, also of one before
    3.0.0, which has no injection (model.grow)."""
    t = {x.name: numpy_helper.to_array(x) for x in graph.graph.initializer}
    net, state = Bundle(), {}

    def put(name, value):
        state[name] = torch.from_numpy(np.array(value, np.float32))

    def norm(name):
        put(name + ".weight", t[name + ".gain"])
        put(name + ".bias", t[name + ".shift"])

    put("words.weight", t["words.q"] * t["words.scale"])
    put("positions.weight", t["positions"])
    norm("ln")
    for i in range(LAYERS):
        p = f"layers.{i}."
        for part in PARTS:
            weight = t[p + part + ".q"].astype(np.float32) * t[p + part + ".scale"]
            reciprocal = np.ones(len(weight), np.float32) if part == "out" else t[p + part + ".smooth"]
            put(p + part + ".smooth", 1 / reciprocal)
            put(p + part + ".limit", t[p + part + ".step"] * (255 - int(t[p + part + ".middle"])))
            put(p + part + ".weight", (weight * reciprocal.reshape(-1, 1)).T)
            put(p + part + ".bias", t[p + part + ".bias"])
        norm(p + "ln1")
        norm(p + "ln2")
    for part in ("query", "out", "up", "down"):
        for side in "ab":
            put(f"adapters.{side}.{part}", t[f"adapters.{part}.{side}"])
    for name in [n for n in net.state_dict() if n.startswith(("heads.", "pii.", "spots.")) and n in t]:
        put(name, t[name].T if name.endswith(".weight") else t[name])
    if "spots.head" in t:
        put("spots.mix", [t["spots.head"][1, 0], t["spots.weight"], t["spots.bias"]])
    put("metric.weight", t["metric"].T if "metric" in t else np.eye(HIDDEN))
    grow(state)
    wrong = [n for n, x in net.state_dict().items() if n not in state or state[n].shape != x.shape]
    if wrong:
        raise ValueError(f"the graph does not fit this model: {wrong}")
    return state, t["wide.table"] * t["wide.scale"]


def layers(graph: onnx.ModelProto) -> dict[str, Quantised]:
    """The int8 layers as they are in the graph, for weights of `checkpoint` whose trunk has not been trained further."""
    t = {x.name: numpy_helper.to_array(x) for x in graph.graph.initializer}
    names = [f"layers.{i}.{part}" for i in range(LAYERS) for part in PARTS]
    return {name: Quantised(t[name + ".q"], t[name + ".scale"]) for name in names}


def main() -> None:
    here = Path(__file__).resolve().parent.parent
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bundle", type=Path, default=here.parent / "models" / "default")
    parser.add_argument("--work", type=Path, default=here / "build", help="gets checkpoint.pt, wide.npy and scan.bin")
    args = parser.parse_args()
    args.work.mkdir(parents=True, exist_ok=True)
    state, table = checkpoint(onnx.load(args.bundle / "model_int8.onnx"))
    torch.save(state, args.work / "checkpoint.pt")
    np.save(args.work / "wide.npy", table.astype(np.float32))
    (args.work / "scan.bin").write_bytes((args.bundle / "scan.bin").read_bytes())


if __name__ == "__main__":
    main()
