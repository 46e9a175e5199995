"""The wide part: a linear model over hashed n-grams of token ids, inside the same graph.

The trunk reads English well and other languages badly; a bag of n-grams does not care. The word
pieces of a text are hashed, one to four in a row, into one table whose rows are added up. Ids and
hashes are computed in the graph, so that nobody outside it knows of this part.

    h1 = id,  h_n = (h_{n-1} * MULTIPLIER + id) mod BUCKETS  (salted with n),
    wide = sum over all n-grams of table[h] / sqrt(number of n-grams)

It serves the topic tasks alone. Attacks share their words and signs with honest text (markdown, code, "you must"),
which a sum of n-grams cannot tell apart: with it the first bundles read agent prompts and READMEs as attacks.

How far each part is to be trusted depends on how foreign the text is to the vocabulary: x is the
share of pieces that continue a word or hold a letter beyond ASCII. The logits that leave the graph
are deep * (a0 + a1 x) + wide * (b0 + b1 x) + c with a0 = 1, fitted for each task on held-out rows
of the training sets by likelihood.
Those of the domain are then the logarithm of (1 - e) p + e / classes: the share e of the labels is taken for
wrong, so that no text is surer than the labels are right.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F

from . import batches, data, tasks
from .model import ATTACKS, DOMAINS, SEQUENCE

BUCKETS = 3 << 17
ORDERS = 4
MULTIPLIER = 1_000_003  # a prime; hash (< 2^19) times it plus an id stays far below 2^63
SALT = 7_919  # a prime; keeps a bigram from meeting the unigram of the same hash
TOPICS = {task: labels for task, labels in SEQUENCE.items() if task not in ATTACKS}
WIDTHS = [len(labels) for labels in TOPICS.values()]
COLUMNS = sum(WIDTHS)


def hashes(ids: np.ndarray, starts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """N-gram buckets of concatenated rows and the row of each; `starts` are the rows' offsets, the end last."""
    row = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    left = starts[1:][row] - np.arange(len(ids))  # tokens from here to the end of the row
    h, found, rows = ids.astype(np.int64) % BUCKETS, [], []
    for n in range(1, ORDERS + 1):
        if n > 1:
            shifted = np.zeros_like(h)
            shifted[: len(ids) - n + 1] = ids[n - 1 :]
            h = (h * MULTIPLIER + shifted + n * SALT) % BUCKETS
        fits = left >= n
        found.append(h[fits])
        rows.append(row[fits])
    return np.concatenate(found), np.concatenate(rows)


@dataclass
class Bags:
    """Rows as bags of buckets in one array."""

    buckets: np.ndarray
    starts: np.ndarray

    def batch(self, picked: np.ndarray) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """(buckets, offsets, weights) for an embedding bag."""
        sizes = self.starts[picked + 1] - self.starts[picked]
        offsets = np.concatenate([[0], np.cumsum(sizes)[:-1]])
        at = np.arange(sizes.sum()) - np.repeat(offsets, sizes) + np.repeat(self.starts[picked], sizes)
        weights = np.repeat(1 / np.sqrt(np.maximum(sizes, 1)), sizes).astype(np.float32)
        return torch.from_numpy(self.buckets[at]), torch.from_numpy(offsets), torch.from_numpy(weights)


def bags(rows: list[list[int]]) -> Bags:
    starts = np.concatenate([[0], np.cumsum([len(r) for r in rows])])
    ids = np.fromiter((i for r in rows for i in r), np.int64, starts[-1])
    found, row = hashes(ids, starts)
    order = np.argsort(row, kind="stable")
    counts = np.bincount(row, minlength=len(rows))
    return Bags(found[order], np.concatenate([[0], np.cumsum(counts)]))


def extra_rows(folder: Path) -> list[data.Row]:
    """Rows that only this part learns from: whole sets that the trunk sees a part of, textbook text, terms."""
    rows = []
    by_hand = data.subjects()
    for name in ("openstax_questions", "domain_synthetic", "exams_multilingual", "domain_other"):
        rows += [data.domain_row(r) for r in data.read(folder, name) if name != "domain_other" or data.digest(r["text"]) not in by_hand]
    for r in data.read(folder, "openstax_terms"):
        if r.get("label") in DOMAINS:
            text = " ".join(str(r[k]) for k in ("term", "def") if r.get(k))
            rows.append(data.domain_row({**r, "text": text}, weight=0.5))
    for r in data.read(folder, "openstax_text"):
        if r.get("label") in DOMAINS:
            rows.append(data.domain_row(r, weight=0.3))
    return rows


def prepare(folder: Path, leave_out: dict | None = None) -> list[data.Row]:
    """Training rows of both parts, without anything that is in dev or held out."""
    train, held = data.build(folder, leave_out)
    for row in train:
        if row.src.startswith(("mmlu", "own/everyday")):
            row.weight *= 3  # few rows, and the hardest ones: exam questions, and prompts as people write them
        elif row.src.startswith("exams"):
            row.weight *= 2.5  # what the trunk cannot read
        elif row.src == "own/chat":
            row.weight *= 2
    seen = {data.key(r.text) for r in train} | {data.key(r.text) for r in held} | data.dev_keys(folder)
    for row in extra_rows(folder):
        k = data.key(row.text)
        # The same slice is held out of the extra rows, so that nothing close to it is learnt.
        if k and k not in seen and data.bucket(row.text, data.HELD_OUT_ONE_IN) != 0:
            seen.add(k)
            train.append(row)
    return [r for r in train if r.domain >= 0 or r.complexity or r.factcheck >= 0]


def train(folder: Path, epochs: int = 24, rate: float = 0.06, decay: float = 2e-6, threads: int = 1, log=print, leave_out: dict | None = None,
          only_bare_tasks: bool = False, start_from: np.ndarray | None = None, learn: tuple[str, ...] = tuple(TOPICS)) -> np.ndarray:
    """Fit the table, or go on with one; returns [BUCKETS, COLUMNS] float32. Columns of tasks that are not in `learn` stay but for the
    decay. For `only_bare_tasks` see train.train."""
    torch.manual_seed(3)
    torch.set_num_threads(threads)
    begin = time.time()
    rows = data.bare(data.build(folder, leave_out)[0]) if only_bare_tasks else prepare(folder, leave_out)
    tok = batches.tokenizer()
    x = bags([batches.windows(c)[0] for c in batches.content(tok, [r.text for r in rows], 6000)])
    held = data.build(folder, leave_out)[1]
    held_x = bags([batches.windows(c)[0] for c in batches.content(tok, [r.text for r in held], 6000)])
    want, weight = targets(rows)
    log(f"{len(rows)} rows, {len(x.buckets)} n-grams, {time.time() - begin:.0f} s")
    table = torch.nn.EmbeddingBag(BUCKETS, COLUMNS, mode="sum", sparse=True)
    torch.nn.init.zeros_(table.weight)
    if start_from is not None:
        table.weight.data.copy_(torch.from_numpy(start_from))
    opt = torch.optim.Adagrad(table.parameters(), lr=rate, initial_accumulator_value=1e-3 if start_from is None else 1e-2)
    rng = np.random.default_rng(1)
    size = 512
    for epoch in range(epochs):
        order = rng.permutation(len(rows))
        for group in opt.param_groups:
            group["lr"] = rate * (1 - epoch / epochs)
        total = 0.0
        for at in range(0, len(order), size):
            picked = order[at : at + size]
            out = scores(table, x, picked, drop=0.3)
            loss = sum(
                (F.cross_entropy(o, y[picked], reduction="none") * w[picked]).sum()
                for task, o, y, w in zip(TOPICS, out.split(WIDTHS, 1), *topics(want, weight)) if task in learn
            )
            opt.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()
            total += loss.item()
        with torch.no_grad():
            table.weight.mul_(1 - decay * len(order) / size)
            out = torch.cat([scores(table, held_x, np.arange(i, min(i + 2048, len(held)))) for i in range(0, len(held), 2048)])
        y = np.array([r.domain for r in held])
        right = out[:, : len(DOMAINS)].argmax(1).numpy() == y
        exams = np.array([r.src.startswith("exams") for r in held])
        log(f"epoch {epoch + 1}: loss {total / len(order):.4f}, held-out domain {right[y >= 0].mean():.4f}, "
            f"exams {right[exams].mean():.4f}, {time.time() - begin:.0f} s")
    return table.weight.detach().numpy()


def targets(rows: list[data.Row]) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    """For each task, the wanted probabilities [rows, classes] and the weight of every row, 0 where it has no label."""
    level = tasks.level_weights(rows)
    columns = {
        "domain": [(r.domain, r.weight) for r in rows], "factcheck": [(r.factcheck, 1.0) for r in rows],
        "jailbreak": [(r.jailbreak, 1.0) for r in rows], "injection": [(r.injection, 1.0) for r in rows],
    }
    want, weight = [], []
    for task, labels in SEQUENCE.items():
        y, w = torch.zeros(len(rows), len(labels)), torch.zeros(len(rows))
        for i, r in enumerate(rows):
            if task == "complexity":
                if r.complexity:
                    y[i], w[i] = torch.tensor(r.complexity), level[tasks.band(r.text), tasks.grade(r)]
            elif columns[task][i][0] >= 0:
                y[i, columns[task][i][0]], w[i] = 1.0, columns[task][i][1]
        want.append(y)
        weight.append(w)
    return want, weight


def topics(*lists: list) -> list[list]:
    """Of lists with an item a task those of the tasks that the table serves."""
    return [[x for task, x in zip(SEQUENCE, items) if task in TOPICS] for items in lists]


def scores(table: torch.nn.EmbeddingBag, x: Bags, picked: np.ndarray, drop: float = 0.0) -> torch.Tensor:
    """Summed rows of the table; `drop` leaves out that share of the n-grams."""
    buckets, offsets, weights = x.batch(picked)
    if drop:
        weights = weights * (torch.rand(len(weights)) >= drop) / (1 - drop)
    return table(buckets, offsets, weights)


def all_scores(table: np.ndarray, ids: list[list[int]]) -> torch.Tensor:
    """The wide logits of rows, [rows, COLUMNS]."""
    bag, x = torch.nn.EmbeddingBag.from_pretrained(torch.from_numpy(table), mode="sum"), bags(ids)
    return torch.cat([scores(bag, x, np.arange(i, min(i + 2048, len(ids)))) for i in range(0, len(ids), 2048)])


@dataclass
class Fusion:
    """How the two parts are added up, for each topic task: see the head of this file."""

    exact: np.ndarray  # float32 [BUCKETS, COLUMNS], before quantisation
    table: np.ndarray  # int8 [BUCKETS, COLUMNS]
    scale: np.ndarray  # float32 [BUCKETS, 1]
    foreign: np.ndarray  # float32 [vocabulary]: 1 for a foreign piece
    mix: np.ndarray  # float32 [tasks, 4]: a0, a1, b0, b1
    shift: list[np.ndarray]  # float32 [classes] of each task
    noise: float = 0.0  # e of the domain

    def logits(self, task: int, deep, wide, x):
        """The fused logits of one task; x is [rows, 1]."""
        a0, a1, b0, b1 = self.mix[task]
        out = deep * (a0 + a1 * x) + wide * (b0 + b1 * x) + self.shift[task]
        return noisy(out, self.noise) if task == 0 and self.noise else out

    def fold(self, task: int, temperature: float) -> None:
        """Divide the logits of a task by a temperature, so that they are calibrated as they leave the graph."""
        self.mix[task] /= temperature
        self.shift[task] = self.shift[task] / np.float32(temperature)

    def reference(self, ids: list[list[int]], deep: list[np.ndarray]) -> list[np.ndarray]:
        """The fused logits of rows in fp32, from the deep logits of each topic task."""
        wide = np.split(all_scores(self.exact, ids).numpy(), np.cumsum(WIDTHS)[:-1], axis=1)
        x = foreign_share(self.foreign, ids)
        return [self.logits(i, d, w, x) for i, (d, w) in enumerate(zip(deep, wide))]


def noisy(logits: np.ndarray, share: float) -> np.ndarray:
    """The logarithm of the probabilities when a share of the labels is wrong."""
    e = np.exp(logits - logits.max(-1, keepdims=True))
    return np.log((1 - share) * e / e.sum(-1, keepdims=True) + share / logits.shape[-1])


def foreign_pieces(tok) -> np.ndarray:
    """1 for every piece that continues a word or holds a letter beyond ASCII."""
    out = np.zeros(tok.get_vocab_size(), np.float32)
    for piece, i in tok.get_vocab().items():
        out[i] = piece.startswith("##") or not piece.isascii()
    return out


def foreign_share(foreign: np.ndarray, ids: list[list[int]]) -> np.ndarray:
    return np.array([[foreign[row].mean()] for row in ids], np.float32)


def quantised(table: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Int8 rows with one scale each."""
    scale = np.maximum(np.abs(table).max(1, keepdims=True), 1e-8) / 127
    return np.clip(np.rint(table / scale), -127, 127).astype(np.int8), scale.astype(np.float32)


def fuse(table: np.ndarray, tok, deep: list[np.ndarray], ids: list[list[int]], rows: list[data.Row]) -> Fusion:
    """Fit the mix of every task on held-out rows by likelihood. `deep` holds each task's logits of the
    first window of the rows, `ids` the tokens of that window."""
    small, scale = quantised(table)
    foreign = foreign_pieces(tok)
    wide = all_scores(small * scale, ids)
    share = torch.from_numpy(foreign_share(foreign, ids))
    mixes, shifts = [], []
    for logits, part, y, importance in zip(deep, wide.split(WIDTHS, 1), *topics(*targets(rows))):
        known = importance > 0
        d, w, s, y, importance = torch.from_numpy(logits)[known], part[known], share[known], y[known], importance[known]
        mix = torch.tensor([1.0, 0.0, 0.5, 0.0], requires_grad=True)
        shift = torch.zeros(logits.shape[1], requires_grad=True)
        opt = torch.optim.LBFGS([mix, shift], max_iter=200)

        def loss():
            opt.zero_grad()
            fused = d * (mix[0] + mix[1] * s) + w * (mix[2] + mix[3] * s) + shift
            value = (F.cross_entropy(fused, y, reduction="none") * importance).mean() / importance.mean()
            # Slopes over the foreign share are held back: some tasks have few foreign rows.
            value = value + 1e-3 * shift.square().mean() + 2e-3 * mix[1::2].square().sum()
            value.backward()
            return value

        opt.step(loss)
        # In units of the trunk's logits; the temperature of the manifest takes up the common factor.
        unit = abs(mix[0].item())
        mixes.append(mix.detach().numpy() / unit)
        shifts.append((shift.detach().numpy() / unit).astype(np.float32))
    return Fusion(table, small, scale, foreign, np.asarray(mixes, np.float32), shifts)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--out", type=Path, default=Path("build/wide.npy"))
    parser.add_argument("--epochs", type=int, default=24)
    parser.add_argument("--rate", type=float, default=0.06)
    parser.add_argument("--start-from", type=Path, help="go on with this table, at a rate of 0.04")
    args = parser.parse_args()
    args.out.parent.mkdir(parents=True, exist_ok=True)
    table = np.load(args.start_from) if args.start_from else None
    np.save(args.out, train(args.data, args.epochs, args.rate, log=lambda s: print(s, flush=True), start_from=table).astype(np.float32))
