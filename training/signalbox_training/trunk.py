"""The upper layers of the trunk, the tails of both tasks about attacks and the spots, trained on together from a bundle.

What differs from `train`: rows of attacks and the windows of `tails` and `spots` alone are learnt, each batch read twice with
dropout in the trunk, where both readings should say the same (R-Drop, https://arxiv.org/abs/2106.14448, eq. 3), and sources weigh
by the root of their size, so that a large collection of one form does not decide what an attack looks like. What the other
tasks and the embedding say is held to what the bundle says, and the lowest layers stay, so that they are read once a step. In the
last part rounding is simulated, without dropout. The limits of the int8 layers stay as they are. (3.6.0 and 3.7.0 learnt
all tasks and layers from their rows.)

    python -m signalbox_training.trunk --bundle FOLDER --books FILE --guides FILE --minutes 56 [--seed 31] [--out build/trunk.pt]

`mean` takes the mean of several such runs, and a part of the way there from the bundle, and writes the graph:

    python -m signalbox_training.trunk --bundle FOLDER --mean A.pt B.pt [--way 0.75] [--out build/model_int8.onnx]

`align` maps the embedding of a graph onto that of the bundle, so that stored ones and thresholds keep their meaning:

    python -m signalbox_training.trunk --bundle FOLDER --align NEW.onnx [--out build/model_int8.onnx]
"""

from __future__ import annotations

import argparse
import random
import time
from collections import Counter
from pathlib import Path

import numpy as np
import onnx
import torch
import torch.nn.functional as F
from onnx import numpy_helper

from . import batches, books, data, evaluate, export, guides, model, restore, spots, tails, train

RATES = (8e-5, 5e-4)  # of the trunk, falling towards the embedding, and of the heads
DECAY, WARM = 0.88, 100
DROP = 0.1
STAYS = 2  # layers, from the lowest
TOKENS, LARGEST = 3072, 384  # of a batch
ROUND_FROM = 0.84
ASTRAY = 0.5  # weight of the difference of the two readings
HELD = {"domain": 1.5, "complexity": 1.5, "factcheck": 1.5, "pii": 3.0, "embedding": 4.0}  # weights of what is held to the bundle
ALONE, TOKEN = 0.3, 0.8  # weights of the spots' word for the text, and of each token's
LEAST, MOST = 0.15, 8.0  # what a row counts at least and at most, in means
WAY = 0.75
ALIGNED, RIDGE = 14000, 0.003  # rows of the training that the embedding is aligned on
USERS, WORLD, PIECES, OTHERS = 6.0, 0.25, 0.35, 0.6  # how often a row is drawn: see `share`
PROMPTS, ENCODED = 1.5, 2.0  # the same, of system prompts and of encoded texts
# What a part of an epoch has, drawn anew: rows of attacks, of spots, windows of tails, and rows on which the others are held.
KNOWN, SPOTS, AGENTS = 1500, 1167, 1167
WINDOWS = {"guards": 250, "readers": 116, "orders": 416, "asked": 150, "forms": 250, "wraps": 250, "talk": 300, "pages": 250, "books": 250}
OTHER = {"domain": 583, "pii": 416, "grade": 250, "distil": 66}
SLOW = 0.998  # of the running mean of the weights, which is what is kept


def source(row: data.Row) -> str:
    """The collection of a row; of our own texts the kind."""
    parts = row.src.split("+")[0].split("/")
    return "/".join(parts[:3] if parts[0] == "own" and parts[1:2] != ["jailbreak"] else parts[:2])


class Losses(train.Losses):
    """The losses of `train`, a source counting by the root of its size, among attacks and among the others."""

    def __init__(self, rows: list[data.Row]):
        super().__init__(rows)
        judged = [r for r in rows if max(r.jailbreak, r.injection) >= 0]
        count = Counter(map(self.key, judged))
        self.each: dict[tuple, float] = {}
        for attack in (False, True):
            sizes = {k: n for k, n in count.items() if k[1] == attack}
            mean = sum(n**0.5 for n in sizes.values()) / max(1, sum(sizes.values()))
            weight = {k: float(np.clip(n**-0.5 / mean, LEAST, MOST)) for k, n in sizes.items()}
            mean = sum(weight[k] * n for k, n in sizes.items()) / max(1, sum(sizes.values()))
            self.each |= {k: w / mean for k, w in weight.items()}

    @staticmethod
    def key(row: data.Row) -> tuple[str, bool]:
        return source(row), 1 in (row.jailbreak, row.injection)

    def weights(self, rows):
        return torch.tensor([self.each.get(self.key(r), 1.0) for r in rows])


def apart(a: dict, b: dict) -> torch.Tensor:
    """The symmetric KL divergence of two readings of some tasks, mean over rows."""
    total = torch.zeros(())
    for task in a:
        p, q = F.log_softmax(a[task], -1), F.log_softmax(b[task], -1)
        total = total + ((p.exp() - q.exp()) * (p - q)).sum(-1).mean()
    return total


def share(src: str) -> float:
    """How often an epoch reads a row about attacks of a source."""
    if src.startswith("own/user/"):
        return USERS
    if src in ("doc/prompts", "doc/system prompts and templates") or src.startswith("fabric/"):
        return PROMPTS
    if src.startswith("own_encoded") or "+spaced" in src:
        return ENCODED
    return WORLD if src.startswith("own/world/") else PIECES if src.startswith("doc/") else OTHERS


Given = tuple[data.Row, list[int], tuple[int, int] | None]  # what is known of a window, its tokens, those of an order where known


class Mix:
    """All that is learnt and held; `draw` gives a part of an epoch."""

    def __init__(self, folder: Path, file: Path, written: Path, leave_out: dict, rng: random.Random):
        self.rng, tok = rng, batches.tokenizer()
        rows = data.build(folder, leave_out)[0] + [data.Row(t, src="distil") for t in train.distil_rows(folder, 6000)]
        self.examples = [train.Example(r, e) for r, e in zip(rows, tok.encode_batch([r.text[:6000] for r in rows], add_special_tokens=False))]
        self.hosts = [e.ids for e in self.examples if e.row.host and 40 <= len(e.ids)]
        self.groups: dict[str, list[train.Example]] = {}
        for e in self.examples:
            self.groups.setdefault(train.group(e.row), []).append(e)
        self.known = self.groups.pop("safety")
        self.often = [share(e.row.src) for e in self.known]
        pages = guides.read(written, "pages")
        found = spots.examples(folder, pages)
        self.spots: list[Given] = [(data.Row("", src="new/spots", injection=e.injection, jailbreak=data.NONE if e.injection else 0), e.ids, e.span) for e in found]
        make = tails.Maker(folder, "material", leave_out)
        kinds = {name: getattr(make, name)() for name in ("guards", "readers", "orders", "asked", "forms", "talk")}
        kinds["wraps"], kinds["pages"] = make.wraps(guides.read(written, *tails.PARTS_READ["wraps"])), make.pages(pages)
        kinds["books"] = sum((make.book(b.text) for b in books.read(file) if not b.kept), [])
        self.windows: dict[str, list[Given]] = {
            name: [(data.Row("", src="new/" + name, jailbreak=w.labels[0], injection=w.labels[1]), w.ids, None) for w in found] for name, found in kinds.items()
        }

    def rows(self) -> list[data.Row]:
        return [e.row for e in self.examples] + [g[0] for found in (self.spots, *self.windows.values()) for g in found]

    def cut(self, e: train.Example) -> Given:
        return e.row, train.cut(e, self.hosts, self.rng)[0], None

    def draw(self) -> list[Given]:
        out = [self.cut(e) for e in self.rng.choices(self.known, self.often, k=KNOWN)] + self.rng.sample(self.spots, SPOTS)
        for name, count in WINDOWS.items():
            out += self.rng.choices(self.windows[name], k=count)
        for name, count in OTHER.items():
            out += [self.cut(e) for e in self.rng.sample(self.groups[name], count)]
        return [g for g in out if g[1]]


class Objective(Losses):
    """What is learnt of the tasks about attacks, and what is held of all else."""

    def __call__(self, out: dict, held: dict, rows: list[data.Row], want, mask) -> torch.Tensor:
        """want [batch, seq] says of each token whether it is one of an order, -1 where that is not known; held is what the bundle
        says."""
        total = torch.zeros(())
        for task in model.ATTACKS:
            label = torch.tensor([y if (y := getattr(r, task)) >= 0 else train.EMPTY for r in rows])
            weight = self.weights(rows) * (label != train.EMPTY)
            each = F.cross_entropy(out[task], label, weight=torch.tensor([1.0, 1.5]), reduction="none", ignore_index=train.EMPTY, label_smoothing=0.02)
            total = total + self.add(task, (each * weight).sum() / weight.sum().clamp(min=8))
        pooled = model.Spots.pooled(out["tokens"], mask)
        each = F.binary_cross_entropy_with_logits(pooled, label.clamp(min=0).float(), reduction="none")
        total = total + ALONE * self.add("pooled", (each * weight).sum() / weight.sum().clamp(min=8))
        known = want >= 0
        each = F.binary_cross_entropy_with_logits(out["tokens"], want.clamp(min=0), reduction="none")
        total = total + TOKEN * self.add("tokens", (each * known).sum() / known.sum().clamp(min=1))
        for task in ("domain", "complexity", "factcheck", "pii"):
            p = F.log_softmax(held[task], -1)
            apart = (p.exp() * (p - F.log_softmax(out[task], -1))).sum(-1)
            mean = (apart * mask).sum() / mask.sum() if task == "pii" else apart.mean()
            total = total + HELD[task] * self.add(task, mean)
        return total + HELD["embedding"] * self.add("embedding", train.held_to_base(out["embedding"], held["embedding"]))


def fit(folder: Path, bundle: Path, file: Path, written: Path, out: Path, minutes: float, seed: int, leave_out: dict) -> None:
    """Train for some minutes from the first step on, and write the weights."""
    torch.manual_seed(seed)
    rng = random.Random(seed)
    mix = Mix(folder, file, written, leave_out, rng)
    net, old = model.Bundle(DROP), model.Bundle(0.0).eval()
    for n in (net, old):
        n.load_state_dict(restore.checkpoint(onnx.load(bundle / "model_int8.onnx"))[0])
    stays = ("words.", "positions.", "ln.", "metric.", "spots.mix", *(f"layers.{i}." for i in range(STAYS)))
    for name, parameter in net.named_parameters():
        parameter.requires_grad_(not name.startswith(stays))
    net.train()
    net.round(False)
    net.deep, rounded = DROP, False
    opt = torch.optim.AdamW(train.groups(net, *RATES, DECAY), betas=(0.9, 0.98), eps=1e-6, fused=True)
    params = [p for p in net.parameters() if p.requires_grad]
    slow = [p.detach().clone() for p in params]
    losses, steps, start = Objective(mix.rows()), 0, time.time()
    while True:
        drawn = mix.draw()
        for batch in batches.by_length([len(d[1]) + 2 for d in drawn], TOKENS, LARGEST, rng):
            progress = (time.time() - start) / 60 / minutes
            if progress >= 1:
                with torch.no_grad():
                    for p, kept in zip(params, slow):
                        p.copy_(kept)
                torch.save(net.state_dict(), out)
                print(f"trained {steps} steps in {(time.time() - start) / 60:.1f} minutes", flush=True)
                return
            if not rounded and progress >= ROUND_FROM:
                net.eval()
                rounded = True
            for group in opt.param_groups:
                group["lr"] = group["base"] * min(1.0, (steps + 1) / WARM) * (1 - progress)
            loss = _step(net, old, losses, [drawn[i] for i in batch], rounded)
            opt.zero_grad(set_to_none=True)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(params, 1.0)
            opt.step()
            steps += 1
            with torch.no_grad():
                torch._foreach_lerp_(slow, params, 1 - min(SLOW, (1 + steps) / (10 + steps)))
            if steps % 50 == 0:
                print(f"step {steps} {(time.time() - start) / 60:.1f} min  {losses.log()}", flush=True)


def _step(net: model.Bundle, old: model.Bundle, losses: Objective, picked: list[Given], rounded: bool) -> torch.Tensor:
    """The loss of a batch, read twice: with dropout, or with and without rounding."""
    x, mask = batches.pad([batches.wrap(ids) for _, ids, _ in picked])
    rows, want = [row for row, _, _ in picked], torch.full(x.shape, -1.0)
    for n, (row, ids, span) in enumerate(picked):
        if span or row.injection == 0:
            want[n, : len(ids) + 2] = 0
        if span:
            want[n, 1 + span[0] : 1 + span[1]] = 1
    with torch.autocast("cpu", torch.bfloat16, enabled=train.BF16):
        with torch.no_grad():
            low = old.below(x, mask, STAYS)
            held = _floats(old.above(low, mask, STAYS))
        net.round(rounded)
        one = _floats(net.above(net.below(x, mask, STAYS) if rounded else low, mask, STAYS))
        net.round(False)
        other = _floats(net.above(low, mask, STAYS))
    loss = losses(one, held, rows, want, mask)
    if rounded:
        return loss + train.GAP * losses.add("rounding", sum(F.mse_loss(one[t], other[t]) for t in model.SEQUENCE))
    between = apart({t: one[t] for t in model.ATTACKS}, {t: other[t] for t in model.ATTACKS})
    return 0.5 * (loss + losses(other, held, rows, want, mask)) + ASTRAY * losses.add("apart", between)


def _floats(out: dict) -> dict:
    return {k: v.float() for k, v in out.items()}


def mean(bundle: Path, runs: list[Path], way: float, out: Path) -> None:
    """Part of the way from the bundle to the mean of some runs, in the bundle's graph. What stays keeps its bytes: a layer that
    is rounded anew differs in the last digit of its step."""
    graph = onnx.load(bundle / "model_int8.onnx")
    state, net = restore.checkpoint(graph)[0], model.Bundle(0.0).eval()
    found = [torch.load(r) for r in runs]
    for name, old in state.items():
        if not name.startswith("words.") and not name.endswith((".smooth", ".limit")):
            state[name] = old.lerp(sum(f[name] for f in found) / len(found), way)
    net.load_state_dict(state)
    made = {t.name: t for t in export.build(net, "int8", restore.layers(graph)).graph.initializer}
    stays = ("words.", "positions", "ln.", *(f"layers.{i}." for i in range(STAYS)))
    for tensor in graph.graph.initializer:
        if tensor.name in made and not tensor.name.startswith(stays) and not tensor.name.endswith((".step", ".middle")):
            tensor.CopyFrom(made[tensor.name])
    onnx.save(graph, out)


def embeddings(graph: Path, rows: list[list[int]]) -> np.ndarray:
    """The embedding [rows, hidden] of each row, by an int8 graph."""
    sess, out = evaluate.session(graph), np.zeros((len(rows), model.HIDDEN), np.float32)
    order = sorted(range(len(rows)), key=lambda i: len(rows[i]))
    for start in range(0, len(order), 16):
        at = order[start : start + 16]
        ids, mask = batches.pad([rows[i] for i in at])
        out[at] = sess.run(["embedding"], {"input_ids": ids.numpy(), "attention_mask": mask.numpy()})[0]
    return out


def align(folder: Path, bundle: Path, new: Path, out: Path) -> None:
    """Put the map of the new embedding onto the bundle's into the graph's own matrix, the bundle's times it: ridge regression on
    nine tenths of some texts; the cosine of both embeddings on the others is told."""
    rng, tok = random.Random(4), batches.tokenizer()
    texts = rng.sample([r.text for r in data.build(folder)[0] if r.text], ALIGNED) + train.distil_rows(folder, 6000)
    rows = [batches.wrap(x[: train.TRAIN_TOKENS - 2]) for x in batches.content(tok, [t[:1500] for t in texts])]
    got, want = embeddings(new, rows), embeddings(bundle / "model_int8.onnx", rows)
    order = rng.sample(range(len(rows)), len(rows))
    fitted, told = order[: len(rows) * 9 // 10], order[len(rows) * 9 // 10 :]
    x, y, ridge = got[fitted], want[fitted], RIDGE * np.eye(model.HIDDEN)
    turn = np.linalg.solve(x.T @ x + ridge, x.T @ y + ridge)
    after = got[told] @ turn
    after /= np.linalg.norm(after, axis=1, keepdims=True)
    print(f"cosine before {(got[told] * want[told]).sum(1).mean():.4f}, after {(after * want[told]).sum(1).mean():.4f}", flush=True)
    matrix = lambda g: next(t for t in g.graph.initializer if t.name == "metric")
    graph, old = onnx.load(new), numpy_helper.to_array(matrix(onnx.load(bundle / "model_int8.onnx")))
    matrix(graph).CopyFrom(numpy_helper.from_array((old @ turn).astype(np.float32), "metric"))
    onnx.save(graph, out)


def main() -> None:
    here = Path(__file__).resolve().parent.parent
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--bundle", type=Path, required=True, help="folder of the bundle to start from: that of 3.12.0")
    parser.add_argument("--books", type=Path, help="file of `books`")
    parser.add_argument("--guides", type=Path, help="what guides.py wrote")
    parser.add_argument("--minutes", type=float, default=56.0)
    parser.add_argument("--seed", type=int, default=31)
    parser.add_argument("--threads", type=int, default=1, help="two runs of one thread do twice as much as one of two")
    parser.add_argument("--mean", type=Path, nargs="+", help="runs to take the mean of, instead of training")
    parser.add_argument("--align", type=Path, help="graph whose embedding is mapped onto the bundle's, instead of training")
    parser.add_argument("--leave-out", nargs="*", default=[], help="prefixes of sources of attacks that are not learnt from, for `heldout`")
    parser.add_argument("--way", type=float, default=WAY)
    parser.add_argument("--out", type=Path, default=here / "build" / "trunk.pt")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    args.out.parent.mkdir(parents=True, exist_ok=True)
    if args.mean:
        mean(args.bundle, args.mean, args.way, args.out)
    elif args.align:
        align(args.data, args.bundle, args.align, args.out)
    elif args.books and args.guides:
        fit(args.data, args.bundle, args.books, args.guides, args.out, args.minutes, args.seed, {"jailbreak": tuple(args.leave_out)})
    else:
        parser.error("give --books and --guides to train, --mean or --align")


if __name__ == "__main__":
    main()
