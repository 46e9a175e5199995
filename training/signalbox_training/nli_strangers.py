"""Verdicts on claims that people judged by their evidence, of collections that nothing is trained on.

ExpertQA (chaitanyamalaviya/ExpertQA at 1aa7ba8, MIT): sentences of assistants and the pages that they cite, judged by experts; the
files of its lfqa folder that end in _val and _test. Complete support counts as supported, incomplete as not, partial is left out.
Fool Me Twice (google-research/fool-me-twice at d9db753, Apache-2.0, evidence from Wikipedia): claims made to deceive, dev and test.
Symmetric FEVER (TalSchuster/FeverSymmetric at fa25d17, CC BY-SA 3.0), version 0.2: evidence and claims crossed, so that the claim
alone tells nothing; what has not enough information counts as not supported.

    python -m signalbox_training.nli_strangers --sets FOLDER [--out BUNDLE]
"""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from pathlib import Path

import numpy as np

from . import data, nli_data, nli_evaluate, nli_fusion, nli_product

MOST = 500  # true and false ones of a collection
WORDS = 25  # of a page, at least: shorter ones are titles


def lines(folder: Path):
    for path in sorted(folder.glob("*.jsonl")):
        for line in path.read_text().splitlines():
            yield json.loads(line)


def plain(text: str) -> str:
    """Without the brackets and blanks of a parsed treebank, and without numbers of citations."""
    for mark, sign in (("-LRB-", "("), ("-RRB-", ")"), ("-LSB-", "["), ("-RSB-", "]"), ("--", "-"), ("``", '"'), ("''", '"')):
        text = text.replace(mark, sign)
    text = re.sub(r"\s*\[\d+\]", "", text).replace("**", "")
    return re.sub(r"\s+", " ", re.sub(r"\s+([,.;:!?)%]|'s\b)", r"\1", text)).strip()


def claims(folder: Path):
    """(collection, evidence, claim, whether it is supported) of all that is there."""
    for r in lines(folder / "expertqa"):
        for c in (c for answer in r["answers"].values() for c in answer["claims"]):
            pages = [e.split("\n", 1)[1] if "\n" in e else "" for e in c["evidence"] or []]
            evidence = "\n\n".join(plain(p) for p in pages)
            if len(evidence.split()) >= WORDS and c["support"] in ("Complete", "Incomplete"):
                yield "expertqa", evidence, plain(c["claim_string"]), c["support"] == "Complete"
    for r in lines(folder / "fool_me_twice"):
        if r["label"] in ("SUPPORTS", "REFUTES"):
            yield "fool_me_twice", " ".join(plain(e["text"]) for e in r["gold_evidence"]), plain(r["text"]), r["label"] == "SUPPORTS"
    for r in lines(folder / "fever_symmetric"):
        evidence = r.get("evidence_sentence") or r.get("evidence")
        yield "fever_symmetric", plain(evidence), plain(r["claim"]), (r.get("label") or r["gold_label"]) == "SUPPORTS"


def rows(folder: Path, data_folder: Path) -> list[dict]:
    """Labelled answers in the format of the dev files, without the texts of those, so many of each label at most."""
    banned = nli_data.dev_keys(data_folder)
    found = {(s, e, c): ok for s, e, c, ok in claims(folder) if e and len(c.split()) >= 4 and banned.isdisjoint((data.key(e), data.key(c)))}
    items, count, out = list(found.items()), Counter(), []
    random.Random(7).shuffle(items)
    for (src, evidence, claim), ok in items:
        if count[src, ok] < MOST:
            count[src, ok] += 1
            out.append({"facts": evidence, "question": "", "answer": claim, "label": "supported" if ok else "unsupported", "src": src})
    return out


def main() -> None:
    parser = nli_product.arguments(__doc__)
    parser.add_argument("--sets", type=Path, required=True, help="folder with the folders expertqa, fool_me_twice, fever_symmetric")
    args = parser.parse_args()
    given = rows(args.sets, args.data)
    _, found = nli_fusion.features(args.repository, given, args.out, args.out / "fusion.json")
    doubt, wrong, src = nli_fusion.by_row(found, len(given)), np.array([r["label"] == "unsupported" for r in given]), np.array([r["src"] for r in given])
    verdicts = [{l["verdict"] for l in found if l["row"] == i} for i in range(len(given))]
    flagged = np.array([bool(v & {"contradicted", "unsupported"}) for v in verdicts])
    passed = np.array([v == {"supported"} for v in verdicts])
    print("| collection | rows | AUC | recall at 5 % | wrong: flagged, supported | right: flagged, supported |\n| --- | --- | --- | --- | --- | --- |")
    for s in sorted(set(src)):
        of, bad, good = src == s, (src == s) & wrong, (src == s) & ~wrong
        low, high = nli_evaluate.interval(doubt[of], wrong[of])
        recall = (doubt[bad] > np.quantile(doubt[good], 0.95)).mean()
        print(f"| {s} | {of.sum()} | {nli_evaluate.auc(doubt[of], wrong[of]):.3f} ({low:.3f} to {high:.3f}) | {recall:.2f} "
              f"| {100 * flagged[bad].mean():.1f}, {100 * passed[bad].mean():.1f} % | {100 * flagged[good].mean():.1f}, {100 * passed[good].mean():.1f} % |")


if __name__ == "__main__":
    main()
