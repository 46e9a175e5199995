"""A checkpoint of the NLI model out of a shipped graph, so that training can go on from it.

As in restore.py. The head by token, which no graph holds, starts at random.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import onnx
import torch
from onnx import numpy_helper

from .model import LAYERS, PARTS
from .nli_model import Pair, from_base


def checkpoint(graph: onnx.ModelProto, net: Pair | None = None) -> dict[str, torch.Tensor]:
    """The state of a `Pair` of an int8 graph of nli_export.build; what the graph does not hold is that of `net`."""
    t = {x.name: numpy_helper.to_array(x) for x in graph.graph.initializer}
    state = {n: x.clone() for n, x in (net or from_base()).state_dict().items()}

    def put(name, value):
        value = torch.from_numpy(np.array(value, np.float32))
        if state[name].shape != value.shape:
            raise ValueError(f"the graph does not fit this model: {name}")
        state[name] = value

    def norm(name):
        put(name + ".weight", t[name + ".gain"])
        put(name + ".bias", t[name + ".shift"])

    put("words.weight", t["words.q"] * t["words.scale"])
    put("positions.weight", t["positions"])
    put("types.weight", t["types"])
    norm("ln")
    for i in range(LAYERS):
        for part in PARTS:
            p = f"layers.{i}.{part}"
            weight = t[p + ".q"].astype(np.float32) * t[p + ".scale"]
            reciprocal = np.ones(len(weight), np.float32) if part == "out" else t[p + ".smooth"]
            put(p + ".smooth", 1 / reciprocal)
            put(p + ".limit", t[p + ".step"] * (255 - int(t[p + ".middle"])))
            put(p + ".weight", (weight * reciprocal.reshape(-1, 1)).T)
            put(p + ".bias", t[p + ".bias"])
        norm(f"layers.{i}.ln1")
        norm(f"layers.{i}.ln2")
    for layer in ("hidden", "logits"):
        put(layer + ".weight", t[layer + ".weight"].T)
        put(layer + ".bias", t[layer + ".bias"])
    return state


def main() -> None:
    here = Path(__file__).resolve().parent.parent
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bundle", type=Path, default=here.parent / "models" / "grounding")
    parser.add_argument("--out", type=Path, default=here / "build" / "nli_start.pt")
    args = parser.parse_args()
    args.out.parent.mkdir(parents=True, exist_ok=True)
    torch.save(checkpoint(onnx.load(args.bundle / "model_int8.onnx")), args.out)


if __name__ == "__main__":
    main()
