"""Rows of the two safety tasks: jailbreak (the user against the rules) and injection (data that commands the model).

A row says for either task whether it is one, or leaves it open: what is an instruction in a mail may be an honest
request of a user, so payloads that override nothing are open for jailbreak, and plain requests are open for injection.

Every surface has its harmless twin: documents, agent prompts, code and chat as people send them, and the
texts of `safety/` that were written against each other. Disguises (letters for digits, dropped vowels, odd spacing,
capitals) are put on attacks and on harmless texts alike.
"""

from __future__ import annotations

import base64
import codecs
import random
import urllib.parse
from pathlib import Path

from . import material, secrecy, synth
from .data import NONE, Row, bucket, read, subsample

OWN = Path(__file__).parent / "safety"
CALIBRATION_ONE_IN = 8  # repositories of harmless documents that are kept for calibration
PIECE = (160, 1100)  # characters of a piece of a document that makes a row
# Pieces of one document by kind; many documents of a few repositories are code.
PIECES = {"code": 1, "prompts": 3, "system prompts and templates": 3, "readme and docs": 2, "tool schemas": 3, "long prose": 4, "licences and legal": 3,
          "quotes attacks": 2}
# Sources whose attacks work on the model by orders to it; what asks for harm inside a story is no order in a document.
STORIES = ("jbb/", "jailtrickbench", "sap200", "fuzzyai", "ailuminate", "langkit")
OFFTASK = ("bipia/attacks", "tasktracker")
GOALS = 6  # harmful goals, and as many harmless ones, that are put into each frame
# Labels of `users_*`: a user's attack may be no order in a document, and honest messages quote orders.
USERS = {"jailbreak": (1, NONE), "chat": (0, NONE), "injection": (NONE, 1), "data": (0, 0)}
FETCHED = "fetched"  # harmless text of more repositories, where the folder has it: see README.md


def tsv(name: str, columns: int) -> list[list[str]]:
    """The rows of a file of this project's own texts; none where it is not there."""
    file = OWN / name
    if not file.exists():
        return []
    rows = [line.split("\t") for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]
    return [[c.replace("\\n", "\n") for c in r] for r in rows if len(r) == columns]


def own(pattern: str, columns: int) -> list[list[str]]:
    """The rows of every file of this project's own texts that the pattern names."""
    return [row for file in sorted(OWN.glob(pattern)) for row in tsv(file.name, columns)]


def documents(data: Path, calibration: bool) -> list[dict]:
    """Harmless texts as people send them, by repository: those to learn from, or those to calibrate on; none of a
    repository in dev."""
    measured = {r["src"] for r in read(data, "dev/real_traffic.jsonl.gz")}
    found = read(data, "real_benign") + (read(data, FETCHED) if (data / FETCHED).is_dir() else [])
    return [r for r in found if r["src"] not in measured and (bucket(r["src"], CALIBRATION_ONE_IN) == 0) == calibration]


def pieces(text: str, count: int, rng: random.Random) -> list[str]:
    """The start of a text and some other parts of it."""
    if len(text) <= PIECE[1]:
        return [text]
    starts = [0] + [rng.randrange(len(text) - PIECE[0]) for _ in range(count - 1)]
    return [text[s : s + rng.randint(*PIECE)] for s in starts]


def document_rows(data: Path) -> list[Row]:
    """Pieces of harmless documents: no attack in either sense."""
    rng, rows = random.Random(41), []
    for r in documents(data, False):
        kind = r["kind"]
        for text in pieces(r["text"], PIECES.get(kind, 1), rng):
            chat = kind in ("clothing", "chat transcripts", "prompts")
            quotes = kind == "quotes attacks"
            rows.append(Row(text, jailbreak=NONE if quotes else 0, injection=NONE if kind == "clothing" or quotes else 0, src="doc/" + kind, weight=1.0,
                            host=not chat and not quotes))
    return rows


def collected_rows(data: Path, leave_out: tuple[str, ...]) -> list[Row]:
    """Attacks of public collections and the harmless rows beside them."""
    rows = []
    for raw in read(data, "jailbreak") + read(data, "jailbreak2"):
        src, label, text = raw["src"], raw["label"], raw["text"]
        if src.startswith(leave_out) or label.startswith("harmful") or src.startswith("own_encoded/") and hidden(src):
            continue
        if label == "benign":
            rows.append(Row(text, jailbreak=0, injection=0 if src.startswith(("docs/", "commits/", "tasktracker/clean", "bipia/context", "openstax_text")) else NONE, src=src,
                            host=src.startswith(("tasktracker/clean", "bipia/context", "openstax_text", "docs/"))))
        elif label == "injection":
            rows.append(Row(text, jailbreak=NONE if src.startswith(OFFTASK) else 1, injection=1, src=src))
        else:
            rows.append(Row(text, jailbreak=1, injection=NONE if src.startswith(STORIES) else 1, src=src))
    attacks = [r for r in rows if 1 in (r.jailbreak, r.injection)]
    return subsample(attacks, 700, lambda r: r.src) + subsample([r for r in rows if 1 not in (r.jailbreak, r.injection)], 420, lambda r: r.src)


def hidden(src: str) -> bool:
    """Encodings that the product takes off before anything is read."""
    return src.endswith(("base64", "hex", "rot13", "url", "zero_width", "reverse"))


def framed() -> list[Row]:
    """Frames (a story, a role, a pretext), each with harmful and with harmless goals."""
    rng, goals, out = random.Random(47), {"harm": [], "calm": []}, []
    for label, goal in own("goals_en.tsv", 2):
        goals[label].append(goal)
    for kind, frame in own("frames_en.tsv", 2):
        for label, members in goals.items():
            for goal in rng.sample(members, min(GOALS, len(members))):
                harm = int(label == "harm")
                text = frame.replace("{goal}", goal)
                out.append(Row(text, jailbreak=harm, injection=NONE, src=f"own/frame/{kind}/{label}"))
    return out


def written_rows() -> list[Row]:
    """This project's own texts, each surface with attacks and harmless twins."""
    rows = framed()
    for label, family, text in own("chat*_en.tsv", 3):
        attack = label == "attack"
        pretext = label == "benign" or family in ("social", "suffix", "vowels")
        rows.append(Row(text, jailbreak=int(attack), injection=NONE if pretext else 1, src=f"own/chat/{family}"))
    rows += [Row(t, jailbreak=int(label == "attack"), injection=NONE, src=f"own/story/{label}")
             for label, t in own("stories_en.tsv", 2)]
    for family, text in own("payloads*_en.tsv", 2):
        jailbreak = 1 if family in ("override", "extract", "fake") else NONE
        rows.append(Row(text, jailbreak=jailbreak, injection=1, src=f"own/payload/{family}"))
    for kind, text in own("data*_en.tsv", 2):
        label = NONE if kind in ("security", "quote") else 0
        rows.append(Row(text, jailbreak=label, injection=label, src=f"own/data/{kind}"))
    rows += [Row(t, jailbreak=0, injection=0, src=f"own/host/{kind}", host=True) for kind, t in own("hosts*_en.tsv", 2)]
    for label, lang, text in own("world*.tsv", 3):
        jailbreak = {"jailbreak": 1, "chat": 0, "data": 0}.get(label, NONE)
        injection = {"jailbreak": 1, "injection": 1, "data": 0}.get(label, NONE)
        rows.append(Row(text, jailbreak=jailbreak, injection=injection, src=f"own/world/{label}/{lang}"))
    for file in sorted(OWN.glob("users_?_en.tsv")):
        for label, kind, text in tsv(file.name, 3):
            jailbreak, injection = USERS[label]
            rows.append(Row(text, jailbreak=jailbreak, injection=injection, src=f"own/user/{label}-{file.stem}/{kind}"))
    for world, label, text in material.read():
        order = label == "order"
        rows.append(Row(text, jailbreak=NONE if order else 0, injection=int(order), src=f"own/material/{label}/{world}", host=label == "passage"))
    rows += [Row(t, jailbreak=y, injection=1 if y else NONE, src="own/jailbreak") for t, y in synth.jailbreak_texts() + secrecy.texts()]
    return rows


LEET = str.maketrans("aeiostlAEIOSTL", "43105714310571")


def leet(text: str, rng: random.Random) -> str:
    share = rng.choice([0.5, 0.8, 1.0])
    return "".join(c.translate(LEET) if rng.random() < share else c for c in text)


def unvowelled(text: str, rng: random.Random) -> str:
    share = rng.choice([0.6, 0.9, 1.0])
    return "".join(c for i, c in enumerate(text) if c.lower() not in "aeiou" or rng.random() > share or i == 0)


def spaced(text: str, rng: random.Random) -> str:
    gap = rng.choice([" ", ".", "-", "_"])
    words = text.split(" ")
    at = rng.randrange(len(words))
    return " ".join(gap.join(w) if at <= i < at + 8 else w for i, w in enumerate(words))


def shouted(text: str, rng: random.Random) -> str:
    return text.upper()


def swapped(text: str, rng: random.Random) -> str:
    """Typing errors: neighbouring letters exchanged, doubled or dropped."""
    out = list(text)
    for _ in range(max(1, len(out) // 18)):
        i = rng.randrange(max(1, len(out) - 1))
        if i + 1 < len(out) and out[i].isalpha() and out[i + 1].isalpha():
            out[i], out[i + 1] = rng.choice([(out[i + 1], out[i]), (out[i], out[i]), (out[i], "")])
    return "".join(out)


DISGUISES = [leet, unvowelled, unvowelled, unvowelled, spaced, shouted, swapped]


def encoded(text: str, rng: random.Random) -> str:
    """The text in one of the encodings that the product takes off before anything is read."""
    raw = text.encode()
    return rng.choice([
        lambda: base64.b64encode(raw).decode(),
        lambda: base64.b64encode(raw).decode(),
        raw.hex,
        lambda: codecs.encode(text, "rot13"),
        lambda: urllib.parse.quote(text, safe=""),
        lambda: text[::-1],
        lambda: text[::-1],
    ])()


def disguised(rows: list[Row], seed: int) -> list[Row]:
    """Attacks and as many harmless texts under the same disguises; a label that is open stays so. What is encoded
    says nothing by itself: harmless texts in an encoding are harmless, and of attacks the product reads the decoded
    text as well."""
    rng = random.Random(seed)
    short = [r for r in rows if 12 <= len(r.text) <= 420 and r.text.isascii()]
    attacks = [r for r in short if r.jailbreak == 1]
    calm = [r for r in short if r.jailbreak == 0]
    out = []

    def put(r: Row, on) -> None:
        out.append(Row(on(r.text, rng), jailbreak=r.jailbreak, injection=r.injection, src=f"{r.src}+{on.__name__}",
                       variant=True))

    for pool, count in ((attacks, 3200), (calm, 3600)):
        for r in rng.sample(pool, min(count, len(pool))):
            put(r, rng.choice(DISGUISES))
    for r in rng.sample(calm, min(1000, len(calm))):
        put(r, encoded)
    return out


def rows(data: Path, leave_out: tuple[str, ...] = ()) -> list[Row]:
    """All rows of the safety tasks."""
    found = document_rows(data) + collected_rows(data, leave_out) + written_rows()
    return found + disguised(found, 43)
