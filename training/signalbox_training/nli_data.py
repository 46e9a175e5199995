"""The pairs that the NLI model learns from: public sets, cut to what the product would show it.

A row's label is the set of answers that may be true: sets that only say "not supported" leave open
whether the premise contradicts the claim or is silent about it. Rows are split by premise, so that
no premise is on both sides; texts of the dev files are dropped.
"""

from __future__ import annotations

import difflib
import math
import random
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from . import data
from .nli_model import LABELS

WINDOW_WORDS = 48  # of a premise, as stream/evidence has it
GATHERED_WORDS = 72  # of what is gathered from a page, as stream/evidence has it, and the two numbers below
AGAIN, LEFT = 0.15, 0.2  # what a word counts that stands in a picked sentence already, beside what it still lacks; and what is left to find of it then
STOP = frozenset("a an and are as at be been but by for from had has have he her his in is it its not of on or she that the their they this to was were which who with".split())
WHOLE_WORDS = 70  # premises of public sets up to here stay whole
UNSUPPORTED = frozenset({1, 2})
ANY = frozenset({0, 1, 2})
SURE = {"entailment": frozenset({0}), "neutral": frozenset({1}), "contradiction": frozenset({2})}
OPEN = ("begin", "faithdial_audit", "wice")  # "neutral" there means not supported
CHANGED = ("num", "ent", "ant", "neg", "unneg", "added")  # the claim is a sentence of the premise with something changed
DEV = ("grounding_synthetic", "grounding_real", "grounding_wice")


@dataclass
class Pair:
    """A premise, a claim and which of LABELS may hold between them."""

    premise: str
    claim: str
    may: frozenset[int]
    src: str
    kind: str = ""  # the rule that made the claim, where one did
    marks: list[tuple[int, int]] | None = None  # code points of the claim that the premise does not bear out; None: not known
    unknown: list[tuple[int, int]] | None = None  # code points of which that is not known
    taught: list[float] | None = None  # logits of a teacher, beside what the labels say
    root: str = ""  # of a claim about a page: the claim that it was cut out of, or itself; empty for all others


def words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def sentences(text: str) -> list[str]:
    """A rough split, good enough for windows."""
    return [s for s in re.split(r"(?<=[.!?])[\"”’)]*\s+(?=[\"“(]?[A-Z0-9#])|\n+", text) if s and s.strip()]


def windows(text: str, size: int = WINDOW_WORDS) -> list[str]:
    """Every sentence with the neighbours that fit beside it into `size` words, the following ones first."""
    parts = sentences(text)
    lengths = [len(s.split()) for s in parts]
    found = []
    for i in range(len(parts)):
        begin, end, used = i, i + 1, lengths[i]
        while True:
            if end < len(parts) and used + lengths[end] <= size:
                used, end = used + lengths[end], end + 1
            elif begin > 0 and used + lengths[begin - 1] <= size:
                begin -= 1
                used += lengths[begin]
            else:
                break
        window = " ".join(parts[begin:end])
        if not found or found[-1] != window:
            found.append(window)
    return found


def best_windows(text: str, claim: str, count: int, size: int = WINDOW_WORDS) -> list[str]:
    """The windows that share most of the claim's words, rare ones counting more."""
    found = list(dict.fromkeys(windows(text, size)))
    if len(found) <= count:
        return found
    sets = [set(words(w)) for w in found]
    seen = Counter(w for s in sets for w in s)
    wanted = set(words(claim))
    order = sorted(range(len(found)), key=lambda i: -sum(1 / seen[w] for w in sorted(wanted & sets[i])))  # sorted: the sum must not depend on the run
    return [found[i] for i in order[:count]]


def gathered(text: str, claim: str, size: int = GATHERED_WORDS) -> str:
    """The sentences that hold most of the claim between them, about `size` words in their order: what Evidence.Gather does, which
    cuts sentences and words in its own way."""
    parts = list(dict.fromkeys(sentences(text)))
    sets, lengths = [set(words(s)) for s in parts], [len(s.split()) for s in parts]
    seen = Counter(w for s in sets for w in s)
    rarity = {w: math.log(1 + (len(parts) - seen[w] + 0.5) / (seen[w] + 0.5)) for w in sorted(set(words(claim)) - STOP) if w in seen}
    open_, picked, used = dict(rarity), [], 0
    while True:
        best, gain = -1, 0.0
        for i, s in enumerate(sets):
            if i not in picked and used + min(lengths[i], WINDOW_WORDS) <= size:
                g = sum(open_[w] + AGAIN * rarity[w] for w in rarity if w in s) / (lengths[i] + 15) ** 0.3
                if g > gain:
                    best, gain = i, g
        if best < 0:
            return " ".join(parts[i] for i in sorted(picked))
        picked.append(best)
        used += min(lengths[best], WINDOW_WORDS)
        open_ = {w: LEFT * v if w in sets[best] else v for w, v in open_.items()}


def changes(premise: str, claim: str) -> list[tuple[int, int]]:
    """The words of the claim that are not in the premise in this order, as code points."""
    spans = [m.span() for m in re.finditer(r"\w+|[^\w\s]", claim)]
    mine = [claim[a:b].lower() for a, b in spans]
    best: set[int] | None = None
    for sentence in sentences(premise) or [premise]:
        theirs = [t.lower() for t in re.findall(r"\w+|[^\w\s]", sentence)]
        blocks = difflib.SequenceMatcher(None, theirs, mine, autojunk=False).get_matching_blocks()
        left = set(range(len(mine))) - {b.b + k for b in blocks for k in range(b.size)}
        if best is None or len(left) < len(best):
            best = left
    return [spans[i] for i in sorted(best) if mine[i].isalnum()]


def dev_keys(folder: Path) -> set[str]:
    """Keys of the claims and facts that measure; very short ones say nothing."""
    texts = [t for name in DEV for r in data.read(folder, f"dev/{name}.jsonl") for t in (r["answer"], r["facts"])]
    return {k for k in map(data.key, texts) if len(k) > 20}


def read(folder: Path, name: str, banned: set[str], premise: str = "premise", claim: str = "hypothesis") -> list[dict]:
    """The rows of a set whose premise and claim are in no dev file."""
    return [r for r in data.read(folder, name) if banned.isdisjoint((data.key(r[premise]), data.key(r[claim])))]


def synthetic_window(r: dict) -> str:
    """The part of the premise of a row that is trained on: of any length up to a window, as facts are."""
    return best_windows(r["premise"], r["hypothesis"], 1, 16 + data.bucket(r["hypothesis"], WINDOW_WORDS - 15))[0]


def synthetic(folder: Path, banned: set[str]) -> list[Pair]:
    out = []
    for r in read(folder, "nli_synthetic", banned):
        out.append(Pair(synthetic_window(r), r["hypothesis"], SURE[r["label"]], "nli_synthetic", r["type"]))
    return out


def real(folder: Path, banned: set[str]) -> list[Pair]:
    out = []
    for r in read(folder, "nli_real", banned) + read(folder, "nli_mnli_snli_dev", banned):
        may = UNSUPPORTED if r["src"] in OPEN and r["label"] != "entailment" else SURE[r["label"]]
        premise = r["premise"]
        if len(premise.split()) > WHOLE_WORDS:
            premise = best_windows(premise, r["hypothesis"], 1)[0]
        out.append(Pair(premise, r["hypothesis"], may, r["src"]))
    return out


def part_of(claim: str, whole: str) -> bool:
    """Whether a claim may have been cut out of another one: three quarters of its words stand there."""
    mine = set(words(claim))
    return len(mine & set(words(whole))) >= 0.75 * len(mine)


def pages(folder: Path, banned: set[str]) -> tuple[list[dict], list[dict]]:
    """The rows of wice_claims and wice_tokens that have nothing to do with a dev row, each with its "root": WiCE asks about the parts
    of a claim as well as about the whole."""
    dev = [r["answer"] for r in data.read(folder, "dev/grounding_wice.jsonl")]
    related = {}

    def fresh(claim: str) -> bool:
        if claim not in related:
            related[claim] = any(part_of(claim, d) or part_of(d, claim) for d in dev)
        return not related[claim]

    whole = [r for r in read(folder, "wice_claims", banned) if fresh(r["hypothesis"])]
    parts = [r for r in read(folder, "wice_tokens", banned, "evidence", "claim") if fresh(r["claim"])]
    claims = sorted({r["hypothesis"] for r in whole})
    for r in parts:
        r["root"] = next((c for c in claims if part_of(r["claim"], c)), r["claim"])
    return [r | {"root": r["hypothesis"]} for r in whole], parts


def wice(folder: Path, banned: set[str]) -> list[Pair]:
    """Claims against pages. What no page supports, no part of it does; what a page supports, the sentences do that hold most of the
    claim. Claims with marks are all unsupported and shorter than the others: only their marks are learnt, not how they look."""
    out = []
    whole, parts = pages(folder, banned)
    for r in whole:
        page, claim = r["premise"], r["hypothesis"]
        seen = [gathered(page, claim), gathered(page, claim, 2 * WINDOW_WORDS)]
        may = SURE["entailment"]
        if r["label"] != "entailment":
            may, seen = UNSUPPORTED, seen + best_windows(page, claim, 1)
        out += [Pair(p, claim, may, "wice", root=r["root"]) for p in dict.fromkeys(seen)]
    for r in parts:
        claim, marks = joined(r["tokens"], r["unsupported"])
        for premise in (gathered(r["evidence"], claim), best_windows(r["evidence"], claim, 1)[0]):
            out.append(Pair(premise, claim, ANY, "wice_tokens", "", marks, elsewhere(premise, claim, marks), r["root"]))
    return out


def elsewhere(premise: str, claim: str, marks: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The words of the claim that a page bears out, as code points, of which this window of it says nothing: they may be borne out
    by it or by another one."""
    said = set(words(premise))
    free = lambda a, b: all(b <= begin or a >= end for begin, end in marks)
    return [m.span() for m in re.finditer(r"\w+", claim) if m[0].lower() not in said and free(*m.span())]


def joined(tokens: list[str], flags: list[int]) -> tuple[str, list[tuple[int, int]]]:
    """Tokens as one text, and the code points of those with a flag."""
    text, marks = "", []
    for token, flag in zip(tokens, flags):
        if text and token not in ".,;:!?)'":
            text += " "
        if flag:
            marks.append((len(text), len(text) + len(token)))
        text += token
    return text, marks


def public(folder: Path) -> list[Pair]:
    """All public pairs, without those of the dev files."""
    banned = dev_keys(folder)
    return synthetic(folder, banned) + real(folder, banned) + wice(folder, banned)


def held_out(row: Pair) -> bool:
    """Whether a pair chooses instead of training: one premise in fourteen. Claims about pages all train, for one of them is read in
    several premises; they choose in folds (nli_cross)."""
    return not row.root and data.bucket(row.premise, data.HELD_OUT_ONE_IN) == 0


def mark(row: Pair) -> None:
    """Find the marks of a row where its rule tells them."""
    if row.marks is None and row.may == SURE["entailment"]:
        row.marks = []
    if row.marks is None and row.kind in CHANGED:
        row.marks = changes(row.premise, row.claim)


def twins(a: Pair, b: Pair) -> bool:
    """Whether two pairs are a true and a false claim about the same premise."""
    return a.premise == b.premise and a.src == b.src and (a.may == SURE["entailment"]) != (b.may == SURE["entailment"])


def mix(rows: list[Pair], shares: dict[str, float], rng: random.Random, times=lambda r: 1.0) -> list[int]:
    """Row numbers of one epoch: of every source its share, more than 1 for several times, by what `times` says of a row. Of two
    twins of one share that follow each other both are taken or none."""
    part = lambda r: times(r) * shares.get(r.kind, shares.get(r.src, 1.0))
    out, i = [], 0
    while i < len(rows):
        share = part(rows[i])
        size = 2 if i + 1 < len(rows) and twins(rows[i], rows[i + 1]) and part(rows[i + 1]) == share else 1
        out += list(range(i, i + size)) * (int(share) + (rng.random() < share % 1))
        i += size
    return out


def label_names(row: Pair) -> str:
    return "/".join(LABELS[i] for i in sorted(row.may))
