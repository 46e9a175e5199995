"""Sentences of this project with personal data: templates of `safety/pii_templates.txt`, filled.

Organisations, places and some names come from lists of our own, since generated ones follow few patterns
(the first bundles found one organisation in three in the texts of another generator); values with a form, such as
telephone numbers, are those of the generated training rows.
"""

from __future__ import annotations

import random
import re
from pathlib import Path

OWN = Path(__file__).parent / "safety"
SLOT = re.compile(r"\{\{(\w+)\}\}")
ROUNDS = 14  # fillings of a template


def lines(name: str) -> list[str]:
    file = OWN / name
    return sorted({l.strip() for l in file.read_text(encoding="utf-8").splitlines() if l.strip()}) if file.exists() else []


def values(rows: list[dict]) -> dict[str, list[str]]:
    """The marked values of generated rows by type."""
    out: dict[str, set[str]] = {}
    for r in rows:
        for e in r["entities"]:
            out.setdefault(e["type"], set()).add(r["text"][e["start"] : e["end"]])
    return {k: sorted(v) for k, v in out.items()}


def pools(rows: list[dict]) -> dict[str, list[list[str]]]:
    """For every slot the lists that its values are drawn from, each list as often as the others."""
    found = {k: [v] for k, v in values(rows).items()}
    orgs, places, names = lines("orgs.txt"), lines("places.txt"), lines("names_extra.txt")
    full = [n for n in found["PERSON"][0] if " " in n]
    found["ORGANIZATION"] = [found["ORGANIZATION"][0], orgs or found["ORGANIZATION"][0]]
    found["GPE"] = [found["GPE"][0], places or found["GPE"][0]]
    found["PERSON"] = [full, full, names or full]
    found["AGE"] = [[str(n) for n in range(2, 99)]]
    found["FIRST"] = [sorted({n.split()[0] for n in full if n.split()[0].isalpha()})]
    found["LAST"] = [sorted({n.split()[-1] for n in full if n.split()[-1].isalpha()})]
    return found


def fill(template: str, pool: dict[str, list[list[str]]], rng: random.Random) -> tuple[str, list[dict]] | None:
    """The text and its entities; None for a slot that nothing fits."""
    text, entities, at = "", [], 0
    for m in SLOT.finditer(template):
        text += template[at : m.start()]
        at = m.end()
        if m[1] not in pool:
            return None
        value = rng.choice(rng.choice(pool[m[1]]))
        kind = "PERSON" if m[1] in ("FIRST", "LAST") else m[1]
        if entities and kind == "PERSON" and entities[-1]["type"] == "PERSON" and text[entities[-1]["end"] :] == " ":
            entities[-1]["end"] = len(text) + len(value)
        else:
            entities.append({"type": kind, "start": len(text), "end": len(text) + len(value)})
        text += value
    text += template[at:]
    return text, entities


def texts(rows: list[dict]) -> list[tuple[str, list[dict]]]:
    """(text, entities) of every template, some in lower case; `rows` are the generated ones."""
    rng, pool, out = random.Random(36), pools(rows), []
    for template in lines("pii_templates.txt"):
        template = template.replace("\\n", "\n")
        if SLOT.sub("", template).strip(" ,.") == "":
            continue  # a bare value says nothing of how it is used
        for _ in range(ROUNDS):
            filled = fill(template, pool, rng)
            if filled is None:
                break
            text, entities = filled
            if rng.random() < 0.12 and len(text.lower()) == len(text):
                text = text.lower()
            out.append((text, entities))
    return out
