"""What a model is given to read: orders to it that somebody planted there, and what honest people write in such places.

Eleven writers wrote `material/`, each about a world of their own, without a figure in sight. The last three (`results`,
`everyday`, `agents`), of whom all had seen the first lines of the others, wrote after 3.12.0, which has not read them. An *order*
speaks to the model or leads it away from its task, an *ask* is a sentence of the same words that speaks to people, a
*passage* is such material as a whole.
"""

from __future__ import annotations

import random
import re
from pathlib import Path

FOLDER = Path(__file__).parent / "material"
LABELS = ("order", "ask", "passage")
ROOMS = (200, 500, 900, 1100)  # characters of a host at most
PIECE = re.compile(r"(?<=[.!?])(\s+)|(\n+)")


def read() -> list[tuple[str, str, str]]:
    """(world, label, text) of every row."""
    out = []
    for file in sorted(FOLDER.glob("*.tsv")):
        for line in file.read_text(encoding="utf-8").splitlines():
            label, _, text = line.split("\t")
            out.append((file.stem, label, text.replace("\\n", "\n")))
    return out


def by_world(label: str) -> dict[str, list[str]]:
    """The texts of a label by their world."""
    out: dict[str, list[str]] = {}
    for world, found, text in read():
        if found == label:
            out.setdefault(world, []).append(text)
    return out


def plant(host: str, text: str, rng: random.Random) -> tuple[str, int]:
    """A piece of the host with the text between two of its sentences, in four of ten at an end, and where the text begins."""
    room = rng.choice(ROOMS)
    if len(host) > room:
        start = rng.randrange(len(host) - room)
        host = host[start : start + room]
    parts = [p for p in PIECE.split(host) if p]
    at = rng.choice([0, len(parts)] + [rng.randrange(len(parts) + 1) for _ in range(4)])
    gap = rng.choice(["\n", " ", " ", "\n\n"])
    before = "".join(parts[:at]).rstrip()
    before += gap if before else ""
    return before + text + gap + "".join(parts[at:]).lstrip(), len(before)


def window(encoded, start: int, end: int, size: int, rng: random.Random) -> tuple[list[int], tuple[int, int]] | None:
    """At most size tokens of an encoded text, those of its characters [start, end) among them, and which these are."""
    inside = [i for i, (a, b) in enumerate(encoded.offsets) if start < b and a < end]
    if not inside:
        return None
    low, high = max(0, inside[-1] + 1 - size), max(0, min(inside[0], len(encoded.ids) - size))
    first = inside[0] if len(inside) > size else rng.randint(low, high)
    ids = encoded.ids[first : first + size]
    return ids, (inside[0] - first, min(len(ids), inside[-1] + 1 - first))
