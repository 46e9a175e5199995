"""Draws texts for reference.py from folders of rows, evenly by kind.

python texts.py DIR... > TEXTS.jsonl

A row is a JSON object with a text (`text`, `premise`, `a` or `prompt`), in *.jsonl or *.jsonl.gz; its
kind is its `lang`, its `kind`, or else its folder. At most 700 texts of a kind are drawn, of kinds
with at least 100. Behind them come 1,500 texts of mixed scripts, marks, emoji and control characters, and
300 that spell special tokens.
"""

import collections
import gzip
import json
import pathlib
import random
import sys
from collections.abc import Iterator

MOST, LEAST, LONGEST = 700, 100, 4000
RANGES = ((0x20, 0x7F), (0xA0, 0x250), (0x370, 0x530), (0x600, 0x700), (0x900, 0x980), (0x3040, 0x3100), (0x4E00, 0x4F00), (0x1F300, 0x1F6FF))
ODD = "\u200b\u200d\ufe0f\u0301\u0308\u00ad\ufeff\u2028\u3000\t\n\r\x01\x7f\x85\U0001f1e9\U0001f1ea가힣가Ａｶﬁ①𝐀"
SPECIAL = ("[CLS]", "[SEP]", "[MASK]", "[UNK]", "[PAD]", "</s>", "<s>", "<|im_end|>", "<eos>")


def rows(root: pathlib.Path) -> Iterator[tuple[str, str]]:
    """Kind and text of every row below a folder."""
    for path in sorted(root.rglob("*.jsonl*")):
        opened = gzip.open if path.suffix == ".gz" else open
        with opened(path, "rt", encoding="utf-8") as lines:
            for line in lines:
                row = json.loads(line)
                text = next((row[k] for k in ("text", "premise", "a", "prompt") if isinstance(row.get(k), str)), "")
                if text:
                    yield str(row.get("lang") or row.get("kind") or path.parent.name), text[:LONGEST]


def main(*roots: str) -> None:
    """Prints the texts."""
    rnd = random.Random(5)
    by = collections.defaultdict(list)
    for root in roots:
        for kind, text in rows(pathlib.Path(root)):
            by[kind].append(text)
    out = [(kind, text) for kind, texts in sorted(by.items()) if len(texts) >= LEAST for text in rnd.sample(texts, min(MOST, len(texts)))]
    chars = [chr(c) for first, end in RANGES for c in range(first, end)] + list(ODD)
    out += [("mixed", "".join(rnd.choices(chars, k=rnd.randint(1, 80)))) for _ in range(1500)]
    words = "the cat sat on a mat while rain fell Über größte 東京 привет".split()
    for _ in range(300):
        text = rnd.choices(words, k=8)
        text.insert(rnd.randint(0, 8), rnd.choice(SPECIAL))
        out.append(("special", rnd.choice([" ", ""]).join(text)))
    for kind, text in out:
        sys.stdout.write(json.dumps({"lang": kind, "text": text}) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
