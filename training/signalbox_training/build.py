"""One command from the data folder to the bundle, its parity file and its model card."""

from __future__ import annotations

import argparse
import json
import random
import time
from pathlib import Path

import numpy as np
import onnx

from . import batches, bundle, card, data, evaluate, export, model, parity, planted, quantise, restore, train, wide


def statistics_rows(tok, rows: list[data.Row], each: int = 120) -> list[list[int]]:
    """Training rows for the activation statistics: attacks, personal data and other prompts alike."""
    kinds = [lambda r: 1 in (r.jailbreak, r.injection), lambda r: r.host, lambda r: r.entities, lambda r: r.domain >= 0, lambda r: r.complexity]
    texts = [r.text for kind in kinds for r in [r for r in rows if kind(r)][:each]]
    return [batches.windows(c)[0] for c in batches.content(tok, texts, 6000)]


PLANTED = 500  # windows with an attack for the figures


def fit_fusion(net: model.Bundle, tok, table: np.ndarray, layers: dict, held: list[data.Row]) -> wide.Fusion:
    """Fit how deep and wide logits are added up, on the first window of the held-out rows."""
    sess = evaluate.session(export.build(net, "int8", layers, tasks=tuple(wide.TOPICS)).SerializeToString())
    held = [r for r in held if r.domain >= 0 or r.complexity or r.factcheck >= 0]
    ids = [batches.windows(c)[0] for c in batches.content(tok, [r.text for r in held], 6000)]
    found = [evaluate.run(sess, [row]) for row in ids]
    return wide.fuse(table, tok, [np.concatenate([f[t] for f in found]) for t in wide.TOPICS], ids, held)


def latencies(net: model.Bundle, layers: dict, fusion: wide.Fusion) -> dict:
    """Milliseconds of the whole graph, of the four sequence tasks, of domain alone, and of one graph per sequence task."""
    def build(*tasks):
        return evaluate.session(export.build(net, "int8", layers, fusion, tasks).SerializeToString())

    graphs = {"all": [build(*model.SEQUENCE, "pii", "embedding")], "four": [build(*model.SEQUENCE)], "domain": [build("domain")]}
    graphs["separate"] = [build(t) for t in model.SEQUENCE]
    return evaluate.latency(graphs)


def note(text: str, start=time.time()) -> None:
    print(f"[{(time.time() - start) / 60:5.1f} min] {text}", flush=True)


def main() -> None:
    here = Path(__file__).resolve().parent.parent
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--out", type=Path, default=here.parent / "models", help="the models folder")
    parser.add_argument("--work", type=Path, default=here / "build", help="checkpoints and figures; a latency.json there is taken instead of measuring")
    parser.add_argument("--epochs", type=float, default=3.0)
    parser.add_argument("--minutes", type=float, default=1e9, help="bound on training time; the schedule follows it")
    parser.add_argument("--checkpoint", type=Path, help="skip training and use these weights")
    parser.add_argument("--keep-int8", type=Path, help="a graph whose int8 layers are taken as they are; for a checkpoint of settle")
    parser.add_argument("--rounded", action="store_true", help="the checkpoint was trained with rounding throughout (train --rounded): round as it was")
    parser.add_argument("--signalbox", type=Path, default=here.parent / "bin" / "signalbox", help="the program that measures the figures of the product")
    parser.add_argument("--fp16", action="store_true", help="also write model_fp16.onnx into the work folder")
    args = parser.parse_args()
    args.work.mkdir(parents=True, exist_ok=True)
    if args.checkpoint:
        net = model.load(args.checkpoint, 0.0).eval()
    else:
        net = train.train(args.data, args.work / "checkpoint.pt", args.epochs, args.minutes)
    net.centre()
    tok = batches.tokenizer()
    train_rows, held = data.build(args.data)
    held = [r for i, r in enumerate(held) if i % 2 == 0 or 1 in (r.jailbreak, r.injection)]  # enough, in half the time
    random.Random(17).shuffle(train_rows)

    table_file = args.work / "wide.npy"
    if args.checkpoint and table_file.exists():
        table = np.load(table_file)
    else:
        note("wide part")
        table = wide.train(args.data, log=note)
        np.save(table_file, table)
    scan_file = args.work / "scan.bin"

    note("int8 export")
    rows = statistics_rows(tok, train_rows)
    if not net.layers[0].qkv.limit.isfinite():  # weights from a training without the rounding phase
        train.calibrate(net, rows)
        net.eval()
    layers = restore.layers(onnx.load(args.keep_int8)) if args.keep_int8 else quantise.as_trained(net) if args.rounded else quantise.quantise(net, rows)
    fusion = fit_fusion(net, tok, table, layers, held)
    note(f"fusion {fusion.mix.tolist()}")
    sess = evaluate.session(export.build(net, "int8", layers, fusion).SerializeToString())
    calibration, notes = evaluate.calibrate(sess, tok, args.data, held, scan_file.read_bytes())
    fusion.noise = notes["domain_noise"]
    note(f"calibration {calibration} {notes}")
    for i, task in enumerate(wide.TOPICS):
        if calibration[task]["temperature"] > 1 or task == "domain":  # too sure of itself: calm it in the graph
            fusion.fold(i, calibration[task]["temperature"])
            calibration[task]["temperature"] = 1.0
    proto = export.build(net, "int8", layers, fusion)
    graph = proto.SerializeToString()
    sess = evaluate.session(graph)
    reference = parity.reference(net, tok, fusion)
    figures = {"bytes": len(graph), "parity": parity.compare(sess, reference)}
    note(f"parity {figures['parity']}")
    bundle.write(args.out / "default", proto, calibration, scan_file.read_bytes() if scan_file.exists() else None)
    parity.write(reference, args.out / "testdata" / "parity.json")
    if args.fp16:
        export.save(export.build(net, "fp16", fusion=fusion), args.work / "model_fp16.onnx")

    figures |= {"calibration": calibration, "held_out": notes, "training_rows": len(train_rows)}
    figures["probes"] = evaluate.probes(sess, tok, calibration)
    figures["planted"] = evaluate.planted_figures(sess, planted.windows(tok, data.dev(args.data)["jailbreak"], PLANTED, 2), calibration["jailbreak"])
    note(f"planted {figures['planted']}")
    figures["own_prompts"] = evaluate.own_prompts(sess, tok)
    figures["dev"] = evaluate.dev_figures(sess, tok, args.data, calibration)
    note("dev done")
    base = evaluate.session(export.build(model.from_base(), "fp32", tasks=("embedding",)).SerializeToString())
    figures["sts_spearman"] = {"base_fp32": evaluate.sts(base, tok, args.data), "bundle_int8": evaluate.sts(sess, tok, args.data)}
    latency_file = args.work / "latency.json"
    if latency_file.exists():
        figures["latency_ms"] = json.loads(latency_file.read_text())
    else:
        figures["latency_ms"] = latencies(net, layers, fusion)
    note(json.dumps(figures["latency_ms"]))
    held_file = args.work / "heldout.json"
    if held_file.exists():
        figures["left_out"] = json.loads(held_file.read_text())
    if args.signalbox.exists():
        figures["product"] = card.product(args.signalbox, args.data)
        figures["traffic"] = card.traffic(args.signalbox, args.data)
    (args.work / "figures.json").write_text(json.dumps(figures, indent=1) + "\n")
    bundle.replace(args.out / "default" / "MODEL_CARD.md", card.render(figures).encode())
    note("done")


if __name__ == "__main__":
    main()
