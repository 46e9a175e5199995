"""The training mix: reads the data folder, applies the label rules and splits off a held-out slice.

Every row carries the labels of the tasks that its source knows, so that one forward pass serves
all losses. A text that occurs in two sets becomes one row with the labels of both.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import random
import re
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from .model import DOMAINS
from . import everyday, synth

NONE = -1
HELD_OUT_ONE_IN = 14


@dataclass
class Row:
    """One training text. `weight` scales the domain loss only."""

    text: str
    domain: int = NONE
    jailbreak: int = NONE
    weight: float = 1.0
    src: str = ""
    complexity: tuple[float, float, float] | None = None  # probabilities of low, medium, high
    factcheck: int = NONE
    entities: list[dict] | None = None  # type, start, end in code points; None where nobody looked
    partial: bool = False  # entities are only people, places and organisations; others are not marked
    variant: bool = False  # of another training row, so never held out
    injection: int = NONE
    host: bool = False  # a harmless document in which attacks may be planted
    judged: bool = False  # its domain was told by reading: in an epoch it stands with the rows of its other labels

    def take(self, other: Row) -> None:
        """Add the labels that this row lacks."""
        if self.domain == NONE:
            self.domain, self.weight = other.domain, other.weight
        if other.jailbreak == 1 or self.jailbreak == NONE:
            self.jailbreak = other.jailbreak
        if other.injection == 1 or self.injection == NONE:
            self.injection = other.injection
        self.host = self.host and 1 not in (self.jailbreak, self.injection)
        if self.complexity is None:
            self.complexity = other.complexity
        if self.factcheck == NONE:
            self.factcheck = other.factcheck
        if self.entities is None:
            self.entities, self.partial = other.entities, other.partial


def read(data: Path, name: str) -> list[dict]:
    """Read every row of a data set folder, or of one .jsonl file."""
    path = data / name
    files = sorted(path.glob("*.jsonl.gz")) if path.is_dir() else [path]
    rows = []
    for file in files:
        with gzip.open(file, "rt") if file.suffix == ".gz" else open(file) as handle:
            rows += [json.loads(line) for line in handle]
    return rows


def key(text: str) -> str:
    """Comparison key for duplicates: letters and digits only, lower case."""
    return re.sub(r"[\W_]+", " ", text.lower()).strip()


def bucket(text: str, parts: int) -> int:
    """Stable pseudo-random bucket of a text."""
    return int.from_bytes(hashlib.blake2b(key(text).encode(), digest_size=8).digest(), "big") % parts


def subsample(rows: list, per_group: int, group, seed: int = 1) -> list:
    """Keep at most `per_group` rows of every group, chosen by seed."""
    groups = defaultdict(list)
    for row in rows:
        groups[group(row)].append(row)
    picked = []
    for name in sorted(groups, key=str):
        members = groups[name]
        random.Random(f"{seed}/{name}").shuffle(members)
        picked += members[:per_group]
    return picked


# Subjects that the source files under "other" although their questions are close to
# law, history, business or psychology; they stay, with less weight.
TRAP = re.compile(
    r"sociology|government|global_facts|security_studies|us_foreign_policy|geography|human_sexuality"
    r"|public_relations|political-science|Sociology|Politics", re.I,
)


def domain_row(raw: dict, label: str | None = None, weight: float = 1.0) -> Row:
    """Turn a raw row into a domain row under the label rules."""
    name, src = label or raw["label"], raw.get("src", "")
    if "professional_accounting" in src:
        name = "business"
    elif name == "other" and TRAP.search(src):
        weight *= 0.5
    return Row(raw["text"], DOMAINS.index(name), NONE, weight, src)


def with_options(raw: dict, rng: random.Random) -> dict:
    """Append the answer options the way people paste exam questions."""
    style = rng.choice(["{}. {}", "({}) {}", "{}) {}"])
    lines = [style.format(chr(65 + i), option) for i, option in enumerate(raw["options"])]
    return {**raw, "text": raw["text"] + "\n" + "\n".join(lines)}


LETTERS = dict(zip("bucsenhilmopyg", DOMAINS))  # of subjects.tsv


def subjects() -> dict[str, str]:
    """By the digest of a prompt's key, the letter of its subject, ? where it has none: 9,955 prompts of people and schools, read and
    judged one by one. The sets have no subject for them or file them all under "other", which half of them are not."""
    file = Path(__file__).resolve().parent / "subjects.tsv"
    return dict(line.split("\t") for line in file.read_text(encoding="utf-8").splitlines() if not line.startswith("#"))


def digest(text: str) -> str:
    """What stands for a text in subjects.tsv."""
    return hashlib.blake2b(key(text).encode(), digest_size=8).hexdigest()


def judged(data: Path) -> list[Row]:
    """The prompts of subjects.tsv."""
    found, rows = subjects(), {}
    for name in ("domain_other", "general_prompts", "jailbreak", "jailbreak2"):
        for raw in read(data, name):
            if (letter := found.get(digest(raw["text"]))) in LETTERS:
                rows.setdefault(raw["text"], Row(raw["text"], DOMAINS.index(LETTERS[letter]), NONE, 2.0, raw["src"], judged=True))
    return list(rows.values())


def domain_rows(data: Path) -> list[Row]:
    """All domain rows of the mix."""
    rng = random.Random(11)
    rows = []
    pro = read(data, "mmlu_pro")
    rows += [domain_row(r, weight=1.3) for r in pro]
    pasted = [r for r in pro if bucket(r["text"], 8) == 0]
    known = {r["text"] for r in pasted}  # with the options added they were trained on, so they measure nothing
    for row in rows:
        row.variant = row.text in known
    variants = [domain_row(with_options(r, rng), weight=0.7) for r in pasted]
    for row in variants:
        row.variant = True
    rows += variants
    rows += [domain_row(r) for r in read(data, "mmlu")]
    rows += [domain_row(r) for r in subsample(read(data, "openstax_questions"), 1000, lambda r: r["src"])]
    rows += [domain_row(r) for r in subsample(read(data, "domain_synthetic"), 1100, lambda r: (r["src"], r["label"]))]
    rows += [domain_row(r, weight=1.2) for r in subsample(read(data, "exams_multilingual"), 700, lambda r: (r["lang"], r["label"]))]
    by_hand = subjects()
    others = [r for r in read(data, "domain_other") if digest(r["text"]) not in by_hand]
    rows += judged(data) + [domain_row(r, weight=0.7) for r in subsample(others, 1600, lambda r: r["src"])]
    for name, label, count in (
        ("gsm8k", "math", 900), ("medquad", "health", 1800),
        ("codealpaca", "computer science", 1300), ("gpteacher_codegen", "computer science", 700),
    ):
        rows += [domain_row(r, label) for r in subsample(read(data, name), count, lambda r: 0)]
    rows += [Row(t, DOMAINS.index(d), NONE, 1.0, "own/domain") for t, d in synth.domain_texts()]
    rows += [Row(t, DOMAINS.index(d), NONE, 1.5, "own/everyday") for t, d in everyday.texts()]
    rows += [Row(t, DOMAINS.index(d), NONE, 2.0, "own/chat") for t, d in everyday.chats()]
    for row in rows:  # a domain question is also a harmless prompt
        row.jailbreak = 0
    return rows


def dev_keys(data: Path) -> set[str]:
    """Keys of every text that measures, so that no copy of one is trained on."""
    names = ("domain_mmlu_pro", "domain_mixed", "jailbreak", "pii", "complexity", "factcheck")
    return {key(r["text"]) for n in names for r in read(data, f"dev/{n}.jsonl")} | {key(text) for _, _, text in own_prompts()}


def own_prompts() -> list[list[str]]:
    """(domain, language, text) of the prompts written for measurement alone."""
    file = Path(__file__).resolve().parent.parent / "own_prompts.tsv"
    return [line.split("\t") for line in file.read_text(encoding="utf-8").splitlines()]


def build(data: Path, leave_out: dict[str, tuple[str, ...]] | None = None) -> tuple[list[Row], list[Row]]:
    """Return (training rows, held-out rows for temperature and threshold). `leave_out` names, for a
    task, the prefixes of the sources that its labels are not taken from."""
    leave_out = leave_out or {}
    banned, seen, train, held = dev_keys(data), {}, [], []
    rows = domain_rows(data) + attacks.rows(data, leave_out.get("jailbreak", ()))
    rows += tasks.complexity_rows(data, leave_out.get("complexity", ())) + tasks.factcheck_rows(data, leave_out.get("factcheck", ()))
    for row in rows + tasks.pii_rows(data):
        k = key(row.text)
        if not k or k in banned:
            continue
        if k in seen:
            seen[k].take(row)
            continue
        seen[k] = row
        generated = row.src.startswith("own/") and row.src not in ("own/everyday", "own/chat")  # one pattern on both sides would say nothing
        (held if bucket(row.text, HELD_OUT_ONE_IN) == 0 and not generated and not row.variant else train).append(row)
    random.Random(5).shuffle(train)
    return train, held


def bare(rows: list[Row]) -> list[Row]:
    """Rows of the safety tasks, complexity and factcheck, and a few harmless domain questions."""
    return [r for r in rows if r.complexity or r.factcheck >= 0 or r.injection >= 0 or (r.jailbreak >= 0 and (r.domain == NONE or r.judged or bucket(r.text, 20) == 3))]


def dev(data: Path) -> dict[str, list[Row]]:
    """The dev sets, labels as they are in the files."""
    out = {}
    for name in ("domain_mmlu_pro", "domain_mixed"):
        out[name] = [Row(r["text"], DOMAINS.index(r["label"]), NONE, 1.0, r["src"]) for r in read(data, f"dev/{name}.jsonl")]
    out["jailbreak"] = [
        Row(r["text"], NONE, int(r["label"] != "benign"), 1.0, r["src"]) for r in read(data, "dev/jailbreak.jsonl")
    ]
    out["complexity"] = [
        Row(r["text"], src=r["src"], complexity=(1.0, 0.0, 0.0) if r["label"] == "low" else (0.0, 0.0, 1.0))
        for r in read(data, "dev/complexity.jsonl")
    ]
    out["factcheck"] = [Row(r["text"], src=r["src"], factcheck=int(r["label"] == "needs")) for r in read(data, "dev/factcheck.jsonl")]
    out["pii"] = [Row(r["text"], src=r.get("src", ""), entities=r["entities"]) for r in read(data, "dev/pii.jsonl")]
    return out


# At the end, because it builds on Row and read.
from . import attacks, tasks  # noqa: E402
