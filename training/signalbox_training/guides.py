"""Harmless documents in other languages that someone wrote to be read: guides, manuals, codes of conduct, and in English
the mails, reviews and posts of a treebank and documents that agents read, out of clones of their repositories.

`guides.tsv` and `agents.tsv` name the repositories, their commits and licences, and which calibrate or are kept for measuring. The texts
themselves are not in this repository.

    python -m signalbox_training.guides CLONES --out build/guides.jsonl.gz

CLONES has a folder OWNER+NAME for each.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import re
import subprocess
from pathlib import Path

LISTS = [Path(__file__).resolve().parents[1] / name for name in ("guides.tsv", "agents.tsv")]
MOST = 60  # documents of one language of one repository
SHORTEST = 400  # characters
SAME = {"zh-hans": "zh", "zh-cn": "zh", "zh-tw": "zh", "zh-hant": "zh", "pt-br": "pt", "sr-latn": "hr"}
OTHER = {"en", "images", "pcm", "sa"}  # no language that is read, or English
KINDS = (".md", ".mdx", ".po", ".yml", ".conllu")
MORE = {"pages": (".rst", *KINDS), "agents": ("",), "agents kept": ("",)}  # of other parts
MESSAGE = re.compile(r'^msgstr ((?:".*"\n?)+)', re.M)
ENTRY = re.compile(r'^ +\w+: "(.+)"$', re.M)
SENTENCE = re.compile(r"^# text = (.+)$", re.M)
TREEBANK, TOLD = 250, 12  # pieces of one treebank at most, sentences of a piece


def pieces(text: str, rng: random.Random) -> list[str]:
    """Of the sentences of a treebank some that follow each other."""
    found = SENTENCE.findall(text)
    starts = range(0, len(found), TOLD)
    return ["".join(s + rng.choice([" ", " ", " ", "\n"]) for s in found[at : at + TOLD]) for at in rng.sample(starts, min(TREEBANK, len(starts)))]


def plain(path: str, text: str) -> str:
    """The text of a file: Markdown without front matter, translated messages, values of translations."""
    if path.endswith(".po"):
        found = ["".join(json.loads(line) for line in m.splitlines()) for m in MESSAGE.findall(text)[1:]]
        return "\n\n".join(m for m in found if m)
    if path.endswith(".yml"):
        return "\n\n".join(re.sub(r"<[^>]+>|\\", "", v) for v in ENTRY.findall(text) if len(v) > 40)
    return re.sub(r"\A---\n.*?\n---\n", "", text, flags=re.S).strip()


def documents(clones: Path) -> list[dict]:
    """{"text", "lang", "src", "licence", "part"} of every document."""
    rng, out = random.Random(7), []
    for line in [line for file in LISTS for line in file.read_text().splitlines()]:
        if line.startswith("#"):
            continue
        name, commit, licence, part, paths = line.split("\t")
        clone, (before, _, fixed) = clones / name.replace("/", "+"), paths.partition("=")
        if not (clone / "HEAD").exists() and (clone / "repo").exists():
            clone /= "repo"
        git = lambda *a: subprocess.run(["git", "-C", clone, *a], stdout=subprocess.PIPE, check=True).stdout.decode("utf-8", "replace")
        pattern = re.compile(re.escape(before).replace(r"\{\}", r"([A-Za-z_-]+)"))
        by_language: dict[str, list[str]] = {}
        for path in git("ls-tree", "-r", "-z", "--name-only", commit).split("\0"):
            m = pattern.match(path)
            if m and path.endswith(MORE.get(part, KINDS)):
                language = fixed or m[1].lower().replace("_", "-")
                if fixed or language not in OTHER:
                    by_language.setdefault(SAME.get(language, language), []).append(path)
        for language, found in sorted(by_language.items()):
            for path in rng.sample(found, min(MOST, len(found))):
                text = git("show", f"{commit}:{path}")
                texts = pieces(text, rng) if path.endswith(".conllu") else [text if part.startswith("agents") else plain(path, text)]
                out += [{"text": t, "lang": language, "src": name, "licence": licence, "part": part} for t in texts if len(t) >= SHORTEST]
    return out


def read(path: Path, *parts: str) -> list[dict]:
    """Of a file that this command wrote the documents of some parts."""
    with gzip.open(path, "rt", encoding="utf-8") as f:
        return [r for r in map(json.loads, f) if r["part"] in parts]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("clones", type=Path, help="folder of clones")
    parser.add_argument("--out", type=Path, default=Path("build/guides.jsonl.gz"))
    args = parser.parse_args()
    args.out.parent.mkdir(parents=True, exist_ok=True)
    with gzip.open(args.out, "wt", encoding="utf-8") as f:
        for r in documents(args.clones):
            f.write(json.dumps(r, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
