"""Renders the model card of models/grounding from the figures of one build."""

from __future__ import annotations

from .nli_bundle import PROVENANCE, VERSION
from .nli_evaluate import ROW

HEAD = """# Model card: signalbox-nli {version}

Reads a premise and a claim together and says whether the premise entails the claim, leaves it open or contradicts it. The
guard asks it about the sentences of an answer and the best windows of the evidence, of a long source also about the sentences that
hold most of the claim between them, and weighs what it says together with what it sees in words and numbers (`fusion.json`).

| | |
| --- | --- |
| Model | all-MiniLM-L6-v2 (6 layers, 384 wide, 22M parameters), all layers tuned on pairs; the word table kept |
| Row | `[CLS] premise [SEP] claim [SEP]`, premise type 0, claim type 1, at most {row} tokens |
| Head | first token, mean and largest values over the claim's tokens, one hidden layer, three logits; temperature {heat:g} |
| Precision | int8 linear layers and word table over fixed ranges, fp32 attention, norms and head |
| Graph size | {megabytes:.1f} MB |
| Fusion | {trees} boosted trees, 40 % of the sum by words and numbers alone, on {features} features of a claim, most of which may push one way only, and a logistic curve; beside a source of more than 150 words {long} trees more and a flatter curve |
| Licence | Apache-2.0 |
| Languages | English |

## Intended use
One of the guard's readers: sentences of an answer against facts, tool results or documents of the same request, a few
sentences at a time. It judges whether a claim follows from the text that it is given, not whether it is true.

## Figures
Dev rows were never trained on, and training rows whose claim or premise is a text of a dev file were left out. {training:,} pairs were
there to train on; one premise in fourteen was held out, and chose the temperature, the trees and the thresholds. {pages} Training rows of WiCE that ask about a
claim of a dev row, about a part of one, or about a claim that one is part of, were left out as well. The score of a row is 1 - the least support of its claims, as the
product computes it (`training/features`): split into claims, two premises each, in int8. Intervals are 95 %, by bootstrap over rows.

### A source left out (AUC of unsupported against supported answers)

Edited summaries of conversations and mails (SummEdits), 52 documents of some 400 words. The model has never seen one. What the
fusion adds beside long evidence was fitted on them and on sentences written about texts that the model was not trained on
(`twins`: each true one beside a false one nearly like it). Each kind, and each fifth of the texts of the twins, is measured by
trees fitted on the others; without what is added nothing has seen any.

| kind | rows | nothing of the source seen | the kind not seen |
| --- | --- | --- | --- |
{left_out}

### Grounding (AUC of unsupported against supported answers)

| dev file | rows | NLI alone | words and numbers alone | fused | bar |
| --- | --- | --- | --- | --- | --- |
"""

# Of what the fusion was fitted on beside pages.
CROSSED = "WiCE is too small for that: its\ntraining claims are among the pairs, and for the fusion of 1.2.0, which is the one here, each was read by one of five models that had seen neither it nor what was found to be a part of it."
FRESH = "The\nmodel has seen no claim of WiCE: the fusion was fitted on its training claims as the model reads them."

BARS = {"grounding_synthetic": "0.99", "grounding_real": "0.93", "grounding_wice": "0.77"}
KINDS = {"num": "a number changed", "neg": "a negation put in", "unneg": "a negation taken out", "ent": "a name replaced", "ant": "a word turned into its opposite",
         "added": "a clause added", "near": "a sentence from beside it", "ext": "true: a sentence of the premise", "para": "true: a few words replaced"}

LIMITS = """
## Limits and known failure modes
- **Near copies are its strength**: sentences of the evidence with a number, a name, a negation or a word changed. Claims that
  take several steps to infer, common sense, or evidence in more than some 70 words of a page are its weakness; SummEdits and WiCE show how much.
- **Numbers**: the model learnt roundings, conversions and other ways to write a value from generated facts, but it does not
  calculate. The comparison of numbers decides where it can; the model reads what is around them.
- **No shared word**: where fewer windows than the guard reads share a word with the claim, windows from the start of the facts are
  read instead. On a long page the right one may not be among them.
- **English only.** Other languages are read by their numbers and names alone.
- **Hardly seen in training**: dialogue, code, tables, long lists, contracts. Facts about the world are not in it.
- **Not told apart**: what belongs to another thing of the same text, who did what to whom, most opposites that no word shows.
- **Contradicted or silent**: several sources do not tell one from the other, so the two are less sharp than supported or not.
- The made-by-rule dev rows come from the same rules and books as training rows; figures on them are optimistic for other texts.
- MNLI, SNLI and negation dev rows share premises with many others of those sets; rows with a dev text were left out.

## Made from
| source | licence |
| --- | --- |
"""


def area(f: dict) -> str:
    low, high = f["interval"]
    return f"{f['auc']:.3f} ({low:.3f} to {high:.3f})"


def grounding(dev: dict) -> list[str]:
    return [f"| `{name}` | {d['fused']['rows']:,} | {area(d['nli'])} | {area(d['words'])} | **{area(d['fused'])}** | {BARS[name]} |" for name, d in dev.items()]


def left_out(found: dict) -> str:
    """Rows of a table of what nli_long.left_out gives."""
    shown = lambda f: f"{f[0]:,} | {f[1]:.3f} | {f[2]:.3f} ({f[3][0]:.3f} to {f[3][1]:.3f})"
    return "\n".join(f"| {kind or 'all'} | {shown(f)} |" for kind, f in found.items())


def stated(dev: dict) -> list[str]:
    """What rows without a claim do to the figures."""
    parts = "; ".join(f"`{n}` {d['stated']['rows']:,} rows, {d['stated']['auc']:.3f}" for n, d in dev.items())
    return ["", f"Headings, questions and talk about the conversation count only in an answer that states nothing else. One without words, or of code alone, scores 0, whatever its label. Fused over the other rows: {parts}."]


def sources(f: dict) -> list[str]:
    out = ["", "By source of `grounding_real`:", "", "| source | rows | NLI alone | words and numbers alone | fused |", "| --- | --- | --- | --- | --- |"]
    parts = [f[k]["by_source"] for k in ("nli", "words", "fused")]
    return out + [f"| {s} | {parts[0][s][0]} | " + " | ".join(f"{p[s][1]:.3f}" for p in parts) + " |" for s in parts[0]]


def kinds(f: dict) -> list[str]:
    out = ["", "### By kind of change", "", "Share of the rows of `grounding_synthetic` that are caught where 2 % of the true rows are (the last rows are true ones, flagged in error):", "",
           "| kind | rows | NLI alone | words and numbers alone | fused |", "| --- | --- | --- | --- | --- |"]
    parts = [f[k]["by_kind"] for k in ("nli", "words", "fused")]
    order = [k for k in KINDS if k in parts[0]]
    return out + [f"| {KINDS[k]} | {parts[0][k][0]} | " + " | ".join(f"{p[k][1]:.3f}" for p in parts) + " |" for k in order]


def fitted(fusion: dict) -> dict:
    """What the card tells of a fusion."""
    return {"trees": len(fusion["trees"]), "features": len(fusion["features"]), "thresholds": fusion["thresholds"],
            "short": fusion["thresholds_short"], "long": len(fusion["long"]["trees"]) if "long" in fusion else 0}


def cuts(found: dict) -> str:
    return ", ".join(f"{k} {v:.2f}" for k, v in found.items())


def verdicts(dev: dict, fit: dict) -> list[str]:
    out = ["", "### Verdicts", "", f"With the thresholds of `fusion.json` ({cuts(fit['thresholds'])}; beside evidence of at most 150 words {cuts(fit['short'])}), share of the answers with a contradicted or unsupported claim:", "",
           "| dev file | unsupported answers (caught) | supported answers (false alarms) |", "| --- | --- | --- |"]
    return out + [f"| `{n}` | {d['verdicts']['caught']:.3f} | {d['verdicts']['false_alarms']:.3f} |" for n, d in dev.items()]


def held_out(f: dict) -> list[str]:
    whole, exact = f["held_out"]["accuracy"], f["held_out_fp32"]["accuracy"]
    out = ["", "### Labels of held-out pairs, int8 against fp32", "", "Share of pairs with a label that may hold (rows that only say \"not supported\" allow two):", "",
           "| source | pairs | int8 | fp32 |", "| --- | --- | --- | --- |"]
    out += [f"| {s} | {n:,} | {a:.3f} | {exact[s][1]:.3f} |" for s, (n, a) in whole.items()]
    i = f["int8"]
    return [*out, "", f"The two graphs give the same label in {i['same_label']:.1%} of the pairs; their probabilities differ by {i['mean']:.3f} on average and by {i['p99']:.2f} in one pair of a hundred."]


def latency(f: dict) -> list[str]:
    out = ["", "### Milliseconds a run", "", "ONNX Runtime, two threads of a shared two-core server CPU (AVX-512, VNNI), no other tokens in the batch:", "", "| pairs x tokens | median | 99th percentile |", "| --- | --- | --- |"]
    return out + [f"| {n} | {a:.1f} | {b:.1f} |" for n, (a, b) in f.items()]


def render(figures: dict, graph: str = "") -> str:
    """The model card; `graph` is what it tells of the graph, as an older card has it, where that was not measured again."""
    head = HEAD.format(version=VERSION, row=ROW, heat=figures["held_out"]["temperature"], megabytes=figures["bytes"] / 1e6, trees=figures["fit"]["trees"],
                       features=figures["fit"]["features"], training=figures["training_rows"], long=figures["fit"]["long"], pages=FRESH if figures.get("fresh") else CROSSED, left_out=left_out(figures["left_out"]))
    lines = head.rstrip("\n").split("\n") + grounding(figures["dev"]) + stated(figures["dev"]) + sources(figures["dev"]["grounding_real"]) + kinds(figures["dev"]["grounding_synthetic"])
    lines += verdicts(figures["dev"], figures["fit"]) + (["", graph.rstrip("\n")] if graph else held_out(figures) + latency(figures["latency_ms"]))
    return "\n".join(lines) + "\n" + LIMITS + "".join(f"| {name} | {licence} |\n" for name, licence in PROVENANCE)
