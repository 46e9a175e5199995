"""Tails and heads of the two tasks about attacks, fitted anew on a graph that stays as it is otherwise.

A tail (the low-rank changes of the last layer) and a head read the first token, its context and the mean of the
un-adapted last layer (`export.build(taps=True)`). These are computed once, by the int8 graph, so that a fit takes a minute;
the trunk and every other task keep their bytes.

What is learnt is one thing at a time. `--learn readers` (3.4.0) learns which texts are harmless: novels and plays
(`books.py`) and what asks things of its readers (`readers.py`). `--learn orders` (3.5.0) learns orders to a model in forged
forms, and what honest people write in the same forms (`orders.py`). All other rows hold the log-odds to what they were,
attacks in such texts among them, and system prompts that protect themselves, which jailbreak learnt before (`guarded.py`,
3.3.0); those of harmless rows may fall. What a prompt forbids its model and what a document orders it look the same: a third
of the attacks in long documents were lost where injection learnt such prompts too.

`--learn asked` (3.7.0) learns that prompts of applications with a chat inside (`asked.py`) and honest prompts of `users_g` are
no jailbreaks; injection keeps its tail. `--learn forms` (3.8.0) learns in the same way that demands on the form of the response
(`demands.py`) are none, and that attacks dressed in such demands are; `--learn wraps` (3.10.0) that templates, instructions in
one language around a text in another, and mails of customers (`wraps.py`) are none, and that attacks in such templates are.
`--learn talk` (3.12.0) learns that what people say to each other and what they ask an assistant about itself are none, and
`--learn material` (3.12.0), for injection alone, learns orders in what a model is given to read (`material.py`).

    python -m signalbox_training.tails --bundle FOLDER --books FILE --learn asked [--out build/model_int8.onnx]
"""

from __future__ import annotations

import argparse
import random
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import torch
import torch.nn.functional as F
from onnx import numpy_helper
from torch import nn

from . import asked, batches, books, data, demands, documents, evaluate, export, guarded, guides, material, model, orders, readers, restore, train, wraps

SEED = 5
MARGIN = 1.0  # log-odds on the right side of zero at which what is learnt is still pushed
ROWS = batches.SAFETY_WINDOW - 2  # tokens of a window, without those that frame it
PROMPTS, SENTENCES, TURNED = 4200, 3000, 2400
READERS, ASKING, ANSWERED = 3000, 3000, 1500  # whole texts, sentences of them, attacks inside them
CHATS, TURN = 3600, (12, 220)  # prompts of `asked`; characters of a turn
TASK = (15, 400)  # characters of a request that demands are added to
FORMED, WHOLE = 6000, 3  # requests of `demands` that are put together; how often those of the writers count
TALKED_AS = ("own/user/chat-users_h", "own/user/chat-users_i", "own/user/jailbreak-users_h", "own/user/jailbreak-users_i")
LATER = {"talk": TALKED_AS, "material": ("own/material/",)}  # sources that a step learns
OFTEN, PLACED, TOLD, PAGES = 6, 5, 3, 8  # of those texts; times that an order and a sentence are planted; windows of a page
FRAMES, MAILS, FRAMED, ENGLISH = 13500, 3500, 6000, 0.6  # texts of `wraps`; the share of the English templates
ASKED, LIFTED, ORDERED, HONEST, NOTED, TALKED = 3000, 3000, 6000, 4500, 5500, 3000  # texts of `orders`
PIECE, PIECES, PLANTED = 900, 330, 110  # characters of a piece of a book; windows, and attacks inside it, of one book at most
SPARSE = 3600  # characters of a book for one window
SHORT = 80  # tokens of an attack that is put into a text
HARMLESS = 0.62  # of the harmless rows
INSIDE = 0.12  # of the prompts also stand behind other text
BATCH, WARM = 256, 40
TWICE = 8000  # windows that the network reads as well
REACH = 7.0  # log-odds beyond it are held no closer
PARTS_READ = {"wraps": ("learnt", "english"), "talk": ("pages",), "material": ("pages",)}  # of what guides.py wrote
PARTS = ("out", "up", "down")  # the queries' adapters are part of the features


@dataclass(frozen=True)
class Recipe:
    """How something is learnt: the rate, the epochs, the weight of what is held, and for each task the weight of what rounding
    changes, the order of the rows (of some the one whose logits rounding moved least) and how much of the way the weights go."""

    rate: float
    epochs: int
    held: float
    gap: dict[str, float]
    order: dict[str, int]
    way: dict[str, float]


def each(jailbreak, injection) -> dict:
    return {"jailbreak": jailbreak, "injection": injection}


RECIPES = {
    "readers": Recipe(4e-4, 3, 1.0, each(0.0, 0.0), each(8, 4), each(1.0, 1.0)),
    "orders": Recipe(6e-4, 8, 2.0, each(1.0, 2.0), each(21, 4), each(1.0, 0.95)),
    "forms": Recipe(6e-4, 3, 4.0, each(2.0, 0.0), each(3, 4), each(1.0, 0.0)),
    "wraps": Recipe(6e-4, 3, 4.0, each(3.0, 0.0), each(3, 0), each(0.8, 0.0)),
    "asked": Recipe(8e-4, 5, 2.0, each(1.0, 0.0), each(8, 4), each(0.72, 0.0)),
    "talk": Recipe(6e-4, 3, 4.0, each(3.0, 0.0), each(3, 0), each(0.8, 0.0)),
    "material": Recipe(6e-4, 4, 2.0, each(0.0, 0.0), each(0, 3), each(0.0, 1.0)),
}


@dataclass
class Window:
    """Tokens; for each of the two tasks whether they are an attack (data.NONE: open); and whether that is learnt, not held."""

    ids: list[int]
    labels: tuple[int, int]
    new: bool = False


class Maker:
    """Makes the windows of all kinds."""

    def __init__(self, folder: Path, learn: str, leave_out: dict | None = None):
        self.learn, self.tok, self.rng = learn, batches.tokenizer(), random.Random(SEED)
        rows = [r for r in data.build(folder, leave_out)[0] if train.group(r) == "safety"]
        self.examples = [train.Example(r, e) for r, e in zip(rows, self.encode([r.text for r in rows]))]
        self.held = [e for e in self.examples if not e.row.src.startswith(LATER.get(learn, "-"))]  # the others are learnt
        self.hosts = [e.ids for e in self.examples if e.row.host and 40 <= len(e.ids)]
        attacks = [e for e in self.held if 1 in (e.row.jailbreak, e.row.injection) and len(e.ids) < SHORT]
        self.attacks = [Window(e.ids, (e.row.jailbreak, e.row.injection)) for e in attacks]

    def encode(self, texts):
        """Tokens of texts; a row keeps their places for train.Example."""
        return self.tok.encode_batch([t[:6000] for t in texts], add_special_tokens=False)

    def known(self) -> list[Window]:
        """The rows of the training, cut as there."""
        out = []
        for e in self.held:
            if 1 in (e.row.jailbreak, e.row.injection) or self.rng.random() < HARMLESS:
                out.append(Window(train.cut(e, self.hosts, self.rng)[0], (e.row.jailbreak, e.row.injection)))
        return out

    def guards(self) -> list[Window]:
        """System prompts that protect themselves, their sentences, and attacks in the same words."""
        out, harmless = [], lambda ids: Window(ids[:ROWS], (0, data.NONE))
        for e in self.encode(guarded.prompts(PROMPTS)):
            starts = [self.rng.randrange(len(e.ids) - ROWS + 1) for _ in range(2)] if len(e.ids) > ROWS else [0]
            out += [harmless(e.ids[s:]) for s in starts]
            if self.rng.random() < INSIDE:
                out.append(harmless(train.filler(self.hosts, self.rng.randint(20, 60), self.rng) + e.ids))
        out += [harmless(e.ids) for e in self.encode(guarded.sentences(SENTENCES))]
        return out + [Window(e.ids[-ROWS:], (1, 1)) for e in self.encode(guarded.turned(TURNED))]

    def holding(self, ids: list[int]) -> Window:
        """A text with an attack somewhere in it."""
        attack = self.rng.choice(self.attacks)
        room = ROWS - len(attack.ids)
        at = self.rng.randrange(max(1, min(room, len(ids))))
        return Window(ids[:at] + attack.ids + ids[at:room], attack.labels)

    def readers(self) -> list[Window]:
        """What asks things of its readers."""
        harmless, out = lambda ids: Window(ids, (0, 0), self.learn == "readers"), []
        for e in self.encode(readers.texts(READERS)):
            start = self.rng.randrange(max(1, len(e.ids) - ROWS + 1))
            out.append(harmless(e.ids[start : start + ROWS]))
        out += [harmless(e.ids[:ROWS]) for e in self.encode(readers.sentences(ASKING))]
        return out + [self.holding(e.ids) for e in self.encode(readers.texts(ANSWERED, seed=95))]

    def book(self, text: str) -> list[Window]:
        """Pieces of a book, some from the start of a paragraph, sentences of it, and pieces with an attack inside."""
        rng, harmless, out = self.rng, lambda e: Window(e.ids[:ROWS], (0, 0), self.learn == "readers"), []
        count = min(PIECES, len(text) // SPARSE + 1)
        pieces = []
        for _ in range(count):
            start = rng.randrange(max(1, len(text) - PIECE))
            if rng.random() < 0.5:
                start = text.find("\n\n", start) + 2
            pieces.append(text[start : start + PIECE])
        out += [harmless(e) for e in self.encode(pieces) if e.ids]
        alone = []
        for _ in range(count):
            start = rng.randrange(max(1, len(text) - 3 * PIECE))
            spans = documents.sentences(text[start : start + 3 * PIECE])
            if len(spans) > 4:
                first = rng.randrange(1, len(spans) - 2)
                alone.append(text[start + spans[first][0] : start + spans[first + rng.choice([0, 0, 1])][1]])
        out += [harmless(e) for e in self.encode(alone)]
        return out + [self.holding(e.ids) for e in self.encode(rng.sample(pieces, min(PLANTED, count)))]

    def inside(self, ids: list[int]) -> list[int]:
        """A text somewhere in other text, as often at its end as not."""
        ids = ids[:SHORT]
        host = train.filler(self.hosts, self.rng.randint(20, ROWS - len(ids)), self.rng)
        at = len(host) if self.rng.random() < 0.5 else self.rng.randrange(len(host) + 1)
        return host[:at] + ids + host[at:]

    def orders(self) -> list[Window]:
        """Orders to a model and their twins, alone and in other text."""
        out = []
        self.rng.seed(77)
        for texts, labels, share in (
            (orders.asking(ASKED), (1, 1), 0.3),
            (orders.lifting(LIFTED), (1, 1), 0.5),
            (orders.planted(ORDERED), (data.NONE, 1), 1.0),
            (orders.honest(HONEST), (0, 0), 0.3),
            (orders.notes(NOTED), (0, 0), 1.0),
            (orders.talks(TALKED), (0, 0), 0.2),
        ):
            for e in self.encode(texts):
                out.append(Window(e.ids[:ROWS], labels, True))
                if self.rng.random() < share:
                    out.append(Window(self.inside(e.ids), labels, True))
        return out


    def asked(self) -> list[Window]:
        """Prompts of applications with a chat inside, and honest prompts of our own, as a user's."""
        rows = [e.row for e in self.examples]
        plain = {"clinc150", "hwu64", "oasst_sample", "nq_open_dev", "self_instruct", "llmrouter", "tasktracker", "own", "koala", "gpteacher"}
        turns = [
            r.text for r in rows
            if r.jailbreak == 0 and TURN[0] <= len(r.text) <= TURN[1] and "\n" not in r.text and r.src.split("/")[0] in plain
            and not r.src.startswith(("own/jailbreak", "own/frame"))
        ]
        out = []
        for e in self.encode(asked.texts(CHATS, turns, 501)) + [e for e in self.examples if e.row.src.startswith("own/user/chat-users_g")]:
            out += [Window(e.ids[:ROWS], (0, data.NONE), True)] + [Window(e.ids[-ROWS:], (0, data.NONE), True)] * (len(e.ids) > ROWS)
        return out


    def forms(self) -> list[Window]:
        """Requests with demands on the form of the response, and attacks dressed in them."""
        share, count = demands.TASKS, Counter(e.row.src.split("/")[0] for e in self.examples)
        tasks = [
            e.row.text for e in self.examples
            if e.row.jailbreak == 0 and TASK[0] <= len(e.row.text) <= TASK[1] and e.row.text.count("\n") < 3
            and (name := e.row.src.split("/")[0]) in share and not e.row.src.startswith(("own/jailbreak", "own/frame"))
            and self.rng.random() < share[name] / count[name]
        ]
        texts = [("C", t) for t in demands.texts(FORMED, tasks, 77)] + demands.read("PA") * WHOLE
        out = []
        for (kind, _), e in zip(texts, self.encode([t for _, t in texts])):
            parts = [e.ids[:ROWS]] + [e.ids[-ROWS:]] * (len(e.ids) > ROWS)
            out += [Window(ids, (int(kind == "A"), data.NONE), True) for ids in parts]
        return out

    def passages(self, written: list[dict]) -> dict[str, list[str]]:
        """Paragraphs and sentences of harmless documents, by language; half of them English."""
        rng, out = self.rng, {}
        for text, language in [(e.row.text, "en") for e in self.examples if e.row.host] + [(r["text"], r["lang"]) for r in written]:
            paragraphs = [p.strip() for p in re.split(r"\n\s*\n", text) if 60 <= len(p.strip()) <= 1200]
            sentences = [s.strip() for s in re.split(r"(?<=[.!?。！？])\s+", text) if 25 <= len(s.strip()) <= 200 and "\n" not in s.strip()]
            for kind, some, most in (("", paragraphs, 6), ("1", sentences, 3)):
                out.setdefault(language + kind, []).extend(rng.sample(some, min(most, len(some))))
        out = {k: v for k, v in out.items() if len(v) >= 20}
        return out | {f"{k}_{i}": out[k] for k in ("en", "en1") for i in range(len(out) // 4)}

    def wraps(self, written: list[dict]) -> list[Window]:
        """Templates around harmless texts and mails of customers; such templates with an attack in place of the question."""
        rng, texts, out = self.rng, self.passages(written), []
        questions = [e.row.text for e in self.examples if e.row.jailbreak == 0 and TURN[0] <= len(e.row.text) <= TURN[1] and "\n" not in e.row.text]
        asked = [e.row.text.strip() for e in self.examples if e.row.jailbreak == 1 and TASK[0] <= len(e.row.text) <= TASK[1]]
        calm = wraps.frames(FRAMES, texts, questions, 11, ENGLISH) + [t for _, *mail in wraps.mails(MAILS, 12) for t in mail]
        for e in self.encode(calm + [r["text"] for r in written if r["lang"] == "en"]):
            starts = {0, len(e.ids) - ROWS, rng.randrange(len(e.ids) - ROWS + 1)} if len(e.ids) > ROWS else {0}
            out += [Window(e.ids[at : at + ROWS], (0, data.NONE), True) for at in starts]
        for text in wraps.frames(FRAMED, texts, ["\0"], 14, ENGLISH):
            at, attack = text.find("\0"), rng.choice(asked)
            (e,) = self.encode([text.replace("\0", attack, 1)])
            inside = [i for i, (begin, end) in enumerate(e.offsets) if at < end and begin < at + len(attack)]
            if at < 0 or not inside or len(inside) > SHORT:
                continue
            first = rng.randint(max(0, min(inside[-1] + 1 - ROWS, inside[0])), min(inside[0], max(0, len(e.ids) - ROWS))) if len(e.ids) > ROWS else 0
            out.append(Window(e.ids[first : first + ROWS], (1, data.NONE), True))
        return out

    def pages(self, written: list[dict]) -> list[Window]:
        """Pieces of documents of repositories."""
        out = []
        for text in [r["text"] for r in written for _ in range(PAGES)]:
            start = self.rng.randrange(max(1, len(text) - 700))
            out.append(Window(self.encode([text[start : start + 900]])[0].ids[:ROWS], (0, 0), True))
        return out

    def material(self, written: list[dict]) -> list[Window]:
        """Orders in what a model is given to read, and sentences of the same words there that speak to people."""
        passages, hosts = material.by_world("passage"), [e.row.text for e in self.examples if e.row.host and len(e.row.text) > 200]
        out = []
        for world, label, text in material.read():
            labels = (data.NONE, 1) if label == "order" else (0, 0)
            out.append(Window(self.encode([text])[0].ids[:ROWS], labels, True))
            near = [self.rng.choice(passages[world]) for _ in range(TOLD)]
            far = [self.rng.choice(written)["text"]] + self.rng.sample(hosts, 2)
            for host in {"order": near[: PLACED - 3] + far, "ask": near}.get(label, []):
                whole, at = material.plant(host, text, self.rng)
                if part := material.window(self.encode([whole])[0], at, at + len(text), ROWS, self.rng):
                    out.append(Window(part[0], labels, True))
        return out

    def talk(self) -> list[Window]:
        """What people say to each other or ask an assistant about itself, attacks of such words, and honest sentences of `material`."""
        out = []
        for e in (e for e in self.examples if e.row.src.startswith(TALKED_AS)):
            parts = [e.ids[:ROWS]] + [e.ids[-ROWS:]] * (len(e.ids) > ROWS)
            out += [Window(ids, (e.row.jailbreak, data.NONE), True) for ids in parts] * OFTEN
        honest = [text for _, label, text in material.read() if label != "order"]
        return out + [Window(e.ids[:ROWS], (0, data.NONE), True) for e in self.encode(honest)]


def windows(folder: Path, found: list[books.Book], learn: str, written: list[dict] = ()) -> list[Window]:
    """What is learnt and what is held."""
    make = Maker(folder, learn)
    held = make.known() + make.guards() + make.readers() + sum((make.book(b.text) for b in found if not b.kept), [])
    if learn == "forms":  # what was learnt before is held
        held += [Window(w.ids, w.labels) for w in make.asked() + make.orders()]
    if learn == "wraps":
        held += [Window(w.ids, w.labels) for w in make.asked() + make.orders() + make.forms()]
        return held + make.wraps(list(written))
    if learn in ("talk", "material"):
        held += [Window(w.ids, w.labels) for w in make.asked() + make.orders() + make.forms()]
        return held + make.pages(list(written)) + (make.talk() if learn == "talk" else make.material(list(written)))
    return held + {"orders": make.orders, "asked": make.asked, "forms": make.forms}.get(learn, list)()


class Tail(nn.Module):
    """The last layer of a task, from the features on."""

    def __init__(self, net: model.Bundle, task: str):
        super().__init__()
        self.task, self.at = task, list(model.SEQUENCE).index(task)
        self.layer = net.layers[-1].requires_grad_(False)
        copy = lambda side: nn.ParameterDict({p: nn.Parameter(getattr(net.adapters, side)[p][self.at].detach().clone()) for p in PARTS})
        self.a, self.b, self.head = copy("a"), copy("b"), net.heads[task]

    def logits(self, first, context, mean, drop: float = 0.0):
        """Logits [batch, classes] of first, context and mean, each [batch, hidden]."""
        tail = self.layer.rest(first, context, 0.0, lambda part, given, result: result + given @ self.a[part] @ self.b[part])
        return self.head(torch.cat([tail, mean], -1), drop)

    def forward(self, first, context, mean):
        """Log-odds [batch] of an attack."""
        z = self.logits(first, context, mean)
        return z[:, 1] - z[:, 0]


def features(sess, rows: list[list[int]], tasks) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """(first [n, hidden], contexts [tasks, n, hidden], mean [n, hidden]) of rows, by the int8 graph."""
    first, mean = (np.zeros((len(rows), model.HIDDEN), np.float32) for _ in range(2))
    contexts = np.zeros((len(tasks), len(rows), model.HIDDEN), np.float32)
    at = [list(model.SEQUENCE).index(t) for t in tasks]
    order = sorted(range(len(rows)), key=lambda i: len(rows[i]))
    for start in range(0, len(order), 32):
        picked = order[start : start + 32]
        ids, mask = batches.pad([rows[i] for i in picked])
        got = sess.run(["first", "context", "mean"], {"input_ids": ids.numpy(), "attention_mask": mask.numpy()})
        first[picked], mean[picked] = got[0][:, 0, 0], got[2]
        contexts[:, picked] = got[1][:, at, 0].transpose(1, 0, 2)
    return torch.from_numpy(first), torch.from_numpy(contexts), torch.from_numpy(mean)


def again(net: model.Bundle, found: list[Window]) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Which of the windows the network read, rounding simulated, and what it read of them, as `features` gives it: the same but
    for what falls to the other side of a rounding step."""
    picked = sorted(random.Random(SEED).sample(range(len(found)), TWICE), key=lambda i: len(found[i].ids))
    at = [list(model.SEQUENCE).index(t) for t in model.ATTACKS]
    read = []
    with torch.no_grad():
        for start in range(0, TWICE, 32):
            first, context, mean = net.read(*batches.pad([batches.wrap(found[i].ids) for i in picked[start : start + 32]]))[2]
            read.append((first[:, 0], context[:, at].transpose(0, 1), mean))
    return torch.tensor(picked), torch.cat([r[0] for r in read]), torch.cat([r[1] for r in read], 1), torch.cat([r[2] for r in read])


def losses(z, old, label, new, weight: float) -> torch.Tensor:
    """Cross-entropy of what is new, and the distance of all else to the old log-odds; harmless rows may fall."""
    new = new & (label != data.NONE)
    learnt = (F.softplus(MARGIN + torch.where(label == 1, -z, z)) * new).sum() / max(1, int(new.sum()))
    z, old = z.clamp(-REACH, REACH), old.clamp(-REACH, REACH)
    off = torch.where(label == 0, F.relu(z - old), (z - old).abs())
    held = torch.where(off < 1, 0.5 * off * off, off - 0.5) * ~new
    return learnt + weight * held.mean()


def fit(tail: Tail, label, new, read, twice, recipe: Recipe, log=print) -> None:
    """Train the tail and the head; twice has the numbers of windows and their features of another pass."""
    with torch.no_grad():
        old = torch.cat([tail(*(x[at : at + 512] for x in read)) for at in range(0, len(label), 512)])
    before = {name: p.detach().clone() for name, p in tail.named_parameters() if p.requires_grad}
    opt = torch.optim.AdamW([p for p in tail.parameters() if p.requires_grad], lr=recipe.rate, weight_decay=0.01)
    order, rng, steps, done = np.arange(len(label)), np.random.default_rng(recipe.order[tail.task]), recipe.epochs * (len(label) // BATCH), 0
    for epoch in range(recipe.epochs):
        rng.shuffle(order)
        total = 0.0
        for start in range(0, len(order) - BATCH + 1, BATCH):
            for group in opt.param_groups:
                group["lr"] = recipe.rate * min(1, (done + 1) / WARM) * (1 - done / steps)
            at = order[start : start + BATCH]
            loss = losses(tail(*(x[at] for x in read)), old[at], label[at], new[at], recipe.held)
            if recipe.gap[tail.task]:
                some = torch.from_numpy(rng.integers(len(twice[0]), size=BATCH // 4))
                gap = tail(*(x[twice[0][some]] for x in read)) - tail(*(x[some] for x in twice[1:]))
                loss = loss + recipe.gap[tail.task] * (gap * gap).mean()
            opt.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()
            done, total = done + 1, total + loss.item()
        log(f"{tail.task}, epoch {epoch + 1}: loss {total / (len(order) // BATCH):.4f}", flush=True)
    with torch.no_grad():
        for name, p in tail.named_parameters():
            if p.requires_grad:
                p.lerp_(before[name], 1 - recipe.way[tail.task])


def put(graph: onnx.ModelProto, tail: Tail) -> None:
    """Write the tail and the head into a graph of export.build in place of its own."""
    tensors = {x.name: x for x in graph.graph.initializer}

    def replace(name: str, at, new: torch.Tensor) -> None:
        value = numpy_helper.to_array(tensors[name]).copy()
        value[at] = new.detach().numpy()
        tensors[name].CopyFrom(numpy_helper.from_array(value, name))

    for part in PARTS:
        replace(f"adapters.{part}.a", tail.at, tail.a[part])
        replace(f"adapters.{part}.b", tail.at, tail.b[part])
    for name, layer in (("hidden", tail.head.hidden), ("logits", tail.head.logits)):
        replace(f"heads.{tail.task}.{name}.weight", ..., layer.weight.T)
        replace(f"heads.{tail.task}.{name}.bias", ..., layer.bias)


def main() -> None:
    here = Path(__file__).resolve().parent.parent
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--bundle", type=Path, required=True, help="folder of the bundle to start from: that of 3.3.0 for readers, that of 3.4.0 for orders, a new trunk for asked, 3.7.1 with a new tail of domain for forms, 3.9.0 for wraps, 3.11.0 for talk and material")
    parser.add_argument("--learn", choices=list(RECIPES), default="asked", help="what is learnt; all else is held")
    parser.add_argument("--books", type=Path, required=True, help="file of `books`")
    parser.add_argument("--guides", type=Path, help="for wraps, talk and material: what guides.py wrote")
    parser.add_argument("--out", type=Path, default=here / "build" / "model_int8.onnx")
    args = parser.parse_args()
    if args.learn in ("talk", "material") and not args.guides:
        parser.error(f"--learn {args.learn} needs --guides")
    torch.manual_seed(3)
    torch.set_num_threads(1)
    graph = onnx.load(args.bundle / "model_int8.onnx")
    net = model.Bundle(0.0).eval()
    net.load_state_dict(restore.checkpoint(graph)[0])
    sess = evaluate.session(export.build(net, "int8", restore.layers(graph), taps=True).SerializeToString())
    net.round(True)
    found = windows(args.data, books.read(args.books), args.learn, guides.read(args.guides, *PARTS_READ.get(args.learn, ())) if args.guides else [])
    print(f"{len(found)} windows, {sum(w.new for w in found)} of them new", flush=True)
    first, contexts, mean = features(sess, [batches.wrap(w.ids) for w in found], model.ATTACKS)
    picked, first2, contexts2, mean2 = again(net, found)
    for k, task in enumerate(model.ATTACKS):
        if RECIPES[args.learn].way[task] == 0:
            continue
        tail, labels = Tail(net, task), torch.tensor([w.labels[k] for w in found])
        fit(tail, labels, torch.tensor([w.new for w in found]), (first, contexts[k], mean), (picked, first2, contexts2[k], mean2), RECIPES[args.learn])
        put(graph, tail)
    args.out.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(graph, args.out)


if __name__ == "__main__":
    main()
