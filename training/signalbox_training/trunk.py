"""The whole trunk and every head, trained on from a bundle (3.6.0).

What differs from `train`: rows and the windows of `tails` together, each batch read twice with dropout in the trunk, where both
readings should say the same (R-Drop, https://arxiv.org/abs/2106.14448, eq. 3), and sources that weigh by the root of their size,
so that a large collection of one form does not decide what an attack looks like. In the last part rounding is simulated, without
dropout. The limits of the int8 layers stay as they are.

    python -m signalbox_training.trunk --bundle FOLDER --books FILE --minutes 60 [--seed 21] [--out build/trunk.pt]

`mean` takes the mean of several such runs, and three quarters of the way there from the bundle:

    python -m signalbox_training.trunk --bundle FOLDER --mean A.pt B.pt [--way 0.75] [--out build/checkpoint.pt]

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

from . import batches, books, data, evaluate, model, restore, tails, train

RATES = (8e-5, 5e-4)  # of the trunk, falling towards the embedding, and of the heads
DECAY, WARM = 0.88, 100
DROP = 0.1
TOKENS, LARGEST = 3072, 384  # of a batch
ROUND_FROM = 0.86
HELD, NEAR, JUDGED = 6, 12, 24  # steps from one loss of the embedding to the next
ASTRAY = 0.5  # weight of the difference of the two readings
LEAST, MOST = 0.15, 8.0  # what a row counts at least and at most, in means
WAY = 0.75
ALIGNED, RIDGE = 14000, 0.003  # rows of the training that the embedding is aligned on
USERS, WORLD, PIECES, OTHERS, MADE = 6.0, 0.25, 0.35, 0.6, 0.4  # how often an epoch reads a row: see `epoch`
PROMPTS, ENCODED, GUARDS = 1.5, 2.0, 1.0  # the same, of system prompts, of encoded texts and of windows of `guarded`
SHARES = {"domain": 8000, "pii": 6000, "grade": 3200, "distil": 800}  # rows of an epoch of the other groups
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
    """The symmetric KL divergence of two readings, of all sequence tasks, mean over rows."""
    total = torch.zeros(())
    for task in model.SEQUENCE:
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


def epoch(rows: list[data.Row], rng: random.Random) -> list[int]:
    """The rows of an epoch that goes on from weights which know most of them: the texts of `users_*` six times, of the others
    about attacks a part, least of those in other languages, which a bundle of their own reads. 3.6.0 had `train.epoch`."""
    groups: dict[str, list[int]] = {}
    for i, r in enumerate(rows):
        groups.setdefault(train.group(r), []).append(i)
    picked = []
    for i in groups.pop("safety", []):
        often = share(rows[i].src)
        picked += [i] * (int(often) + (rng.random() < often % 1))
    for name, members in groups.items():
        picked += rng.sample(members, min(len(members), SHARES[name]))
    return picked


def windows(folder: Path, file: Path, leave_out: dict) -> tuple[list[data.Row], list[list[int]]]:
    """The windows of `tails` beside the rows of the training, as rows without text, and their tokens."""
    make = tails.Maker(folder, "orders", leave_out)
    kinds = {"guards": make.guards(), "readers": make.readers(), "orders": make.orders()}
    kinds["books"] = sum((make.book(b.text) for b in books.read(file) if not b.kept), [])
    rows, ids = [], []
    for name, found in kinds.items():
        rows += [data.Row("", src=f"new/{name}", jailbreak=w.labels[0], injection=w.labels[1]) for w in found]
        ids += [w.ids for w in found]
    return rows, ids


def fit(folder: Path, bundle: Path, file: Path, out: Path, minutes: float, seed: int, leave_out: dict) -> None:
    """Train for some minutes from the first step on, and write the weights."""
    torch.manual_seed(seed)
    rng = random.Random(seed)
    rows, _ = data.build(folder, leave_out)
    rows += [data.Row(t, src="distil") for t in train.distil_rows(folder, 6000)]
    tok = batches.tokenizer()
    examples = [train.Example(r, e) for r, e in zip(rows, tok.encode_batch([r.text[:6000] for r in rows], add_special_tokens=False))]
    hosts = [e.ids for e in examples if e.row.host and 40 <= len(e.ids)]
    more, fixed = windows(folder, file, leave_out)
    net, teacher = model.Bundle(DROP), model.from_base(0.0).eval()
    net.load_state_dict(restore.checkpoint(onnx.load(bundle / "model_int8.onnx"))[0])
    for name, parameter in net.named_parameters():
        parameter.requires_grad_(not name.startswith(("words.", "metric.", "spots.")))
    net.train()
    net.round(False)
    net.deep, rounded = DROP, False
    opt = torch.optim.AdamW(train.groups(net, *RATES, DECAY), betas=(0.9, 0.98), eps=1e-6, fused=True)
    params = [p for p in net.parameters() if p.requires_grad]
    slow = [p.detach().clone() for p in params]
    losses, near = Losses(rows + more), train.Neighbours(folder, tok, rng)
    steps, start = 0, time.time()
    cast = lambda: torch.autocast("cpu", torch.bfloat16, enabled=train.BF16)
    while True:
        drawn = [(rows[i], *train.cut(examples[i], hosts, rng)) for i in epoch(rows, rng)]
        drawn += [(r, ids, None) for r, ids in zip(more, fixed) if rng.random() < (GUARDS if r.src == "new/guards" else MADE)]
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
            x, mask = batches.pad([batches.wrap(drawn[i][1]) for i in batch])
            picked, labels = [drawn[i][0] for i in batch], torch.full(x.shape, train.EMPTY)
            for n, i in enumerate(batch):
                if drawn[i][2] is not None:
                    labels[n, 1 : 1 + len(drawn[i][2])] = torch.tensor(drawn[i][2])
            with cast():
                net.round(rounded)
                result = {k: v.float() for k, v in net(x, mask).items()}
                net.round(False)
                other = {k: v.float() for k, v in net(x, mask).items()}  # once rounded, without rounding
            loss = losses(result, picked, labels)
            if rounded:
                gap = sum(F.mse_loss(result[t], other[t]) for t in model.SEQUENCE)
                loss = loss + train.GAP * losses.add("rounding", gap)
            else:
                loss = 0.5 * (loss + losses(other, picked, labels)) + ASTRAY * losses.add("apart", apart(result, other))
            if steps % HELD == 0:
                with cast(), torch.no_grad():
                    target = teacher(x, mask)["embedding"].float()
                loss = loss + 4.0 * losses.add("embedding", train.held_to_base(result["embedding"], target))
            if steps % NEAR == 1:
                loss = loss + 0.8 * losses.add("intent", sum(near.same_intent(net) for _ in range(4)) / 4)
            if steps % JUDGED == 2:
                loss = loss + 0.8 * losses.add("judged", sum(near.judged(net) for _ in range(4)) / 4)
            opt.zero_grad(set_to_none=True)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(params, 1.0)
            opt.step()
            steps += 1
            with torch.no_grad():
                torch._foreach_lerp_(slow, params, 1 - min(SLOW, (1 + steps) / (10 + steps)))
            if steps % 50 == 0:
                print(f"step {steps} {(time.time() - start) / 60:.1f} min  {losses.log()}", flush=True)


def mean(bundle: Path, runs: list[Path], way: float, out: Path) -> None:
    """Part of the way from the bundle to the mean of some runs."""
    state = restore.checkpoint(onnx.load(bundle / "model_int8.onnx"))[0]
    found = [torch.load(r) for r in runs]
    for name, old in state.items():
        if not name.startswith("words.") and not name.endswith((".smooth", ".limit")):
            state[name] = old.lerp(sum(f[name] for f in found) / len(found), way)
    torch.save(state, out)


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
    parser.add_argument("--bundle", type=Path, required=True, help="folder of the bundle to start from: that of 3.5.0")
    parser.add_argument("--books", type=Path, help="file of `books`")
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=21)
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
    elif args.books:
        fit(args.data, args.bundle, args.books, args.out, args.minutes, args.seed, {"jailbreak": tuple(args.leave_out)})
    else:
        parser.error("give --books to train, --mean or --align")


if __name__ == "__main__":
    main()
