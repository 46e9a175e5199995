"""The scan: a linear model over hashed n-grams that ranks the windows of a long prompt for the trunk.

It mirrors classify/scan of the Go side: the same symbols, hashes, cuts and spans. `--golden` writes
vectors from which the Go tests prove that. Training is L-BFGS on windows of many sizes, so that the
evidence of a short span and of a whole window mean the same:

    evidence = bias + scale * (sum of int8 weights) / sqrt(number of n-grams)

    python -m signalbox_training.scan train --data DATA --out scan.bin
    python -m signalbox_training.scan sources --data DATA        (leave-one-source-out)
    python -m signalbox_training.scan planted --data DATA --scan scan.bin --bundle models/default
    python -m signalbox_training.scan golden --scan small.bin --out classify/scan/testdata
"""

from __future__ import annotations

import argparse
import json
import math
import random
import struct
import time
import unicodedata
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy.optimize
import scipy.sparse

from . import attacks as attack_rows
from . import data, scan_texts, synth

BITS = 19
SPANS = (2, 4)  # blocks
BLOCK, SLACK = 64, 24
SIZE, STRIDE = 512, 384
MAGIC, VERSION = b"sbxscan\n", 1

U = np.uint64
K = [U(k) for k in (
    0xE220A8397B1DCDAF, 0x6E789E6AA1B965F5, 0x06C45D188009454F, 0xF88BB8A8724C81ED, 0x1B39896A51A8749B,
    0x53CB9F0C747EA2EB, 0x2C829ABE1F4532E1, 0xC584133AC916AB3D, 0x3EE5789041C98AC3, 0xF3B8488C368CB0A7)]
KW, SALT4, SALT5, SALTW = U(0x657EECDD3CB13D09), U(0xC2D326E0055BDEF7), U(0x8621A03FE0BBDB7B), U(0x8E1F7555983AA92F)
KW_INVERSE = U(pow(int(KW), -1, 1 << 64))
SPACE, SKIP = 32, -1
SPECIAL_LETTERS = {
    "ß": "s", "Æ": "a", "æ": "a", "Ø": "o", "ø": "o", "Ð": "d", "ð": "d", "Þ": "t", "þ": "t", "×": "*", "÷": "/", "ı": "i", "Ĳ": "i", "ĳ": "i", "ĸ": "k",
    "Ŋ": "n", "ŋ": "n", "Œ": "o", "œ": "o", "ſ": "s", "Ł": "l", "ł": "l", "Đ": "d", "đ": "d", "Ħ": "h", "ħ": "h", "Ŧ": "t", "ŧ": "t", "ŉ": "n", "Ŀ": "l", "ŀ": "l",
}


def symbol(c: int) -> int:
    """The folded symbol of a code point below 0x10000; see fold.go."""
    if c < 0x80:
        return SPACE if c <= 32 or c == 127 else c + 32 if 65 <= c <= 90 else 48 if 48 <= c <= 57 else c
    if c < 0xC0:
        return {0xA0: SPACE, 0xAD: SKIP}.get(c, c)
    if c < 0x180:
        ch = chr(c)
        return ord(SPECIAL_LETTERS.get(ch) or unicodedata.normalize("NFD", ch)[0].lower())
    if 0x300 <= c < 0x370 or c == 0x640 or 0x64B <= c <= 0x652 or c == 0xFEFF or 0xFE00 <= c <= 0xFE0F:
        return SKIP
    if 0x391 <= c <= 0x3A9 or 0x410 <= c <= 0x42F:
        return c + 0x20
    if 0x400 <= c <= 0x40F:
        return c + 0x50
    if c == 0x451:
        return 0x435
    if 0x1EA0 <= c <= 0x1EFF:
        return c | 1
    if 0x2000 <= c <= 0x2064:
        if c <= 0x200A or c in (0x2028, 0x2029, 0x202F, 0x205F):
            return SPACE
        if c <= 0x200F or 0x202A <= c <= 0x202E or c >= 0x2060:
            return SKIP
        return ord("-") if c <= 0x2015 else ord("'") if 0x2018 <= c <= 0x201B else ord('"') if 0x201C <= c <= 0x201F else c
    if c == 0x3000:
        return SPACE
    if 0xFF01 <= c <= 0xFF5E:
        return symbol(c - 0xFEE0)
    return c


def ideograph(s: np.ndarray) -> np.ndarray:
    return ((s >= 0x3040) & (s <= 0x30FF)) | ((s >= 0x3400) & (s <= 0x9FFF)) | ((s >= 0xF900) & (s <= 0xFAFF)) | ((s >= 0x20000) & (s <= 0x3FFFF))


def in_word(s: np.ndarray) -> np.ndarray:
    ascii_word = ((s >= 97) & (s <= 122)) | (s == 48) | (s == 39) | (s == 95)
    other = (s >= 0x180) & (s < 0x1F000) & ~((s >= 0x2000) & (s <= 0x2BFF)) & ~((s >= 0x3000) & (s <= 0x303F)) & ~((s >= 0xFE00) & (s <= 0xFFFF))
    return np.where(s < 0x80, ascii_word, other & ~ideograph(s))


class Reader:
    """Turns texts into n-gram buckets."""

    def __init__(self, bits: int = BITS):
        self.shift = U(64 - bits)
        self.table = np.array([symbol(c) for c in range(0x10000)], np.int64)

    def symbols(self, text: str) -> tuple[np.ndarray, np.ndarray]:
        """(symbols, byte offset after each) of a text."""
        points = np.frombuffer(text.encode("utf-32-le"), "<u4").astype(np.int64)
        ends = np.cumsum(1 + (points >= 0x80) + (points >= 0x800) + (points >= 0x10000))
        s = np.where(points < 0x10000, self.table[np.minimum(points, 0xFFFF)], points)
        s, ends = s[s != SKIP], ends[s != SKIP]
        before = np.concatenate([[SPACE], s[:-1]])
        keep = ~((s == SPACE) & (before == SPACE))
        return s[keep], ends[keep]

    def ngrams(self, texts: list[str]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(bucket, text number, byte offset at which it is complete) of every n-gram of the texts."""
        parts = [self.symbols(t) for t in texts]
        sizes = np.array([len(p[0]) for p in parts])
        if sizes.sum() == 0:
            return (np.zeros(0, np.int64),) * 3
        s = np.concatenate([p[0] for p in parts])
        ends = np.concatenate([p[1] for p in parts])
        text = np.repeat(np.arange(len(texts)), sizes)
        starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
        local = np.arange(len(s)) - starts[text]
        length = np.array([len(t.encode()) for t in texts])

        def back(n: int) -> np.ndarray:
            out = np.full(len(s), SPACE, np.int64)
            out[n:] = s[:-n] if n else s
            out[local < n] = SPACE
            return out.astype(U)

        h3 = s.astype(U) * K[0] + back(1) * K[1] + back(2) * K[2]
        h4 = h3 + back(3) * K[3] + SALT4
        h5 = h4 + back(4) * K[4] + SALT5
        found, where, at = [h3, h4, h5], [text] * 3, [ends] * 3
        words, word_text, word_at = self.words(s, ends, text, length)
        if len(words):
            def before(n: int) -> np.ndarray:
                out = np.zeros(len(words), U)
                out[n:] = np.where(word_text[n:] == word_text[:-n], words[:-n], U(0))
                return out

            w1, w2 = before(1), before(2)
            found += [words * K[5], words * K[6] + w1 * K[7], words * K[8] + w1 * K[9] + w2 * K[5]]
            where += [word_text] * 3
            at += [word_at] * 3
        return (np.concatenate(found) >> self.shift).astype(np.int64), np.concatenate(where), np.concatenate(at)

    @staticmethod
    def words(s, ends, text, length) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(hash, text number, byte offset at which it is known to have ended) of every word."""
        alone, inside = ideograph(s), in_word(s)
        same_next = np.concatenate([text[1:] == text[:-1], [False]])
        inside_next = np.concatenate([inside[1:], [False]]) & same_next
        inside_before = np.concatenate([[False], inside[:-1]]) & np.concatenate([[False], text[1:] == text[:-1]])
        first, last = np.flatnonzero(inside & ~inside_before), np.flatnonzero(inside & ~inside_next)
        # The hash of a word is sum (c_j + SALTW) KW^(last-j+1); prefix sums over KW^-j give it at once.
        powers = np.full(len(s) + 2, KW, U)
        powers[0] = U(1)
        powers = np.multiply.accumulate(powers)
        inverse = np.full(len(s) + 1, KW_INVERSE, U)
        inverse[0] = U(1)
        inverse = np.multiply.accumulate(inverse)
        sums = np.concatenate([[U(0)], np.add.accumulate((s.astype(U) + SALTW) * inverse[: len(s)])])
        hashed = (sums[last + 1] - sums[first]) * powers[last + 1]
        after = np.where(same_next[last], ends[np.minimum(last + 1, len(s) - 1)], length[text[last]])
        one = np.flatnonzero(alone)
        position = np.concatenate([last, one])
        order = np.argsort(position, kind="stable")
        h = np.concatenate([hashed, (s[one].astype(U) + SALTW) * KW])[order]
        h ^= h >> U(29)
        return h, text[position[order]], np.concatenate([after, ends[one]])[order]


def cuts(raw: bytes) -> list[int]:
    """The byte offsets between blocks, with 0 and the end; see cut in scan.go."""
    total = max((len(raw) + BLOCK - 1) // BLOCK, 1)
    out = [0]
    for k in range(1, total):
        nominal = k * BLOCK
        at = next((i for i in range(nominal, nominal - SLACK, -1) if raw[i - 1] in b" \n\t\r"), -1)
        if at < 0:
            at = next((i for i in range(nominal, nominal - 4, -1) if raw[i] & 0xC0 != 0x80), nominal)
        out.append(at)
    return out + [len(raw)]


@dataclass
class Model:
    table: np.ndarray  # [2^bits] int8
    scale: float
    bias: float
    spans: tuple[int, ...] = SPANS

    @property
    def bits(self) -> int:
        return len(self.table).bit_length() - 1

    def pack(self) -> bytes:
        spans = bytes(self.spans) + bytes(4 - len(self.spans))
        head = MAGIC + struct.pack("<HBB", VERSION, self.bits, len(self.spans)) + spans + struct.pack("<ffI", self.scale, self.bias, 0)
        weights = self.table.astype(np.int8).tobytes()
        return head + struct.pack("<I", zlib.crc32(head + weights)) + weights

    @staticmethod
    def unpack(raw: bytes) -> Model:
        bits, spans = raw[10], raw[11]
        scale, bias = struct.unpack("<ff", raw[16:24])
        assert raw[:8] == MAGIC and len(raw) == 32 + (1 << bits)
        return Model(np.frombuffer(raw[32:], np.int8), scale, bias, tuple(raw[12 : 12 + spans]))

    def windows(self, reader: Reader, text: str, size: int = SIZE, stride: int = STRIDE) -> list[tuple[int, int, float]]:
        """(start, end, evidence) of each window; Windows in scan.go."""
        at = cuts(text.encode())
        total = len(at) - 1
        width = min(max((size + BLOCK - 1) // BLOCK, 1), total)
        step = min(max((stride + BLOCK - 1) // BLOCK, 1), width)
        bucket, _, offset = reader.ngrams([text])
        block = np.searchsorted(at[1:], offset)
        sums = np.concatenate([[0], np.cumsum(np.bincount(block, self.table[bucket].astype(np.float64), total))])
        counts = np.concatenate([[0], np.cumsum(np.bincount(block, minlength=total))])

        def evidence(span: int) -> np.ndarray:
            n = (counts[span:] - counts[:-span]).astype(np.float64)
            return self.bias + np.where(n > 0, self.scale * (sums[span:] - sums[:-span]) / np.sqrt(np.maximum(n, 1)), 0)

        starts = list(range(0, total - width + 1, step))
        if not starts or starts[-1] + width != total:
            starts.append(total - width)
        whole = evidence(width)
        parts = {span: evidence(span) for span in self.spans if span < width}
        return [
            (at[s], at[s + width], max([whole[s]] + [p[s : s + width - span + 1].max() for span, p in parts.items()]))
            for s in starts
        ]


def pieces(text: str, rng: random.Random, low: int, high: int) -> list[str]:
    """The text in pieces of low to high characters, cut at spaces where there are any."""
    out, at = [], 0
    while at < len(text):
        end = at + rng.randint(low, high)
        if end < len(text):
            space = text.rfind(" ", at + low // 2, end)
            end = space + 1 if space > 0 else end
        out.append(text[at:end])
        at = end
    return out


def plant(attack: str, host: str, rng: random.Random, size: int = SIZE) -> str:
    """An attack of at most 400 characters somewhere in harmless text, about `size` characters in all."""
    if len(attack) > 400:
        start = attack.rfind(" ", 0, rng.randrange(len(attack) - 200) + 1) + 1
        attack = attack[start : start + rng.randint(100, 400)]
    room = max(size - len(attack), 0)
    cut = rng.randint(0, min(room, len(host)))
    cut = host.rfind(" ", 0, cut) + 1
    return host[:cut] + attack + rng.choice([" ", "\n", "\n\n"]) + host[cut:room]


SHORT_SETS = (
    ("general_prompts", "text", 8000), ("codealpaca", "text", 5000), ("gpteacher_codegen", "text", 3000), ("clinc150", "text", 3000), ("hwu64", "text", 2000), ("snips", "text", 2000),
    ("domain_other", "text", 5000), ("medquad", "text", 3000), ("gsm8k", "text", 3000), ("mmlu", "text", 4000), ("mmlu_pro", "text", 4000), ("exams_multilingual", "text", 12000),
    ("openstax_questions", "text", 5000), ("domain_synthetic", "text", 4000), ("fact_check", "text", 4000), ("complexity_coarse", "text", 5000), ("pii_negatives", "text", 3000),
    ("pii_synthetic", "text", 10000), ("ner_real", "text", 4000), ("nli_multilingual", "premise", 12000), ("nli_mnli_snli_dev", "premise", 6000), ("nli_real", "premise", 5000),
    ("stsb_multi", "a", 25000), ("wice_claims", "premise", 900), ("wiki_split", "a", 5000),
)


def source_group(src: str) -> str:
    """The collection that a row of the jailbreak set comes from."""
    return "/".join(src.split("/")[:2]) if src.startswith("syn/") else src.split("/")[0]


def held_out(text: str) -> bool:
    return data.bucket(text, data.HELD_OUT_ONE_IN) == 0


def benign_texts(folder: Path, rng: random.Random, banned: set[str]) -> tuple[list[str], list[str]]:
    """(short texts, long paragraphs), none of them in dev or held out."""
    short, long = [], []
    for name, field, count in SHORT_SETS:
        rows = [r[field] for r in data.read(folder, name)]
        rows = [t for t in rows if t and data.key(t) not in banned and not held_out(t)]
        rng.shuffle(rows)
        for t in rows[:count]:
            (long if len(t) > 600 else short).append(t)
    texts = [r["text"] for r in data.read(folder, "openstax_text")]
    texts = [t for t in texts if data.key(t) not in banned and not held_out(t)]
    rng.shuffle(texts)
    return short, long + texts[:40_000]


@dataclass
class Examples:
    texts: list[str]
    label: list[int]
    weight: list[float]
    origin: list[int]  # number of the long attack that the example is a piece of, -1 for others

    def add(self, text: str, label: int, weight: float = 1.0, origin: int = -1) -> None:
        self.texts.append(text)
        self.label.append(label)
        self.weight.append(weight)
        self.origin.append(origin)


def examples(folder: Path, leave_out: tuple[str, ...] = (), seed: int = 5) -> Examples:
    """Training windows of 60 to 600 characters."""
    rng, banned = random.Random(seed), data.dev_keys(folder)
    short, long = benign_texts(folder, rng, banned)
    out = Examples([], [], [], [])
    attacks, harmless = [t for t, y in synth.jailbreak_texts() if y], [t for t, y in synth.jailbreak_texts() if not y]
    attacks += scan_texts.english(rng, 3500)
    foreign, clean = scan_texts.world(rng, 60)
    attacks += foreign
    harmless += clean
    documents = []
    for r in attack_rows.rows(folder, leave_out):
        if data.key(r.text) in banned or held_out(r.text):
            continue
        if 1 in (r.jailbreak, r.injection):
            attacks.append(r.text)
        elif r.host:
            documents.append(r.text)
        elif r.src != "doc/quotes attacks":
            harmless.append(r.text)
    harmless += documents
    hosts = []
    for text in rng.sample(long, 16_000) + rng.choices(documents, k=14_000):
        host = text
        while len(host) < SIZE + 50:
            host += "\n" + rng.choice(documents if rng.random() < 0.5 else long)
        hosts.append(host)
    for number, attack in enumerate(attacks):
        if len(attack) <= 600:
            out.add(attack, 1)
        else:
            parts = pieces(attack, rng, 120, 512)
            for part in parts:
                out.add(part, 1, 1 / math.sqrt(len(parts)), number)
        for _ in range(2 if len(attack) > 60 else 1):
            host = rng.choice(hosts) if rng.random() < 0.6 else " ".join(rng.choice(short) for _ in range(8))
            out.add(plant(attack, host, rng, rng.choice([160, 256, 384, 512])), 1)
    for text in harmless:
        for part in pieces(text, rng, 200, 512)[:6]:
            out.add(part, 0)
    for host in hosts:
        size = rng.choice([128, 128, 256, 512])
        start = host.rfind(" ", 0, rng.randrange(len(host) - size) + 1) + 1
        out.add(host[start : start + size], 0)
    for _ in range(26_000):
        joined = rng.choice([" ", "\n", "\n\n"]).join(rng.choice(short) for _ in range(rng.choice([1, 1, 1, 3, 6])))
        out.add(joined[: rng.choice([128, 256, 512])], 0)
    for text in rng.sample(short, 20_000):
        out.add(text[:512], 0)
    return out


def matrix(reader: Reader, texts: list[str], chunk: int = 2000) -> scipy.sparse.csr_matrix:
    """[texts, 2^bits] float32: how often each n-gram occurs, by the root of the number of n-grams."""
    parts = []
    columns = 1 << (64 - int(reader.shift))
    for i in range(0, len(texts), chunk):
        bucket, text, _ = reader.ngrams(texts[i : i + chunk])
        rows = min(chunk, len(texts) - i)
        scale = 1 / np.sqrt(np.maximum(np.bincount(text, minlength=rows), 1))
        order = np.argsort(text, kind="stable")
        starts = np.concatenate([[0], np.cumsum(np.bincount(text, minlength=rows))])
        parts.append(scipy.sparse.csr_matrix((scale[text[order]].astype(np.float32), bucket[order].astype(np.int32), starts.astype(np.int64)), (rows, columns)))
    return scipy.sparse.vstack(parts, format="csr")


def fit(x: scipy.sparse.csr_matrix, y: np.ndarray, weight: np.ndarray, decay: float, rounds: int, start=None, log=print):
    """Logistic regression with an L2 penalty; returns (weights, bias)."""
    weight = (weight / weight.sum()).astype(np.float64)
    xt = x.T

    def loss(p):
        w, b = p[:-1].astype(np.float32), p[-1]
        z = np.asarray(x @ w, np.float64) + b
        value = (weight * np.logaddexp(0, -np.where(y == 1, z, -z))).sum() + 0.5 * decay * float(p[:-1] @ p[:-1])
        residual = weight * (1 / (1 + np.exp(-z)) - y)
        gradient = np.empty_like(p)
        gradient[:-1] = np.asarray(xt @ residual.astype(np.float32), np.float64) + decay * p[:-1]
        gradient[-1] = residual.sum()
        return value, gradient

    begin = time.time()
    p0 = np.zeros(x.shape[1] + 1) if start is None else start
    found = scipy.optimize.minimize(loss, p0, jac=True, method="L-BFGS-B", options={"maxiter": rounds, "maxcor": 6})
    log(f"loss {found.fun:.4f} after {found.nit} rounds, {time.time() - begin:.0f} s")
    return found.x


def train(folder: Path, leave_out: tuple[str, ...] = (), bits: int = BITS, decay: float = 2e-6, rounds: int = 50, log=print) -> Model:
    begin = time.time()
    reader, ex = Reader(bits), examples(folder, leave_out)
    log(f"{len(ex.texts)} windows, {sum(ex.label)} attacks, {time.time() - begin:.0f} s")
    x = matrix(reader, ex.texts)
    log(f"{x.nnz / 1e6:.0f} M n-grams, {time.time() - begin:.0f} s")
    y, weight, origin = np.array(ex.label), np.array(ex.weight), np.array(ex.origin)
    weight[y == 1] *= 0.5 * weight[y == 0].sum() / weight[y == 1].sum()
    p = fit(x, y, weight, decay, rounds // 2, log=log)
    # Much of a long attack is harmless by itself: its lesser half teaches nothing more.
    z = np.asarray(x @ p[:-1].astype(np.float32))
    for number in np.unique(origin[origin >= 0]):
        at = np.flatnonzero(origin == number)
        if len(at) > 1:
            weight[at[z[at] < np.median(z[at])]] = 0
    p = fit(x, y, weight, decay, rounds, p, log)
    return quantise(p)


def quantise(p: np.ndarray) -> Model:
    """int8 weights: the largest ones are cut so that the many small ones keep their digits."""
    w, b = p[:-1], p[-1]
    limit = np.quantile(np.abs(w[w != 0]), 0.9999) if (w != 0).any() else 1.0
    scale = float(limit / 127)
    return Model(np.clip(np.round(w / scale), -127, 127).astype(np.int8), scale, float(b))


def best(model: Model, reader: Reader, texts: list[str]) -> np.ndarray:
    """The strongest window's evidence of each text."""
    return np.array([max(w[2] for w in model.windows(reader, t)) for t in texts])


def area(score: np.ndarray, positive: np.ndarray) -> float:
    order = np.argsort(score, kind="stable")
    ranks = np.empty(len(score))
    ranks[order] = np.arange(1, len(score) + 1)
    for value in np.unique(score[np.flatnonzero(np.diff(np.sort(score)) == 0)]) if len(score) > 1 else []:
        at = score == value
        ranks[at] = ranks[at].mean()
    n = positive.sum()
    return float((ranks[positive].sum() - n * (n + 1) / 2) / (n * (len(score) - n)))


def sources(folder: Path, groups: list[str], log=print) -> None:
    """Leave one source out: train without it, rank its attacks against the harmless dev rows and its own."""
    rows = data.read(folder, "jailbreak")
    calm = [r["text"] for r in data.read(folder, "dev/jailbreak.jsonl") if r["label"] == "benign"]
    for group in groups:
        model = train(folder, (group,), log=lambda _: None)
        reader = Reader(model.bits)
        attack = [r["text"] for r in rows if source_group(r["src"]) == group and r["label"] in ("jailbreak", "injection")]
        own = [r["text"] for r in rows if source_group(r["src"]) == group and r["label"] == "benign"]
        high, low, kin = best(model, reader, attack), best(model, reader, calm), best(model, reader, own) if own else np.zeros(0)
        score = np.concatenate([high, low])
        line = f"{group}: {len(attack)} attacks, AUC {area(score, np.arange(len(score)) < len(high)):.4f} against {len(low)} harmless dev rows"
        at = np.quantile(low, 0.99)
        line += f", recall {np.mean(high > at):.3f} at 1 % false alarms"
        if len(own):
            score = np.concatenate([high, kin])
            line += f"; AUC {area(score, np.arange(len(score)) < len(high)):.4f} against {len(own)} harmless rows of its own"
        log(line)


def golden_texts() -> list[str]:
    """Texts of this project's own that touch every rule of the reader."""
    rng = random.Random(3)
    attacks, clean = scan_texts.world(rng, 1)
    odd = [
        "", " ", "a", "it's", "\t\r\n  x", "Ünïcödé ÀÉÎ ßø Œuvre ŁÓDŹ", "zero\u200bwidth\u00adand\u00a0spaces\u3000here", "e\u0301 combining i\u0336g\u0336", "ＦＵＬＬ ｗｉｄｔｈ ９９",
        "“quoted” — ‘dashes’ – … ‹x›", "Ёлка и ЩИ, ѝ Ђ Џ", "ΑΒΓ αβγ Ωμέγα", "漢字かなカナ mixed 한국어 text。、", "👩‍👩‍👧 🏳️‍🌈 emoji \U0001d4d8𝓰𝓷", "𠀀𠀁 rare", "12345 67-89 0x1f a1b2", "مُحَمَّد ـــ نص", "x" * 200, "word " * 60,
        "Việt Nam ĐẶC BIỆT ỹ", "\ufeffbom", "under_score don't", "\x00\x7f control", "é" * 150, "汉" * 200,
    ]
    long = "\n\n".join(a + " " + c for a, c in zip(attacks, clean))
    return odd + [long, long.replace(" ", ""), " ".join(scan_texts.english(rng, 12))]


def golden(out: Path) -> None:
    """A small model with random weights and what its windows are, for the Go tests."""
    rng = np.random.default_rng(9)
    model = Model(rng.integers(-127, 128, 1 << 12).astype(np.int8), 0.03125, -0.5)
    (out / "golden.bin").write_bytes(model.pack())
    reader, cases = Reader(model.bits), []
    for text in golden_texts():
        for size, stride in ((512, 384), (128, 64), (300, 1000)):
            if text and (size == 512 or len(text) > 64):
                found = [[a, b, round(1 / (1 + math.exp(-z)), 7)] for a, b, z in model.windows(reader, text, size, stride)]
                cases.append({"text": text, "size": size, "stride": stride, "windows": found})
    lines = ",\n".join(json.dumps(c, ensure_ascii=True) for c in cases)
    (out / "golden.json").write_text("[\n" + lines + "\n]\n")


@dataclass
class Trunk:
    """The jailbreak head of a bundle, one window of 128 tokens at a time."""

    session: object
    tok: object
    temperature: float
    threshold: float
    size: int = 128
    stride: int = 96

    def rows(self, text: str) -> tuple[list[list[int]], list[tuple[int, int]]]:
        """(rows of ids, character range of each)."""
        from . import batches

        e = self.tok.encode(text, add_special_tokens=False)
        size, starts = self.size - 2, [0]
        while starts[-1] + size < len(e.ids):
            starts.append(starts[-1] + self.stride)
        spans = [(e.offsets[s][0], e.offsets[min(s + size, len(e.ids)) - 1][1]) for s in starts]
        return [batches.wrap(e.ids[s : s + size]) for s in starts], spans

    def flags(self, rows: list[list[int]]) -> np.ndarray:
        from . import batches

        parts = []
        for i in range(0, len(rows), 8):
            ids, mask = batches.pad(rows[i : i + 8])
            parts.append(self.session.run(["jailbreak_logits"], {"input_ids": ids.numpy(), "attention_mask": mask.numpy()})[0])
        z = np.concatenate(parts) / self.temperature
        return 1 / (1 + np.exp(z[:, 0] - z[:, 1])) >= self.threshold


def trunk(bundle: Path) -> Trunk:
    import yaml

    from . import batches, evaluate

    task = next(t for t in yaml.safe_load((bundle / "bundle.yaml").read_text())["tasks"] if t["name"] == "jailbreak")
    return Trunk(evaluate.session(bundle / "model_int8.onnx"), batches.tokenizer(), task["temperature"], task["threshold"])


def found(windows: list[tuple[int, int, float]], span: tuple[int, int], top: int) -> bool:
    """Whether one of the `top` windows read, the first and the last among them, overlaps at least a third of the span or of itself."""
    middle = sorted(range(1, len(windows) - 1), key=lambda i: -windows[i][2])[: max(top - 2, 0)]
    for i in {0, len(windows) - 1, *middle}:
        common = min(windows[i][1], span[1]) - max(windows[i][0], span[0])
        if 3 * common >= min(span[1] - span[0], windows[i][1] - windows[i][0]):
            return True
    return False


def planted(folder: Path, model: Model, bundle: Path, cases: int, host_kind: str, top: int = 12, size: int = 800_000, log=print) -> None:
    """Dev attacks at random places of long texts made of harmless paragraphs that were held out. The trunk reads the windows that overlap the attack
    (reading every window finds it exactly when one of them is flagged), and, of the windows that the scan picks,
    those that overlap it: the cascade finds the attack when the trunk flags one of these."""
    rng, reader, net = random.Random(31), Reader(model.bits), trunk(bundle)
    attacks = [r for r in data.read(folder, "dev/jailbreak.jsonl") if r["label"] == "jailbreak"]
    names = [("openstax_text", "text", 0)] if host_kind == "textbook" else SHORT_SETS
    paragraphs = [r[field] for name, field, _ in names for r in data.read(folder, name) if r[field] and held_out(r[field])]
    rows = rng.sample(attacks, min(cases, len(attacks)))
    totals, missed = {"flagged": 0, "overlap": 0, "cascade": 0}, []
    alarms = read = 0
    for number, row in enumerate(rows):
        if number % 10 == 0:
            parts, length = [], 0
            while length < size:
                parts.append(rng.choice(paragraphs))
                length += len(parts[-1].encode()) + 2
            host = "\n\n".join(parts)
            host_windows = None
        cut = host.rfind("\n\n", 0, rng.randrange(len(host))) + 2
        cut = host.find(" ", cut) + 1 if rng.random() < 0.5 else cut
        text = host[:cut] + row["text"] + "\n" + host[cut:]
        start = len(host[:cut].encode())
        span = (start, start + len(row["text"].encode()))
        windows = model.windows(reader, text)
        if host_windows is None:
            host_windows = windows
            sample, _ = net.rows(text[len(text) // 3 : len(text) // 3 + 8_000])
            alarms, read = alarms + int(net.flags(sample).sum()), read + len(sample)
        # The trunk, reading everything: the windows around the attack, in a cut of the text that keeps 1,000 characters before and after.
        near = text[max(cut - 1000, 0) : cut + len(row["text"]) + 1000]
        ids, ranges = net.rows(near)
        offset = min(cut, 1000)
        touching = [i for i, r in enumerate(ranges) if r[1] > offset and r[0] < offset + len(row["text"])]
        if not net.flags([ids[i] for i in touching]).any():
            continue
        totals["flagged"] += 1
        hit = found(windows, span, top)
        totals["overlap"] += hit
        raw, middle = text.encode(), sorted(windows[1:-1], key=lambda w: -w[2])[: top - 2]
        picked = [w for w in [windows[0], windows[-1], *middle] if w[1] > span[0] and w[0] < span[1]]
        caught = any(net.flags(net.rows(raw[a:b].decode())[0]).any() for a, b, _ in picked)
        totals["cascade"] += caught
        if not caught:
            rank = sum(w[2] > max(v[2] for v in windows if v[1] > span[0] and v[0] < span[1]) for w in windows)
            missed.append((row["src"], len(row["text"]), rank))
    log(f"{len(rows)} cases, trunk flags {totals['flagged']}, window read in {totals['overlap']}, flagged by the cascade in {totals['cascade']} = {totals['cascade'] / max(totals['flagged'], 1):.3f}")
    log(f"trunk false alarms on harmless windows: {alarms} of {read}; missed (source, characters, rank of its best window): {missed}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["train", "sources", "planted", "golden"])
    parser.add_argument("--data", type=Path)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--scan", type=Path)
    parser.add_argument("--bundle", type=Path)
    parser.add_argument("--bits", type=int, default=BITS)
    parser.add_argument("--decay", type=float, default=2e-6)
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--groups", default="garak,syn/composite,syn/injection,purplellama,bipia")
    parser.add_argument("--host", choices=["textbook", "mixed"], default="textbook")
    parser.add_argument("--cases", type=int, default=150)
    args = parser.parse_args()
    if args.what == "train":
        args.out.write_bytes(train(args.data, (), args.bits, args.decay, args.rounds).pack())
    elif args.what == "sources":
        sources(args.data, args.groups.split(","))
    elif args.what == "golden":
        golden(args.out)
    else:
        planted(args.data, Model.unpack(args.scan.read_bytes()), args.bundle, args.cases, args.host)


if __name__ == "__main__":
    main()
