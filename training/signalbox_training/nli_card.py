"""Renders the model card of models/grounding from the figures of one build."""

from __future__ import annotations

from .nli_bundle import PROVENANCE, VERSION
from .nli_evaluate import ROW

HEAD = """# Model card: signalbox-nli {version}

Reads a premise and a claim together and classifies whether the premise entails the claim, leaves it
open or contradicts it. The guard runs it on the sentences of a response and the best windows of the
evidence; for a long source, also on the sentences that together contain most of the claim. The
result is combined with features of words and numbers (`fusion.json`).

| | |
| --- | --- |
| Model | all-MiniLM-L6-v2 (6 layers, 384 wide, 22M parameters), all layers fine-tuned on pairs; the word table unchanged |
| Row | `[CLS] premise [SEP] claim [SEP]`, premise type 0, claim type 1, at most {row} tokens |
| Head | first token, mean and maximum over the claim's tokens, one hidden layer, three logits; temperature {heat:g} |
| Precision | int8 linear layers and word table over fixed ranges, fp32 attention, norms and head |
| Graph size | {megabytes:.1f} MB |
| Fusion | {trees} boosted trees, 40 % of the sum from words and numbers alone, on {features} features of a claim, most of them with a monotonic constraint, and a logistic curve; for a source of more than 150 words {long} more trees and a flatter curve |
| Licence | Apache-2.0 |
| Languages | English |

## Intended use
One component of the guard's checks: sentences of a response against facts, tool results or documents
of the same request, a few sentences at a time. It judges whether a claim follows from the given
text, not whether the claim is true.

## Figures
Dev rows were never trained on, and training rows whose claim or premise is a text of a dev file were
left out. {training:,} pairs were available for training; one premise in fourteen was held out and used to
choose the temperature, the trees and the thresholds. {pages} Training rows of WiCE were also left out if they
ask about a claim of a dev row, about a part of one, or about a claim that one is part of.

The score of a row is 1 - the lowest support of its claims, as the product computes it
(`training/features`): split into claims, two premises each, in int8. Intervals are 95 %, by
bootstrap over rows.

### A source left out (AUC of unsupported against supported responses)

Edited summaries of conversations and mails (SummEdits), 52 documents of about 400 words. The model
was not trained on any of them. The part of the fusion for long evidence was fitted on them and on
sentences about texts that the model was not trained on (`twins`: each true sentence is paired with
a similar false one). Each kind, and each fifth of the texts of the twins, is measured with trees fitted
on the others; without the part for long evidence, nothing was fitted on any of them.

| kind | rows | fitted without the source | fitted without the kind |
| --- | --- | --- | --- |
{left_out}

### Grounding (AUC of unsupported against supported responses)

| dev file | rows | NLI alone | words and numbers alone | fused | bar |
| --- | --- | --- | --- | --- | --- |
"""

# How the fusion was fitted on claims of WiCE.
CROSSED = "WiCE is too small for that: its training claims are among the pairs. For the fusion, which is that of 1.2.0, each of these claims was read by one of five models that had been trained neither on the claim nor on any detected part of it."
FRESH = "The model was not trained on claims of WiCE; the fusion was fitted on the model's results for its training claims."

BARS = {"grounding_synthetic": "0.99", "grounding_real": "0.93", "grounding_wice": "0.77"}
KINDS = {"num": "a number changed", "neg": "a negation added", "unneg": "a negation removed", "ent": "a name replaced", "ant": "a word replaced by its opposite",
         "added": "a clause added", "near": "an adjacent sentence", "ext": "true: a sentence of the premise", "para": "true: a few words replaced"}

LIMITS = """
## Limits and known failure modes
- **Strength: near copies**, sentences of the evidence with a changed number, name, negation or word.
  **Weakness**: claims that take several inference steps, common sense, or evidence that spans more than about 70 words of a page;
  SummEdits and WiCE show how much.
- **Numbers**: the model learnt roundings, conversions and other notations of a value from generated
  facts, but it does not calculate. The comparison of numbers decides where it can; the model reads
  the surrounding text.
- **No shared word**: if fewer windows share a word with the claim than the guard reads, windows from
  the start of the facts fill the rest. On a long page the right window may not be among them.
- **English only.** Text in other languages is checked by its numbers and names alone.
- **Rare in training**: dialogue, code, tables, long lists, contracts. The model holds no facts about
  the world.
- **Not distinguished**: properties of another entity in the same text, who did what to whom, most
  opposites that no word marks.
- **Contradicted or open**: several training sources do not distinguish the two, so this distinction
  is less reliable than supported or not.
- The rule-generated dev rows come from the same rules and books as training rows; their figures are
  optimistic for other texts.
- MNLI, SNLI and negation dev rows share premises with many other rows of these sets; rows with a dev
  text were left out.

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
    """Table rows from the results of nli_long.left_out."""
    shown = lambda f: f"{f[0]:,} | {f[1]:.3f} | {f[2]:.3f} ({f[3][0]:.3f} to {f[3][1]:.3f})"
    return "\n".join(f"| {kind or 'all'} | {shown(f)} |" for kind, f in found.items())


def stated(dev: dict) -> list[str]:
    """The influence of rows without a claim on the figures."""
    parts = "; ".join(f"`{n}` {d['stated']['rows']:,} rows, {d['stated']['auc']:.3f}" for n, d in dev.items())
    return ["", f"Headings, questions and remarks about the conversation count only in a response that states nothing else. A response without words, or with code only, scores 0, whatever its label. Fused results for the other rows: {parts}."]


def sources(f: dict) -> list[str]:
    out = ["", "By source of `grounding_real`:", "", "| source | rows | NLI alone | words and numbers alone | fused |", "| --- | --- | --- | --- | --- |"]
    parts = [f[k]["by_source"] for k in ("nli", "words", "fused")]
    return out + [f"| {s} | {parts[0][s][0]} | " + " | ".join(f"{p[s][1]:.3f}" for p in parts) + " |" for s in parts[0]]


def kinds(f: dict) -> list[str]:
    out = ["", "### By kind of change", "", "Share of the rows of `grounding_synthetic` that are caught at a threshold that flags 2 % of the true rows (the last rows of the table are true ones, flagged in error):", "",
           "| kind | rows | NLI alone | words and numbers alone | fused |", "| --- | --- | --- | --- | --- |"]
    parts = [f[k]["by_kind"] for k in ("nli", "words", "fused")]
    order = [k for k in KINDS if k in parts[0]]
    return out + [f"| {KINDS[k]} | {parts[0][k][0]} | " + " | ".join(f"{p[k][1]:.3f}" for p in parts) + " |" for k in order]


def fitted(fusion: dict) -> dict:
    """The figures of a fusion that the card reports."""
    return {"trees": len(fusion["trees"]), "features": len(fusion["features"]), "thresholds": fusion["thresholds"],
            "short": fusion["thresholds_short"], "long": len(fusion["long"]["trees"]) if "long" in fusion else 0}


def cuts(found: dict) -> str:
    return ", ".join(f"{k} {v:.2f}" for k, v in found.items())


def verdicts(dev: dict, fit: dict) -> list[str]:
    out = ["", "### Verdicts", "", f"Share of the responses with a contradicted or unsupported claim, at the thresholds of `fusion.json` ({cuts(fit['thresholds'])}; with evidence of at most 150 words {cuts(fit['short'])}):", "",
           "| dev file | unsupported responses (caught) | supported responses (false alarms) |", "| --- | --- | --- |"]
    return out + [f"| `{n}` | {d['verdicts']['caught']:.3f} | {d['verdicts']['false_alarms']:.3f} |" for n, d in dev.items()]


def held_out(f: dict) -> list[str]:
    whole, exact = f["held_out"]["accuracy"], f["held_out_fp32"]["accuracy"]
    out = ["", "### Labels of held-out pairs, int8 against fp32", "", "Share of pairs with an admissible label (rows labelled only \"not supported\" allow two):", "",
           "| source | pairs | int8 | fp32 |", "| --- | --- | --- | --- |"]
    out += [f"| {s} | {n:,} | {a:.3f} | {exact[s][1]:.3f} |" for s, (n, a) in whole.items()]
    i = f["int8"]
    return [*out, "", f"The two graphs return the same label for {i['same_label']:.1%} of the pairs. Their probabilities differ by {i['mean']:.3f} on average, and by {i['p99']:.2f} at the 99th percentile."]


def latency(f: dict) -> list[str]:
    out = ["", "### Milliseconds per run", "", "ONNX Runtime, two threads of a shared two-core server CPU (AVX-512, VNNI), no other tokens in the batch:", "", "| pairs x tokens | median | 99th percentile |", "| --- | --- | --- |"]
    return out + [f"| {n} | {a:.1f} | {b:.1f} |" for n, (a, b) in f.items()]


def render(figures: dict, graph: str = "") -> str:
    """The model card. `graph` is the part about the graph from an older card, used if the graph was not measured again."""
    head = HEAD.format(version=VERSION, row=ROW, heat=figures["held_out"]["temperature"], megabytes=figures["bytes"] / 1e6, trees=figures["fit"]["trees"],
                       features=figures["fit"]["features"], training=figures["training_rows"], long=figures["fit"]["long"], pages=FRESH if figures.get("fresh") else CROSSED, left_out=left_out(figures["left_out"]))
    lines = head.rstrip("\n").split("\n") + grounding(figures["dev"]) + stated(figures["dev"]) + sources(figures["dev"]["grounding_real"]) + kinds(figures["dev"]["grounding_synthetic"])
    lines += verdicts(figures["dev"], figures["fit"]) + (["", graph.rstrip("\n")] if graph else held_out(figures) + latency(figures["latency_ms"]))
    return "\n".join(lines) + "\n" + LIMITS + "".join(f"| {name} | {licence} |\n" for name, licence in PROVENANCE)
