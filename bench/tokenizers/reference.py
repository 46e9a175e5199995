"""Writes the ids of the reference tokenizer (the package tokenizers) for texts.

python reference.py TEXTS.jsonl TOKENIZER.json OUT.bin

TEXTS has a text a line, {"text": ..., "lang": ...}. OUT is, for each, the number of its ids and
the ids without special tokens around them, as little-endian 32-bit numbers.
"""

import json
import struct
import sys

from tokenizers import Tokenizer


def main(texts: str, path: str, out: str) -> None:
    """Reads the texts and writes their ids."""
    tokenizer = Tokenizer.from_file(path)
    tokenizer.no_padding()
    tokenizer.no_truncation()
    with open(texts, encoding="utf-8") as lines, open(out, "wb") as f:
        for line in lines:
            ids = tokenizer.encode(json.loads(line)["text"], add_special_tokens=False).ids
            f.write(struct.pack(f"<{len(ids) + 1}I", len(ids), *ids))


if __name__ == "__main__":
    main(*sys.argv[1:])
