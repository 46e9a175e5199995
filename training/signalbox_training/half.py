"""The graph of half precision of a shipped bundle, for GPU providers.

    python -m signalbox_training.half --bundle ../models/default --out ~/.cache/signalbox/models/embedded-fp16/default
    python -m signalbox_training.half --bundle ../models/grounding --out ~/.cache/signalbox/models/embedded-fp16/grounding

It is made of the int8 graph itself, so that both have the same weights: what is rounded stays rounded, what is computed between is of half
precision instead of 8 bits. The folder holds the graph, a manifest that names it, and the other files of the manifest, and is found by its
place:
`models_dir`/embedded-fp16/default, or /grounding.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import onnx
import yaml
from onnx import numpy_helper

from . import export, nli_export, nli_restore, restore, wide
from .bundle import entry, replace
from .model import Bundle
from .nli_model import Pair

FILE = "model_fp16.onnx"


def fusion_of(graph: onnx.ModelProto) -> wide.Fusion:
    """How the wide part is added up in a graph of export.build."""
    t = {x.name: numpy_helper.to_array(x) for x in graph.graph.initializer}
    widths = wide.WIDTHS
    first = np.cumsum([0, *widths])[:-1]
    mix = np.stack([t[f"wide.mix{k}"][first] for k in range(4)], axis=1)
    exact = t["wide.table"].astype(np.float32) * t["wide.scale"]
    noise = float(1 - t["noise.kept"]) if "noise.kept" in t else 0.0
    return wide.Fusion(exact, t["wide.table"], t["wide.scale"], t["wide.foreign"], mix, np.split(t["wide.shift"], np.cumsum(widths)[:-1]), noise)


def build(shipped: onnx.ModelProto, precision: str = "fp16") -> onnx.ModelProto:
    """The model of an int8 graph in another precision."""
    if "token_type_ids" in {x.name for x in shipped.graph.input}:
        pair = Pair()
        pair.load_state_dict(nli_restore.checkpoint(shipped, pair))
        return nli_export.build(pair.eval(), precision)
    net = Bundle()
    net.load_state_dict(restore.checkpoint(shipped)[0])
    return export.build(net.eval(), precision, fusion=fusion_of(shipped))


def write(folder: Path, shipped: Path) -> None:
    """Write the folder, the manifest last."""
    manifest = yaml.safe_load((shipped / "bundle.yaml").read_text())
    graph = build(onnx.load(shipped / "model_int8.onnx")).SerializeToString()
    manifest["graphs"] = [entry(FILE, graph, precision="fp16")]
    for part in ("tokenizer", "scan", "turns", "fusion"):
        if part in manifest:
            file = manifest[part]["file"]
            replace(folder / file, (shipped / file).read_bytes())
    replace(folder / FILE, graph)
    replace(folder / "bundle.yaml", yaml.safe_dump(manifest, sort_keys=False, width=120, default_flow_style=None).encode())


def main() -> None:
    here = Path(__file__).resolve().parent.parent
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bundle", type=Path, default=here.parent / "models" / "default")
    parser.add_argument("--out", type=Path, required=True, help="models_dir/embedded-fp16/default, or /grounding")
    args = parser.parse_args()
    write(args.out, args.bundle)


if __name__ == "__main__":
    main()
