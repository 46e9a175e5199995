"""From the log-odds of windows to the probability that a text holds an attack.

The largest of n scores grows with n, attack or not. What a text is judged by is therefore fitted on whole texts:

    log-odds = bias + w1 z1 + w2 z2 + w3 z3 - length ln(n)

with z1 >= z2 >= z3 the largest log-odds of the windows that are read (the last one again where there are fewer), n the windows
that cover it, and no weight below zero. Read are, as in the product, those that the scan finds most worth it, `budget` of n. Harmless texts are those of repositories that nothing was learnt from, by kind, held-out
prompts, and texts of up to 150,000 tokens put together from them; attacks are held-out ones, alone and planted in short and
long texts. The threshold is the least one at which at most FALSE_POSITIVES of the harmless texts count, every kind alike, and
at most OF_ONE_KIND of a kind.

An order of one sentence is diluted by what stands around it. So where z1 is at least `from`, the sentences of its window are read
alone and in pairs (classify/close.go), and (1 - weight) z1 + weight s takes its place, with s the greatest of theirs.

A text of one window gets `single` more in jailbreak (`--single`): one window of many is what makes a long harmless text look like an
attack, and most attacks of users have only one. It is the greatest at which at most FALSE_POSITIVES of the harmless texts of one
window count, and at most OF_PROMPTS of the harmless prompts of the dev file.

    python -m signalbox_training.documents [--bundle ../models/default]

fits the document scores of a bundle anew, for each `from` and `weight`, and prints them.
"""

from __future__ import annotations

import argparse
import json
import random
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import yaml
from scipy.optimize import minimize

from . import batches, data, evaluate, scan
from .model import ATTACKS

FALSE_POSITIVES = 0.004  # of the harmless texts, every kind alike
OF_ONE_KIND = 0.02  # and of no kind with at least MANY texts more than this
MANY = 50
PRIOR = 0.15  # of attacks; that of the texts that the probabilities are judged on
PER_KIND = 110  # texts of a kind
LONG = (60, 200, 700, 1500)  # windows of texts that are put together
LENGTHS = (0.17, 0.25, 0.34)  # beyond that fewer are found in long texts, and prompts of agents are refused
OF_PROMPTS, SINGLES = 0.005, np.round(np.arange(0, 3.01, 0.1), 1)
ATTACKED = ("attack", "planted", "planted, long")  # kinds of texts with attacks
FROM, WEIGHTS = (-3.0, -2.0, -1.5, -1.0), (0.0, 0.3, 0.4, 0.5, 0.6)  # of the second look
SAYS, BOUND = (0.0, 0.5), 2.0  # weight and bound of what the scan says of the highest window
SHORT = 32  # bytes of a sentence at least: shorter ones are read with what follows
SENTENCES, TOGETHER = 6, 48  # sentences that are read, tokens of a pair
END = re.compile("\n|[\u3002\uff01\uff1f\u0964\u061f\u06d4]|[.!?](?=[ \n\r\t])")
CHOICES = np.round(np.arange(0.2, 0.981, 0.01), 2)


@dataclass
class Text:
    """What was read of one text: log-odds [windows, tasks], the windows that cover it, and what it is."""

    odds: np.ndarray
    close: np.ndarray  # of the second look at each window, [windows, tasks]; NaN where there is none
    worth: np.ndarray  # the scan's evidence of each window
    windows: int
    kind: str
    labels: tuple[int, int]  # jailbreak, injection; data.NONE where open

    def features(self, task: int, start: float = 0.0, weight: float = 0.0) -> list[float]:
        """The three highest log-odds, the logarithm of the number of windows, and the bounded evidence of the scan for the highest."""
        read = np.argsort(-self.worth, kind="stable")[: budget(self.windows)]
        read = read[np.argsort(-self.odds[read, task], kind="stable")]
        z = self.odds[read, task]
        top = [z[min(k, len(z) - 1)] for k in range(3)]
        close = self.close[read[0], task]
        if top[0] >= start and not np.isnan(close):
            top[0] = (1 - weight) * top[0] + weight * close
        return [*top, np.log(self.windows), np.clip(self.worth[read[0]], -BOUND, BOUND)]


def sentences(text: str) -> list[tuple[int, int]]:
    """(start, end) of the sentences of a text, without the white space around them; sentenceEnd in classify/judge.go."""
    at, out = 0, []
    for end in [m.end() for m in END.finditer(text)] + [len(text)]:
        part = text[at:end]
        if len(part.strip().encode()) < SHORT and end < len(text):
            continue
        if part.strip():
            start = at + len(part) - len(part.lstrip())
            out.append((start, start + len(part.strip())))
        at = end
    return out


def budget(n: int) -> int:
    """How many of n windows the product reads: see classify/unit.go."""
    return n if n <= 3 else max(3, min(10, 3 + int(2 * (np.log2(n) - 5))))


@dataclass
class Reader:
    """What reads windows: the graph and the scan."""

    sess: object
    tok: object
    table: scan.Model

    def closely(self, ngrams, window: str, task: str) -> float:
        """The greatest log-odds of the sentences of a window, alone and in pairs; NaN where it is one sentence."""
        spans = sentences(window)
        if len(spans) < 2:
            return float("nan")
        scores = np.array([max((w[2] for w in self.table.windows(ngrams, window[a:b])), default=0.0) for a, b in spans])
        chosen = set(np.argsort(-scores, kind="stable")[:SENTENCES].tolist())
        ids = [e.ids for e in self.tok.encode_batch([window[a:b] for a, b in (spans[k] for k in sorted(chosen))], add_special_tokens=False)]
        pairs = [(spans[k][0], spans[k + 1][1]) for k in range(len(spans) - 1) if k in chosen or k + 1 in chosen]
        both = [e.ids for e in self.tok.encode_batch([window[a:b] for a, b in pairs], add_special_tokens=False)] if pairs else []
        rows = [r[: batches.SAFETY_WINDOW - 2] for r in ids if r] + [r for r in both if len(r) + 2 <= TOGETHER]
        if not rows:
            return float("nan")
        got = evaluate.run(self.sess, [batches.wrap(r) for r in rows])[task]
        return float((got[:, 1] - got[:, 0]).max())

    def read(self, texts: list[str]) -> list[tuple[np.ndarray, np.ndarray, np.ndarray, int]]:
        """(log-odds [windows, tasks], those of second looks, the scan's evidence, windows that cover the text) of the windows of each
        text that are read."""
        ngrams, out = scan.Reader(self.table.bits), []
        for text in texts:
            e = self.tok.encode(text, add_special_tokens=False)
            size, starts = batches.SAFETY_WINDOW - 2, [0]
            while starts[-1] + size < len(e.ids):
                starts.append(starts[-1] + batches.SAFETY_STRIDE)
            n = len(starts)
            spans = [text[e.offsets[s][0] : e.offsets[min(s + size, len(e.ids)) - 1][1]] if e.ids else "" for s in starts]
            worth = np.array([max((w[2] for w in self.table.windows(ngrams, t)), default=0.0) if t else 0.0 for t in spans])
            read = np.argsort(-worth, kind="stable")[: budget(n)]
            found = [evaluate.run(self.sess, [batches.wrap(e.ids[starts[i] : starts[i] + size])]) for i in read]
            odds = np.stack([np.concatenate([f[t][:, 1] - f[t][:, 0] for f in found]) for t in ATTACKS], 1)
            close = np.full(odds.shape, np.nan)
            for k, task in enumerate(ATTACKS):
                if odds[top := int(odds[:, k].argmax()), k] >= min(FROM):
                    close[top, k] = self.closely(ngrams, spans[read[top]], task)
            out.append((odds, close, worth[read], n))
        return out


def texts(sess, tok, folder, held: list[data.Row], table: scan.Model, seed: int = 51) -> list[Text]:
    """The texts to fit on."""
    from . import attacks

    rng, out, kinds = random.Random(seed), [], {}
    reader = Reader(sess, tok, table)
    for r in attacks.documents(folder, True):
        if r["kind"] != "quotes attacks":
            kinds.setdefault(r["kind"], []).append(r["text"])
    for r in held:
        if r.jailbreak == 0:
            kinds.setdefault("chat" if r.injection == data.NONE else "held " + r.src.split("/")[0], []).append(r.text)
    hosts = []
    for kind, members in sorted(kinds.items()):
        picked = rng.sample(members, min(len(members), PER_KIND * (4 if kind == "chat" else 1)))
        chat = kind in ("chat", "clothing")
        for text, found in zip(picked, reader.read(picked)):
            out.append(Text(*found, kind, (0, data.NONE if chat else 0)))
            if not chat and 200 < len(text) < 20000:
                hosts.append(text)
    harmless = [t for t in out if t.labels[1] == 0]

    def joined(first: list[Text], n: int, kind: str, labels: tuple[int, int]) -> Text:
        """A text of n windows of many documents, those of `first` among them."""
        parts = first + [rng.choice(harmless) for _ in range(max(2, n // 8))]
        join = lambda name: np.concatenate([getattr(p, name) for p in parts])[:n]
        return Text(join("odds"), join("close"), join("worth"), n, kind, labels)

    for n in LONG:
        out += [joined([], n, f"long {n}", (0, 0)) for _ in range(40)]
    found = [r for r in held if 1 in (r.jailbreak, r.injection) and not r.variant]
    rng.shuffle(found)
    found = found[:900]
    for r, got in zip(found, reader.read([r.text for r in found])):
        out.append(Text(*got, "attack", (r.jailbreak, r.injection)))
    able = [r for r in found if r.injection == 1]
    planted = []
    for r in rng.choices(able, k=700):
        host = rng.choice(hosts)
        at = host.rfind("\n", 0, rng.randrange(len(host))) + 1
        planted.append((r, host[:at] + r.text[:1500] + "\n" + host[at:]))
    for (r, _), got in zip(planted, reader.read([t for _, t in planted])):
        text = Text(*got, "planted", (r.jailbreak, 1))
        out += [text, joined([text], rng.choice(LONG), "planted, long", (r.jailbreak, 1))]
    return out


def fit(found: list[Text], task: int, start: float = 0.0, closely: float = 0.0, say: float = 0.0) -> tuple[dict, float, dict]:
    """(the manifest's `document`, the threshold, figures) of one task, with second looks from log-odds `start` of weight `closely`, and the scan's
    evidence at the weight `say`."""
    known = [t for t in found if t.labels[task] != data.NONE]
    x = np.array([t.features(task, start, closely) for t in known])
    y = np.array([t.labels[task] == 1 for t in known])
    sizes = {}
    for t in known:
        sizes[t.kind] = sizes.get(t.kind, 0) + 1
    weight = np.array([1 / sizes[t.kind] for t in known])  # every kind alike
    weight[y] *= PRIOR / weight[y].sum()
    weight[~y] *= (1 - PRIOR) / weight[~y].sum()
    sign = np.where(y, 1.0, -1.0)
    kinds = sorted({t.kind for t, a in zip(known, y) if not a})
    named = np.array([t.kind for t in known])

    def weigh(length: float) -> tuple[np.ndarray, float]:
        """(bias and weights, loss) with a given weight of the length."""

        def loss(p):
            z = p[0] + x[:, :3] @ p[1:4] - length * x[:, 3] + say * x[:, 4]
            value = weight @ np.logaddexp(0, -sign * z) + 1e-3 * np.square(p[1:4] - np.array([1, 0, 0])).sum()
            g = -weight * sign / (1 + np.exp(sign * z))
            grad = np.array([g.sum(), *(g @ x[:, :3])])
            grad[1:4] += 2e-3 * (p[1:4] - np.array([1, 0, 0]))
            return value, grad

        r = minimize(loss, np.array([0, 1.0, 0, 0]), jac=True, method="L-BFGS-B", bounds=[(None, None)] + [(0, None)] * 3)
        return r.x, float(r.fun)

    def judge(length: float) -> tuple[float, float, dict, np.ndarray, np.ndarray]:
        """(threshold, loss, recall by kind, bias and weights, scores) with a given weight of the length."""
        p, least = weigh(length)
        score = 1 / (1 + np.exp(-(p[0] + x[:, :3] @ p[1:4] - length * x[:, 3] + say * x[:, 4])))
        of = {k: score[(named == k) & ~y] for k in kinds}
        rate = lambda t: float(np.mean([(of[k] >= t).mean() for k in kinds]))
        worst = lambda t: max(float((of[k] >= t).mean()) for k in kinds if len(of[k]) >= MANY)
        threshold = next((float(t) for t in CHOICES if rate(t) <= FALSE_POSITIVES and worst(t) <= OF_ONE_KIND), float(CHOICES[-1]))
        recall = {k: [int(m.sum()), float((score[m] >= threshold).mean())] for k in ATTACKED if (m := (named == k) & y).any()}
        return threshold, least, recall, p, score

    # The likelihood alone makes attacks in long texts the price of a few short ones: what is found of every kind decides.
    length = max(LENGTHS, key=lambda v: np.mean([share for _, share in judge(v)[2].values()]))
    threshold, least, recall, p, score = judge(length)
    of = {k: score[(named == k) & ~y] for k in kinds}
    figures = {"texts": len(known), "auc": evaluate.auc(score, y), "false_positives": float(np.mean([(of[k] >= threshold).mean() for k in kinds])),
               "by_kind": {k: [len(of[k]), float((of[k] >= threshold).mean())] for k in kinds}, "recall": recall, "loss": least,
               "looked_at_again": float(np.mean([t.odds[:, task].max() >= start for t, a in zip(known, y) if not a])),
               "ece": evaluate.ece(np.maximum(score, 1 - score), (score >= 0.5) == y)}
    shape = {"bias": round(float(p[0]), 4), "top": [round(float(v), 4) for v in p[1:4]], "length": length}
    return shape, threshold, figures


def single(found: list[Text], prompts: list[Text], shape: dict, threshold: float) -> tuple[float, dict]:
    """`single` of jailbreak's `document`, given the rest of it, and for each value that was tried: flagged harmless texts of one
    window, flagged prompts, and attacks that are found, by kind."""

    def judged(texts: list[Text]) -> tuple[np.ndarray, np.ndarray]:
        """(Log-odds without `single`, whether one window covers it) of each text."""
        x = np.array([t.features(0, shape["close"]["from"], shape["close"]["weight"]) for t in texts])
        return shape["bias"] + x[:, :3] @ np.array(shape["top"]) - shape["length"] * x[:, 3] + shape["scan"]["weight"] * x[:, 4], x[:, 3] == 0

    known = [t for t in found if t.labels[0] != data.NONE]
    (z, one), (asked, short) = judged(known), judged(prompts)
    y, named, least = np.array([t.labels[0] == 1 for t in known]), np.array([t.kind for t in known]), np.log(threshold / (1 - threshold))
    figures = {}
    for value in SINGLES:
        hit = z + value * one >= least
        figures[float(value)] = {"harmless": float(hit[one & ~y].mean()), "prompts": float((asked + value * short >= least).mean()),
                                 **{k: float(hit[y & (named == k)].mean()) for k in ATTACKED}}
    right = [v for v, f in figures.items() if f["harmless"] <= FALSE_POSITIVES and f["prompts"] <= OF_PROMPTS]
    return max(right, default=0.0), figures


def main() -> None:
    from . import data as rows

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--bundle", type=Path, default=Path("../models/default"))
    parser.add_argument("--out", type=Path, default=Path("build/documents.json"))
    parser.add_argument("--single", action="store_true", help="keep the bundle's document score and fit what texts of one window get in jailbreak")
    args = parser.parse_args()
    held = [r for i, r in enumerate(rows.build(args.data)[1]) if i % 2 == 0 or 1 in (r.jailbreak, r.injection)]
    table = scan.Model.unpack((args.bundle / "scan.bin").read_bytes())
    sess, tok = evaluate.session(args.bundle / "model_int8.onnx"), batches.tokenizer()
    found = texts(sess, tok, args.data, held, table)
    out = {}
    if args.single:
        task = next(t for t in yaml.safe_load((args.bundle / "bundle.yaml").read_text())["tasks"] if t["name"] == "jailbreak")
        harmless = [r["text"] for r in rows.read(args.data, "dev/jailbreak.jsonl") if r["label"] == "benign"]
        prompts = [Text(*got, "prompt", (0, 0)) for got in Reader(sess, tok, table).read(harmless)]
        print(json.dumps(single(found, prompts, task["document"], task["threshold"]), indent=1))
        return
    for i, task in enumerate(ATTACKS):
        for start in FROM:
            for weight in WEIGHTS:
                for say in SAYS:
                    shape, threshold, figures = fit(found, i, start, weight, say)
                    out[f"{task} from {start} weight {weight} scan {say}"] = {"document": shape, "threshold": threshold, **figures}
                    print(task, start, weight, say, shape, threshold,
                          {k: figures[k] for k in ("auc", "loss", "false_positives", "recall", "looked_at_again")}, flush=True)
    args.out.parent.mkdir(parents=True, exist_ok=True)
    args.out.write_text(json.dumps(out, indent=1) + "\n")


if __name__ == "__main__":
    main()
