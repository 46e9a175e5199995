"""One command from the data folder to the bundle, its parity file and its model card."""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np
import torch

from . import batches, bundle, card, data, evaluate, export, parity, quantise, train, wide
from .model import Bundle, from_base

# Per kind of linear layer: outlier channels kept in fp32, smoothing strength, two-step activations.
QUANTISATION = {"qkv": (0, 0.5, True), "out": (24, 0.5, False), "up": (0, 0.5, True), "down": (0, 0.0, True)}


def quantise_trunk(net: Bundle, tok, texts: list[str]) -> dict:
    """Int8 layers from the activations on training texts."""
    statistics = quantise.collect(net, tok, texts)
    weights = {n: t.detach().numpy() for n, t in net.state_dict().items()}
    return {n: quantise.quantise(weights[n + ".weight"], s, *QUANTISATION[n.split(".")[-1]])
            for n, s in statistics.items() if n.split(".")[-1] in QUANTISATION}


def statistics_texts(rows: list[data.Row], each: int = 160) -> list[str]:
    """Training texts for the activation statistics: as many attacks as other prompts."""
    return [r.text for y in (0, 1) for r in [r for r in rows if r.jailbreak == y][:each]]


def fit_fusion(net: Bundle, tok, table: np.ndarray, layers: dict, held: list[data.Row]) -> wide.Fusion:
    """Fit how deep and wide logits are added up, on the first window of the held-out rows."""
    sess = evaluate.session(export.build(net, "int8", layers).SerializeToString())
    ids = [batches.windows(c)[0] for c in batches.content(tok, [r.text for r in held], 6000)]
    found = [evaluate.run(sess, [row]) for row in ids]
    deep = [np.concatenate([f[i] for f in found]) for i in (0, 1)]
    labels = [np.array([r.domain for r in held]), np.array([r.jailbreak for r in held])]
    return wide.fuse(table, tok, deep, ids, labels, np.array([r.weight for r in held], np.float32))


def note(text: str, start=time.time()) -> None:
    print(f"[{(time.time() - start) / 60:5.1f} min] {text}", flush=True)


def main() -> None:
    here = Path(__file__).resolve().parent.parent
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--out", type=Path, default=here.parent / "models", help="the models folder")
    parser.add_argument("--work", type=Path, default=here / "build", help="checkpoints and figures")
    parser.add_argument("--epochs", type=float, default=2.0)
    parser.add_argument("--minutes", type=float, default=1e9, help="bound on training time; the schedule follows it")
    parser.add_argument("--checkpoint", type=Path, help="skip training and use these weights")
    parser.add_argument("--leave-one-out", nargs="*", default=[], metavar="PREFIX",
                        help="jailbreak sources to leave out in turn, each in a run of its own (half an epoch)")
    parser.add_argument("--fp16", action="store_true", help="also write model_fp16.onnx into the work folder")
    args = parser.parse_args()
    args.work.mkdir(parents=True, exist_ok=True)

    if args.checkpoint:
        net = Bundle()
        net.load_state_dict(torch.load(args.checkpoint))
        net.eval()
    else:
        net = train.train(args.data, args.work / "checkpoint.pt", args.epochs, args.minutes)
    tok = batches.tokenizer()
    train_rows, held = data.build(args.data)

    table_file = args.work / "wide.npy"
    if args.checkpoint and table_file.exists():
        table = np.load(table_file)
    else:
        note("wide part")
        table = wide.train(args.data, log=note)
        np.save(table_file, table)

    note("int8 export")
    layers = quantise_trunk(net, tok, statistics_texts(train_rows))
    fusion = fit_fusion(net, tok, table, layers, held)
    note(f"fusion {fusion.mix.tolist()}")
    proto = export.build(net, "int8", layers, fusion)
    graph = proto.SerializeToString()
    sess = evaluate.session(graph)
    reference = parity.reference(net, tok, fusion)
    figures = {"bytes": len(graph), "parity": parity.compare(sess, reference)}
    note(f"parity {figures['parity']}")

    calibration, notes = evaluate.calibrate(sess, tok, held)
    note(f"calibration {calibration} {notes}")
    bundle.write(args.out / "default", proto, calibration)
    parity.write(reference, args.out / "testdata" / "parity.json")
    if args.fp16:
        export.save(export.build(net, "fp16", fusion=fusion), args.work / "model_fp16.onnx")

    figures |= {"calibration": calibration, "held_out": notes, "training_rows": len(train_rows)}
    figures["probes"] = evaluate.probes(sess, tok, calibration)
    figures["dev"] = evaluate.dev_figures(sess, tok, args.data, calibration)
    note("dev done")
    base = evaluate.session(export.build(from_base(), "fp32").SerializeToString())
    figures["sts_spearman"] = {"base_fp32": evaluate.sts(base, tok, args.data), "bundle_int8": evaluate.sts(sess, tok, args.data)}
    figures["latency_ms"] = evaluate.latency(sess)
    note(json.dumps(figures["latency_ms"]))

    for prefix in args.leave_one_out:
        other = train.train(args.data, args.work / "leave_one_out.pt", 0.5, 1e9, prefix)
        s = evaluate.session(export.build(other, "fp32").SerializeToString())
        attacks = [data.Row(r["text"], data.NONE, 1, 1.0, r["src"]) for r in data.read(args.data, "jailbreak")
                   if r["src"].startswith(prefix) and r["label"] in ("jailbreak", "injection")]
        benign = [r for r in data.dev(args.data)["jailbreak"] if r.jailbreak == 0]
        rows = attacks + benign
        found = evaluate.jailbreak_figures(evaluate.logits(s, tok, [r.text for r in rows])[1], rows, **calibration["jailbreak"])
        figures.setdefault("leave_one_out", {})[prefix] = {k: found[k] for k in ("attacks", "auc", "recall", "false_positives")}
        note(f"without {prefix}: {figures['leave_one_out'][prefix]}")

    (args.work / "figures.json").write_text(json.dumps(figures, indent=1) + "\n")
    bundle.replace(args.out / "default" / "MODEL_CARD.md", card.render(figures).encode())
    note("done")


if __name__ == "__main__":
    main()
