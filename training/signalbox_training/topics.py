"""The tail and the head of domain, fitted anew on a graph that stays as it is otherwise.

As in `tails`, what a tail reads is computed once, by the int8 graph, so that a fit takes two minutes and the trunk and every
other task keep their bytes. Shipped is the mean of the weights of several fits: they start from one tail, differ in the order of
the rows and in what is dropped, and end close enough to each other for that. How the tail and the n-grams are added up, the
temperature and the share of wrong labels are fitted anew on rows that were held out. With `--words` the n-grams of domain go on
from their table first, which rounds those of the other topics anew.

    python -m signalbox_training.topics --bundle FOLDER [--words] [--out build/model_int8.onnx]
"""

from __future__ import annotations

import argparse
import copy
from pathlib import Path

import numpy as np
import onnx
import torch
import torch.nn.functional as F
from onnx import numpy_helper

from . import batches, data, evaluate, export, model, restore, tails, wide

TASK = "domain"
SEEDS = range(3, 11)
RATE, EPOCHS, BATCH, WARM = 2e-3, 6, 512, 40
DROP, DECAY = 0.2, 0.3
FACTORS = {"mmlu_pro": 2.0, "own/chat": 4.0}  # of the weights of some sources
COOLEST = 1.55  # least temperature, for the same reason
WORDS = 6  # epochs of the n-grams
TRUST = 0.65  # of the weight that held-out rows give the n-grams in English: these rows have the sources of what was learnt, whose words repeat
WAY = 0.8  # that the weights go from those of the bundle: of all of it, rounding moves one logit of the reference texts too far
READ = 6000  # characters of a text


def features(sess, rows: list[list[int]]) -> tuple[torch.Tensor, ...]:
    """What the tail of domain reads of rows: first, context, mean, each [rows, hidden]."""
    first, contexts, mean = tails.features(sess, rows, (TASK,))
    return first, contexts[0], mean


def fit(tail: tails.Tail, rows: list[data.Row], read: tuple[torch.Tensor, ...], seed: int) -> None:
    """Train the tail and the head on the labels of the rows."""
    torch.manual_seed(seed)
    rng, order = np.random.default_rng(seed), np.arange(len(rows))
    label = torch.tensor([r.domain for r in rows])
    weight = torch.tensor([r.weight * next((f for s, f in FACTORS.items() if r.src.startswith(s)), 1.0) for r in rows])
    opt = torch.optim.AdamW([p for p in tail.parameters() if p.requires_grad], lr=RATE, weight_decay=DECAY)
    steps, done = EPOCHS * (len(rows) // BATCH), 0
    for _ in range(EPOCHS):
        rng.shuffle(order)
        for start in range(0, len(order) - BATCH + 1, BATCH):
            for group in opt.param_groups:
                group["lr"] = RATE * min(1, (done + 1) / WARM) * (1 - done / steps)
            at = order[start : start + BATCH]
            loss = F.cross_entropy(tail.logits(*(x[at] for x in read), DROP), label[at], reduction="none")
            opt.zero_grad(set_to_none=True)
            ((loss * weight[at]).sum() / weight[at].sum()).backward()
            opt.step()
            done += 1


def mean(net: model.Bundle, rows: list[data.Row], read: tuple[torch.Tensor, ...], log=print) -> tails.Tail:
    """WAY towards the mean of a fit for each seed."""
    first, found = tails.Tail(copy.deepcopy(net), TASK).state_dict(), []
    for seed in SEEDS:
        tail = tails.Tail(copy.deepcopy(net), TASK).train()
        fit(tail, rows, read, seed)
        found.append(tail.state_dict())
        log(f"seed {seed} done", flush=True)
    tail.load_state_dict({name: first[name].lerp(torch.stack([f[name] for f in found]).mean(0), WAY) for name in first})
    return tail.eval()


def blend(graph: onnx.ModelProto, fusion: wide.Fusion) -> None:
    """Write how the parts of domain are added up into a graph in place of what it has; other tasks keep theirs."""
    tensors = {x.name: x for x in graph.graph.initializer}
    classes = len(model.DOMAINS)  # the first labels of the topics

    def replace(name: str, new, at=slice(None)) -> None:
        value = numpy_helper.to_array(tensors[name]).copy()
        value[at] = new
        tensors[name].CopyFrom(numpy_helper.from_array(value, name))

    for k, value in enumerate(fusion.mix[0]):
        replace(f"wide.mix{k}", value, slice(classes))
    replace("wide.shift", fusion.shift[0], slice(classes))
    replace("wide.table", fusion.table)
    replace("wide.scale", fusion.scale)
    replace("noise.kept", 1 - fusion.noise, ...)
    replace("noise.even", fusion.noise / classes, ...)


def main() -> None:
    here = Path(__file__).resolve().parent.parent
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--bundle", type=Path, required=True, help="folder of the bundle to start from")
    parser.add_argument("--out", type=Path, default=here / "build" / "model_int8.onnx")
    parser.add_argument("--words", action="store_true", help="go on with the n-grams as well")
    args = parser.parse_args()
    torch.set_num_threads(1)
    graph = onnx.load(args.bundle / "model_int8.onnx")
    state, table = restore.checkpoint(graph)
    layers, net, tok = restore.layers(graph), model.Bundle(0.0).eval(), batches.tokenizer()
    net.load_state_dict(state)
    if args.words:
        table = wide.train(args.data, WORDS, 0.04, start_from=table.astype(np.float32), learn=(TASK,))
    train, held = data.build(args.data)
    rows = [r for r in train if r.domain >= 0]
    first = lambda rows: [batches.windows(c)[0] for c in batches.content(tok, [r.text for r in rows], READ)]
    sess = evaluate.session(export.build(net, "int8", layers, taps=True).SerializeToString())
    tail = mean(net, rows, features(sess, first(rows)))
    tails.put(graph, tail)

    held = [r for r in held if r.domain >= 0]
    ids = first(held)
    with torch.no_grad():
        deep = tail.logits(*features(sess, ids)).numpy()
    # The other topics have no rows here; what is fitted of them is not used.
    rest = [np.zeros((len(held), n), np.float32) for n in wide.WIDTHS[1:]]
    fusion = wide.fuse(table.astype(np.float32), tok, [deep, *rest], ids, held)
    a0, a1, b0, b1 = fusion.mix[0]
    fusion.mix[0] = a0, a1, TRUST * b0, b1 + (1 - TRUST) * b0  # as fitted where all pieces are foreign
    found = [{TASK: z[None]} for z in fusion.reference(ids, [deep, *rest])[0]]
    temperature, fusion.noise = evaluate.even_domain(found, held, np.round(np.arange(COOLEST, 2.51, 0.05), 2))
    fusion.fold(0, temperature)
    print(f"mix {fusion.mix[0].tolist()}, temperature {temperature}, wrong labels {fusion.noise}")
    blend(graph, fusion)
    args.out.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(graph, args.out)


if __name__ == "__main__":
    main()
