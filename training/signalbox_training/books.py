"""Texts of books that are free of rights, out of clones of repositories of Standard Ebooks (CC0).

`books.tsv` names the repositories, their commits, and which are kept for measuring: no author is on both sides. The
texts themselves are not in this repository.

    python -m signalbox_training.books CLONES --out build/books.jsonl.gz
"""

from __future__ import annotations

import argparse
import gzip
import html
import json
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

LIST = Path(__file__).resolve().parents[1] / "books.tsv"
FRONT = re.compile(r"imprint|uncopyright|colophon|titlepage|halftitle|/loi|endnotes|toc|dramatis")
BLOCK = re.compile(r"</(p|h\d|blockquote|section|li|div)>")


@dataclass
class Book:
    """The text of a book, and whether it is kept for measuring."""

    name: str
    text: str
    kept: bool


def listed() -> list[tuple[str, str, bool]]:
    """(name, commit, kept) of every book."""
    rows = [line.split("\t") for line in LIST.read_text().splitlines() if line and not line.startswith("#")]
    return [(name, commit, part == "kept") for name, commit, part in rows]


def plain(page: str) -> str:
    """The text of a page of XHTML, an empty line between blocks."""
    page = re.sub(r"(?s)<head>.*?</head>", "", page)
    text = html.unescape(re.sub(r"(?s)<[^>]+>", "", BLOCK.sub("\n\n", page)))
    return re.sub(r"\n\s*\n\s*", "\n\n", re.sub(r"[ \t]+", " ", text)).strip()


def text(clone: Path, commit: str) -> str:
    """The text of a book at a commit of its repository, chapters in order."""
    git = lambda *a: subprocess.run(["git", "-C", clone, *a], stdout=subprocess.PIPE, check=True).stdout.decode()
    files = [f for f in git("ls-tree", "-r", "--name-only", commit, "src/epub/text").split() if f.endswith(".xhtml") and not FRONT.search(f)]
    order = lambda f: [int(p) if p.isdigit() else p for p in re.split(r"(\d+)", f)]
    return "\n\n".join(plain(git("show", f"{commit}:{f}")) for f in sorted(files, key=order))


def read(path: Path) -> list[Book]:
    """The books of a file that this command wrote."""
    with gzip.open(path, "rt") as f:
        return [Book(**json.loads(line)) for line in f]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("clones", type=Path, help="folder of clones, each named as its repository")
    parser.add_argument("--out", type=Path, default=Path("build/books.jsonl.gz"))
    args = parser.parse_args()
    args.out.parent.mkdir(parents=True, exist_ok=True)
    with gzip.open(args.out, "wt") as f:
        for name, commit, kept in listed():
            f.write(json.dumps({"name": name, "text": text(args.clones / name, commit), "kept": kept}) + "\n")


if __name__ == "__main__":
    main()
