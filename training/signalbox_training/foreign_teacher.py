"""What multilingual-e5-small says of sentences in many languages and of each of its word pieces, for foreign.py.

    python -m signalbox_training.foreign_teacher --data DATA --trunk TRUNK --out PREFIX

writes PREFIX.json (texts), PREFIX.npy (embeddings [texts, 384] float32) and PREFIX.pieces.npy ([pieces, 384]). The sentences are rows
of the data folder without their labels, this project's prompts, and Django's translated messages (BSD-3-Clause), for 98 languages.
"""

from __future__ import annotations

import argparse
import gettext
import importlib.util
import json
import random
from pathlib import Path

import numpy as np
import onnxruntime as ort
from tokenizers import Tokenizer

from .data import read

LONGEST, BATCH = 96, 32


def texts(folder: Path) -> list[tuple[str, str]]:
    """(text, where it is from), no text twice."""
    rng, found = random.Random(1), {}

    def add(name: str, items, count: int) -> None:
        kept = sorted({t.strip()[:400] for t in items if t and len(t.strip()) > 2})
        rng.shuffle(kept)
        for t in kept[:count]:
            found.setdefault(t, name)

    add("exams", [r["text"] for r in read(folder, "exams_multilingual")], 12000)
    similar: dict[str, list[str]] = {}
    for r in read(folder, "stsb_multi"):
        similar.setdefault(r["lang"], []).extend([r["a"], r["b"]])
    for language, items in similar.items():
        add("sts/" + language, items, 1700)
    add("nli", [r[side] for r in read(folder, "nli_multilingual") for side in ("premise", "hypothesis")], 7000)
    add("uner", [r["text"] for r in read(folder, "ner_uner")], 6000)
    add("pii", [r["text"] for r in read(folder, "pii_synthetic") if r["lang"] != "en"], 4000)
    english = ("mmlu_pro", "mmlu", "domain_synthetic", "openstax_questions", "domain_other")
    add("en", [r["text"] for n in english for r in read(folder, n)], 9000)
    add("terms", [r["term"] for r in read(folder, "openstax_terms") if r.get("term")], 6000)
    for file in sorted((Path(__file__).parent / "prompts").glob("*.tsv")):
        add("prompts", [line.split("\t")[2] for line in file.read_text(encoding="utf-8").splitlines()], 10000)
    spec = importlib.util.find_spec("django")
    if spec is None or spec.origin is None:
        raise SystemExit("pip install django==5.2 first: its translations are sentences in 98 languages")
    for file in sorted((Path(spec.origin).parent / "conf" / "locale").glob("*/LC_MESSAGES/django.mo")):
        with open(file, "rb") as handle:
            catalogue = gettext.GNUTranslations(handle)._catalog
        add("django/" + file.parts[-3], [v for v in catalogue.values() if isinstance(v, str) and len(v) > 12], 220)
    return list(found.items())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--trunk", type=Path, required=True, help="what build_trunk.py wrote, with --int8")
    parser.add_argument("--out", type=Path, required=True, help="prefix of the files")
    args = parser.parse_args()
    tok = Tokenizer.from_file(str(args.trunk / "tokenizer.json"))
    tok.no_padding()
    tok.enable_truncation(LONGEST)
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    sess = ort.InferenceSession(str(args.trunk / "model_int8.onnx"), options)

    def embed(rows: list[list[int]]) -> np.ndarray:
        ids = np.ones((len(rows), max(map(len, rows))), np.int64)
        mask = np.zeros_like(ids)
        for i, row in enumerate(rows):
            ids[i, : len(row)], mask[i, : len(row)] = row, 1
        hidden = sess.run(["last_hidden_state"], {"input_ids": ids, "attention_mask": mask})[0]
        return (hidden * mask[..., None]).sum(1) / mask.sum(1, keepdims=True)

    items = texts(args.data)
    pieces = [[0, i, 2] for i in range(tok.get_vocab_size())]
    np.save(args.out.with_suffix(".pieces.npy"), np.concatenate([embed(pieces[i : i + 128]) for i in range(0, len(pieces), 128)]))
    rows = [e.ids for e in tok.encode_batch(["query: " + t for t, _ in items])]
    order = sorted(range(len(rows)), key=lambda i: len(rows[i]))
    out = np.zeros((len(rows), 384), np.float32)
    for at in range(0, len(order), BATCH):
        picked = order[at : at + BATCH]
        out[picked] = embed([rows[i] for i in picked])
    np.save(args.out.with_suffix(".npy"), out)
    args.out.with_suffix(".json").write_text(json.dumps(items, ensure_ascii=False))


if __name__ == "__main__":
    main()
