"""Splits labelled rows into what is trained on and what is held out.

    python bench/fit/prepare.py --banking BANKING77.jsonl.gz --harmful A.jsonl.gz B.jsonl.gz --out DIR

--banking: rows {"text", "label"} of 77 intents; 10, 30 and 50 texts of each are for training, which hold each other,
and the same fifth of each intent is held out in all three. --harmful: rows with the labels benign and harmful (or
harmful_or_provocative), others are skipped; 10,000 for training and 4,000 held out, in the proportion of the rows.
Equal texts, but for case and spacing, are one. The split follows a hash of the text.
"""

import argparse
import gzip
import hashlib
import json
import pathlib


def rows(path):
    with gzip.open(path, "rt") if path.suffix == ".gz" else open(path) as lines:
        for line in lines:
            yield json.loads(line)


def rank(text):
    return hashlib.sha256(text.encode()).hexdigest()


def unique(source):
    seen = {}
    for row in source:
        seen.setdefault(" ".join(row["text"].lower().split()), row)
    return sorted(seen.values(), key=lambda r: rank(r["text"]))


def write(path, picked):
    path.write_text("".join(json.dumps({"text": r["text"], "label": r["label"]}, ensure_ascii=False) + "\n" for r in picked))
    print(path, len(picked))


def banking(path, out):
    by_label = {}
    for row in unique(rows(path)):
        by_label.setdefault(row["label"], []).append(row)
    held, train = [], {10: [], 30: [], 50: []}
    for own in by_label.values():
        fifth = len(own) // 5
        held += own[:fifth]
        for n, picked in train.items():
            picked += own[fifth : fifth + n]
    write(out / "banking77.test.jsonl", held)
    for n, picked in train.items():
        write(out / f"banking77-{n}.train.jsonl", picked)


def harmful(paths, out):
    names = {"benign": "benign", "harmful": "harmful", "harmful_or_provocative": "harmful"}
    all_rows = unique({**r, "label": names[r["label"]]} for p in paths for r in rows(p) if r["label"] in names)
    write(out / "harmful.train.jsonl", all_rows[:10000])
    write(out / "harmful.test.jsonl", all_rows[10000:14000])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--banking", type=pathlib.Path)
    parser.add_argument("--harmful", type=pathlib.Path, nargs="*", default=[])
    parser.add_argument("--out", type=pathlib.Path, required=True)
    o = parser.parse_args()
    o.out.mkdir(parents=True, exist_ok=True)
    if o.banking:
        banking(o.banking, o.out)
    if o.harmful:
        harmful(o.harmful, o.out)


main()
