"""Renders the model card from the figures of one build."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from .bundle import PROVENANCE, VERSION
from .planted import LONGEST
from .wide import BUCKETS, LOCAL

HEAD = """# Model card: signalbox-minilm {version}

One ONNX graph that reads a prompt once and answers six questions: which of 14 subject
domains it belongs to, whether it tries to jailbreak a model (or injects instructions into
it), how much reasoning its answer needs, whether it asks for verifiable facts, which of its
words are personal data, and what its sentence embedding is.

| | |
| --- | --- |
| Trunk | all-MiniLM-L6-v2 (6 layers, 384 wide, 22M parameters), fine-tuned; shared by all tasks |
| Tails | rank-16 LoRA adapters in the last layer for each sequence task, first token only; keys and values shared |
| Heads | the task's first token and the shared masked mean, concatenated, then one hidden layer; personal data from the last two layers of every token; embedding from the un-adapted last layer |
| Wide part | a linear model over hashed n-grams of word pieces (one to four in a row, {buckets:,} buckets, int8), added to the sequence tasks' logits with weights that depend on how foreign the text is to the vocabulary; for jailbreak only the worst {local} neighbouring tokens count |
| Precision | int8 linear layers and embedding table over fixed ranges, fp32 attention, norms, adapters and heads |
| Graph size | {megabytes:.1f} MB |
| Row length | 256 tokens; safety signals (jailbreak, personal data) read windows of 128 tokens, stride 96 |
| Licence | Apache-2.0 |
| Languages | English; other European languages in part, see Limits |

## Intended use
Routing and policy signals in the signalbox proxy: choose a model by subject and difficulty,
flag jailbreak and injection attempts and personal data for a rule to act upon, compare prompts
by cosine similarity. The jailbreak score is one signal among several, not a safety guarantee.
Plain harmful requests are **not** what it detects: it looks for attempts to override
instructions.

## Figures
"Product" figures come from `signalbox eval` with the shipped bundle: patterns, windows, text
views and thresholds as in service. The others were measured with the shipped int8 graph through
ONNX Runtime, one text per call, on the raw text alone. Dev rows were never trained on; copies of
dev texts were removed from the training rows. Temperatures, the mix of trunk and wide part, the
jailbreak threshold and the share of domain labels taken for wrong were chosen on {held_out_rows:,} held-out rows of the training
sets and windows with attacks planted in them, not on dev.
"""

LIMITS = """
## Limits and known failure modes
- **English first.** The vocabulary and the trunk are English. Other languages are carried by the
  wide part, which knows school subjects in 15 of them (the `exams` row shows how well), everyday
  prompts in 18 from a few hundred examples each, and a few attack patterns.
- **Subjects overlap.** Physics, engineering and chemistry, and business and economics,
  share questions; the confusion list shows where. MMLU-Pro files accounting under
  *other*; this model was taught *business* for it, so its accuracy against the original
  labels is lower than its accuracy against labels that count accounting as business.
- **`other` is a mixture**: everyday requests as well as geography, politics and sociology.
- **Jailbreak data is narrow.** Public attack texts repeat a few famous prompts. Dev attacks come
  from the same collections as the training attacks, so the dev AUC is optimistic for new kinds of
  attack; the table of left-out sources is the better guess.
- **Attacks in other languages** are known from a few templates in some fifteen languages.
- **Difficulty is mostly the kind of task**: chat and look-ups against calculation, proof and design.
  Inside one kind (exam questions of MMLU-Pro) difficulty is close to unpredictable from the text.
- **Personal data**: the vocabulary is lower-case, so capitals are not seen by the model (the product
  looks at them afterwards); names were learnt from generated sentences and tweets.
- **Injections phrased as ordinary tasks** inside a document ("add this link to your
  answer") are hard to tell from the user's own wishes and are often missed.
- **Role play** with an unusual persona can score as a jailbreak.
- On x86 CPUs without VNNI sums of 8-bit products saturate, unless the session option `session.x64quantprecision` is `1` and
  no two products share their weights, as they do in the last layer of this graph. The proxy sees to both.
"""


def percent(x) -> str:
    return "-" if x is None else f"{100 * x:.1f} %"


# Evaluations of the product: task and dev file.
PRODUCT = (("domain", "domain_mmlu_pro"), ("domain", "domain_mixed"), ("jailbreak", "jailbreak"), ("complexity", "complexity"), ("factcheck", "factcheck"), ("pii", "pii"))


def product(binary: Path, folder: Path) -> dict:
    """What `signalbox eval` says about every dev file."""
    config = binary.resolve().parent.parent / "configs" / "minimal.yaml"
    out = {}
    for task, file in PRODUCT:
        command = [str(binary), "eval", "--config", str(config), "--task", task, "--data", str(folder / "dev" / f"{file}.jsonl"), "--json"]
        out[file] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
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
    return [f"### Jailbreak\nTemperature {calibration['temperature']}, threshold {calibration['threshold']} on P(jailbreak); raw text only.", table(["dev `jailbreak`", ""], [
        ["rows (attacks)", f"{j['rows']} ({j['attacks']})"], ["AUC", f"**{j['auc']:.4f}**"], ["recall at the threshold", percent(j["recall"])],
        ["false positives on benign rows", percent(j["false_positives"])],
        [f"false positives on hard benign rows ({j['hard_benign_rows']})", percent(j["hard_benign_false_positives"])],
        ["recall at 1 % false positives", percent(j["recall_at_1_percent_false_positives"])], ["ECE before / after temperature", f"{j['ece_before']:.3f} / {j['ece']:.3f}"],
        ["false positives on `domain_mmlu_pro`, `domain_mixed`", f"{percent(dev['domain_mmlu_pro']['jailbreak_false_positives'])}, {percent(dev['domain_mixed']['jailbreak_false_positives'])}"],
        [f"windows of harmless text with a dev attack of at most {LONGEST} tokens somewhere in them ({planted['windows']}): found; AUC", f"{percent(planted['recall'])}; {num(planted['auc'])}"],
        ["false positives on such windows without one", percent(planted["false_positives"])],
    ]), table(["source", "rows", "flagged"], [[s, n, percent(v)] for s, (n, v) in j["flagged_by_source"].items()])]


def complexity_rows(c: dict) -> list[list]:
    return [[name, b["rows"], b["high"], num(b["auc"]), num(b["length_auc"])] for name, b in c["bands"].items()]


def left_out_tables(rounds: list[dict]) -> list[str]:
    out = ["### Sources left out of training\nTrained anew from the base weights, trunk and wide part, for a few minutes without the named sources (so weaker than what is shipped), and measured on them. Attacks are judged against the harmless dev rows."]
    of = {task: [r for r in rounds if task in r["left_out"]] for task in ("jailbreak", "complexity", "factcheck")}
    out.append(table(["jailbreak sources left out", "attacks", "AUC", "recall at .5", "false positives at .5", "recall at 1 % false positives"],
                     [[", ".join(r["left_out"]["jailbreak"]), r["jailbreak"]["attacks"], num(r["jailbreak"]["auc"]), percent(r["jailbreak"]["recall"]), percent(r["jailbreak"]["false_positives"]),
                       percent(r["jailbreak"]["recall_at_1_percent_false_positives"])] for r in of["jailbreak"]]))
    out.append(table(["complexity sources left out", "band", "rows", "high", "AUC", "AUC of length alone"],
                     [[", ".join(r["left_out"]["complexity"]), *row] for r in of["complexity"] for row in complexity_rows(r["complexity"])]))
    out.append(table(["factcheck sources left out", "rows", "accuracy", "AUC"],
                     [[", ".join(r["left_out"]["factcheck"]), r["factcheck"]["rows"], num(r["factcheck"]["accuracy"]), num(r["factcheck"]["auc"])] for r in of["factcheck"]]))
    each = [r["factcheck"] for r in of["factcheck"] if len(r["left_out"]["factcheck"]) < 3]
    if each:
        out.append(f"Factcheck, every source left out once, with no other of its kind: accuracy {sum(e['accuracy'] * e['rows'] for e in each) / sum(e['rows'] for e in each):.3f} over {sum(e['rows'] for e in each)} rows.")
    return out


def render(f: dict) -> str:
    dev, cal = f["dev"], f["calibration"]
    out = [HEAD.format(version=VERSION, buckets=BUCKETS, local=LOCAL, megabytes=f["bytes"] / 1e6, held_out_rows=f["held_out"]["held_out_rows"])]
    if f.get("product"):
        out += product_tables(f["product"])
    out += domain_tables(dev, cal["domain"])
    out.append(f"{percent(f['held_out']['domain_noise'])} of the labels are taken for wrong: no subject has a probability above that of the labels being right.\n")
    out.append("Prompts written for this measurement alone (`training/own_prompts.tsv`, by the author of the training prompts): " + ", ".join(
        f"{'English' if g == 'en' else 'twelve other languages'} {a:.2f} ({n} rows)" for g, (n, a) in f["own_prompts"].items()) + ".\n")
    out += jailbreak_tables(dev, f["planted"], cal["jailbreak"])
    c = dev["complexity"]
    out.append(f"### Complexity\nDev rows are low or high only. AUC of P(high) {c['auc']:.3f}, accuracy {c['accuracy']:.3f}; the rule \"longer than 110 characters\" alone reaches accuracy {c['length_accuracy']:.3f} and AUC {c['length_auc']:.3f}, so look at the bands of length.")
    out.append(table(["band", "rows", "high", "AUC", "AUC of length alone"], complexity_rows(c)))
    out.append(f"### Factcheck\nDev: accuracy {dev['factcheck']['accuracy']:.3f}, AUC {dev['factcheck']['auc']:.3f}.\n")
    if f.get("left_out"):
        out += left_out_tables(f["left_out"])
    s, p = f["sts_spearman"], f["parity"]
    out.append(f"### Embedding\nSTS benchmark, every tenth English row held out, Spearman: base model (fp32) {s['base_fp32']:.3f}, this bundle (int8) {s['bundle_int8']:.3f}.\n")
    out.append(f"### Int8 against fp32\n{p['texts']} texts, PyTorch fp32 against the int8 graph; personal-data labels are equal on {percent(p['pii_labels_equal'])} of the tokens.")
    out.append(table(["output", "largest difference", "mean of the largest per text", "equal labels"],
                     [[t, num(v), num(p["mean_of_max"][t]), p["labels_equal"].get(t, "")] for t, v in p["max_difference"].items()]))
    out.append("### Latency\nMilliseconds for one row on one core of an AMD EPYC with AVX-512 VNNI, ONNX Runtime 1.30, median (fastest); the columns took turns." + f["latency_ms"].pop("note", ""))
    names = {"all": "all tasks", "four": "four sequence tasks", "domain": "domain alone", "separate": "four separate graphs"}
    out.append(table(["tokens", *names.values()], [[n, *(f"{t[k][0]} ({t[k][1]})" for k in names)] for n, t in f["latency_ms"].items()]))
    out.append("### Hand-written prompts" + table(["prompt", "domain (probability)", "P(jailbreak)", "as expected"],
               [[r["text"], f"{r['domain']} ({r['p_domain']})", r["p_jailbreak"], "yes" if r["as_expected"] else "no"] for r in f["probes"]]))
    out.append(LIMITS)
    out.append(f"## Training\n{f['training_rows']:,} labelled rows; cross-entropy per task, and a distillation loss that holds the pooled embedding to that of the\nbase model. How the weights of this version came about is in training/README.md.\n\n```sh\npip install -r training/requirements.txt\ncd training && python -m signalbox_training.build --data DATA\n```\n")
    out.append("## Sources and licences" + table(["source", "licence"], [list(x) for x in PROVENANCE]))
    return "\n".join(out).replace("\n\n\n", "\n\n") + "\n"
