"""Fine-tunes the trunk and the heads on the CPU (bf16 matrix products where the CPU has them)."""

from __future__ import annotations

import argparse
import random
import time
from pathlib import Path

import torch
import torch.nn.functional as F

from . import batches, data, model

SEED = 7
TRAIN_TOKENS = 144  # longest training row; the positions up to the window length keep their base values
EMPTY = -100


def crop(ids: list[int], row: data.Row, rng: random.Random) -> list[int]:
    """Cut a long text: mostly its start; for jailbreak rows also its end or middle."""
    size = TRAIN_TOKENS - 2
    if len(ids) <= size:
        return ids
    if row.domain == data.NONE and row.jailbreak != data.NONE:
        draw = rng.random()
        if row.src.startswith("own/") or (row.jailbreak == 1 and row.src.startswith("syn/injection")):
            return ids[:size] if draw < 0.1 else ids[-size:]
        if draw < 0.15 or (row.jailbreak == 0 and draw < 0.5):
            start = rng.randrange(len(ids) - size + 1)
            return ids[start : start + size]
    return ids[:size]


def groups(net: model.Bundle, trunk: float, heads: float, decay: float) -> list[dict]:
    """Parameter groups with a learning rate that falls towards the embedding."""
    def rate(name: str) -> float:
        if name.startswith(("domain.", "jailbreak.")):
            return heads
        if name.startswith("layers."):
            return trunk * decay ** (model.LAYERS - 1 - int(name.split(".")[1]))
        return trunk * decay**model.LAYERS

    buckets: dict[tuple, list] = {}
    for name, parameter in net.named_parameters():
        weight_decay = 0.01 if parameter.dim() > 1 and not name.startswith(("words", "positions")) else 0.0
        buckets.setdefault((rate(name), weight_decay), []).append(parameter)
    return [{"params": p, "lr": lr, "base": lr, "weight_decay": wd} for (lr, wd), p in buckets.items()]


def distil_rows(folder: Path, count: int) -> list[str]:
    """Unlabelled English sentences on which the embedding is held to that of the base model."""
    rows = [r for r in data.read(folder, "stsb_multi") if r["lang"] == "en"]
    kept = [r for i, r in enumerate(rows) if i % 10]
    texts = sorted({r[side] for r in kept for side in ("a", "b")})
    random.Random(3).shuffle(texts)
    return texts[:count]


def train(folder: Path, out: Path, epochs: float, minutes: float, leave_out: str = "", log_every: int = 50,
          threads: int = 2, start_from: Path | None = None) -> model.Bundle:
    """Train, or refine the weights in `start_from` on the refining mix, saving `out` every few hundred steps; `minutes` bounds the time (the schedule follows it)."""
    torch.manual_seed(SEED)
    torch.set_num_threads(threads)
    rng = random.Random(SEED)
    rows, _ = data.build(folder, leave_out)
    if start_from:
        rows = data.refining(rows)
    rows += [data.Row(t, src="distil") for t in distil_rows(folder, 1500 if start_from else 6000)]
    tok = batches.tokenizer()
    ids = batches.content(tok, [r.text for r in rows], 6000)
    net, teacher = model.from_base(0.1), model.from_base(0.0)
    if start_from:
        net.load_state_dict(torch.load(start_from))
    net.train()
    teacher.eval()
    opt = torch.optim.AdamW(groups(net, *((8e-5, 3e-4) if start_from else (1e-4, 6e-4)), 0.88), betas=(0.9, 0.98), eps=1e-6, fused=True)
    steps_done, start, total = 0, time.time(), None
    sums, finished = [0.0, 0.0, 0.0], False
    order: list[list[int]] = []
    cuts: list[list[int]] = []

    def next_epoch():
        nonlocal cuts, order
        cuts = [batches.wrap(crop(x, r, rng)) for x, r in zip(ids, rows)]
        order = batches.by_length([len(c) for c in cuts], 2048, 48, rng)

    next_epoch()
    total = int(len(order) * epochs)
    print(f"{len(rows)} rows, {len(order)} batches per epoch, {total} steps", flush=True)
    while not finished:
        for batch in order:
            progress = max(steps_done / total, (time.time() - start) / 60 / minutes)
            if progress >= 1:
                finished = True
                break
            factor = min(1.0, (steps_done + 1) / (30 if start_from else 120)) * (1 - progress)
            for group in opt.param_groups:
                group["lr"] = group["base"] * factor
            x, mask = batches.pad([cuts[i] for i in batch])
            picked = [rows[i] for i in batch]
            domain = torch.tensor([r.domain if r.domain >= 0 else EMPTY for r in picked])
            attack = torch.tensor([r.jailbreak if r.jailbreak >= 0 else EMPTY for r in picked])
            weight = torch.tensor([r.weight for r in picked])
            hold = steps_done % 3 == 0 or bool((domain == EMPTY).all() and (attack == EMPTY).all())
            with torch.autocast("cpu", torch.bfloat16):
                d, j, e = net(x, mask)
                if hold:
                    with torch.no_grad():
                        target = teacher(x, mask)[2].float()
            d, j, e = d.float(), j.float(), e.float()
            loss_d = (F.cross_entropy(d, domain, reduction="none", ignore_index=EMPTY, label_smoothing=0.06) * weight).sum()
            loss_d = loss_d / (domain != EMPTY).sum().clamp(min=8)
            loss_j = F.cross_entropy(j, attack, weight=torch.tensor([1.0, 2.0]), reduction="sum", ignore_index=EMPTY, label_smoothing=0.01)
            loss_j = loss_j / (attack != EMPTY).sum().clamp(min=8)
            loss = loss_d + loss_j
            if hold:
                loss_e = (1 - (e * target).sum(-1)).mean() + 2.0 * F.mse_loss(e @ e.T, target @ target.T)
                loss = loss + 6.0 * loss_e
                sums[2] += loss_e.item() * 3
            opt.zero_grad(set_to_none=True)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            opt.step()
            steps_done += 1
            sums[0] += loss_d.item()
            sums[1] += loss_j.item()
            if steps_done % log_every == 0:
                shown = " ".join(f"{s / log_every:.4f}" for s in sums)
                print(f"step {steps_done} progress {progress:.3f} {(time.time() - start) / 60:.1f} min  domain/jailbreak/embedding {shown}", flush=True)
                sums = [0.0, 0.0, 0.0]
            if steps_done % 100 == 0:
                torch.save(net.state_dict(), out)
        else:
            next_epoch()
    torch.save(net.state_dict(), out)
    print(f"trained {steps_done} steps in {(time.time() - start) / 60:.1f} minutes", flush=True)
    return net.eval()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--out", type=Path, default=Path("build/checkpoint.pt"))
    parser.add_argument("--epochs", type=float, default=2.0)
    parser.add_argument("--minutes", type=float, default=1e9, help="stop after this time; the schedule follows it")
    parser.add_argument("--leave-out", default="", help="prefix of a jailbreak source that is not trained on")
    parser.add_argument("--start-from", type=Path, help="refine these weights")
    args = parser.parse_args()
    args.out.parent.mkdir(parents=True, exist_ok=True)
    train(args.data, args.out, args.epochs, args.minutes, args.leave_out, start_from=args.start_from)
