"""Pairs of the NLI model out of sentences that were written about real texts, each true one beside a false one nearly like it.

`written/pages.txt` is about texts of others, which `written/texts.tsv` names and `texts` finds again: sets of the data folder, and
files of public repositories at a commit. `written/own.txt` is about texts of this project, which it holds. A twin is a line `T` with a
sentence that its text bears out, in other words, and a line `F/kind` with one that it does not: an opposite, another role, cause,
condition or scope, somebody else's opinion, what belongs to another thing, what is made up, planned and told as done.
"""

from __future__ import annotations

import hashlib
import re
import subprocess
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from . import data, nli_data
from .nli_data import SURE, UNSUPPORTED, Pair

HERE = Path(__file__).parent / "written"
SOURCE = "own/written"
HELD_ONE_IN = 12
ENOUGH = 0.95  # of the words that the wide premise has: a window with fewer may lack what the claim says


@dataclass
class Twin:
    """A text, a sentence that it bears out, one that it does not, and the kind of mistake."""

    text: str
    true: str
    false: str
    kind: str


def reference(text: str) -> str:
    """What a text is called in the files."""
    return hashlib.sha1(text.encode()).hexdigest()[:12]


def clean(text: str) -> str:
    """Markdown without front matter, code, tags and addresses of links."""
    for cut, flags in ((r"^---\n.*?\n---\n", re.S), (r"```.*?```", re.S), (r"<[^>]+>", 0), (r"\{\{.*?\}\}|\{%.*?%\}", re.S)):
        if cut.startswith("<"):
            text = re.sub(r"\[([^\]]*)\](?:\([^)]*\)|\[[^\]]*\])", r"\1", text)
        text = re.sub(cut, "", text, flags=flags)
    return re.sub(r"\n{3,}", "\n\n", text).strip()


def chapter(page: str) -> str:
    """The paragraphs of a chapter of a book."""
    parts = [re.sub(r"<[^>]+>", "", re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", p))).strip() for p in re.findall(r"<p[^>]*>(.*?)</p>", page, flags=re.S)]
    return "\n\n".join(parts).replace("\u2060", "").replace("\u200a", " ")


def cuts(text: str, lengths: set[int]):
    """Runs of paragraphs that have one of the numbers of words."""
    parts = [p.strip() for p in text.split("\n\n") if p.strip()]
    for i in range(len(parts)):
        used = 0
        for j in range(i, len(parts)):
            used += len(parts[j].split())
            if used in lengths:
                yield "\n\n".join(parts[i : j + 1])
            if used > max(lengths):
                break


def wholes(folder: Path, clones: Path, source: str):
    """The texts that may be, or may have, a text of the source: a set of the data folder, or `owner/name@commit:path`."""
    if "@" in source:
        repository, commit, path = re.fullmatch(r"([^@]+)@([^:]+):(.+)", source).groups()
        if not (clones / repository.replace("/", "+")).exists():
            return
        shown = subprocess.run(["git", "-C", str(clones / repository.replace("/", "+")), "show", f"{commit}:{path}"], stdout=subprocess.PIPE, check=True)
        text = shown.stdout.decode("utf-8", "replace")
        yield chapter(text) if path.endswith(".xhtml") else clean(text)
    elif source == "openstax_text":
        books = defaultdict(list)
        for r in data.read(folder, source):
            books[r["src"]].append(r["text"])
        yield from ("\n\n".join(b) for b in books.values())
    else:
        for r in data.read(folder, source):
            yield from (r.get("premise") or r.get("evidence") or r["text"], clean(r.get("text", "")))


def texts(folder: Path, clones: Path) -> dict[str, str]:
    """The texts of `texts.tsv` that are there, by their references; what no clone has is told."""
    wanted = defaultdict(dict)
    for line in (HERE / "texts.tsv").read_text().splitlines():
        if not line.startswith("#"):
            ref, words, source = line.split("\t")
            wanted[source][ref] = int(words)
    out = {}
    for source, refs in wanted.items():
        for whole in wholes(folder, clones, source):
            for text in (whole, *cuts(whole, set(refs.values()))):
                if (ref := reference(text)) in refs:
                    out[ref] = text
    lacking = sum(map(len, wanted.values())) - len(out)
    if lacking:
        print(f"{lacking} texts of written/texts.tsv are not there: clone their repositories into {clones}", flush=True)
    return out


def twins(lines: list[str]):
    """(true sentence, false one, kind of mistake) of the lines about a text."""
    true = ""
    for line in lines:
        if line.startswith("T "):
            true = line[2:].strip()
        elif line.startswith("F/") and true:
            kind, _, false = line[2:].partition(" ")
            yield true, false.strip(), kind
            true = ""


def read(found: dict[str, str]) -> list[Twin]:
    """All twins about texts of this project, and about those that were found."""
    out = []
    for part in re.split(r"(?m)^=== .* ===$", (HERE / "own.txt").read_text())[1:]:
        text, _, rest = part.partition("\n---")
        out += [Twin(text.strip(), *t) for t in twins(rest.splitlines())]
    for part in re.split(r"(?m)^=== ", (HERE / "pages.txt").read_text())[1:]:
        ref, *rest = part.splitlines()
        if text := found.get(ref.removesuffix(" ===")):
            out += [Twin(text, *t) for t in twins(rest)]
    return out


def held_out(twin: Twin) -> bool:
    """Whether a text chooses thresholds and trees instead of training the model."""
    return data.bucket(twin.text, HELD_ONE_IN) == 0


def shares(premise: str, claim: str) -> float:
    """Of the content words of a claim, those that a premise has."""
    wanted = set(nli_data.words(claim)) - nli_data.STOP
    return len(wanted & set(nli_data.words(premise))) / max(1, len(wanted))


def pairs(found: list[Twin]) -> list[Pair]:
    """What the product shows of the text, with either sentence: gathered sentences, as for each of the two and wider, and the best
    window, for the true one only where it says as much."""
    out = []
    for t in found:
        false = SURE["contradiction"] if t.kind == "opposite" else UNSUPPORTED
        near, wide = nli_data.gathered(t.text, t.true), nli_data.gathered(t.text, t.true, 2 * nli_data.WINDOW_WORDS)
        for premise in dict.fromkeys(p for p in (near, wide, nli_data.gathered(t.text, t.false)) if p):
            out += [Pair(premise, t.true, SURE["entailment"], SOURCE, t.kind), Pair(premise, t.false, false, SOURCE, t.kind)]
        if (window := nli_data.best_windows(t.text, t.true, 1)[0]) not in (near, wide):
            if shares(window, t.true) >= ENOUGH * shares(wide or window, t.true):
                out.append(Pair(window, t.true, SURE["entailment"], SOURCE, t.kind))
            out.append(Pair(window, t.false, UNSUPPORTED, SOURCE, t.kind))
    return out
