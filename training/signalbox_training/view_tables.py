"""Tables by which classify/views tells text from noise: common words and letter pairs.

words.txt holds the words that occur most often in the training sets, by the number of sets and the
number of texts that have them, so that no single source decides. bigrams.bin holds 28 x 28 bytes:
round(16 * -ln P(next | this)) over a-z (0-25), space (26) and everything else (27), a mean over
languages written in Latin letters, accents removed.

    python -m signalbox_training.view_tables --data DATA --out ../classify/views
"""

from __future__ import annotations

import argparse
import base64
import collections
import random
import re
import unicodedata
from pathlib import Path

import numpy as np

from . import data, scan_texts, synth

ENGLISH_SETS = (
    ("openstax_text", "text"), ("general_prompts", "text"), ("codealpaca", "text"), ("gpteacher_codegen", "text"), ("clinc150", "text"), ("hwu64", "text"), ("domain_other", "text"),
    ("medquad", "text"), ("gsm8k", "text"), ("mmlu", "text"), ("fact_check", "text"), ("jailbreak", "text"), ("nli_mnli_snli_dev", "premise"), ("wice_claims", "premise"),
    ("nli_real", "premise"), ("wiki_split", "a"), ("stsb_multi", "a"), ("pii_negatives", "text"),
)
WORDS, FOREIGN_WORDS = 5200, 160
LATIN = ("en", "es", "fr", "de", "it", "pt", "nl", "pl")


def plain(text: str) -> str:
    """Lower case without accents."""
    return "".join(c for c in unicodedata.normalize("NFD", text.lower()) if not unicodedata.combining(c))


def english_words(folder: Path) -> list[str]:
    sets, texts = collections.Counter(), collections.Counter()
    for name, field in ENGLISH_SETS:
        rows = [r[field] for r in data.read(folder, name) if r.get("lang", "en") == "en" and r[field]]
        random.Random(1).shuffle(rows)
        rows = rows[:6000]
        counts = collections.Counter()
        for t in rows:
            counts.update(set(re.findall(r"[a-z]+", t[:2000].lower())))
        for w, n in counts.items():
            if n >= 3:
                sets[w] += 1
                texts[w] += n / len(rows)
    known = [w for w in texts if len(w) >= 3 and sets[w] >= 4 or len(w) == 2 and sets[w] >= 12]
    known.sort(key=lambda w: -texts[w] * sets[w])
    return known[:WORDS]


def foreign_words(folder: Path) -> list[str]:
    counts = collections.defaultdict(collections.Counter)
    for r in data.read(folder, "stsb_multi"):
        if r["lang"] in LATIN[1:]:
            counts[r["lang"]].update(w for w in re.findall(r"[a-z]+", plain(r["a"])) if len(w) >= 4)
    return [w for c in counts.values() for w, _ in c.most_common(FOREIGN_WORDS)]


def own_words() -> list[str]:
    """The vocabulary of attacks, whatever its rank."""
    lists = scan_texts.VERBS + scan_texts.RULES + scan_texts.WHEN + scan_texts.DEMANDS + scan_texts.ROLES + scan_texts.PROMISES
    lists += synth.FORGET + synth.GOAL + synth.STEAL + synth.HARM
    for language in ("es", "fr", "de", "it", "pt", "nl", "pl", "tr"):
        lists += [plain(p) for p in scan_texts.WORLD[language][:3]]
    return [w for text in lists for w in re.findall(r"[a-z]+", text.lower()) if len(w) >= 4]


def pairs(folder: Path) -> np.ndarray:
    total = np.zeros((28, 28))
    for language in LATIN:
        counts = np.full((28, 28), 0.5)
        for r in data.read(folder, "stsb_multi"):
            if r["lang"] == language:
                s = np.array([ord(c) - 97 if "a" <= c <= "z" else 26 if c == " " else 27 for c in plain(f" {r['a']} ")])
                np.add.at(counts, (s[:-1], s[1:]), 1)
        total += counts / counts.sum(1, keepdims=True)
    return np.clip(np.round(16 * -np.log(total / len(LATIN))), 0, 255).astype(np.uint8)


def cost(table: np.ndarray, text: str) -> float:
    """Mean cost of the letter pairs of a text."""
    s = [ord(c) - 97 if "a" <= c <= "z" else 26 if c in " \n\t" else 27 for c in f" {plain(text)} "]
    return float(np.mean([table[a, b] for a, b in zip(s, s[1:])]))


def thresholds(folder: Path, table: np.ndarray, log=print) -> None:
    """Costs of real text and of noise at several lengths, on held-out rows."""
    rng = random.Random(4)
    real = [r["text"] for r in data.read(folder, "general_prompts")] + [a for a, _ in [(t, 0) for t in scan_texts.world(rng, 10)[0]] if a.isascii()]
    exams = [r["text"] for r in data.read(folder, "exams_multilingual") if r["lang"] in ("German", "French", "Spanish", "Italian", "Portuguese", "Turkish", "Hungarian", "Croatian")]
    print_able = [chr(c) for c in range(32, 127)]
    for n in (8, 12, 16, 24, 48):
        def cut(texts):
            out = []
            for t in rng.sample(texts, min(1500, len(texts))):
                if len(t) > n:
                    a = rng.randrange(len(t) - n)
                    out.append(cost(table, t[a : a + n]))
            return out
        noise = [cost(table, "".join(rng.choice(print_able) for _ in range(n))) for _ in range(3000)]
        letters = [cost(table, "".join(rng.choice("abcdefghijklmnopqrstuvwxyz") for _ in range(n))) for _ in range(3000)]
        b64 = [cost(table, base64.b64encode(rng.randbytes(n)).decode()[:n]) for _ in range(3000)]
        q = lambda x, p: round(float(np.quantile(x, p)), 1)
        log(f"{n} characters: real 50/95/99 % {q(cut(real), .5)}/{q(cut(real), .95)}/{q(cut(real), .99)}, other languages {q(cut(exams), .5)}/{q(cut(exams), .95)}/{q(cut(exams), .99)}; "
            f"noise 1/5 %: printable {q(noise, .01)}/{q(noise, .05)}, letters {q(letters, .01)}/{q(letters, .05)}, base64 {q(b64, .01)}/{q(b64, .05)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    words = sorted({*english_words(args.data), *foreign_words(args.data), *own_words(), "a", "i"})
    (args.out / "words.txt").write_text("\n".join(words) + "\n")
    table = pairs(args.data)
    (args.out / "bigrams.bin").write_bytes(table.tobytes())
    print(len(words), "words")
    thresholds(args.data, table)


if __name__ == "__main__":
    main()
