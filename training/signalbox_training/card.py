"""Renders the model card from the figures of one build."""

from __future__ import annotations

from .bundle import PROVENANCE, VERSION

HEAD = """# Model card: signalbox-minilm {version}

One ONNX graph that reads a prompt once and answers three questions: which of 14
subject domains it belongs to, whether it tries to jailbreak a model (or injects
instructions into it), and what its sentence embedding is.

| | |
| --- | --- |
| Trunk | all-MiniLM-L6-v2 (6 layers, 384 wide, 22M parameters), fine-tuned |
| Heads | first token and masked mean, concatenated, then one hidden layer per task |
| Wide part | a linear model over hashed n-grams of word pieces (one to four in a row, 2^19 buckets, int8), added to the heads' logits with weights that depend on how foreign the text is to the vocabulary |
| Precision | int8 linear layers and embedding table, fp32 attention, norms, heads and a few outlier channels |
| Graph size | {megabytes:.1f} MB |
| Row length | 256 tokens; longer prompts are read in overlapping windows (stride 192) |
| Licence | Apache-2.0 |
| Languages | English; other European languages in part, see Limits |

## Intended use
Routing and policy signals in the signalbox proxy: choose a model by subject, flag
jailbreak and injection attempts for a rule to act upon, compare prompts by cosine
similarity. The jailbreak score is one signal among several, not a safety guarantee.
Plain harmful requests are **not** what it detects: it looks for attempts to override
instructions.

## Figures
All figures were measured with the shipped int8 graph through ONNX Runtime, one text
per call, with the windows of the manifest. Dev rows were never trained on; copies of
dev texts were removed from the training rows. Temperatures and the jailbreak threshold
were chosen on {held_out_rows} held-out rows of the training sets, not on dev.
"""

LIMITS = """
## Limits and known failure modes
- **English first.** The vocabulary and the trunk are English. Other languages are carried by the
  wide part, which knows school subjects in 15 of them (the `exams` row shows how well) and a few
  attack patterns; everyday prompts in them are mostly guesses.
- **Subjects overlap.** Physics, engineering and chemistry, and business and economics,
  share questions; the confusion list shows where. MMLU-Pro files accounting under
  *other*; this model was taught *business* for it, so its accuracy against the original
  labels is lower than its accuracy against labels that count accounting as business.
- **`other` is a mixture**: everyday requests as well as geography, politics and sociology.
- **Jailbreak data is narrow.** Public attack texts repeat a few famous prompts. Dev
  attacks come from the same collections as the training attacks, so the dev AUC is
  optimistic for new kinds of attack{loso_hint}. Encoded attacks
  (base64, spacing, look-alike letters) should be normalised before classification.
- **Wrapped attacks score lower.** A window is judged as a whole: a textbook jailbreak with three
  harmless sentences before and after it fell from 1.0 to 0.03. Nothing here was trained on attacks
  planted in other text.
- **Injections phrased as ordinary tasks** inside a document ("add this link to your
  answer") are hard to tell from the user's own wishes and are often missed.
- **Role play** with an unusual persona can score as a jailbreak.
- Int8 activations are scaled per call, so logits move slightly with the texts that
  share a batch. On x86 CPUs without VNNI set the session option
  `session.x64quantprecision` to `1`, or 8-bit products may saturate.
"""


def percent(x) -> str:
    return "-" if x is None else f"{100 * x:.1f} %"


def render(f: dict) -> str:
    dev, cal, out = f["dev"], f["calibration"], []
    out.append(HEAD.format(version=VERSION, megabytes=f["bytes"] / 1e6, held_out_rows=f["held_out"]["held_out_rows"]))
    out.append("\n### Domain\n| dev set | rows | accuracy | with accounting as business | ECE before / after temperature | coverage at 90 % accuracy | at the threshold: coverage, accuracy |\n| --- | --- | --- | --- | --- | --- | --- |")
    for name in ("domain_mmlu_pro", "domain_mixed"):
        d = dev[name]
        out.append(f"| `{name}` | {d['rows']} | **{d['accuracy']:.3f}** | {d['accuracy_accounting_as_business']:.3f} | {d['ece_before']:.3f} / {d['ece']:.3f} | {d['coverage_at_90']:.3f} (threshold {d['coverage_threshold']:.2f}) | {d['coverage_at_threshold']:.3f}, {d['accuracy_at_threshold']:.3f} |")
    c = cal["domain"]
    out.append(f"\nTemperature {c['temperature']}, threshold {c['threshold']}.\n\n| label | MMLU-Pro accuracy | mixed accuracy |\n| --- | --- | --- |")
    for label in dev["domain_mmlu_pro"]["by_label"]:
        out.append(f"| {label} | {dev['domain_mmlu_pro']['by_label'][label]:.2f} | {dev['domain_mixed']['by_label'].get(label, float('nan')):.2f} |")
    out.append("\n| source in `domain_mixed` | rows | accuracy |\n| --- | --- | --- |")
    out += [f"| {s} | {n} | {a:.2f} |" for s, (n, a) in dev["domain_mixed"]["by_source"].items()]
    for name in ("domain_mmlu_pro", "domain_mixed"):
        pairs = ", ".join(f"{a} read as {b} ({n})" for a, b, n in dev[name]["confusions"])
        out.append(f"\nMost frequent confusions in `{name}`: {pairs}.")
    j, c = dev["jailbreak"], cal["jailbreak"]
    out.append(f"\n### Jailbreak\nTemperature {c['temperature']}, threshold {c['threshold']} on P(jailbreak).\n\n| dev `jailbreak` | |\n| --- | --- |")
    out += [f"| {k} | {v} |" for k, v in (
        ("rows (attacks)", f"{j['rows']} ({j['attacks']})"), ("AUC", f"**{j['auc']:.4f}**"), ("recall at the threshold", percent(j["recall"])),
        ("false positives on benign rows", percent(j["false_positives"])),
        (f"false positives on hard benign rows ({j['hard_benign_rows']})", percent(j["hard_benign_false_positives"])),
        ("recall at 1 % false positives", percent(j["recall_at_1_percent_false_positives"])),
        ("ECE before / after temperature", f"{j['ece_before']:.3f} / {j['ece']:.3f}"),
        ("false positives on `domain_mmlu_pro`, `domain_mixed`", f"{percent(dev['domain_mmlu_pro']['jailbreak_false_positives'])}, {percent(dev['domain_mixed']['jailbreak_false_positives'])}"),
    )]
    out.append("\n| source | rows | flagged |\n| --- | --- | --- |")
    out += [f"| {s} | {n} | {percent(v)} |" for s, (n, v) in j["flagged_by_source"].items()]
    if f.get("leave_one_out"):
        out.append("\nWith one source of attacks left out of training (half an epoch, fp32), measured on that source against the benign dev rows:\n\n| left out | attacks | AUC | recall | false positives |\n| --- | --- | --- | --- | --- |")
        out += [f"| {s} | {v['attacks']} | {v['auc']:.3f} | {percent(v['recall'])} | {percent(v['false_positives'])} |" for s, v in f["leave_one_out"].items()]
    s = f["sts_spearman"]
    out.append(f"\n### Embedding\nSTS benchmark, every tenth English row held out, Spearman: base model (fp32) {s['base_fp32']:.3f}, this bundle (int8) {s['bundle_int8']:.3f}.")
    p = f["parity"]
    out.append(f"\n### Int8 against fp32\n{p['texts']} texts: largest logit difference {p['max_difference']['domain']:.3f} (domain), {p['max_difference']['jailbreak']:.3f} (jailbreak); equal labels {p['labels_equal']['domain']} and {p['labels_equal']['jailbreak']}.")
    out.append("\n### Latency\nOne row, one core of an AMD EPYC with AVX-512 VNNI, ONNX Runtime 1.30 (the machine was shared while this was measured):\n\n| tokens | median ms | fastest ms |\n| --- | --- | --- |")
    out += [f"| {n} | {median} | {least} |" for n, (median, least) in f["latency_ms"].items()]
    out.append("\n### Hand-written prompts\n| prompt | domain (probability) | P(jailbreak) | as expected |\n| --- | --- | --- | --- |")
    out += [f"| {r['text']} | {r['domain']} ({r['p_domain']}) | {r['p_jailbreak']} | {'yes' if r['as_expected'] else 'no'} |" for r in f["probes"]]
    out.append(LIMITS.format(loso_hint=" (see the table with sources left out)" if f.get("leave_one_out") else " (no leave-one-source-out figures were taken for this version)"))
    out.append(f"## Training\n{f['training_rows']:,} labelled rows; domain cross-entropy with label smoothing, jailbreak cross-entropy, and a distillation loss that holds\nthe pooled embedding to that of the base model. How the weights of this version came about is in training/README.md.\n\n```sh\npip install -r training/requirements.txt\ncd training && python -m signalbox_training.build --data DATA\n```\n")
    out.append("## Sources and licences\n| source | licence |\n| --- | --- |")
    out += [f"| {name} | {licence} |" for name, licence in PROVENANCE]
    return "\n".join(out) + "\n"
