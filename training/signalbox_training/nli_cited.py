"""Claims with the evidence that people judged them by, from sets that are not in the data folder.

ExpertQA (MIT): sentences of assistants and the pages that they cite, judged by experts; the files of its lfqa folder
that end in _val and _test. Fool Me Twice (Apache-2.0, its evidence from Wikipedia): claims made to deceive, dev and test.
Symmetric FEVER (CC BY-SA 3.0): evidence and claims crossed, so that the claim alone tells nothing.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

from . import data, nli_data
from .nli_data import SURE, UNSUPPORTED, Pair

VERDICT = {"SUPPORTS": SURE["entailment"], "REFUTES": SURE["contradiction"], "NOT ENOUGH INFO": SURE["neutral"]}


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


def shown(evidence: str, claim: str, false: bool) -> list[str]:
    """What the product would show of it."""
    if len(evidence.split()) <= nli_data.WHOLE_WORDS:
        return [evidence]
    found = [nli_data.gathered(evidence, claim)]
    return list(dict.fromkeys(found + (nli_data.best_windows(evidence, claim, 1) if false else [])))


def build(folder: Path, data_folder: Path) -> list[Pair]:
    """The pairs of what is there, without the texts of the dev files."""
    banned, out, seen = nli_data.dev_keys(data_folder), [], set()

    def add(evidence, claim, may, src):
        if not evidence or not claim or not banned.isdisjoint((data.key(evidence), data.key(claim))):
            return
        for premise in shown(evidence, claim, may != SURE["entailment"]):
            if premise and (premise, claim) not in seen:
                seen.add((premise, claim))
                out.append(Pair(premise, claim, may, src))

    for r in lines(folder / "expertqa"):
        for answer in r["answers"].values():
            for c in answer["claims"]:
                pages = [e.split("\n", 1)[1] if "\n" in e else "" for e in c["evidence"] or []]
                evidence = " ".join(plain(p) for p in pages)
                if len(evidence.split()) < 25 or c["support"] not in ("Complete", "Partial", "Incomplete"):
                    continue
                add(evidence, plain(c["claim_string"]), SURE["entailment"] if c["support"] == "Complete" else UNSUPPORTED, "expertqa")
    for r in lines(folder / "fool_me_twice"):
        add(" ".join(plain(e["text"]) for e in r["gold_evidence"]), plain(r["text"]), VERDICT[r["label"]], "fool_me_twice")
    for r in lines(folder / "fever_symmetric"):
        evidence = r.get("evidence_sentence") or r.get("evidence")
        add(plain(evidence), plain(r["claim"]), VERDICT[r.get("label") or r["gold_label"]], "fever_symmetric")
    return out
