"""Requests that an application or a person wraps around other text: a template of retrieval around passages and a question, an
instruction in one language around a text in another, a customer's mail with names, account numbers and demands. They are
harmless, whatever they forbid and however bossy, unless what is put in is an attack.

`wraps/frames.tsv` has a language and a template a line: {p} passages, {q} a question, {a} an answer, {l} a language, {n} a number.
`wraps/mails.tsv` has a language, a part (o opening, s sentences, h sentences that sound like orders to a model, a orders to a
model, e end, w what a user puts around it: {m}) and its variants.
Both are our own words.
"""

from __future__ import annotations

import random
import re
from pathlib import Path

FOLDER = Path(__file__).resolve().parent / "wraps"
LANGUAGES = "German|French|English|Spanish|Japanese|Dutch|Portuguese|Chinese|Korean|Arabic|Italian|Polish".split("|")
JOINTS = ("\n\n", "\n\n", "\n\n", "\n", " ", "\n---\n", "\n\n\n", "\n- ")
HEADS = ("", "", "", "[{i}] ", "Source {i}:\n", "Document {i}: ", "({i}) ", "<doc id={i}>", "page_label: {i}\nfile_path: notes_{i}.pdf\n\n", "title: part {i}\n", '{i}. ')
FIRST = "Anna|Jonas|Maria|Pierre|Sofia|Luca|Emma|Hans-Peter|Ingrid|Mehmet|Claire|Javier|Giulia|Bram|Fatima|Piotr|Olga|Kenji|Wei|Laura|Thomas|Brigitte|Nils|Chloé".split("|")
LAST = "Schmidt|Müller|Dubois|García|Rossi|de Vries|Yılmaz|Kowalski|Petrov|Tanaka|Brown|O'Neill|Lindqvist|Weber|Moreau|Fernández|Bianchi|Jansen|Novak|Hoffmann|Schulze-Berg|Clarke".split("|")
STREETS = "Lindenstraße {n}|Hauptstr. {n}a|{n} rue des Lilas|Calle Mayor {n}|Via Roma {n}|Kerkstraat {n}|{n} High Street|Am Markt {n}|{n} avenue Foch".split("|")
CITIES = "10115 Berlin|50667 Köln|69003 Lyon|28013 Madrid|20121 Milano|1017 Amsterdam|Leeds LS1 4AP|80331 München|1010 Wien|8001 Zürich".split("|")
COUNTRIES = {"DE": 18, "FR": 23, "ES": 20, "IT": 23, "NL": 14, "AT": 16, "CH": 17}  # digits behind the check digits, letters left out


def _lines(name: str) -> list[list[str]]:
    text = (FOLDER / name).read_text(encoding="utf-8")
    return [line.replace("\\n", "\n").split("\t") for line in text.split("\n") if line]


def _filled(text: str, slots: dict) -> str:
    return re.sub(r"\{(\w)\}", lambda m: slots[m[1]]() if m[1] in slots else m[0], text)


def _passages(texts: list[str], rng: random.Random) -> str:
    """One to four texts in a form that retrieval writes."""
    some, head, joint = rng.sample(texts, rng.choice([1, 1, 2, 2, 3, 4])), rng.choice(HEADS), rng.choice(JOINTS)
    return joint.join(head.format(i=i) + t.strip() for i, t in enumerate(some, 1))


def frames(n: int, texts: dict[str, list[str]], questions: list[str], seed: int, share: float = 0.5) -> list[str]:
    """n templates that are filled with texts by language; share: of the English templates among them."""
    rng, out, lines = random.Random(seed), [], _lines("frames.tsv")
    english, others = ([t for l, t in lines if (l == "en") == e] for e in (True, False))
    names = list(texts)
    for _ in range(n):
        frame = rng.choice(english if rng.random() < share else others)
        name = rng.choice([k for k in names if len(texts[k]) >= 4])
        slots = {
            "p": lambda: _passages(texts[name], rng), "q": lambda: rng.choice(questions).strip(), "a": lambda: rng.choice(texts[name]).strip()[:200],
            "l": lambda: rng.choice(LANGUAGES), "n": lambda: str(rng.randint(2, 12)),
        }
        out.append(_filled(frame, slots))
    return out


def _values(rng: random.Random) -> dict:
    digits = lambda k: "".join(rng.choice("0123456789") for _ in range(k))
    first, last, n = rng.choice(FIRST), rng.choice(LAST), str(rng.randint(1, 180))
    country = rng.choice(list(COUNTRIES))
    number = country + digits(2) + digits(COUNTRIES[country])
    groups = lambda s: " ".join(s[i : i + 4] for i in range(0, len(s), 4))
    return {
        "first": first, "last": last, "name": f"{first} {last}", "n": rng.choice(["7", "10", "14"]), "street": rng.choice(STREETS).format(n=n), "city": rng.choice(CITIES),
        "iban": rng.choice([number, groups(number)]), "card": groups("4" + digits(15)), "id": rng.choice(["{}", "#{}", "Nr. {}", "AB-{}", "K{}/24"]).format(digits(rng.randint(5, 9))),
        "sum": rng.choice(["{} EUR", "{} €", "€{}", "{},90 Euro"]).format(rng.randint(12, 4800)), "date": f"{rng.randint(1, 28)}.{rng.randint(1, 12)}.{rng.choice([1958, 1974, 1991, 2024, 2025])}",
        "phone": rng.choice(["+49 {} {}", "0{}/{}", "+33 {} {}", "({}) {}", "0{}-{}"]).format(digits(3).lstrip("0") or "30", digits(7)), "mail": f"{first}.{last}@example.{rng.choice(['com', 'org', 'net'])}".lower().replace(" ", ""),
    }


def mails(n: int, seed: int, attack: bool = False) -> list[tuple[str, str, str]]:
    """n mails of customers: the language, the mail, and it with what a user puts around it; attack: with a sentence for the model
    that reads it."""
    rng, parts = random.Random(seed), {}
    for language, part, variants in _lines("mails.tsv"):
        parts.setdefault(language, {})[part] = variants.split("|")
    out, names = [], ["en"] * 3 + ["de"] * 2 + list(parts)
    for _ in range(n):
        language = rng.choice(names)
        part, values = parts[language], _values(rng)
        told = rng.sample(part["s"] + part["h"], rng.randint(1, 6))
        if attack:
            told.insert(rng.randrange(len(told) + 1), rng.choice(part["a"]))
        body = rng.choice([" ", " ", "\n", "\n\n"]).join(told)
        mail = "\n\n".join([rng.choice(part["o"]), body] + ([rng.choice(part["e"])] if rng.random() < 0.85 else []))
        mail = re.sub(r"\{(\w{2,}|n)\}", lambda m: values[m[1]], mail)
        out.append((language, mail, rng.choice(part["w"]).replace("{m}", mail)))
    return out
