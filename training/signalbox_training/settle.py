"""Heads, tails and the metric of the embedding, fitted anew on a trunk that stays as it is.

What comes out of the int8 trunk differs a little from what the same weights give in fp32. Training
the trunk with rounding simulated makes the differences small on the whole, but a head may be steep in just the
direction in which some texts are thrown. Here both versions of what the heads read are at hand for every
text, so a head can learn to give the same for both, and no trunk has to be run while it does.

The metric is a linear map of the mean that becomes the embedding: requests of one intent nearer to each
other than to those of the intents beside it, pairs of sentences as near as people judged. Its constants were chosen on CLINC150, as those of classify/knn.
"""

from __future__ import annotations

import argparse
import random
from pathlib import Path

import numpy as np
import onnx
import torch
import torch.nn.functional as F

from . import batches, data, evaluate, export, model, restore, train

SEED = 5
TEXTS = 9000
RATE, HOLD = 3e-4, 0.02  # of the metric: learning rate, weight of its distance from where it began
KEPT = 0.1  # of the texts, to see how far the versions are apart on texts that were not fitted


def choose(rows: list[data.Row], rng: random.Random) -> list[data.Row]:
    """Rows of every task, a quarter of them with attacks or grades."""
    kinds = [lambda r: r.domain >= 0, lambda r: r.jailbreak == 1, lambda r: r.complexity is not None, lambda r: r.factcheck >= 0]
    picked = {}
    for kind in kinds:
        for r in rng.sample(found := [r for r in rows if kind(r)], min(len(found), TEXTS // len(kinds))):
            picked[id(r)] = r
    return list(picked.values())


def features(net: model.Bundle, sess, ids: list[list[int]]) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    """What the heads read of every row, in fp32 and from the int8 graph: (first, context, mean) each."""
    net.eval()
    net.round(False)
    exact, rounded = [], []
    names = ["first", "context", "mean"]
    for row in ids:
        with torch.no_grad():
            exact.append([t.float() for t in net.read(*batches.pad([row]))[2]])
        got = sess.run(names, {"input_ids": np.array([row]), "attention_mask": np.ones((1, len(row)), np.int64)})
        rounded.append([torch.from_numpy(v) for v in (got[0][:, 0], got[1][:, :, 0], got[2])])
    return [torch.cat(t) for t in zip(*exact)], [torch.cat(t) for t in zip(*rounded)]


def both(net: model.Bundle, exact, rounded, at) -> tuple[dict, dict]:
    """The logits of some rows in fp32 and as the int8 graph gives them, the last layer's rounding simulated."""
    net.round(False)
    a = net.answers(*(t[at] for t in exact))
    net.round(True)
    b = net.answers(*(t[at] for t in rounded))
    net.round(False)
    return a, b


def apart(net: model.Bundle, exact, rounded, at) -> dict[str, float]:
    """The largest difference of a logit of each task."""
    with torch.no_grad():
        a, b = both(net, exact, rounded, at)
    return {t: round((a[t] - b[t]).abs().max().item(), 3) for t in model.SEQUENCE}


def fit_heads(net: model.Bundle, rows: list[data.Row], exact, rounded, epochs: int, log=print) -> None:
    """Train heads and adapters, but for the query's, which the features depend on."""
    rng, losses = random.Random(SEED), train.Losses(rows)
    order = list(range(len(rows)))
    rng.shuffle(order)
    held, order = order[: int(KEPT * len(rows))], order[int(KEPT * len(rows)) :]
    with torch.no_grad():
        before = net.answers(*exact)
    log(f"before {apart(net, exact, rounded, held)}")
    for name, p in net.named_parameters():
        p.requires_grad_(name.startswith(("heads.", "adapters.")) and not name.endswith(".query"))
    opt = torch.optim.AdamW([p for p in net.parameters() if p.requires_grad], lr=2e-4, weight_decay=0.01)
    steps = epochs * (len(order) // 128)
    none = torch.full((1, 1), train.EMPTY)
    done = 0
    for epoch in range(epochs):
        rng.shuffle(order)
        for at in range(0, len(order) - 127, 128):
            for group in opt.param_groups:
                group["lr"] = 2e-4 * min(1, (done + 1) / 30) * (1 - done / steps)
            batch = order[at : at + 128]
            picked = [rows[i] for i in batch]
            a, b = both(net, exact, rounded, batch)
            gap = sum(((a[t] - b[t]) ** 2).sum(-1).mean() + 10 * (F.relu((a[t] - b[t]).abs() - 0.04) ** 2).sum(-1).mean() for t in model.SEQUENCE)
            drift = sum(F.mse_loss(a[t], before[t][batch]) for t in model.SEQUENCE)
            loss = 0.5 * losses(b, picked, none) + 0.5 * drift + 8 * losses.add("gap", gap)
            opt.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()
            done += 1
        log(f"epoch {epoch + 1}: held out {apart(net, exact, rounded, held)} {losses.log()}")


def means(sess, ids: list[list[int]]) -> torch.Tensor:
    return torch.cat([torch.from_numpy(sess.run(["mean"], {"input_ids": np.array([r]), "attention_mask": np.ones((1, len(r)), np.int64)})[0]) for r in ids])


def fit_metric(net: model.Bundle, near: train.Neighbours, sess, steps: int, log=print) -> None:
    """Train the map of the mean on the means of the int8 graph."""
    labels = [(label, row) for label in sorted(near.intents) for row in near.intents[label]]
    x = means(sess, [row for _, row in labels])
    by_label: dict[str, list[int]] = {}
    for i, (label, _) in enumerate(labels):
        by_label.setdefault(label, []).append(i)
    left, right = means(sess, [p[0] for p in near.pairs]), means(sess, [p[1] for p in near.pairs])
    score = torch.tensor([p[2] for p in near.pairs])
    rng = random.Random(SEED)
    for p in net.parameters():
        p.requires_grad_(False)
    weight = net.metric.weight.requires_grad_(True)
    start = weight.detach().clone()
    opt = torch.optim.AdamW([weight], lr=RATE, weight_decay=0)
    sums = [0.0, 0.0, 0.0]
    for step in range(steps):
        for group in opt.param_groups:
            group["lr"] = RATE * (1 - step / steps)
        field = rng.choice(near.fields) + "/" if rng.random() < 0.6 else ""
        names = [label for label in sorted(by_label) if label.startswith(field)]
        picked = rng.sample(names, min(24, len(names)))
        each = min(5, *(len(by_label[label]) for label in picked))
        rows = [i for label in picked for i in rng.sample(by_label[label], each)]
        intent = train.contrast(net.embed(x[rows]), [label for label in picked for _ in range(each)])
        pairs = rng.sample(range(len(score)), 64)
        judged = train.cosent(net.embed(left[pairs]), net.embed(right[pairs]), score[pairs])
        hold = ((weight - start) ** 2).sum()
        loss = intent + 0.3 * judged + HOLD * hold
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        sums = [s + v.item() for s, v in zip(sums, (intent, judged, hold))]
        if (step + 1) % 300 == 0:
            log(f"metric step {step + 1}: intent {sums[0] / 300:.4f} judged {sums[1] / 300:.4f} hold {sums[2] / 300:.3f}")
            sums = [0.0, 0.0, 0.0]
    for p in net.parameters():
        p.requires_grad_(True)


def main() -> None:
    here = Path(__file__).resolve().parent.parent
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--bundle", type=Path, default=here.parent / "models" / "default", help="its graph is the trunk")
    parser.add_argument("--work", type=Path, default=here / "build", help="gets checkpoint.pt, wide.npy and scan.bin; build takes --keep-int8 with them")
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--steps", type=int, default=1500, help="of the metric")
    args = parser.parse_args()
    torch.manual_seed(SEED)
    torch.set_num_threads(1)
    args.work.mkdir(parents=True, exist_ok=True)
    graph = onnx.load(args.bundle / "model_int8.onnx")
    state, table = restore.checkpoint(graph)
    net = model.Bundle(0.0)
    net.load_state_dict(state)
    net.centre()
    np.save(args.work / "wide.npy", table.astype(np.float32))
    (args.work / "scan.bin").write_bytes((args.bundle / "scan.bin").read_bytes())
    sess = evaluate.session(export.build(net, "int8", restore.layers(graph), taps=True).SerializeToString())
    log = lambda text: print(text, flush=True)

    tok, rng = batches.tokenizer(), random.Random(SEED)
    near = train.Neighbours(args.data, tok, rng)
    fit_metric(net, near, sess, args.steps, log)
    torch.save(net.state_dict(), args.work / "checkpoint.pt")
    rows = choose(data.build(args.data)[0], rng)
    examples = [train.Example(r, e) for r, e in zip(rows, tok.encode_batch([r.text[:6000] for r in rows], add_special_tokens=False))]
    hosts = [e.ids for e in examples if e.row.jailbreak == 0 and 40 <= len(e.ids)]
    exact, rounded = features(net, sess, [batches.wrap(train.cut(e, hosts, rng)[0]) for e in examples])
    log(f"{len(rows)} texts")
    fit_heads(net, rows, exact, rounded, args.epochs, log)
    net.centre()
    torch.save(net.state_dict(), args.work / "checkpoint.pt")


if __name__ == "__main__":
    main()
