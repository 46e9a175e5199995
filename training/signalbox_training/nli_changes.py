"""Claims made from sentences of books and encyclopedias: changed ones, and true ones said otherwise.

Changed: a number, a unit, a word of quantity or order, two names swapped. True: a number written
otherwise or rounded, a clause left out, two sentences for one (WikiSplit).
"""

from __future__ import annotations

import random
import re
from pathlib import Path

from . import data
from . import nli_values as values
from .nli_data import SURE, UNSUPPORTED, Pair, dev_keys, sentences, words

# A word and what makes the sentence false. Pairs hold in both directions.
OPPOSITES = [("all", "few"), ("most", "few"), ("always", "never"), ("more", "less"), ("increase", "decrease"), ("increases", "decreases"),
             ("increased", "decreased"), ("before", "after"), ("first", "last"), ("largest", "smallest"), ("highest", "lowest"), ("higher", "lower"),
             ("larger", "smaller"), ("greater", "smaller"), ("above", "below"), ("rise", "fall"), ("rises", "falls"), ("rose", "fell"),
             ("majority", "minority"), ("maximum", "minimum"), ("longest", "shortest"), ("longer", "shorter"), ("faster", "slower"),
             ("everyone", "no one"), ("both", "neither"), ("older", "younger"), ("early", "late"), ("earlier", "later"), ("north", "south"),
             ("northern", "southern"), ("eastern", "western"), ("positive", "negative"), ("gain", "loss"), ("accepted", "rejected"),
             ("won", "lost"), ("began", "ended"), ("begins", "ends"), ("started", "stopped"), ("inside", "outside"), ("include", "exclude"),
             ("includes", "excludes"), ("possible", "impossible"), ("legal", "illegal"), ("strong", "weak"), ("stronger", "weaker"),
             ("win", "lose"), ("buy", "sell"), ("buys", "sells"), ("bought", "sold"), ("import", "export"), ("imports", "exports"),
             ("many", "few"), ("often", "rarely"), ("usually", "rarely"), ("never", "often"), ("every", "no"), ("parents", "children"),
             ("husband", "wife"), ("father", "mother"), ("son", "daughter"), ("male", "female"), ("men", "women"), ("day", "night")]
OTHER = {}
for left, right in OPPOSITES:
    OTHER.setdefault(left, []).append(right)
    OTHER.setdefault(right, []).append(left)
SAME = {"approximately": "about", "about": "roughly", "however": "but", "purchase": "buy", "purchased": "bought", "obtain": "get", "utilize": "use",
        "large": "big", "begin": "start", "began": "started", "begins": "starts", "numerous": "many", "assist": "help", "shows": "demonstrates",
        "showed": "demonstrated", "often": "frequently", "also": "as well", "many": "a lot of", "difficult": "hard", "required": "needed",
        "requires": "needs", "require": "need", "created": "made", "physician": "doctor", "children": "kids", "usually": "normally",
        "located": "situated", "country": "nation", "primary": "main", "entire": "whole", "buy": "purchase", "help": "assist", "important": "significant"}
AMOUNT = re.compile(r"(?<![\w.,/–-])(\$|€|£)?(\d{1,3}(?:,\d{3})+|\d+)(\.\d+)?(?!\d|[,.]\d|[\w–/:])(%| percent| million| billion| trillion)?")
NAME = re.compile(r"(?<![.!?“\"(] )(?<!^)\b[A-Z][a-z]+(?: [A-Z][a-z]+)*\b")
FILLERS = ("According to the text, ", "Yes, ", "Based on the document, ", "In short, ", "The facts say that ", "As stated, ")


def whole(match: re.Match) -> float:
    return float(match[2].replace(",", "") + (match[3] or ""))


def is_year(match: re.Match) -> bool:
    return bool(not match[1] and not match[4] and not match[3] and "," not in match[2] and 1000 <= float(match[2]) <= 2035)


def put(text: str, match: re.Match, new: str) -> tuple[str, list[tuple[int, int]]]:
    at = match.start()
    return text[:at] + new + text[match.end() :], [(at, at + len(new))]


def number_kept(text: str, rng: random.Random) -> str | None:
    """A number of the sentence written otherwise, or rounded and said to be."""
    found = [m for m in AMOUNT.finditer(text) if not (is_year(m) and not m[1])]
    if not found:
        return None
    m = rng.choice(found)
    value, sign, scale = whole(m), m[1] or "", m[4] or ""
    if scale in ("%", " percent"):
        new = values.plain(value) + (" percent" if scale == "%" else "%")
    elif scale:
        size = {" million": 1e6, " billion": 1e9, " trillion": 1e12}[scale]
        new = sign + (values.commas(value * size) if size < 1e12 and rng.random() < 0.6 else f"{values.plain(value)}{scale}")
    elif sign:
        word = dict(values.CURRENCIES)[sign]
        new = f"{values.commas(value)} {word}"
    else:
        new = values.true_form(value, rng)
    changed = put(text, m, new)[0]
    return changed if changed != text else None


def number_changed(text: str, rng: random.Random) -> tuple[str, list] | None:
    found = list(AMOUNT.finditer(text))
    if not found:
        return None
    m = rng.choice(found)
    if is_year(m):
        return put(text, m, str(values.false_year(int(m[2]), rng)))
    if m[4] in (" million", " billion") and rng.random() < 0.25:
        return put(text, m, (m[1] or "") + m[2] + (m[3] or "") + (" billion" if m[4] == " million" else " million"))
    other = values.false_value(whole(m) or 3.0, rng)
    shown = values.commas(other) if "," in m[2] or rng.random() < 0.3 else values.plain(other)
    return put(text, m, (m[1] or "") + shown + (m[4] or ""))


def word_changed(text: str, rng: random.Random) -> tuple[str, list] | None:
    """A word of quantity, order or direction turned into its opposite, or a unit into another."""
    found = [m for m in re.finditer(r"\b[a-z]+\b", text) if m[0] in OTHER]
    found += [m for m in re.finditer(r"(?<=\d )[A-Za-z]+\b", text) if m[0] in values.WRONG_UNIT]
    if not found:
        return None
    m = rng.choice(found)
    return put(text, m, rng.choice(OTHER[m[0]]) if m[0] in OTHER else values.WRONG_UNIT[m[0]])


def names_swapped(text: str, rng: random.Random) -> tuple[str, list] | None:
    found = [m for m in NAME.finditer(text)]
    if len({m[0] for m in found}) < 2:
        return None
    a, b = sorted(rng.sample(found, 2), key=lambda m: m.start())
    between = text[a.end() : b.start()]
    if a[0] == b[0] or re.fullmatch(r",? (and|or) |, ", between):  # of a list, the order says nothing
        return None
    out = text[: a.start()] + b[0] + between + a[0] + text[b.end() :]
    second = a.start() + len(b[0]) + len(between)
    return out, [(a.start(), a.start() + len(b[0])), (second, second + len(a[0]))]


def name_taken(text: str, other: str, rng: random.Random) -> tuple[str, list] | None:
    """A name replaced by one from another sentence."""
    found, strange = list(NAME.finditer(text)), [m[0] for m in NAME.finditer(other)]
    strange = [s for s in strange if s not in text]
    if not found or not strange:
        return None
    return put(text, rng.choice(found), rng.choice(strange))


def shortened(text: str, rng: random.Random) -> str | None:
    """The sentence without something in brackets, a relative clause at its end or what leads in."""
    ways = []
    if re.search(r" \([^()]*\)", text):
        ways.append(re.sub(r" \([^()]*\)", "", text, count=1))
    m = re.fullmatch(r"(.{30,}?), (?:which|who|where|including|such as|although|while|because|since) [^,]+\.", text)
    if m:
        ways.append(m[1] + ".")
    m = re.fullmatch(r"(?:In|At|During|By|For|After|On|However|Moreover|Furthermore|Thus|Therefore|Also|Finally|For example)\b[^,]{0,40}, (.{30,})", text)
    if m:
        ways.append(m[1][0].upper() + m[1][1:])
    m = re.fullmatch(r"(.{20,}?) (\w+), (\w+), and (\w+)(.*)", text)
    if m:
        ways.append(f"{m[1]} {m[2]} and {m[4]}{m[5]}" if rng.random() < 0.5 else f"{m[1]} {m[3]} and {m[4]}{m[5]}")
    return rng.choice(ways) if ways else None


def reworded(text: str, rng: random.Random) -> str | None:
    found = [m for m in re.finditer(r"\b[a-z]+\b", text) if m[0] in SAME]
    if not found:
        return None
    m = rng.choice(found)
    return put(text, m, SAME[m[0]])[0]


def untokenised(text: str) -> str:
    """WikiSplit's text as people write it."""
    text = text.replace("'' ", '"', 1).replace(" ''", '"', 1).replace("''", '"')
    text = re.sub(r"\s+([,.;:!?)%]|'s\b|n't\b)", r"\1", text)
    return re.sub(r"([($])\s+", r"\1", re.sub(r"(\w) - (\w)", r"\1-\2", text)).strip()


def from_sentence(text: str, near: str, premise: str, rng: random.Random) -> list[Pair]:
    """A true and a changed claim from a sentence of the premise. `near` is another text of the same book."""
    out = []
    ways = [number_kept, number_kept, shortened, shortened, reworded, lambda t, r: t]
    for way in rng.sample(ways, len(ways)):
        true = way(text, rng)
        if true:
            if true != text and rng.random() < 0.3:
                true = shortened(true, rng) or true
            out.append(Pair(premise, true, SURE["entailment"], "own/changes", "kept", []))
            break
    base = rng.choice([f(text, rng) or text for f in (shortened, reworded, number_kept)]) if rng.random() < 0.35 else text
    ways = [(number_changed, SURE["contradiction"])] * 3 + [(word_changed, UNSUPPORTED)] * 2
    ways += [(names_swapped, UNSUPPORTED), (lambda t, r: name_taken(t, near, r), UNSUPPORTED)]
    for way, may in rng.sample(ways, len(ways)):
        changed = way(base, rng)
        if changed:
            out.append(Pair(premise, changed[0], may, "own/changes", "changed", changed[1]))
            break
    return out


def led_in(row: Pair, rng: random.Random) -> Pair:
    """Some claims begin as answers do, whether true or not."""
    if row.claim and rng.random() < 0.06:
        filler = rng.choice(FILLERS)
        row.marks = [(a + len(filler), b + len(filler)) for a, b in row.marks] if row.marks is not None else None
        keep = re.match(r"[A-Z][a-z]+ [A-Z]|[A-Z]{2}|I\b", row.claim)
        row.claim = filler + (row.claim if keep else row.claim[0].lower() + row.claim[1:])
    return row


def build(folder: Path, count: int, seed: int = 29) -> list[Pair]:
    """About `count` pairs from OpenStax paragraphs and WikiSplit."""
    rng, banned, out = random.Random(seed), dev_keys(folder), []
    books = [r["text"] for r in data.read(folder, "openstax_text") if r["lang"] == "en"]
    split = [(untokenised(r["a"]), untokenised(r["b"])) for r in data.read(folder, "wiki_split")]
    rng.shuffle(books)
    near = ""
    for paragraph in books:
        if len(out) >= count * 0.6:
            break
        parts = [s for s in sentences(paragraph) if 7 <= len(s.split()) <= 32 and s.rstrip().endswith(".")]
        fit = [s for s in parts if re.search(r"\d", s)] or (parts if rng.random() < 0.35 else [])
        if not fit or data.key(paragraph) in banned:
            continue
        text = rng.choice(fit)
        at, everything = sentences(paragraph).index(text), sentences(paragraph)
        begin = max(0, at - rng.randint(0, 1))
        premise = " ".join(everything[begin : at + rng.randint(1, 2)])
        if data.key(text) not in banned and len(premise.split()) < 70:
            out += from_sentence(text, near, premise, rng)
        near = paragraph
    for a, b in rng.sample(split, len(split)):
        if len(out) >= count:
            break
        if not 8 <= len(b.split()) <= 50:
            continue
        shared = set(words(b))
        if len([w for w in words(a) if w not in shared]) <= 1:
            out.append(Pair(b, a, SURE["entailment"], "own/changes", "one for two", []))
        out += from_sentence(a, near, a, rng)[1:] if rng.random() < 0.5 else from_sentence(a, near, b, rng)[1:]
        near = a
    return [led_in(p, rng) for p in out]
