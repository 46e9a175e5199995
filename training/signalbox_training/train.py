"""Fine-tunes trunk, adapters and heads on the CPU (bf16 matrix products where the CPU has them, else fp32).

Three phases by progress: training as usual; then the linear layers get smoothing factors and clip
limits from activation statistics (model.Linear); then int8 rounding is simulated, with a loss that
holds the rounded outputs to the unrounded ones, so that the int8 graph computes what was trained.
"""

from __future__ import annotations

import argparse
import random
import time
from collections import Counter
from pathlib import Path

import torch
import torch.nn.functional as F

from . import batches, data, model, quantise, tasks

SEED = 7
TRAIN_TOKENS = 128  # longest training row; the positions beyond keep their base values
EMPTY = -100
BF16 = torch.cpu._is_avx512_bf16_supported()  # emulated elsewhere, five times slower than fp32
ROUND_FROM = 0.85  # share of the training after which rounding is simulated
PLANTED = 0.55  # of the attacks that may stand in data
OFFTASK = 0.8  # of the plain orders, which are attacks only where nobody expects them
PIECES = 0.5  # of the pieces of harmless documents that an epoch reads
GAP = 8.0  # weight of the squared difference that rounding makes to the logits
TIGHTER = 0.95  # of the clip limits, when rounding is refined
PARTIAL = torch.tensor([l[2:] not in ("PERSON", "GPE", "ORGANIZATION") for l in model.PII])


TUNED = {"all": "", "adapters": ("adapters.", "heads.", "pii."), "heads": ("heads.", "pii.")}  # metric and spots are fitted afterwards, see settle.py and spots.py


class Example:
    """A row with its tokens and, where it has entities, the label of every token."""

    def __init__(self, row: data.Row, encoding):
        self.row, self.ids = row, encoding.ids
        self.labels = token_labels(row.entities, encoding.offsets) if row.entities is not None else None


def token_labels(entities: list[dict], offsets: list[tuple[int, int]]) -> list[int]:
    """BIO label of every token; types beyond the contract's are not judged."""
    labels = [0] * len(offsets)
    for e in entities:
        inside = [i for i, (a, b) in enumerate(offsets) if a < e["end"] and b > e["start"]]
        for n, i in enumerate(inside):
            labels[i] = model.PII.index(("I-" if n else "B-") + e["type"]) if e["type"] in model.PII_TYPES else EMPTY
    return labels


def cut(example: Example, hosts: list[list[int]], rng: random.Random) -> tuple[list[int], list[int] | None]:
    """The tokens of a row for one epoch, and their labels: a part of a long text, an attack inside
    harmless text, or two harmless texts in a row."""
    size, row, ids = TRAIN_TOKENS - 2, example.row, example.ids
    if row.entities is not None:
        start = rng.randrange(len(ids) - size + 1) if len(ids) > size else 0
        return ids[start : start + size], example.labels[start : start + size]
    attack = 1 in (row.jailbreak, row.injection)
    safety = row.domain == data.NONE and row.complexity is None and row.factcheck == data.NONE and row.jailbreak + row.injection > 2 * data.NONE
    plain = row.src.startswith(("own/payload/offtask", "own/payload/interrupt", "own/payload/mislead"))
    if attack and rng.random() < (OFFTASK if plain else PLANTED if row.injection == 1 else 0.15):
        part = ids
        longest = rng.randint(24, 96)
        if len(part) > longest:  # the start and the end of an attack say what it is, its middle often does not
            part = part[:longest] if rng.random() < 0.6 else part[-longest:]
        room = size - len(part)
        host = filler(hosts, room if rng.random() < 0.6 else rng.randint(room // 4, room), rng)
        at = rng.randint(0, len(host))
        return host[:at] + part + host[at:], None
    if row.host and rng.random() < 0.3:
        return filler(hosts, size, rng), None
    if len(ids) <= size:
        return ids, None
    if safety:
        draw = rng.random()
        if row.jailbreak == 1 and row.src.startswith("syn/injection"):
            return (ids[:size] if draw < 0.1 else ids[-size:]), None
        if draw < 0.15 or (not attack and draw < 0.7):
            start = rng.randrange(len(ids) - size + 1)
            return ids[start : start + size], None
        if attack and draw < 0.3:
            return ids[-size:], None
    if row.complexity is not None and rng.random() < 0.3:
        return ids[-size:], None
    return ids[:size], None


SHARES = {"domain": 15000, "pii": 11000, "grade": 5000, "distil": 1200}  # rows of an epoch; all of safety


def group(row: data.Row) -> str:
    """Which part of an epoch a row belongs to."""
    if row.entities is not None:
        return "pii"
    if row.domain >= 0 and not row.judged:
        return "domain"
    if row.complexity or row.factcheck >= 0:
        return "grade"
    return "distil" if row.src == "distil" else "safety"


def epoch(rows: list[data.Row], rng: random.Random) -> list[int]:
    """The rows of an epoch: of the large sets and of pieces of documents a part, drawn anew each time; plain prompts
    of our own twice as often."""
    groups: dict[str, list[int]] = {}
    for i, r in enumerate(rows):
        groups.setdefault(group(r), []).append(i)
    picked = [i for i in groups.pop("safety", []) if not rows[i].src.startswith("doc/") or rng.random() < PIECES]
    for name, members in groups.items():
        own = [i for i in members if rows[i].src == "own/everyday"]
        others = [i for i in members if rows[i].src != "own/everyday"]
        picked += own + rng.sample(others, min(len(others), max(0, SHARES[name] - len(own))))
    return picked


def filler(hosts: list[list[int]], length: int, rng: random.Random) -> list[int]:
    """Harmless tokens: of one text, of several in a row, or a few words over and over, as forms and contracts have them."""
    host = rng.choice(hosts)
    begin = rng.randrange(max(1, len(host) - length + 1))
    out = host[begin : begin + length]
    if rng.random() < 0.2:
        out = out[: rng.randint(8, 30)]
        return (out * (length // len(out) + 1))[:length]
    while len(out) < length:
        out = out + rng.choice(hosts)
    return out[:length]


def groups(net: model.Bundle, trunk: float, heads: float, decay: float) -> list[dict]:
    """Parameter groups with a learning rate that falls towards the embedding."""
    def rate(name: str) -> float:
        if name.startswith(("heads.", "adapters.", "pii.")):
            return heads
        if name.startswith("layers."):
            return trunk * decay ** (model.LAYERS - 1 - int(name.split(".")[1]))
        return trunk * decay**model.LAYERS

    buckets: dict[tuple, list] = {}
    for name, parameter in net.named_parameters():
        if not parameter.requires_grad:
            continue
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


class Neighbours:
    """Small batches for the embedding alone: requests of one intent should lie together, and pairs of
    sentences as near each other as people judged. BANKING77 and CLINC150 stay out: they test it. The
    intents of `intents/` are this project's own, 22 near ones to a field: half of the batches are of one field."""

    def __init__(self, folder: Path, tok, rng: random.Random):
        self.rng = rng
        self.intents: dict[str, list[list[int]]] = {}
        for name in ("hwu64", "snips"):
            rows = data.read(folder, name)
            for row, ids in zip(rows, batches.content(tok, [r["text"] for r in rows])):
                self.intents.setdefault(f"{name}/{row['label']}", []).append(batches.wrap(ids[:62]))
        own = [line.split("\t") for line in (Path(__file__).parent / "intents" / "service.tsv").read_text(encoding="utf-8").splitlines()]
        for (label, _), ids in zip(own, batches.content(tok, [text for _, text in own])):
            self.intents.setdefault(label, []).append(batches.wrap(ids[:62]))
        self.fields = sorted({label.split("/")[0] for label, _ in own})
        self.pairs = []
        english = [r for r in data.read(folder, "stsb_multi") if r["lang"] == "en"]
        for row in (r for i, r in enumerate(english) if i % 10):  # the others judge the embedding
            a, b = batches.content(tok, [row["a"], row["b"]])
            self.pairs.append((batches.wrap(a[:62]), batches.wrap(b[:62]), row["score"]))

    def same_intent(self, net) -> torch.Tensor:
        """The contrastive loss of three requests each of fourteen intents."""
        field = self.rng.choice(self.fields) + "/" if self.rng.random() < 0.5 else ""
        picked = self.rng.sample([l for l in sorted(self.intents) if l.startswith(field)], 14)
        labels = [l for l in picked for _ in range(3)]
        rows = [row for l in picked for row in self.rng.sample(self.intents[l], 3)]
        with torch.autocast("cpu", torch.bfloat16, enabled=BF16):
            e = net(*batches.pad(rows))["embedding"]
        return contrast(e.float(), labels)

    def judged(self, net) -> torch.Tensor:
        """The ranking loss of some pairs."""
        picked = self.rng.sample(self.pairs, 24)
        with torch.autocast("cpu", torch.bfloat16, enabled=BF16):
            e = net(*batches.pad([p[0] for p in picked] + [p[1] for p in picked]))["embedding"].float()
        return cosent(e[: len(picked)], e[len(picked) :], torch.tensor([p[2] for p in picked])) * 0.1


def contrast(e: torch.Tensor, labels: list[str]) -> torch.Tensor:
    """Supervised contrastive loss of normalised rows, temperature 0.07: https://arxiv.org/abs/2004.11362, eq. 2."""
    sims = (e @ e.T / 0.07).masked_fill(torch.eye(len(e), dtype=torch.bool), -1e9)
    same = torch.tensor([[a == b and i != j for j, b in enumerate(labels)] for i, a in enumerate(labels)])
    logp = sims - torch.logsumexp(sims, 1, keepdim=True)
    return -(logp * same).sum() / same.sum()


def cosent(left: torch.Tensor, right: torch.Tensor, score: torch.Tensor) -> torch.Tensor:
    """CoSENT: a pair judged nearer than another must have the higher cosine, in units of 0.05."""
    cosine = (left * right).sum(-1) * 20
    wrong = (cosine[None, :] - cosine[:, None])[score[:, None] > score[None, :] + 0.25]
    return torch.logsumexp(torch.cat([wrong, torch.zeros(1)]), 0)


class Losses:
    """The sum of the tasks' losses of a batch, and running means for the log."""

    def __init__(self, rows: list[data.Row]):
        self.level = tasks.level_weights(rows)
        facts = Counter(r.factcheck for r in rows if r.factcheck >= 0)
        self.facts = torch.tensor([sum(facts.values()) / (2 * facts[i]) for i in (0, 1)]) if facts else None
        self.sums, self.seen = Counter(), Counter()

    def log(self) -> str:
        text = " ".join(f"{k} {self.sums[k] / self.seen[k]:.4f}" for k in sorted(self.seen))
        self.sums.clear()
        self.seen.clear()
        return text

    def add(self, name: str, value):
        self.sums[name] += value.item()
        self.seen[name] += 1
        return value

    def __call__(self, out: dict, rows: list[data.Row], labels: torch.Tensor) -> torch.Tensor:
        total = torch.zeros(())
        domain = torch.tensor([r.domain if r.domain >= 0 else EMPTY for r in rows])
        if (domain != EMPTY).any():
            weight = torch.tensor([r.weight for r in rows])
            each = F.cross_entropy(out["domain"], domain, reduction="none", ignore_index=EMPTY, label_smoothing=0.06) * weight
            total = total + self.add("domain", each.sum() / (domain != EMPTY).sum().clamp(min=8))
        for task in model.ATTACKS:
            attack = torch.tensor([y if (y := getattr(r, task)) >= 0 else EMPTY for r in rows])
            if (attack != EMPTY).any():
                each = F.cross_entropy(out[task], attack, weight=torch.tensor([1.0, 1.5]), reduction="none", ignore_index=EMPTY, label_smoothing=0.02)
                weight = self.weights(rows) * (attack != EMPTY)
                total = total + self.add(task, (each * weight).sum() / weight.sum().clamp(min=8))
        graded = [i for i, r in enumerate(rows) if r.complexity]
        if graded:
            want = torch.tensor([rows[i].complexity for i in graded])
            weight = torch.tensor([self.level[tasks.band(rows[i].text), tasks.grade(rows[i])] for i in graded])
            each = F.cross_entropy(out["complexity"][graded], want, reduction="none", label_smoothing=0.03) * weight
            total = total + 0.7 * self.add("complexity", each.sum() / max(8, len(graded)))
        fact = torch.tensor([r.factcheck if r.factcheck >= 0 else EMPTY for r in rows])
        if (fact != EMPTY).any():
            each = F.cross_entropy(out["factcheck"], fact, weight=self.facts, reduction="sum", ignore_index=EMPTY, label_smoothing=0.03)
            total = total + 0.7 * self.add("factcheck", each / (fact != EMPTY).sum().clamp(min=8))
        if (labels != EMPTY).any():
            total = total + 1.5 * self.add("pii", self.tokens(out["pii"], rows, labels))
        return total

    def weights(self, rows: list[data.Row]) -> torch.Tensor:
        """What each row counts for the tasks about attacks."""
        return torch.ones(len(rows))

    @staticmethod
    def tokens(logits, rows, labels):
        """Cross-entropy per token; where only some types are marked, "O" stands for every other type too."""
        logp = F.log_softmax(logits, -1)
        partial = torch.tensor([r.partial for r in rows])[:, None] & (labels == 0)
        other = torch.logsumexp(logp.masked_fill(~PARTIAL, -1e9), -1)
        each = torch.where(partial, other, logp.gather(-1, labels.clamp(min=0).unsqueeze(-1)).squeeze(-1))
        known = labels != EMPTY
        weight = 1.0 + 1.0 * (labels > 0)
        return -(each * weight * known).sum() / (weight * known).sum().clamp(min=64)


def held_to_base(embedding, target):
    """How far the embedding and the similarities inside the batch are from the base model's."""
    return (1 - (embedding * target).sum(-1)).mean() + 2.0 * F.mse_loss(embedding @ embedding.T, target @ target.T)


def calibrate(net: model.Bundle, rows: list[list[int]]) -> None:
    """Set smoothing and limits from the activations of some rows."""
    net.eval()
    statistics = quantise.collect(net, rows)
    with torch.no_grad():
        for name, s in statistics.items():
            layer = net.get_submodule(name)
            smooth, limit = quantise.smoothing(layer.weight.detach().numpy(), s)
            layer.smooth.copy_(torch.from_numpy(smooth))
            layer.limit.fill_(limit)
    net.train()


def train(folder: Path, out: Path, epochs: float, minutes: float, leave_out: dict | None = None, log_every: int = 50,
          threads: int = 2, start_from: Path | None = None, rounding: bool = True, only_bare_tasks: bool = False, tuned: str = "all", refine: bool = False,
          rate: float = 1.0, round_from: float = ROUND_FROM, rounded_throughout: bool = False) -> model.Bundle:
    """Train, from `start_from` or the base weights, saving `out` every few hundred steps; `minutes`
    bounds the time (the schedule follows it). `only_bare_tasks` keeps rows of jailbreak, complexity
    and factcheck only, for leave-one-source-out runs. `tuned` is what learns: all, adapters (and heads)
    or heads. `refine` goes on with calibrated weights: rounding from the start, a quarter of the rate
    and tighter limits. `rate` is a factor of the learning rates, `round_from` the share after which rounding is simulated.
    `rounded_throughout` goes on with calibrated weights that compute as their int8 twins do from the first step: what is trained is what is
    shipped, at the cost of one pass a step."""
    torch.manual_seed(SEED)
    torch.set_num_threads(threads)
    rng = random.Random(SEED)
    rows, _ = data.build(folder, leave_out)
    if only_bare_tasks:
        rows = data.bare(rows)
    rows += [data.Row(t, src="distil") for t in distil_rows(folder, 500 if only_bare_tasks else 6000)]
    tok = batches.tokenizer()
    examples = [Example(r, e) for r, e in zip(rows, tok.encode_batch([r.text[:6000] for r in rows], add_special_tokens=False))]
    hosts = [e.ids for e in examples if e.row.host and 40 <= len(e.ids)]
    net = model.load(start_from, 0.1) if start_from else model.from_base(0.1)
    teacher = model.from_base(0.0).eval()
    for name, parameter in net.named_parameters():
        parameter.requires_grad_(name.startswith(TUNED[tuned]) and not name.startswith(("metric.", "spots.")))
    net.train()
    if not refine and not rounded_throughout:
        net.uncalibrate()
    opt = torch.optim.AdamW(groups(net, *(rate * r for r in ((8e-5, 5e-4) if start_from else (1e-4, 6e-4))), 0.88), betas=(0.9, 0.98), eps=1e-6, fused=True)
    losses, steps, start, rounded = Losses(rows), 0, time.time(), refine
    net.round(rounded_throughout)
    if refine:
        net.centre()
        for layer in (m for m in net.modules() if isinstance(m, model.Linear)):
            layer.limit.mul_(TIGHTER)
        for group in opt.param_groups:
            group["base"] *= 0.25
    near = None if only_bare_tasks else Neighbours(folder, tok, random.Random(SEED))
    cuts, order = {}, []

    def next_epoch():
        nonlocal cuts, order
        picked = epoch(rows, rng)
        cuts = {i: cut(examples[i], hosts, rng) for i in picked}
        order = [[picked[k] for k in batch] for batch in batches.by_length([len(cuts[i][0]) + 2 for i in picked], 2048, 48, rng)]

    next_epoch()
    total = max(1, int(len(order) * epochs))
    print(f"{len(rows)} rows, {len(order)} batches per epoch, {total} steps", flush=True)
    while True:
        for batch in order:
            progress = max(steps / total, (time.time() - start) / 60 / minutes)
            if progress >= 1:
                torch.save(net.state_dict(), out)
                print(f"trained {steps} steps in {(time.time() - start) / 60:.1f} minutes", flush=True)
                return net.eval()
            if rounding and not rounded and not rounded_throughout and progress >= round_from:
                torch.save(net.state_dict(), out.with_suffix(".float.pt"))
                calibrate(net, [batches.wrap(cuts[i][0]) for i in rng.sample(sorted(cuts), 300)])
                rounded = True
            factor = min(1.0, (steps + 1) / 100) * (1 - progress)
            for group in opt.param_groups:
                group["lr"] = group["base"] * factor
            x, mask = batches.pad([batches.wrap(cuts[i][0]) for i in batch])
            picked, labels = [rows[i] for i in batch], torch.full(x.shape, EMPTY)
            for n, i in enumerate(batch):
                if cuts[i][1] is not None:
                    labels[n, 1 : 1 + len(cuts[i][1])] = torch.tensor(cuts[i][1])
            hold = steps % 6 == 0 or any(r.src == "distil" for r in picked)
            with torch.autocast("cpu", torch.bfloat16, enabled=BF16):
                if rounded:
                    net.eval()
                    net.round(False)
                    exact = net(x, mask)  # with its gradient: the gap's, without it, only moves both outputs alike
                    net.round(True)
                result = net(x, mask)
                if hold:
                    with torch.no_grad():
                        target = teacher(x, mask)["embedding"].float()
            result = {k: v.float() for k, v in result.items()}
            loss = losses(result, picked, labels)
            if near and steps % 4 == 1:
                loss = loss + 0.5 * losses.add("intent", near.same_intent(net))
            if near and steps % 8 == 2:
                loss = loss + 0.5 * losses.add("judged", near.judged(net))
            if hold:
                loss = loss + 4.0 * losses.add("embedding", held_to_base(result["embedding"], target))
            if rounded:
                gap = sum(F.mse_loss(result[t], exact[t].float()) for t in model.SEQUENCE)
                loss = loss + GAP * losses.add("rounding", gap)
                net.train()
            if not loss.requires_grad:
                continue
            opt.zero_grad(set_to_none=True)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            opt.step()
            steps += 1
            if steps % log_every == 0:
                print(f"step {steps} progress {progress:.3f} {(time.time() - start) / 60:.1f} min  {losses.log()}", flush=True)
            if steps % 100 == 0:
                torch.save(net.state_dict(), out)
        next_epoch()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--out", type=Path, default=Path("build/checkpoint.pt"))
    parser.add_argument("--epochs", type=float, default=2.0)
    parser.add_argument("--minutes", type=float, default=1e9, help="stop after this time; the schedule follows it")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--start-from", type=Path, help="refine these weights")
    parser.add_argument("--rate", type=float, default=1.0, help="factor of the learning rates")
    parser.add_argument("--round-from", type=float, default=ROUND_FROM, help="share of the training after which rounding is simulated")
    parser.add_argument("--rounded", action="store_true", help="go on with calibrated weights, rounding simulated from the first step")
    parser.add_argument("--leave-out", nargs="*", default=[], help="prefixes of sources of attacks that are not learnt from")
    parser.add_argument("--refine-rounding", action="store_true", help="go on with calibrated weights, for closer int8")
    args = parser.parse_args()
    args.out.parent.mkdir(parents=True, exist_ok=True)
    train(args.data, args.out, args.epochs, args.minutes, threads=args.threads, start_from=args.start_from, refine=args.refine_rounding,
          rate=args.rate, round_from=args.round_from, rounded_throughout=args.rounded, leave_out={"jailbreak": tuple(args.leave_out)})
