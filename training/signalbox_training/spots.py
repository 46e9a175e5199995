"""What single tokens say of an injection (model.Spots), learnt on a graph that stays as it is otherwise.

The states of all tokens of 35,000 windows are computed once, by the int8 graph (five gigabytes), so that an epoch takes half
a minute. Of an order that was planted in other text the tokens are known: each token learns whether it is one of an order,
the text learns whether it holds one. How the head and the tokens are added up is learnt beside that and then replaced by
MIX, which weighs the head more than what learnt texts would.

    python -m signalbox_training.spots --bundle FOLDER --guides FILE [--out build/model_int8.onnx]
"""

from __future__ import annotations

import argparse
import random
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import torch
import torch.nn.functional as F
from onnx import TensorProto, helper

from . import batches, data, evaluate, export, guides, material, model, restore, tails

SEED, EPOCHS, RATE, DECAY, DROP, BATCH, WARM = 2, 5, 1.2e-3, 0.02, 0.2, 64, 60
ALONE, TOKENS = 0.5, 1.0  # weights of the loss of the tokens' word for the text, and of the tokens
MIX = (0.6, 0.4, 0.0)
KNOWN = {1: 6000, 0: 8000}  # rows of the training with and without an injection
PAGES = 3  # windows of a document of `guides`
LATE = "tasktracker/poisoned"  # whose order may stand at the end of a long text
SHORT = 400  # characters of an attack that is put into a text


@dataclass
class Example:
    """Tokens of a window; whether it holds an injection; which tokens are one, None where that is not known."""

    ids: list[int]
    injection: int
    span: tuple[int, int] | None = None


def examples(folder: Path, pages: list[dict]) -> list[Example]:
    """What is learnt."""
    rng, tok, out = random.Random(21), batches.tokenizer(), []
    rows = [r for r in data.build(folder)[0] if r.injection >= 0 and not r.src.startswith("own/material/")]
    hosts = [r.text for r in rows if r.host and len(r.text) > 200]
    encode = lambda text: tok.encode(text, add_special_tokens=False)
    passages = material.by_world("passage")

    def planted(host: str, text: str, injection: int) -> None:
        whole, at = material.plant(host, text, rng)
        if found := material.window(encode(whole), at, at + len(text), tails.ROWS, rng):
            out.append(Example(found[0], injection, found[1] if injection else None))

    for world, label, text in material.read():
        ids, order = encode(text).ids[: tails.ROWS], int(label == "order")
        out.append(Example(ids, order, (0, len(ids)) if order else None))
        if label == "order":
            for host in (rng.choice(passages[world]), rng.choice(pages)["text"], rng.choice(hosts)):
                planted(host, text, 1)
        if label == "ask":
            for host in rng.choices(passages[world], k=2):
                planted(host, text, 0)
    for r in pages:
        for _ in range(PAGES):
            start = rng.randrange(max(1, len(r["text"]) - 700))
            out.append(Example(encode(r["text"][start : start + 900]).ids[: tails.ROWS], 0))
    for label, count in KNOWN.items():
        for r in rng.sample([r for r in rows if r.injection == label], count):
            if label and len(r.text) < SHORT and rng.random() < 0.6:
                planted(rng.choice(hosts), r.text, 1)
                continue
            ids = encode(r.text[:6000]).ids
            if label and len(ids) > tails.ROWS and r.src.startswith(LATE):
                continue
            start = 0 if label else rng.randrange(max(1, len(ids) - tails.ROWS))
            out.append(Example(ids[start : start + tails.ROWS], label))
    return [e for e in out if e.ids]


def states(graph: onnx.ModelProto, found: list[Example]) -> tuple[list[np.ndarray], np.ndarray]:
    """The states [tokens, 2 * hidden] of every window, half precision, and the log-odds of the head of injection."""
    graph = onnx.ModelProto.FromString(graph.SerializeToString())
    head, tokens = _between(graph)
    graph.graph.output.extend(helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in (head, tokens))
    sess, out, odds = evaluate.session(graph.SerializeToString()), [None] * len(found), np.zeros(len(found), np.float32)
    order = sorted(range(len(found)), key=lambda i: len(found[i].ids))
    for start in range(0, len(order), 32):
        picked = order[start : start + 32]
        ids, mask = batches.pad([batches.wrap(found[i].ids) for i in picked])
        logits, read = sess.run([head, tokens], {"input_ids": ids.numpy(), "attention_mask": mask.numpy()})
        for k, i in enumerate(picked):
            out[i] = read[k, : len(found[i].ids) + 2].astype(np.float16)
        odds[picked] = logits[:, 1] - logits[:, 0]
    return out, odds


def fit(found: list[Example], read: list[np.ndarray], odds: np.ndarray, log=print) -> model.Spots:
    """Train the spots; the head stays."""
    torch.manual_seed(SEED)
    rng, spots = np.random.default_rng(SEED), model.Spots().train()
    opt = torch.optim.AdamW(spots.parameters(), lr=RATE, weight_decay=DECAY)
    lengths, steps, done = np.array([len(r) for r in read]), EPOCHS * (len(found) // BATCH), 0
    for epoch in range(EPOCHS):
        order = np.argsort(lengths + rng.uniform(0, 12, len(found)))
        parts, total = [order[at : at + BATCH] for at in range(0, len(order) - BATCH + 1, BATCH)], 0.0
        rng.shuffle(parts)
        for part in parts:
            for group in opt.param_groups:
                group["lr"] = RATE * min(1, (done + 1) / WARM) * (1 - done / steps)
            loss = _loss(spots, [found[i] for i in part], [read[i] for i in part], torch.from_numpy(odds[part]))
            opt.zero_grad()
            loss.backward()
            opt.step()
            done, total = done + 1, total + loss.item()
        log(f"spots, epoch {epoch + 1}: loss {total / len(parts):.4f}, mix {spots.mix.tolist()}", flush=True)
    with torch.no_grad():
        spots.mix.copy_(torch.tensor(MIX))
    return spots.eval()


def _loss(spots: model.Spots, found: list[Example], read: list[np.ndarray], odds: torch.Tensor) -> torch.Tensor:
    longest = max(map(len, read))
    x, mask, want = np.zeros((len(found), longest, 2 * model.HIDDEN), np.float32), np.zeros((len(found), longest)), np.full((len(found), longest), -1.0)
    for k, (e, r) in enumerate(zip(found, read)):
        x[k, : len(r)], mask[k, : len(r)] = r, 1
        if e.span or not e.injection:
            want[k, : len(r)] = 0
        if e.span:
            want[k, 1 + e.span[0] : 1 + e.span[1]] = 1  # behind the first token of every row
    x, mask, want = (torch.from_numpy(v.astype(np.float32)) for v in (x, mask, want))
    label = torch.tensor([float(e.injection) for e in found])
    tokens = spots.tokens(x, DROP)
    pooled = spots.pooled(tokens, mask)
    both = spots.mix[0] * odds + spots.mix[1] * pooled + spots.mix[2]
    entropy, known = F.binary_cross_entropy_with_logits, want >= 0
    each = (entropy(tokens, want.clamp(min=0), reduction="none") * known).sum() / known.sum().clamp(min=1)
    return entropy(both, label) + ALONE * entropy(pooled, label) + TOKENS * each


def _between(graph: onnx.ModelProto) -> tuple[str, str]:
    """The names of the logits of the head of injection, and of the states of the tokens."""
    head = next(n.output[0] for n in graph.graph.node if "heads.injection.logits.bias" in n.input)
    return head, next(n.input[0] for n in graph.graph.node if "pii.weight" in n.input)


def put(graph: onnx.ModelProto, spots: model.Spots) -> None:
    """Write the spots into a graph of export.build, in place of those that it has."""
    nodes = [n for n in graph.graph.node if not n.name.startswith(export.SPOTS)]
    tensors = [t for t in graph.graph.initializer if not t.name.startswith("spots.")]
    at, added = next(i for i, n in enumerate(nodes) if "injection_logits" in n.output), export.Graph("fp32")
    nodes[at].input[0] = export.add_spots(added, spots, *_between(graph))
    del graph.graph.node[:], graph.graph.initializer[:]
    graph.graph.node.extend(nodes[:at] + added.nodes + nodes[at:])
    graph.graph.initializer.extend(tensors + added.tensors)


def main() -> None:
    here = Path(__file__).resolve().parent.parent
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--bundle", type=Path, required=True)
    parser.add_argument("--guides", type=Path, required=True, help="what guides.py wrote")
    parser.add_argument("--out", type=Path, default=here / "build" / "model_int8.onnx")
    args = parser.parse_args()
    graph = onnx.load(args.bundle / "model_int8.onnx")
    found = examples(args.data, guides.read(args.guides, "pages"))
    print(f"{len(found)} windows", flush=True)
    put(graph, fit(found, *states(graph, found)))
    args.out.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(graph, args.out)


if __name__ == "__main__":
    main()
