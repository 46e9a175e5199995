"""Fine-tunes the NLI model on the CPU, bounded by processor time.

Start it with OMP_WAIT_POLICY=passive where other work runs: waiting threads that spin treble its time.
As in train.py: training as usual, then smoothing and clip limits from activation statistics, then
rounding simulated, so that the int8 graph computes what was trained. Rows of one length go together.
"""

from __future__ import annotations

import argparse
import random
import time
from collections import Counter
from pathlib import Path

import torch
import torch.nn.functional as F

from . import batches, model, nli_changes, nli_data, nli_facts, nli_model, nli_plain, nli_retold, nli_similar, quantise
from .train import BF16

SEED = 11
LONGEST = 160  # tokens of a training row
BATCH_TOKENS, BATCH_ROWS = 3072, 80
MEAN_EVERY = 4  # steps
TOKENS_WEIGHT = 0.5  # of the loss by token beside that by pair
TWINS_WEIGHT = 0.5  # of the loss of twins
LABELS_WEIGHT = 0.5  # of the labels of a pair that a teacher has read too
ROUND_FROM = 0.8  # share of the training after which rounding is simulated
# Of how many epochs' worth a source is in one: the sets made by rule are large and soon learnt.
SHARES = {"ext": 0.1, "para": 0.25, "near": 0.15, "neg": 0.2, "ent": 0.4, "ant": 0.4, "num": 0.6, "added": 0.4, "unneg": 1.0,
          "begin": 2.0, "faithdial_audit": 2.0, "wice": 1.0, "wice_tokens": 1.0, "negation_mnli": 1.5, "negation_snli": 1.5,
          "mnli_dev": 1.3, "snli_dev": 1.0, "conjnli_adv": 1.0, "own/facts": 0.5, "own/changes": 0.5,
          "same": 1.5, "own/plain": 0.75, "own/retold": 0.6}
# The same for weights that know the sets made by rule, and the claims about pages, already.
FURTHER = SHARES | {k: 0.4 * SHARES[k] for k in ("ext", "para", "near", "neg", "ent", "ant", "num", "added", "unneg", "own/facts", "own/changes")}
FURTHER |= {"wice": 0.3, "wice_tokens": 0.15}
OWN = {"facts": 30_000, "changes": 26_000, "plain": 40_000}  # rows


class Example:
    """A pair with its tokens, and for every token of the claim whether it is marked (-1: not known)."""

    def __init__(self, row: nli_data.Pair, premise, claim):
        nli_data.mark(row)
        self.row = row
        self.ids = nli_model.pair(premise.ids, claim.ids, LONGEST)
        self.start = self.ids.index(batches.SEP) + 1
        inside = len(self.ids) - 1 - self.start
        self.marks = None
        if row.marks is not None:
            hit = lambda spans, a, b: any(a < end and b > begin for begin, end in spans)
            self.marks = [-1.0 if hit(row.unknown or (), a, b) else float(hit(row.marks, a, b)) for a, b in claim.offsets[:inside]]


def pairs(folder: Path, further: bool = False, retold: Path | None = None) -> list[nli_data.Pair]:
    """The public pairs and those of this project; for a training `further` also claims in plain words, judged sentences and those of
    the file that nli_retold wrote."""
    out = nli_data.public(folder) + nli_facts.build(OWN["facts"]) + nli_changes.build(folder, OWN["changes"])
    if further:
        out += nli_plain.build(OWN["plain"]) + nli_similar.build(folder) + (nli_retold.read(retold) if retold else [])
    return out


def examples(rows: list[nli_data.Pair]) -> list[Example]:
    tok = batches.tokenizer()
    encode = lambda texts: tok.encode_batch([t[:4000] for t in texts], add_special_tokens=False)
    return [Example(*x) for x in zip(rows, encode([r.premise for r in rows]), encode([r.claim for r in rows]))]


def targets(picked: list[Example], width: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """(may [batch, 3] bool, marks [batch, width], known [batch, width])."""
    may = torch.tensor([[i in e.row.may for i in range(3)] for e in picked])
    marks, known = torch.zeros(len(picked), width), torch.zeros(len(picked), width)
    for n, e in enumerate(picked):
        if e.marks is not None:
            found = torch.tensor(e.marks)
            marks[n, e.start : e.start + len(e.marks)] = found.clamp(min=0)
            known[n, e.start : e.start + len(e.marks)] = (found >= 0).float()
    return may, marks, known


def pair_losses(logits: torch.Tensor, may: torch.Tensor, smoothing: float = 0.03) -> torch.Tensor:
    """Of every row the cross-entropy of the set of labels that may hold, some of it spread over all labels; 0 where all may."""
    logp = F.log_softmax(logits, -1)
    right = torch.logsumexp(logp.masked_fill(~may, -1e9), -1)
    return torch.where(may.all(-1), 0.0, -((1 - smoothing) * right + smoothing * logp.mean(-1)))


def taught_loss(logits: torch.Tensor, rows: list[nli_data.Pair]) -> tuple[torch.Tensor, torch.Tensor]:
    """(mean over the rows of the divergence from what a teacher said, weight of the labels of every row)."""
    taught = torch.tensor([r.taught is not None for r in rows])
    said = torch.tensor([r.taught or [0.0, 0.0, 0.0] for r in rows]).log_softmax(-1)
    apart = F.kl_div(logits.log_softmax(-1), said, reduction="none", log_target=True).sum(-1)
    return torch.where(taught, apart, 0.0).mean(), torch.where(taught, LABELS_WEIGHT, 1.0)


def twin_loss(logits: torch.Tensor, rows: list[nli_data.Pair]) -> torch.Tensor:
    """How little more the true one of two neighbouring twins is entailed than the false one."""
    seconds = [i for i in range(1, len(rows)) if nli_data.twins(rows[i - 1], rows[i])]
    odds = logits[:, 0] - torch.logsumexp(logits[:, 1:], -1)
    more = [odds[i] - odds[i - 1] if rows[i].may == nli_data.SURE["entailment"] else odds[i - 1] - odds[i] for i in seconds]
    return F.softplus(-torch.stack(more)).sum() / len(rows) if more else logits.new_zeros(())


def token_loss(scores: torch.Tensor, marks: torch.Tensor, known: torch.Tensor) -> torch.Tensor:
    each = F.binary_cross_entropy_with_logits(scores, marks, pos_weight=torch.tensor(4.0), reduction="none")
    return (each * known).sum() / known.sum().clamp(min=64)


def calibrate(net: nli_model.Pair, rows: list[list[int]]) -> None:
    """Set smoothing and limits from the activations of some rows."""
    net.eval()
    with torch.no_grad():
        for name, s in quantise.collect(net, rows).items():
            layer = net.get_submodule(name)
            smooth, limit = quantise.smoothing(layer.weight.detach().numpy(), s)
            layer.smooth.copy_(torch.from_numpy(smooth))
            layer.limit.fill_(limit)
    net.train()


def groups(net: nli_model.Pair, trunk: float, heads: float, decay: float) -> list[dict]:
    """Parameter groups with a learning rate that falls towards the embedding."""
    buckets: dict[tuple, list] = {}
    for name, parameter in net.named_parameters():
        if not parameter.requires_grad:
            continue
        if name.startswith("layers."):
            rate = trunk * decay ** (model.LAYERS - 1 - int(name.split(".")[1]))
        elif name.startswith(("hidden.", "logits.", "tokens.")):
            rate = heads
        else:
            rate = trunk * decay**model.LAYERS
        buckets.setdefault((rate, 0.01 if parameter.dim() > 1 else 0.0), []).append(parameter)
    return [{"params": p, "lr": rate, "base": rate, "weight_decay": d} for (rate, d), p in buckets.items()]


class Mean:
    """A running mean of the weights, which is what is kept."""

    def __init__(self, net: nli_model.Pair, keep: float):
        self.keep, self.steps = keep, 0
        self.parameters = {n: p for n, p in net.named_parameters() if p.requires_grad}
        self.state = {n: p.detach().clone() for n, p in self.parameters.items()}

    def add(self) -> None:
        self.steps += 1
        share = 1 - min(self.keep, self.steps / (self.steps + 10))
        torch._foreach_lerp_(list(self.state.values()), [p.detach() for p in self.parameters.values()], share)

    def save(self, net: nli_model.Pair, path: Path) -> None:
        torch.save(net.state_dict() | self.state, path)


def train(rows: list[nli_data.Pair], out: Path, minutes: float, start_from: Path | None = None, rounding: bool = True,
          rate: float = 1.2e-4, floor: float = 0.0, threads: int = 2, log_every: int = 25, round_from: float = ROUND_FROM, rest: float = 1.0, shares: dict[str, float] = SHARES) -> None:
    """Train for some minutes on pairs that are not held out, from `start_from` or the base weights, and write
    the mean of the last weights to `out`. The rate falls to `floor` of what it was; rounding from the share `round_from` on.
    An epoch has `rest` of what `shares` says of the sources that are not about pages."""
    torch.manual_seed(SEED)
    torch.set_num_threads(threads)
    rng = random.Random(SEED + (1 if start_from else 0))
    known = examples([r for r in rows if not nli_data.held_out(r)])
    net = nli_model.load(start_from, 0.1) if start_from else nli_model.from_base(0.1)
    net.words.requires_grad_(False)  # few rows of it are in any batch, and its share of a step would be a quarter
    net.train()
    opt = torch.optim.AdamW(groups(net, rate, 5 * rate if not start_from else 2 * rate, 0.9), betas=(0.9, 0.98), eps=1e-6, fused=True)
    clock = lambda: time.process_time() / threads  # a paused or crowded training loses nothing
    mean, sums, steps, seen, rounded, start = Mean(net, 0.95), Counter(), 0, 0, False, clock()
    print(f"{len(known)} rows to train on", flush=True)
    while True:
        order = nli_data.mix([e.row for e in known], shares, rng, lambda r: 1.0 if r.root else rest)
        with_last = [n > 0 and nli_data.twins(known[order[n - 1]].row, known[i].row) for n, i in enumerate(order)]
        for batch in batches.by_length([len(known[i].ids) for i in order], BATCH_TOKENS, BATCH_ROWS, rng, with_last):
            progress = (clock() - start) / 60 / minutes
            if progress >= 1:
                mean.save(net, out)
                print(f"trained {steps} steps, {seen} pairs in {(clock() - start) / 60:.1f} minutes", flush=True)
                return
            if rounding and not rounded and progress >= round_from:
                calibrate(net, [known[i].ids for i in rng.sample(range(len(known)), 300)])
                mean.steps, rounded = 0, True
            for group in opt.param_groups:
                group["lr"] = group["base"] * min(1.0, (steps + 1) / 60) * (floor + (1 - floor) * (1 - progress))
            picked = [known[order[i]] for i in batch]
            x, mask = batches.pad([e.ids for e in picked])
            may, marks, sure = targets(picked, x.shape[1])
            exact = None
            with torch.autocast("cpu", torch.bfloat16, enabled=BF16):
                if rounded and steps % 3 == 0:
                    net.round(False)
                    with torch.no_grad():
                        exact = net.eval()(x, mask)[0].float()
                    net.train()
                net.round(rounded)
                logits, scores = net(x, mask)
            apart, weight = taught_loss(logits.float(), [e.row for e in picked])
            loss = (weight * pair_losses(logits.float(), may)).mean() + apart
            by_token = token_loss(scores.float(), marks, sure)
            sums["pair"] += loss.item()
            sums["token"] += by_token.item()
            sums["right"] += may[torch.arange(len(may)), logits.argmax(-1)].float().mean().item()
            by_twin = twin_loss(logits.float(), [e.row for e in picked])
            sums["twin"] += by_twin.item()
            loss = loss + TOKENS_WEIGHT * by_token + TWINS_WEIGHT * by_twin
            if exact is not None:
                loss = loss + 0.5 * F.mse_loss(logits.float(), exact)
            opt.zero_grad(set_to_none=True)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(mean.parameters.values(), 1.0)
            opt.step()
            steps, seen = steps + 1, seen + len(picked)
            if steps % MEAN_EVERY == 0:
                mean.add()
            if steps % log_every == 0:
                print(f"step {steps} {seen} pairs {(clock() - start) / 60:.1f} min  " + " ".join(f"{k} {v / log_every:.4f}" for k, v in sums.items()), flush=True)
                sums.clear()
            if steps % 100 == 0:
                mean.save(net, out)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--out", type=Path, default=Path("build/nli.pt"))
    parser.add_argument("--minutes", type=float, default=50)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--start-from", type=Path, help="go on from these weights")
    parser.add_argument("--further", action="store_true", help="the weights know the sets made by rule: fewer of these, and claims in plain words")
    parser.add_argument("--retold", type=Path, help="pairs of nli_retold, with --further")
    parser.add_argument("--rate", type=float, default=1.2e-4)
    parser.add_argument("--floor", type=float, default=0.0, help="of the rate, at the end")
    parser.add_argument("--without", nargs="+", default=[], help="leave out the sources that begin so")
    parser.add_argument("--round-from", type=float, default=ROUND_FROM, help="share of the training after which rounding is simulated")
    parser.add_argument("--rest", type=float, default=1.0, help="of the sources that are not about pages, in an epoch")
    parser.add_argument("--no-rounding", action="store_true", help="leave int8 to a later training")
    args = parser.parse_args()
    args.out.parent.mkdir(parents=True, exist_ok=True)
    rows = [r for r in pairs(args.data, args.further, args.retold) if not r.src.startswith(tuple(args.without))]
    train(rows, args.out, args.minutes, args.start_from, not args.no_rounding, args.rate, args.floor, args.threads, round_from=args.round_from, rest=args.rest,
          shares=FURTHER if args.further else SHARES)


if __name__ == "__main__":
    main()
