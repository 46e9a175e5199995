"""Tail and head of the task jailbreak, fitted anew on a graph that stays as it is otherwise.

The tail (the low-rank changes of the last layer) and the head read the first token, its context and the mean of the
un-adapted last layer (`export.build(taps=True)`). These are computed once, by the int8 graph, so that a fit takes a minute;
the trunk and every other task keep their bytes. Injection is left alone: what a prompt forbids its model and what a document
orders it look the same, and a third of the attacks in long documents were lost where its tail learnt these texts too.

What is learnt is that system prompts which protect themselves are harmless (`guarded.py`). All other rows hold the log-odds
to what they were, attacks in the same words among them; those of harmless rows may fall.

    python -m signalbox_training.tails --bundle FOLDER [--out build/model_int8.onnx]
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
from onnx import numpy_helper
from torch import nn

from . import batches, data, evaluate, export, guarded, model, restore, train

SEED, ORDER = 5, 7  # of three orders of the rows the one whose logits rounding moved least
ROWS = batches.SAFETY_WINDOW - 2  # tokens of a window, without those that frame it
PROMPTS, SENTENCES, TURNED = 4200, 3000, 2400
HARMLESS = 0.62  # of the harmless rows
INSIDE = 0.12  # of the prompts also stand behind other text
RATE, EPOCHS, BATCH, WARM = 4e-4, 3, 256, 40
REACH = 7.0  # log-odds beyond it are held no closer
PARTS = ("out", "up", "down")  # the queries' adapters are part of the features
TASK = "jailbreak"
AT = list(model.SEQUENCE).index(TASK)


@dataclass
class Window:
    """Tokens, whether they are a jailbreak (data.NONE: open), and whether that is learnt or their log-odds are held."""

    ids: list[int]
    label: int
    new: bool


def cuts(ids: list[int], count: int, rng: random.Random) -> list[list[int]]:
    """Windows anywhere in a text."""
    if len(ids) <= ROWS:
        return [ids]
    starts = [rng.randrange(len(ids) - ROWS + 1) for _ in range(count)]
    return [ids[s : s + ROWS] for s in starts]


def windows(folder: Path) -> list[Window]:
    """What is learnt and what is held."""
    tok, rng, out = batches.tokenizer(), random.Random(SEED), []
    encode = lambda texts: tok.encode_batch([t[:6000] for t in texts], add_special_tokens=False)
    rows = [r for r in data.build(folder)[0] if train.group(r) == "safety"]
    examples = [train.Example(r, e) for r, e in zip(rows, encode([r.text for r in rows]))]
    hosts = [e.ids for e in examples if e.row.host and 40 <= len(e.ids)]
    for e in examples:
        if 1 in (e.row.jailbreak, e.row.injection) or rng.random() < HARMLESS:
            out.append(Window(train.cut(e, hosts, rng)[0], e.row.jailbreak, False))
    for e in encode(guarded.prompts(PROMPTS)):
        found = cuts(e.ids, 2, rng)
        if rng.random() < INSIDE:
            found.append((train.filler(hosts, rng.randint(20, 60), rng) + e.ids)[:ROWS])
        out += [Window(ids, 0, True) for ids in found]
    out += [Window(e.ids[:ROWS], 0, True) for e in encode(guarded.sentences(SENTENCES))]
    out += [Window(e.ids[-ROWS:], 1, False) for e in encode(guarded.turned(TURNED))]
    return out


class Tail(nn.Module):
    """The last layer of the task, from the features on."""

    def __init__(self, net: model.Bundle):
        super().__init__()
        self.layer = net.layers[-1].requires_grad_(False)
        copy = lambda side: nn.ParameterDict({p: nn.Parameter(getattr(net.adapters, side)[p][AT].detach().clone()) for p in PARTS})
        self.a, self.b, self.head = copy("a"), copy("b"), net.heads[TASK]

    def forward(self, first, context, mean):
        """Log-odds [batch] of first, context and mean, each [batch, hidden]."""
        tail = self.layer.rest(first, context, 0.0, lambda part, given, result: result + given @ self.a[part] @ self.b[part])
        z = self.head(torch.cat([tail, mean], -1), 0.0)
        return z[:, 1] - z[:, 0]


def features(sess, found: list[Window]) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """(first, context, mean) of windows, each [n, hidden], by the int8 graph."""
    first, context, mean = (np.zeros((len(found), model.HIDDEN), np.float32) for _ in range(3))
    order = sorted(range(len(found)), key=lambda i: len(found[i].ids))
    for at in range(0, len(order), 32):
        picked = order[at : at + 32]
        ids, mask = batches.pad([batches.wrap(found[i].ids) for i in picked])
        got = sess.run(["first", "context", "mean"], {"input_ids": ids.numpy(), "attention_mask": mask.numpy()})
        first[picked], context[picked], mean[picked] = got[0][:, 0, 0], got[1][:, AT, 0], got[2]
    return torch.from_numpy(first), torch.from_numpy(context), torch.from_numpy(mean)


def losses(z, old, label, new) -> torch.Tensor:
    """Cross-entropy of what is new, all of it harmless, and the distance of all else to the old log-odds; harmless rows may fall."""
    learnt = (F.softplus(z) * new).sum() / max(1, int(new.sum()))
    z, old = z.clamp(-REACH, REACH), old.clamp(-REACH, REACH)
    off = torch.where(label == 0, F.relu(z - old), (z - old).abs())
    held = torch.where(off < 1, 0.5 * off * off, off - 0.5) * ~new
    return learnt + held.mean()


def fit(tail: Tail, found: list[Window], read, log=print) -> None:
    """Train the tail and the head."""
    label, new = torch.tensor([w.label for w in found]), torch.tensor([w.new for w in found])
    with torch.no_grad():
        old = torch.cat([tail(*(x[at : at + 512] for x in read)) for at in range(0, len(found), 512)])
    opt = torch.optim.AdamW([p for p in tail.parameters() if p.requires_grad], lr=RATE, weight_decay=0.01)
    order, rng, steps, done = np.arange(len(found)), np.random.default_rng(ORDER), EPOCHS * (len(found) // BATCH), 0
    for epoch in range(EPOCHS):
        rng.shuffle(order)
        total = 0.0
        for start in range(0, len(order) - BATCH + 1, BATCH):
            for group in opt.param_groups:
                group["lr"] = RATE * min(1, (done + 1) / WARM) * (1 - done / steps)
            at = order[start : start + BATCH]
            loss = losses(tail(*(x[at] for x in read)), old[at], label[at], new[at])
            opt.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()
            done, total = done + 1, total + loss.item()
        log(f"epoch {epoch + 1}: loss {total / (len(order) // BATCH):.4f}")


def put(graph: onnx.ModelProto, tail: Tail) -> None:
    """Write the tail and the head into a graph of export.build in place of its own."""
    tensors = {x.name: x for x in graph.graph.initializer}

    def replace(name: str, at, new: torch.Tensor) -> None:
        value = numpy_helper.to_array(tensors[name]).copy()
        value[at] = new.detach().numpy()
        tensors[name].CopyFrom(numpy_helper.from_array(value, name))

    for part in PARTS:
        replace(f"adapters.{part}.a", AT, tail.a[part])
        replace(f"adapters.{part}.b", AT, tail.b[part])
    for name, layer in (("hidden", tail.head.hidden), ("logits", tail.head.logits)):
        replace(f"heads.{TASK}.{name}.weight", ..., layer.weight.T)
        replace(f"heads.{TASK}.{name}.bias", ..., layer.bias)


def main() -> None:
    here = Path(__file__).resolve().parent.parent
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--bundle", type=Path, required=True, help="folder of the bundle to start from: that of 3.2.0 for 3.3.0, which the bundle that is shipped has learnt already")
    parser.add_argument("--out", type=Path, default=here / "build" / "model_int8.onnx")
    args = parser.parse_args()
    torch.manual_seed(3)
    torch.set_num_threads(1)
    graph = onnx.load(args.bundle / "model_int8.onnx")
    net = model.Bundle(0.0).eval()
    net.load_state_dict(restore.checkpoint(graph)[0])
    sess = evaluate.session(export.build(net, "int8", restore.layers(graph), taps=True).SerializeToString())
    net.round(True)
    found = windows(args.data)
    print(f"{len(found)} windows, {sum(w.new for w in found)} of them new", flush=True)
    tail = Tail(net)
    fit(tail, found, features(sess, found))
    put(graph, tail)
    args.out.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(graph, args.out)


if __name__ == "__main__":
    main()
