"""One command from the data folder to the bundle, its parity file and its model card."""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import torch

from . import batches, bundle, card, data, evaluate, export, parity, quantise, train
from .model import Bundle, from_base

# Per kind of linear layer: outlier channels kept in fp32, smoothing strength.
QUANTISATION = {"qkv": (4, 0.5), "out": (0, 0.5), "up": (4, 0.5), "down": (32, 0.5)}


def quantise_trunk(net: Bundle, tok, texts: list[str]) -> dict:
    """Int8 layers from the activations on training texts."""
    statistics = quantise.collect(net, tok, texts)
    weights = {n: t.detach().numpy() for n, t in net.state_dict().items()}
    return {n: quantise.quantise(weights[n + ".weight"], s, *QUANTISATION[n.split(".")[-1]])
            for n, s in statistics.items() if n.split(".")[-1] in QUANTISATION}


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

    note("int8 export")
    proto = export.build(net, "int8", quantise_trunk(net, tok, [r.text for r in train_rows[:256]]))
    graph = proto.SerializeToString()
    sess = evaluate.session(graph)
    reference = parity.reference(net, tok)
    figures = {"bytes": len(graph), "parity": parity.compare(sess, reference)}
    note(f"parity {figures['parity']}")

    calibration, notes = evaluate.calibrate(sess, tok, held)
    note(f"calibration {calibration} {notes}")
    bundle.write(args.out / "default", proto, calibration)
    parity.write(reference, args.out / "testdata" / "parity.json")
    if args.fp16:
        export.save(export.build(net, "fp16"), args.work / "model_fp16.onnx")

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
