"""One command from the data folder to models/grounding: NLI model, fusion, manifest and model card."""

from __future__ import annotations

import json
import os
import random
import time
from pathlib import Path

import numpy as np
import torch
from scipy.optimize import minimize_scalar

from . import batches, nli_bundle, nli_card, nli_cross, nli_data, nli_evaluate, nli_export, nli_fusion, nli_long, nli_model, nli_product, nli_train, quantise
from .bundle import replace

FINAL_MINUTES = 14.0  # of the training with all claims about pages
FINAL_REST = 0.25  # of the other sources in an epoch of it


def note(text: str, start=time.time()) -> None:
    print(f"[{(time.time() - start) / 60:5.1f} min] {text}", flush=True)


def temperature(logits: np.ndarray, rows: list[nli_data.Pair]) -> float:
    """The one that makes the labels of the rows likeliest, in steps of 0.05."""
    may = np.array([[i in r.may for i in range(3)] for r in rows])
    loss = lambda t: -np.log((nli_evaluate.softmax(logits / t) * may).sum(1) + 1e-9).mean()
    return round(float(minimize_scalar(loss, bounds=(0.4, 3), method="bounded").x) * 20) / 20


def int8(net: nli_model.Pair, tok, rows: list[nli_data.Pair]) -> bytes:
    """The int8 graph, with statistics of training rows."""
    picked = random.Random(17).sample(rows, 300)
    ids = [nli_model.pair(a, b, nli_train.LONGEST) for a, b in zip(*(batches.content(tok, t) for t in ([r.premise for r in picked], [r.claim for r in picked])))]
    if not net.layers[0].qkv.limit.isfinite():  # weights from a training without the rounding phase
        nli_train.calibrate(net, ids)
        net.eval()
    net.round(False)
    return nli_export.build(net, "int8", quantise.quantise(net, ids)).SerializeToString()


def held_figures(logits: np.ndarray, rows: list[nli_data.Pair], heat: float) -> dict:
    """Accuracy of the held-out pairs by source, where any label that may hold is right, and their number."""
    right = np.array([int(k) in r.may for k, r in zip(logits.argmax(1), rows)])
    sources = np.array([r.src for r in rows])
    out = {s: (int((sources == s).sum()), float(right[sources == s].mean())) for s in sorted(set(sources))}
    return {"temperature": heat, "accuracy": out}


def seen(args, given: list[dict]) -> tuple[list[str], list[dict]]:
    """(names, lines) of the features of the rows, those of WiCE read by the model that has not seen their fold."""
    about = lambda r: r["group"] == "wice"
    at = [i for i, r in enumerate(given) if not about(r)]
    names, lines = nli_fusion.features(args.repository, [given[i] for i in at], args.out)
    lines = [l | {"row": at[l["row"]]} for l in lines]
    for k, folder in enumerate(nli_cross.bundles(args.cross)):
        at = [i for i, r in enumerate(given) if about(r) and r["fold"] == k]
        lines += [l | {"row": at[l["row"]]} for l in nli_fusion.features(args.repository, [given[i] for i in at], folder)[1]]
    return names, sorted(lines, key=lambda l: (l["row"], l["claim"]))


def fit_rows(args) -> tuple[list[str], list[dict], list[dict]]:
    """(names, rows, lines) of the fit, from the work folder with --keep-rows."""
    file, kept = args.work / "fusion_rows.json", ("label", "group", "kind", "fold")
    if not args.keep_rows:
        given = nli_fusion.rows(args.data, args.own)[:: args.quick]
        names, lines = nli_fusion.features(args.repository, given, args.out) if args.known or args.fresh else seen(args, given)
        file.write_text(json.dumps({"names": names, "given": [{k: r[k] for k in kept} for r in given], "lines": lines}))
    found = json.loads(file.read_text())
    if found["names"] != nli_fusion.features(args.repository, [])[0]:
        raise SystemExit(f"{file} was made with other features: leave out --keep-rows")
    return found["names"], found["given"], found["lines"]


def train(args, pairs: list[nli_data.Pair]) -> Path:
    """Three trainings: without claims about pages; from there once for each fold of them, for the fusion; and with all of them, with
    rounding. Returns the weights of the last."""
    base, checkpoint = args.base or args.work / "base.pt", args.checkpoint or args.work / "nli.pt"
    cross = not args.cross and not args.keep_rows and not args.known and not args.fresh
    if not args.base and (cross or not args.checkpoint):
        nli_train.train([r for r in pairs if not r.root], base, args.minutes, rounding=False, floor=0.3)
    if cross:
        args.cross = args.work / "cross"
        nli_cross.train(pairs, base, args.cross)
    if not args.checkpoint:
        nli_train.train(pairs, checkpoint, FINAL_MINUTES, base, rate=8e-5, round_from=0.4, rest=FINAL_REST)
    return checkpoint


def main() -> None:
    parser = nli_product.arguments(__doc__)
    parser.add_argument("--work", type=Path, default=Path(__file__).resolve().parents[1] / "build")
    parser.add_argument("--minutes", type=float, default=50, help="of the training without claims about pages")
    parser.add_argument("--base", type=Path, help="skip that training and use these weights")
    parser.add_argument("--cross", type=Path, help="use the models of this folder to read claims about pages for the fusion")
    parser.add_argument("--checkpoint", type=Path, help="skip the training with these claims as well and use these weights")
    parser.add_argument("--known", action="store_true", help="the weights knew the claims about pages when their training began: fit words and numbers alone on them")
    parser.add_argument("--fresh", action="store_true", help="the weights know no claim about pages: they read them for the fusion themselves")
    parser.add_argument("--rows", type=int, help="how many pairs the weights of --checkpoint were trained on, for the card")
    parser.add_argument("--keep-graph", action="store_true", help="use the graph that is there; fit and measure only")
    parser.add_argument("--keep-rows", action="store_true", help="fit on the features of the last run")
    parser.add_argument("--trees", type=int, default=100, help="of each forest")
    parser.add_argument("--own", type=int, default=2000, help="made rows for the fusion")
    parser.add_argument("--quick", type=int, default=1, help="use every so many rows only, to try things out")
    args = parser.parse_args()
    if (args.fresh or args.rows) and not args.checkpoint:
        parser.error("--fresh and --rows tell of the weights of --checkpoint")
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    args.work.mkdir(parents=True, exist_ok=True)
    pairs, tok = nli_train.pairs(args.data), batches.tokenizer()
    checkpoint = train(args, pairs)
    net = nli_model.load(checkpoint).eval()
    torch.set_num_threads(1)  # single rows: two threads would mostly wait for each other
    held = [r for r in pairs if nli_data.held_out(r)][:: 5 * args.quick]
    note(f"{len(held)} held-out pairs to measure")
    graph = (args.out / "model_int8.onnx").read_bytes() if args.keep_graph else int8(net, tok, [r for r in pairs if not nli_data.held_out(r)])
    sess = nli_evaluate.session(graph)
    texts = [(r.premise, r.claim) for r in held]
    logits = nli_evaluate.logits(sess, tok, texts)
    exact = nli_evaluate.logits(nli_evaluate.session(nli_export.build(net, "fp32").SerializeToString()), tok, texts)
    heat = temperature(logits, held)
    figures = {"fresh": args.fresh, "bytes": len(graph), "training_rows": args.rows or sum(not nli_data.held_out(r) for r in pairs), "held_out": held_figures(logits, held, heat),
               "held_out_fp32": held_figures(exact, held, heat), "int8": nli_evaluate.compare(logits, exact)}
    note(json.dumps(figures))
    nli_bundle.write(args.out, graph, heat, None)

    names, given, lines = fit_rows(args)
    fit = nli_fusion.gather(names, lines, given, ("wice",) if args.known else ())
    fusion, support = nli_fusion.make(names, fit, args.trees)
    nli_bundle.write(args.out, graph, heat, fusion)
    figures["left_out"], sets = nli_long.left_out(args, fusion)
    fusion = nli_long.added(fusion, sets.all())
    nli_bundle.write(args.out, graph, heat, fusion)
    figures["fit"] = nli_card.fitted(fusion) | {"rows": len(given), "claims": len(fit.y), "auc_by_group": {g: nli_evaluate.auc(1 - support[m], ~fit.y[m]) for g in nli_fusion.GROUPS
                                                                                for m in [np.array([given[i]["group"] == g for i in fit.row])] if not fit.known[m].all()}}
    note(json.dumps(figures["fit"]))
    figures["dev"] = nli_product.product(args, fusion)
    figures["latency_ms"] = {f"{n} x {t}": nli_evaluate.latency(sess, t, n) for n, t in ((1, 32), (1, 64), (1, 96), (1, 128), (2, 96))}
    (args.work / "nli_figures.json").write_text(json.dumps(figures, indent=1) + "\n")
    replace(args.out / "MODEL_CARD.md", nli_card.render(figures).encode())
    note("done")


if __name__ == "__main__":
    main()
