"""Renders the model card from the figures of one build."""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
import textwrap
from pathlib import Path

from . import data
from .bundle import PROVENANCE, VERSION
from .planted import LONGEST
from .wide import BUCKETS

WIDTH = 100  # columns of a line of the card

HEAD = """# Model card: signalbox-minilm {version}

One ONNX graph that reads a text once and answers seven questions: which of 14 subject domains the
text belongs to, whether its author tries to talk a model out of its rules (jailbreak), whether it
is data that tries to command a model (injection), how much reasoning an answer needs, whether the
text asks for verifiable facts, which of its words are personal data, and what its sentence
embedding is.

| | |
| --- | --- |
| Trunk | all-MiniLM-L6-v2 (6 layers, 384 wide, 22M parameters), fine-tuned; shared by all tasks |
| Tails | rank-16 LoRA adapters in the last layer for each sequence task, first token only; keys and values shared |
| Heads | the task's first token and the shared masked mean, concatenated, then one hidden layer; personal data from the last two layers of every token; embedding from the un-adapted last layer |
| Wide part | a linear model over hashed n-grams of word pieces (sequences of one to four, {buckets:,} buckets, int8), added to the logits of domain, complexity and factcheck with weights that depend on how foreign the text is to the vocabulary; it does not contribute to the attack scores |
| Precision | int8 linear layers and embedding table over fixed ranges, fp32 attention, norms, adapters and heads |
| Graph size | {megabytes:.1f} MB |
| Row length | 256 tokens; safety signals (jailbreak, injection, personal data) read windows of 128 tokens, stride 96 |
| Licence | Apache-2.0 |
| Languages | English; other languages in part, see Limits; supplemented by `signalbox-multilingual` |

## Intended use
Routing and policy signals in the signalbox proxy: selecting a model by subject and difficulty,
flagging jailbreak and injection attempts and personal data for a rule to act upon, and comparing
prompts by cosine similarity. Both attack scores are signals among several, not a safety guarantee.
The model does **not** detect plain harmful requests: it detects attempts to override instructions.

## Figures
"Product" figures come from `signalbox eval` with the shipped bundle, with patterns, windows, text
views and thresholds as in production. All other figures were measured on the shipped int8 graph
with ONNX Runtime, one text per call, on the raw text alone.

Dev rows were never trained on, and copies of dev texts were removed from the training rows.
Temperatures, the mix of trunk and wide part, the document scores, the thresholds and the share of
domain labels assumed to be wrong were not chosen on dev. They were chosen on {held_out_rows:,} held-out rows of the
training sets and on harmless documents from repositories that were not used for training.
"""

LIMITS = """
## Limits and known failure modes
- **English first.** The vocabulary and the trunk are English. Other languages depend on the wide part,
  which knows school subjects in 15 of them (see the `exams` row), everyday prompts in 18 from a few
  hundred examples each, and a few attack patterns.
- **Subjects overlap.** Physics, engineering and chemistry share questions, and so do business and
  economics; the list of confusions shows where. MMLU-Pro labels accounting as *other*, but this
  model was trained to label it *business*. Its accuracy against the original labels is therefore
  lower than its accuracy against labels that count accounting as business.
- **`other` is a mixture** of everyday requests and of geography, politics and sociology.
- **Dev attacks come from the same collections as the training attacks**, so the dev AUC is
  optimistic for new kinds of attack; the table of sources left out of training is a better estimate.
- **Stories that ask for harm** (PAIR, SAP: a consultant for a novel who explains ...) are found
  only in part: their form is not that of an attack, and plain harmful requests are not jailbreaks.
- **Attacks in other languages** were written by one author, about a hundred rows per language. A test
  set by another author (`training/own_world.tsv`; many texts are translations of each other) has 240
  short documents in 20 languages with an injected instruction, and 160 harmless twins with requests
  to their readers. This graph alone finds 19 % and flags 6 % of the twins: in other languages it
  hardly distinguishes an instruction to the model from one to a person. Where
  `signalbox-multilingual` reads the text as well, the product lowers the score of this graph; it
  then finds 64 % and flags 11 %. Of 104 real documents in other languages it flags 2.
- **Difficulty is mostly the kind of task**: chat and look-ups against calculation, proof and design.
  Within one kind (exam questions of MMLU-Pro) difficulty is close to unpredictable from the text.
- **Personal data**: the vocabulary is lower-case, so the model does not see capitals (the product
  checks them afterwards). Names were learnt from generated sentences and tweets.
- **Injections phrased as ordinary tasks** inside a document ("add this link to your answer") are
  hard to distinguish from the user's own requests. One in five is missed in a page of 120 words, one
  in two in a document of several thousand characters, where the scan may not select their window
  for reading ("Attacks in documents").
- **"Decode this and do what it says"** before harmless encoded text is flagged in 28 % of 330 cases,
  and in 100 of 100 where the text is a prompt.
- **Web pages** as rendered by a browser, with headings and buttons: 5 of 100 are flagged.
- On x86 CPUs without VNNI, sums of 8-bit products saturate unless the session option
  `session.x64quantprecision` is `1` and no two products share their weights, which they do in the
  last layer of this graph. The proxy handles both.
"""


def percent(x) -> str:
    return "-" if x is None else f"{100 * x:.1f} %"


# Evaluations of the product: task and dev file.
PRODUCT = (("domain", "domain_mmlu_pro"), ("domain", "domain_mixed"), ("jailbreak", "jailbreak"), ("complexity", "complexity"), ("factcheck", "factcheck"), ("pii", "pii"))


def product(binary: Path, folder: Path) -> dict:
    """The results of `signalbox eval` for each dev file."""
    config = binary.resolve().parent.parent / "configs" / "minimal.yaml"
    out = {}
    for task, file in PRODUCT:
        command = [str(binary), "eval", "--config", str(config), "--task", task, "--data", str(folder / "dev" / f"{file}.jsonl"), "--json"]
        out[file] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return out


def traffic(binary: Path, folder: Path) -> dict:
    """For the harmless documents of dev/real_traffic, by kind: [documents, share flagged as jailbreak, as injection]."""
    config = binary.resolve().parent.parent / "configs" / "minimal.yaml"
    kinds: dict[str, list[str]] = {}
    for r in data.read(folder, "dev/real_traffic.jsonl.gz"):
        kinds.setdefault(r["kind"], []).append(r["text"])
    out = {}
    with tempfile.TemporaryDirectory() as place:
        for kind, texts in sorted(kinds.items()):
            row = [len(texts)]
            for task in ("jailbreak", "injection"):
                file = Path(place) / "rows.jsonl"
                file.write_text("".join(json.dumps({"text": t, "label": "benign"}) + "\n" for t in texts))
                command = [str(binary), "eval", "--config", str(config), "--task", task, "--data", str(file), "--json"]
                row.append(json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)["fpr_at_threshold"])
            out[kind] = row
    return out


def table(head: list[str], rows: list[list]) -> str:
    line = lambda cells: "| " + " | ".join(str(c) for c in cells) + " |"
    return "\n".join(["", line(head), line(["---"] * len(head)), *map(line, rows), ""])


def num(x, digits: int = 3) -> str:
    return "-" if x is None or x != x else f"{x:.{digits}f}"  # x != x: not a number


def product_tables(found: dict) -> list[str]:
    rows = [[f"`{file}`", r["n"], num(r.get("accuracy")), num(r.get("macro_f1")), num(r.get("auc"), 4), num(r.get("recall_at_threshold")), num(r.get("fpr_at_threshold"), 4),
             num(r.get("ece")), num(r.get("coverage_at_90"))] for file, r in found.items() if "exact" not in r]
    out = ["### Product", table(["dev set", "rows", "accuracy", "macro F1", "AUC", "recall", "false positives", "ECE", "coverage at 90 %"], rows)]
    pii = found.get("pii")
    if pii:
        out.append(f"Personal data (`pii`, {pii['n']} rows): overlap F1 micro **{num(pii['overlap']['micro_f1'])}**, macro {num(pii['overlap']['macro_f1'])}; exact F1 micro {num(pii['exact']['micro_f1'])}, macro {num(pii['exact']['macro_f1'])}.")
        kinds = pii["overlap"]["per_class"]
        out.append(table(["type", "overlap F1", "exact F1", "exact precision", "exact recall", "support"],
                         [[k, num(v["f1"]), num(pii["exact"]["per_class"][k]["f1"]), num(pii["exact"]["per_class"][k]["precision"]), num(pii["exact"]["per_class"][k]["recall"]), v["support"]]
                          for k, v in sorted(kinds.items())]))
    return out


def domain_tables(dev: dict, calibration: dict) -> list[str]:
    exam, mixed = dev["domain_mmlu_pro"], dev["domain_mixed"]
    out = ["### Domain", table(
        ["dev set", "rows", "accuracy", "with accounting as business", "ECE before / after temperature", "coverage at 90 % accuracy", "at the threshold: coverage, accuracy"],
        [[f"`{n}`", d["rows"], f"**{d['accuracy']:.3f}**", num(d["accuracy_accounting_as_business"]), f"{d['ece_before']:.3f} / {d['ece']:.3f}",
          f"{d['coverage_at_90']:.3f} (threshold {d['coverage_threshold']:.2f})", f"{d['coverage_at_threshold']:.3f}, {d['accuracy_at_threshold']:.3f}"]
         for n, d in (("domain_mmlu_pro", exam), ("domain_mixed", mixed))])]
    out.append(f"Temperature {calibration['temperature']}, threshold {calibration['threshold']}.")
    out.append(table(["label", "MMLU-Pro accuracy", "mixed accuracy"], [[k, num(v, 2), num(mixed["by_label"].get(k), 2)] for k, v in exam["by_label"].items()]))
    out.append(table(["source in `domain_mixed`", "rows", "accuracy"], [[s, n, num(a, 2)] for s, (n, a) in mixed["by_source"].items()]))
    for name, d in (("domain_mmlu_pro", exam), ("domain_mixed", mixed)):
        out.append(f"Most frequent confusions in `{name}`: " + ", ".join(f"{a} read as {b} ({n})" for a, b, n in d["confusions"]) + ".")
    return out


def jailbreak_tables(dev: dict, planted: dict, calibration: dict) -> list[str]:
    j = dev["jailbreak"]
    return [f"### Jailbreak, dev rows\nThe graph alone: raw text, scored by the largest log-odds of all windows against the document score's threshold {calibration['threshold']}. The rows are a random sample of the training collections, so these figures are optimistic.", table(["dev `jailbreak`", ""], [
        ["rows (attacks)", f"{j['rows']} ({j['attacks']})"], ["AUC", f"**{j['auc']:.4f}**"], ["recall at the threshold", percent(j["recall"])],
        ["false positives on benign rows", percent(j["false_positives"])],
        [f"false positives on hard benign rows ({j['hard_benign_rows']})", percent(j["hard_benign_false_positives"])],
        ["recall at 1 % false positives", percent(j["recall_at_1_percent_false_positives"])], ["ECE before / after the document score", f"{j['ece_before']:.3f} / {j['ece']:.3f}"],
        ["false positives on `domain_mmlu_pro`, `domain_mixed`", f"{percent(dev['domain_mmlu_pro']['jailbreak_false_positives'])}, {percent(dev['domain_mixed']['jailbreak_false_positives'])}"],
        [f"windows of harmless text with a dev attack of at most {LONGEST} tokens somewhere in them ({planted['windows']}): found; AUC", f"{percent(planted['recall'])}; {num(planted['auc'])}"],
        ["false positives on such windows without one", percent(planted["false_positives"])],
    ]), table(["source", "rows", "flagged"], [[s, n, percent(v)] for s, (n, v) in j["flagged_by_source"].items()])]


def complexity_rows(c: dict) -> list[list]:
    return [[name, b["rows"], b["high"], num(b["auc"]), num(b["length_auc"])] for name, b in c["bands"].items()]


def stranger_tables(left: dict | None, kinds: dict | None, held: dict) -> list[str]:
    """Results of the safety signals on sources that were not used for training."""
    out = []
    if left:
        out.append(f"### Attacks of sources left out of training\nTrained without {', '.join(f'`{p}`' for p in left['left_out'])} {left['how']}, and measured "
                   f"on these sources against {left['harmless']} harmless documents and prompts from other repositories.")
        out.append(table(["source", "attacks", "jailbreak AUC", "recall at 1 % false positives", "injection AUC", "recall at 1 % false positives"],
                         [[k, v[0], num(v[1]), percent(v[2]), num(left["injection"][k][1]), percent(left["injection"][k][2])] for k, v in left["jailbreak"].items()]))
    if kinds:
        out.append("### Harmless documents from other repositories\n`dev/real_traffic`, whole documents through the product, flagged at the threshold. Both signals read each document, whatever its origin would be in a request.")
        out.append(table(["kind", "documents", "jailbreak", "injection"], [[k, n, percent(a), percent(b)] for k, (n, a, b) in kinds.items()]))
    for task in ("jailbreak", "injection"):
        h = held[task]
        out.append(f"Texts that the document score of {task} was fitted on ({h['texts']}): AUC {h['auc']:.3f}, false positives {percent(h['false_positives'])} (mean of the kinds), ECE {h['ece']:.3f}; found: " +
                   ", ".join(f"{percent(v)} of {n} ({k})" for k, (n, v) in h["recall"].items()) + ". Harmless kinds flagged: " +
                   (", ".join(f"{k} {percent(v)}" for k, (n, v) in h["by_kind"].items() if v) or "none") + ".\n")
    return out


def render(f: dict) -> str:
    dev, cal = f["dev"], f["calibration"]
    out = [HEAD.format(version=VERSION, buckets=BUCKETS, megabytes=f["bytes"] / 1e6, held_out_rows=f["held_out"]["held_out_rows"])]
    out += stranger_tables(f.get("left_out"), f.get("traffic"), f["held_out"])
    if f.get("product"):
        out += product_tables(f["product"])
    out += domain_tables(dev, cal["domain"])
    out.append(f"{percent(f['held_out']['domain_noise'])} of the labels are assumed to be wrong; no subject gets a probability above the share of correct labels.\n")
    out.append("Prompts written for this measurement alone (`training/own_prompts.tsv`, by the author of the training prompts): " + ", ".join(
        f"{'English' if g == 'en' else 'twelve other languages'} {a:.2f} ({n} rows)" for g, (n, a) in f["own_prompts"].items()) + ".\n")
    out += jailbreak_tables(dev, f["planted"], cal["jailbreak"])
    c = dev["complexity"]
    out.append(f"### Complexity\nDev rows are labelled low or high only. AUC of P(high) {c['auc']:.3f}, accuracy {c['accuracy']:.3f}. The rule \"longer than 110 characters\" alone reaches accuracy {c['length_accuracy']:.3f} and AUC {c['length_auc']:.3f}, so the figures by length are more informative.")
    out.append(table(["band", "rows", "high", "AUC", "AUC of length alone"], complexity_rows(c)))
    out.append(f"### Factcheck\nDev: accuracy {dev['factcheck']['accuracy']:.3f}, AUC {dev['factcheck']['auc']:.3f}.\n")
    s, p = f["sts_spearman"], f["parity"]
    out.append(f"### Embedding\nSTS benchmark, every tenth English row held out, Spearman: base model (fp32) {s['base_fp32']:.3f}, this bundle (int8) {s['bundle_int8']:.3f}.\n")
    out.append(f"### The int8 graph against the PyTorch network\n{p['texts']} texts: PyTorch with the simulated rounding of its layers, as in training, against the int8 graph. Personal-data labels are equal for {percent(p['pii_labels_equal'])} of the tokens.")
    out.append(table(["output", "largest difference", "mean of the largest difference per text", "equal labels"],
                     [[t, num(v), num(p["mean_of_max"][t]), p["labels_equal"].get(t, "")] for t, v in p["max_difference"].items()]))
    out.append("### Latency\nMilliseconds for one row on one core of an AMD EPYC with AVX-512 VNNI, ONNX Runtime 1.30: median (fastest). The columns were measured in turns." + f["latency_ms"].pop("note", ""))
    names = {"all": "all tasks", "four": "five sequence tasks", "domain": "domain alone", "separate": "five separate graphs"}
    out.append(table(["tokens", *names.values()], [[n, *(f"{t[k][0]} ({t[k][1]})" for k in names)] for n, t in f["latency_ms"].items()]))
    out.append("### Hand-written prompts" + table(["prompt", "domain (probability)", "P(jailbreak)", "as expected"],
               [[r["text"], f"{r['domain']} ({r['p_domain']})", r["p_jailbreak"], "yes" if r["as_expected"] else "no"] for r in f["probes"]]))
    out.append(LIMITS)
    out.append(f"## Training\n{f['training_rows']:,} labelled rows; cross-entropy per task, and a distillation loss that keeps the pooled embedding close to that of the\nbase model. training/README.md describes how the weights of this version were made.\n\n```sh\npip install -r training/requirements.txt\ncd training && python -m signalbox_training.build --data DATA\n```\n")
    out.append("## Sources and licences" + table(["source", "licence"], [list(x) for x in PROVENANCE]))
    return wrapped("\n".join(out).replace("\n\n\n", "\n\n")) + "\n"


def wrapped(text: str) -> str:
    """The text with paragraphs and list items filled to WIDTH columns; tables, headings and code stay as they are."""
    out, paragraph, code = [], [], False

    def fill() -> None:
        if paragraph:
            hang = "  " if paragraph[0].startswith("- ") else ""
            whole = " ".join(line.strip() for line in paragraph)
            out.extend(textwrap.wrap(whole, WIDTH, subsequent_indent=hang, break_long_words=False, break_on_hyphens=False))
            paragraph.clear()

    for line in text.split("\n"):
        fence = line.startswith("```")
        if code or fence or not line.strip() or line.startswith(("|", "#")):
            fill()
            out.append(line)
            code ^= fence
            continue
        if line.startswith("- "):
            fill()
        paragraph.append(line)
    fill()
    return "\n".join(out)


def main() -> None:
    """Measure the product with its embedded bundle and rewrite the card. The build cannot do this before the program contains the bundle."""
    here = Path(__file__).resolve().parent.parent
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--work", type=Path, default=here / "build")
    parser.add_argument("--out", type=Path, default=here.parent / "models" / "default" / "MODEL_CARD.md")
    parser.add_argument("--signalbox", type=Path, default=here.parent / "bin" / "signalbox")
    args = parser.parse_args()
    figures = json.loads((args.work / "figures.json").read_text())
    figures["product"] = product(args.signalbox, args.data)
    figures["traffic"] = traffic(args.signalbox, args.data)
    (args.work / "figures.json").write_text(json.dumps(figures, indent=1) + "\n")
    args.out.write_text(render(figures))


if __name__ == "__main__":
    main()
