"""The attack heads of the multilingual bundle: an encoder that reads the piece vectors in their order.

foreign.py makes the table of piece vectors and the head of domain; both stay as they are. Here three
blocks of 192 channels stand on that table: each looks at five neighbours, then at the whole row, then
at each piece. They first learn to say of every piece what the teacher's layers 6 and 12 say of it,
then which texts, and which pieces of them, are an attack. The score of a row is the mean of its
pieces' log-odds, weighted by their exponentials.

    python -m signalbox_training.foreign_order teach --trunk TRUNK --work WORK   # TRUNK: 96,000 pieces, fp32
    python -m signalbox_training.foreign_order fit --work WORK --out ../models/foreign
    python -m signalbox_training.foreign_order again --guides build/guides.jsonl.gz

Rows are put together anew in every epoch: an order between harmless sentences of the same language,
and as many texts of such sentences alone, requests to people among them, so that neither length nor
subject tells them apart.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import time
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import torch
import torch.nn.functional as F
import yaml
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer

from . import attacks, bundle, data, evaluate, foreign, guides
from .data import NONE
from .model import ATTACKS, SEQUENCE

WIDTH, HEADS, BLOCKS, KERNEL = 192, 4, 3, 5
SIZE = foreign.TOKENS - 2
TAUGHT = 128  # components of each of the teacher's layers
HELD_LANGUAGES = ("ro", "fi", "he")
HELD_ONE_IN = 12  # texts of our own that measure and calibrate
CALIBRATION = (5, 1)  # of the repositories of documents in other languages every fifth calibrates
FALSE_POSITIVES = 0.01
ASKED, BARE, SAID = 0.45, 0.75, 0.4  # of the attacks those of users, of these without other text; of harmless texts messages of users
SHORT = 0.25  # of the harmless texts that are no messages a few pieces alone, as values that tools return
WAY = 0.8  # that the weights go from those of --back: the last part costs languages that are not learnt
AGAIN = 0.75  # way that the weights go from those of the bundle in that last step
# of injection, chosen on documents of other repositories with orders in them (training/RESULTS.md)
SHAPE = {"bias": -2.18, "top": [1.0], "length": 0.4, "close": {"from": -3.0, "weight": 0.75, "sentences": 6, "tokens": 48}}
GUIDE_WINDOWS = 700  # that are looked at of the guides of a language
LENGTH = 0.5  # what the log-odds of a document lose for every e-fold of windows


class Block(torch.nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.before, self.middle, self.after = (torch.nn.LayerNorm(width) for _ in range(3))
        self.near = torch.nn.Conv1d(width, width, KERNEL, padding=KERNEL // 2, groups=width)
        self.three, self.out = torch.nn.Linear(width, 3 * width), torch.nn.Linear(width, width)
        self.up, self.down = torch.nn.Linear(width, 2 * width), torch.nn.Linear(2 * width, width)

    def forward(self, x, mask, bias, drop):
        rows, tokens, width = x.shape
        x = x + self.near((self.before(x) * mask).transpose(1, 2)).transpose(1, 2)
        q, k, v = self.three(self.middle(x)).view(rows, tokens, 3, HEADS, width // HEADS).permute(2, 0, 3, 1, 4)
        seen = F.scaled_dot_product_attention(q, k, v, attn_mask=bias)
        x = x + drop(self.out(seen.transpose(1, 2).reshape(rows, tokens, width)))
        return x + drop(self.down(F.gelu(self.up(self.after(x)))))


class Encoder(torch.nn.Module):
    """Each piece of a text in its context [texts, pieces, width], from the vectors of the table."""

    def __init__(self, table: torch.Tensor, width: int, blocks: int):
        super().__init__()
        size = table.norm(dim=1, keepdim=True).clamp(min=1e-6)
        self.register_buffer("unit", table / size * 8, persistent=False)
        self.register_buffer("size", torch.log(size), persistent=False)
        self.enter, self.weigh = torch.nn.Linear(table.shape[1], width), torch.nn.Linear(1, width)
        self.blocks = torch.nn.ModuleList(Block(width) for _ in range(blocks))
        self.last = torch.nn.LayerNorm(width)
        self.drop = torch.nn.Dropout(0.1)

    def hidden(self, ids, mask, noise: float = 0.0, lost: float = 0.0):
        """With noise each vector is shaken, with lost that part of the pieces is left out."""
        x = self.unit[ids]
        if noise:
            x = x + noise * torch.randn_like(x)
        x = self.enter(x) + self.weigh(self.size[ids])
        if lost:
            x = x * (torch.rand(*ids.shape, 1) > lost)
        bias = ((mask - 1) * 1e4)[:, None, None, :]
        for block in self.blocks:
            x = block(x, mask.unsqueeze(-1), bias, self.drop)
        return self.last(x)


class Reader(Encoder):
    """Log-odds of the attacks of each text [texts, 2] and of each of its pieces [texts, pieces, 2]."""

    def __init__(self, table: torch.Tensor):
        super().__init__(table, WIDTH, BLOCKS)
        self.head = torch.nn.Linear(WIDTH, len(ATTACKS))

    def forward(self, ids, mask, noise: float = 0.0):
        each = self.head(self.hidden(ids, mask, noise))
        weight = torch.softmax(each + (mask - 1).unsqueeze(-1) * 1e4, 1)
        return (weight * each).sum(1), each


def restored(proto: onnx.ModelProto) -> Reader:
    """The reader of a graph of this file, its weights as they are computed with."""
    had = {t.name: numpy_helper.to_array(t) for t in proto.graph.initializer}
    net, state = Reader(piece_vectors(proto)), {}
    for name, value in net.state_dict().items():
        stem, _, side = name.rpartition(".")
        stem = stem.replace("blocks.", "block").replace("last", "end")
        if side == "bias":
            found = had[stem + ".bias"]
        elif stem + ".w" in had:
            found = (had[stem + ".w"] * had[stem + ".scale"]).T
        elif stem in ("head", "weigh"):
            found = had[stem].T if stem == "head" else had[stem][:, None]
        else:
            found = had[stem if stem.endswith("near") else stem + ".weight"]
        state[name] = torch.from_numpy(found.astype(np.float32)).reshape(value.shape)
    net.load_state_dict(state)
    return net


def put(net: Reader, proto: onnx.ModelProto) -> onnx.ModelProto:
    """A graph of this file, or one with more outputs, with the weights of a reader: what restored() takes apart."""
    state, out = net.state_dict(), {}
    for name, value in state.items():
        stem, _, side = name.rpartition(".")
        stem, value = stem.replace("blocks.", "block").replace("last", "end"), values(value)
        if side == "bias":
            out[stem + ".bias"] = value
        elif stem in ("head", "weigh"):
            out[stem] = value.T if stem == "head" else value[:, 0]
        elif stem == "enter" or stem.endswith((".three", ".out", ".up", ".down")):
            out[stem + ".w"], out[stem + ".scale"] = int8(value.T)
        else:
            out[stem if stem.endswith("near") else stem + ".weight"] = value
    changed = onnx.ModelProto()
    changed.CopyFrom(proto)
    for t in changed.graph.initializer:
        if t.name in out:
            value = np.ascontiguousarray(out.pop(t.name))
            assert list(value.shape) == list(t.dims), t.name
            t.CopyFrom(numpy_helper.from_array(value, t.name))
    assert not out, list(out)
    return changed


def piece_vectors(proto: onnx.ModelProto) -> torch.Tensor:
    """The table of a bundle's graph."""
    had = {t.name: numpy_helper.to_array(t) for t in proto.graph.initializer}
    return torch.from_numpy(foreign.unpacked(had["table.q4"], had["table.scale"]))


# What the teacher says


def taught_texts(folder: Path, rng: random.Random) -> list[str]:
    """Texts in many languages without their labels."""
    found: dict[str, None] = {}

    def add(items, count):
        items = [t for t in items if t and len(t) > 5]
        rng.shuffle(items)
        found.update(dict.fromkeys(t[:500] for t in items[:count]))

    def part(text):
        at = rng.randrange(len(text) - 250) if len(text) >= 400 else 0
        return text[at : at + 300]

    prompts = Path(attacks.__file__).parent / "prompts"
    add([r[2] for r in attacks.own("world*.tsv", 3)], 9999)
    add([part(r["text"]) for r in documents(folder)[0] for _ in range(3)], 4500)
    add([line.split("\t")[2] for n in ("plain_world", "world", "west") for line in (prompts / f"{n}.tsv").read_text(encoding="utf-8").splitlines()], 2500)
    add([r["a"] for r in data.read(folder, "stsb_multi")], 3500)
    add([r["text"] for r in data.read(folder, "pii_synthetic") if r["lang"] != "en"], 1500)
    add([r["text"] for r in data.read(folder, "exams_multilingual")], 1200)
    add([r["text"] for r in data.read(folder, "ner_uner")], 1000)
    english = [r for r in attacks.written_rows() + attacks.collected_rows(folder, ()) if r.text.isascii()]
    add([part(r.text) for r in english if 1 in (r.jailbreak, r.injection)], 3500)
    add([part(r.text) for r in english if 1 not in (r.jailbreak, r.injection)], 2500)
    texts = list(found)
    rng.shuffle(texts)
    return texts


def teach(trunk: Path, tok: Tokenizer, texts: list[str], tokens: int, log) -> tuple[list[list[int]], list[np.ndarray]]:
    """Ids of texts, and for each piece what layers 6 and 12 say, TAUGHT principal components of each.
    `trunk` has the fp32 graph of build_trunk.py with the same pieces; "l5.x" becomes an output."""
    import onnxruntime as ort

    proto = onnx.load(trunk / "model.onnx")
    proto.graph.output.append(helper.make_tensor_value_info("l5.x", TensorProto.FLOAT, ["batch", "tokens", 384]))
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    sess = ort.InferenceSession(proto.SerializeToString(), options)
    lead = tok.encode("query: ").ids
    ids = [e.ids[: 96 - 2] for e in tok.encode_batch(texts)]
    order = [i for at in range(0, len(ids), 1024) for i in sorted(range(at, min(at + 1024, len(ids))), key=lambda i: len(ids[i])) if ids[i]]
    rows, said, turns, count = [], [], None, 0
    pool: list[tuple[np.ndarray, np.ndarray]] = []
    for at in range(0, len(order), 24):
        picked = order[at : at + 24]
        x, mask, _ = padded([[0, *lead, *ids[i], 2] for i in picked])
        layers = sess.run(["l5.x", "last_hidden_state"], {"input_ids": x.numpy(), "attention_mask": mask.numpy().astype(np.int64)})
        for j, i in enumerate(picked):
            begin = 1 + len(lead)
            rows.append(ids[i])
            pool.append(tuple(h[j, begin : begin + len(ids[i])] for h in layers))
            count += len(ids[i])
        if turns is None and count > 60000:
            turns = []
            for k in range(2):
                all_ = np.concatenate([p[k] for p in pool])
                values, vectors = np.linalg.eigh(np.cov((all_ - all_.mean(0)).T))
                turns.append((all_.mean(0), vectors[:, ::-1][:, :TAUGHT] / np.sqrt(values[::-1][:TAUGHT].mean())))
        if turns:
            said += [np.concatenate([(h - mean) @ turn for h, (mean, turn) in zip(p, turns)], 1).astype(np.float16) for p in pool]
            pool = []
        if count > tokens:
            break
    log(f"{len(said)} texts, {count} pieces taught")
    return rows[: len(said)], said


def padded(rows: list[list[int]], labels: list | None = None):
    """Ids, mask, and the labels of each piece, -1 where nothing is known."""
    width = max(map(len, rows))
    ids, mask = torch.ones(len(rows), width, dtype=torch.long), torch.zeros(len(rows), width)
    known = None if labels is None else torch.full((len(rows), width, len(ATTACKS)), -1.0)
    for i, row in enumerate(rows):
        ids[i, : len(row)], mask[i, : len(row)] = torch.tensor(row), 1
        if known is not None:
            known[i, : len(row)] = torch.tensor(labels[i], dtype=torch.float)
    return ids, mask, known


def batches_of(items: list, size: int, length, rng: random.Random, block: int = 4096) -> list[list]:
    """Batches of rows of similar length, in any order."""
    items = list(items)
    rng.shuffle(items)
    out = []
    for at in range(0, len(items), block):
        part = sorted(items[at : at + block], key=length)
        out += [part[k : k + size] for k in range(0, len(part), size)]
    rng.shuffle(out)
    return out


def distil(net: Reader, rows: list[list[int]], said: list[np.ndarray], minutes: float, rng: random.Random, log) -> None:
    """Every piece learns what the teacher says of it."""
    turn = torch.nn.Linear(WIDTH, 2 * TAUGHT)
    optimiser = torch.optim.AdamW([*net.parameters(), *turn.parameters()], weight_decay=0.01)
    begin, step = time.time(), 0
    net.train()
    while time.time() - begin < 60 * minutes:
        total = []
        for picked in batches_of(range(len(rows)), 48, lambda i: len(rows[i]), rng, 2048):
            done = (time.time() - begin) / (60 * minutes)
            optimiser.param_groups[0]["lr"] = 1.5e-3 * min(1, step / 60) * max(0.05, 1 - done)
            ids, mask, _ = padded([foreign.wrap(rows[i]) for i in picked])
            want, known = torch.zeros(*ids.shape, 2 * TAUGHT), torch.zeros(*ids.shape)
            for j, i in enumerate(picked):
                want[j, 1 : 1 + len(rows[i])], known[j, 1 : 1 + len(rows[i])] = torch.from_numpy(said[i].astype(np.float32)), 1
            with torch.autocast("cpu", torch.bfloat16):
                got = turn(net.hidden(ids, mask))
            loss = (((got.float() - want) ** 2).mean(-1) * known).sum() / known.sum()
            optimiser.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            optimiser.step()
            step += 1
            total.append(loss.item())
            if done >= 1:
                break
        log(f"distil: step {step}, loss {np.mean(total):.4f}")


# Rows


@dataclass
class Text:
    """Ids, whether it is an attack of each kind, the same of each piece, and its weight."""

    ids: list[int]
    labels: tuple[int, int]
    pieces: list[tuple[int, int]]
    weight: float


def documents(folder: Path) -> tuple[list[dict], list[dict]]:
    """Real harmless documents in other languages: to learn from, and of other repositories to calibrate
    on. Those that attacks.documents keeps are for the figures."""
    found = [r for r in attacks.documents(folder, False) if r["kind"] == "non-English docs"]
    calibrates = lambda r: data.bucket(r["src"], CALIBRATION[0]) == CALIBRATION[1]
    return [r for r in found if not calibrates(r)], [r for r in found if calibrates(r)]


class Sources:
    """The ids of every text, by what it is."""

    def __init__(self, folder: Path, encode, rng: random.Random, written: Path | None = None):
        self.rng, banned, seen = rng, data.dev_keys(folder), set()
        self.learn, self.held = defaultdict(list), defaultdict(list)
        for label, language, text in attacks.own("world*.tsv", 3):
            if text in seen or data.key(text) in banned:
                continue
            seen.add(text)
            held = language in HELD_LANGUAGES or data.bucket(text, HELD_ONE_IN) == 0
            (self.held if held else self.learn)[label, language].append(text)
        for part in (self.learn, self.held):
            for k in part:
                part[k] = encode(part[k])
        learnt, self.calibration = documents(folder)
        parts = defaultdict(list)
        for r in learnt:
            for _ in range(4):
                at = rng.randrange(max(1, len(r["text"]) - 300))
                parts[r["lang"]].append(r["text"][at : at + 600])
        more = guides.read(written, "learnt") if written else []
        for r in more:
            at = rng.randrange(max(1, len(r["text"]) - 300))
            parts[r["lang"]].append(r["text"][at : at + 600])
        self.documents = {k: encode(v) for k, v in parts.items()}
        self.windows = self.split(encode([r["text"][:12000] for r in learnt]), rng.randrange(60))
        for language in sorted({r["lang"] for r in more}):
            cut = self.split(encode([r["text"][:20000] for r in more if r["lang"] == language]), rng.randrange(60))
            self.windows += rng.sample(cut, min(len(cut), GUIDE_WINDOWS))
        kinds = ("system prompts and templates", "prompts", "licences and legal", "long prose", "chat transcripts", "tool results")
        other = [r["text"] for r in attacks.documents(folder, False) if r["kind"] in kinds and sum(ord(c) > 127 for c in r["text"][:2000]) > 40]
        self.windows += self.split(encode([t[:6000] for t in other]), 0)
        books = [r["text"] for r in data.read(folder, "openstax_text") if r.get("lang", "en") != "en" and len(r["text"]) > 150]
        rng.shuffle(books)
        self.windows += [ids[:SIZE] for ids in encode(books[:3000])]
        self.calibration += guides.read(written, "calibrates") if written else []
        self.calibration = encode([r["text"][:6000] for r in self.calibration])
        rows = foreign.rows(folder)
        far = lambda r: r.src.startswith(("own/world", "own/everyday/foreign", "exams", "doc/non-English"))
        self.attacks = self.pack([r for r in rows if not far(r) and 1 in (r.jailbreak, r.injection)], 12000, encode)
        self.calm = self.pack([r for r in rows if not far(r) and 1 not in (r.jailbreak, r.injection) and r.domain < 0], 12000, encode)
        self.subjects = self.pack([r for r in rows if not far(r) and r.domain >= 0], 3000, encode)
        self.prompts = self.pack([r for r in rows if r.src == "own/everyday/foreign" and data.bucket(r.text, HELD_ONE_IN)], 6000, encode)
        self.held_prompts = self.pack([r for r in rows if r.src == "own/everyday/foreign" and not data.bucket(r.text, HELD_ONE_IN)], 250, encode)
        self.exams = self.pack([r for r in rows if r.src.startswith("exams") and data.bucket(r.text, HELD_ONE_IN)], 3000, encode)
        self.hosts = [ids for ids, _, host in self.calm if host and len(ids) > 30]
        plain = [r["text"] for r in data.read(folder, "pii_synthetic") if r["lang"] != "en"] + [r["premise"] for r in data.read(folder, "nli_multilingual")]
        plain += [r["text"] for r in data.read(folder, "ner_uner")] + [r["a"] for r in data.read(folder, "stsb_multi") if r["lang"] != "en"]
        rng.shuffle(plain)
        self.plain, self.held_plain = encode(plain[:9000]), encode(plain[9000:9250])

    def split(self, texts, begin):
        return [ids[at : at + SIZE] for ids in texts for at in range(begin, max(begin + 1, len(ids) - 40), 100)]

    def pack(self, rows, count, encode):
        self.rng.shuffle(rows)
        rows = rows[:count]
        return [(ids, (r.jailbreak, r.injection), r.host) for r, ids in zip(rows, encode([r.text[:1500] for r in rows]))]

    def crop(self, ids, size):
        at = self.rng.randrange(len(ids) - size) if len(ids) > size else 0
        return ids[at : at + size]

    def host(self, language, part):
        """A harmless text in two pieces, before and after what may stand in it."""
        rng, u = self.rng, self.rng.random()
        if u < 0.3 and self.documents.get(language):
            text = self.crop(rng.choice(self.documents[language]), rng.randrange(10, 90))
        elif u < 0.42:
            text = self.crop(rng.choice(self.plain), 60)
            return (text, []) if rng.random() < 0.5 else ([], text)
        elif u < 0.5:
            text = self.crop(rng.choice(self.hosts), rng.randrange(10, 80))
        else:
            sentences = [rng.choice(part["data", language]) for _ in range(rng.choice([1, 2, 2, 3, 3, 4, 5]))]
            at = rng.randrange(len(sentences) + 1)
            return sum(sentences[:at], []), sum(sentences[at:], [])
        at = rng.randrange(len(text) + 1)
        return text[:at], text[at:]

    def attack(self, language, part) -> Text:
        rng = self.rng
        kind = "jailbreak" if rng.random() < ASKED and part.get(("jailbreak", language)) else "injection"
        ids, labels = rng.choice(part[kind, language]), (1 if kind == "jailbreak" else NONE, 1)
        if kind == "jailbreak" and rng.random() < BARE or rng.random() < 0.2:
            return Text(ids, labels, [labels] * len(ids), 1.5)
        before, after = self.host(language, part)
        return Text(before + ids + after, labels, [(0, 0)] * len(before) + [labels] * len(ids) + [(0, 0)] * len(after), 1.5)

    def harmless(self, language, part) -> Text:
        rng = self.rng
        if rng.random() < SAID and part.get(("chat", language)):
            ids = rng.choice(part["chat", language])
            return Text(ids, (0, NONE), [(0, NONE)] * len(ids), 1.5)
        if rng.random() < SHORT:
            ids = rng.choice(part["data", language]) if rng.random() < 0.6 else rng.choice(self.plain)
            at = rng.randrange(len(ids))
            ids = ids[at : at + rng.randrange(1, 9)]
            return Text(ids, (0, 0), [(0, 0)] * len(ids), 1.5)
        ids = sum(self.host(language, part), [])
        if rng.random() < 0.5:
            ids = ids + sum((rng.choice(part["data", language]) for _ in range(rng.choice([1, 2]))), [])
        return Text(ids, (0, 0), [(0, 0)] * len(ids), 1.5)

    def mined(self, net: Reader) -> tuple[list[list[int]], list[list[int]]]:
        """Of windows of harmless texts the quarter that looks most like attacks, and some of the others."""
        looked = self.rng.sample(self.windows, min(len(self.windows), 12000))
        net.eval()
        worst = np.zeros(len(looked))
        with torch.no_grad():
            for picked in batches_of(range(len(looked)), 64, lambda i: len(looked[i]), self.rng):
                ids, mask, _ = padded([foreign.wrap(looked[i]) for i in picked])
                worst[picked] = net(ids, mask)[0].amax(1).numpy()
        order = np.argsort(-worst)
        at = len(order) // 4
        return [looked[i] for i in order[:at]], [looked[i] for i in self.rng.sample(list(order[at:]), 600)]

    def epoch(self, net: Reader | None) -> list[Text]:
        """With a net the windows of documents that it mistakes most are among the rows, and less English."""
        rng, out = self.rng, []
        most, each, english = (360, 2.2, (5000, 5500)) if net is None else (300, 1.8, (2500, 2500))
        even = lambda ids, labels, weight: out.append(Text(ids, labels, [labels] * len(ids), weight))
        for language in sorted({l for kind, l in self.learn if kind == "injection"}):
            count = int(min(most, each * (len(self.learn["data", language]) + len(self.learn["injection", language]))))
            out += [self.attack(language, self.learn) for _ in range(count)]
            out += [self.harmless(language, self.learn) for _ in range(int(count * 1.25))]
        for ids, labels, _ in rng.sample(self.attacks, english[0]):
            ids = ids[:SIZE]
            known = [labels if len(ids) < 60 else (NONE, NONE)] * len(ids)
            if labels[1] == 1 and rng.random() < 0.5:
                host, ids = self.crop(rng.choice(self.hosts), rng.randrange(20, 90)), ids[:64]
                at = rng.randrange(len(host) + 1)
                known = [(0, 0)] * at + known[: len(ids)] + [(0, 0)] * (len(host) - at)
                out.append(Text(host[:at] + ids + host[at:], labels, known, 0.7))
            else:
                out.append(Text(ids, labels, known, 0.7))
        for ids, labels, _ in rng.sample(self.calm, english[1]) + rng.sample(self.subjects, 600):
            even(self.crop(ids, 100), labels, 0.7)
        for ids, _, _ in rng.sample(self.prompts, 1800) + rng.sample(self.exams, 500):
            even(ids[:100], (0, NONE), 1.0)
        for ids in rng.sample(self.plain, 700):
            even(self.crop(ids, 100), (0, 0), 1.0)
        if net is None:
            for texts in self.documents.values():
                for _ in range(min(len(texts), 150)):
                    even(self.crop(rng.choice(texts), 110), (0, 0), 1.0)
        else:
            for weight, texts in zip((1.5, 1.0), self.mined(net)):
                for ids in texts:
                    even(ids, (0, 0), weight)
        return out


# Training


def shortened(text: Text, rng: random.Random) -> tuple[list[int], list]:
    """What fits into a row, the order of an attack in it; of half the texts some pieces are missing."""
    ids, pieces = text.ids, text.pieces
    if len(ids) > SIZE:
        order = [i for i, labels in enumerate(pieces) if 1 in labels]
        at = min(max(0, order[0] - rng.randrange(100)), len(ids) - SIZE) if order and order[-1] - order[0] < len(ids) - 1 else 0
        ids, pieces = ids[at : at + SIZE], pieces[at : at + SIZE]
    if rng.random() < 0.5:
        kept = [i for i in range(len(ids)) if rng.random() > 0.06] or list(range(len(ids)))
        ids, pieces = [ids[i] for i in kept], [pieces[i] for i in kept]
    return foreign.wrap(ids), [(NONE, NONE), *pieces, (NONE, NONE)]


def entropy(margins, want, weight):
    """Mean cross-entropy of log-odds where the label is known."""
    each = F.binary_cross_entropy_with_logits(margins, want.clamp(0, 1) * 0.96 + 0.02, reduction="none")
    weight = weight * (want >= 0)
    return (each * weight).sum() / weight.sum().clamp(min=1)


def fit(net: Reader, sources: Sources, minutes: float, rate: float, mine: bool, rng: random.Random, log) -> None:
    parts = [{"params": [p for n, p in net.named_parameters() if not n.startswith("head")], "times": 1.0}, {"params": net.head.parameters(), "times": 3.0}]
    optimiser = torch.optim.AdamW(parts, lr=rate, weight_decay=0.02)
    begin, step, done = time.time(), 0, 0.0
    while done < 1:
        total, texts = [], sources.epoch(net if mine else None)
        net.train()
        for picked in batches_of(texts, 64, lambda t: len(t.ids), rng):
            done = (time.time() - begin) / (60 * minutes)
            step += 1
            for group in optimiser.param_groups:
                group["lr"] = rate * group["times"] * min(1, step / 60) * max(0.03, 1 - done)
            rows, pieces = zip(*(shortened(t, rng) for t in picked))
            ids, mask, known = padded(list(rows), list(pieces))
            want = torch.tensor([t.labels for t in picked], dtype=torch.float)
            weight = torch.tensor([t.weight for t in picked]).unsqueeze(1)
            with torch.autocast("cpu", torch.bfloat16):
                whole, each = net(ids, mask, 0.08)
            loss = entropy(whole.float(), want, weight) + 0.5 * entropy(each.float(), known, weight.unsqueeze(1))
            optimiser.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            optimiser.step()
            total.append(loss.item())
            if done >= 1:
                break
        log(f"fit: step {step}, loss {np.mean(total):.4f}")
    net.eval()


# The graph


def int8(weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Weights [in, out] in 8 bits, with a scale for each column."""
    scale = np.maximum(np.abs(weight).max(0), 1e-8).astype(np.float32) / 127
    return np.clip(np.rint(weight / scale), -127, 127).astype(np.int8), scale


class Nodes:
    """The nodes and tensors of a graph of standard operators. Weights are 8 bits and multiplied as floats: no scale
    depends on what else is in a batch, and ONNX Runtime unpacks them once."""

    def __init__(self, nodes=(), tensors=()):
        self.nodes, self.tensors, self.made = list(nodes), list(tensors), {t.name for t in tensors}

    def const(self, name, value):
        if name not in self.made:
            self.made.add(name)
            self.tensors.append(numpy_helper.from_array(np.ascontiguousarray(value).reshape(np.shape(value)), name))
        return name

    def op(self, kind, inputs, **attributes):
        name = f"{kind}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [name], name=name, **attributes))
        return name

    def index(self, name, value):
        return self.const(name, np.array(value, np.int64))

    def number(self, name, value):
        return self.const(name, np.float32(value))

    def gelu(self, h):
        inner = self.op("Erf", [self.op("Mul", [h, self.number("root", np.sqrt(0.5))])])
        return self.op("Mul", [self.op("Mul", [h, self.op("Add", [inner, self.number("one", 1)])]), self.number("half", 0.5)])

    def unit(self, v):
        size = self.op("Max", [self.op("ReduceL2", [v], axes=[-1], keepdims=1), self.number("tiny", 1e-6)])
        return self.op("Mul", [self.op("Div", [v, size]), self.number("eight", 8)]), size

    def linear(self, x, layer, name):
        w, scale = int8(values(layer.weight).T)
        w = self.op("Mul", [self.op("Cast", [self.const(name + ".w", w)], to=TensorProto.FLOAT), self.const(name + ".scale", scale)])
        return self.op("Add", [self.op("MatMul", [x, w]), self.const(name + ".bias", values(layer.bias))])

    def norm(self, x, layer, name):
        weights = [self.const(name + ".weight", values(layer.weight)), self.const(name + ".bias", values(layer.bias))]
        return self.op("LayerNormalization", [x, *weights], axis=-1, epsilon=layer.eps)

    def away(self, flat):
        """-1e4 for what is no piece of a text."""
        return self.op("Mul", [self.op("Sub", [flat, self.number("one", 1)]), self.number("barred", 1e4)])

    def encoder(self, net: Encoder, pieces, mask, away, prefix=""):
        """Encoder.hidden; mask is [texts, pieces, 1]."""
        op, const, index = self.op, self.const, self.index
        width = net.last.normalized_shape[0]
        direction, size = self.unit(pieces)
        x = op("Add", [self.linear(direction, net.enter, prefix + "enter"),
                       op("Add", [op("Mul", [op("Log", [size]), const(prefix + "weigh", values(net.weigh.weight)[:, 0])]),
                                  const(prefix + "weigh.bias", values(net.weigh.bias))])])
        bias = op("Unsqueeze", [away, index("middle", [1, 2])])
        split, join = index(prefix + "split", [0, 0, HEADS, width // HEADS]), index(prefix + "join", [0, 0, width])
        for i, block in enumerate(net.blocks):
            name = f"{prefix}block{i}."
            c = op("Transpose", [op("Mul", [self.norm(x, block.before, name + "before"), mask])], perm=[0, 2, 1])
            c = op("Conv", [c, const(name + "near", values(block.near.weight)), const(name + "near.bias", values(block.near.bias))],
                   group=width, kernel_shape=[KERNEL], pads=[KERNEL // 2, KERNEL // 2])
            x = op("Add", [x, op("Transpose", [c], perm=[0, 2, 1])])
            three = self.linear(self.norm(x, block.middle, name + "middle"), block.three, name + "three")
            parts = []
            for k, (part, perm) in enumerate((("q", [0, 2, 1, 3]), ("k", [0, 2, 3, 1]), ("v", [0, 2, 1, 3]))):
                ends = [index(f"{prefix}from.{part}", [k * width]), index(f"{prefix}to.{part}", [(k + 1) * width])]
                parts.append(op("Transpose", [op("Reshape", [op("Slice", [three, *ends, index("last", [-1])]), split])], perm=perm))
            s = op("Add", [op("Mul", [op("MatMul", parts[:2]), self.number(prefix + "share", (width // HEADS) ** -0.5)]), bias])
            a = op("Transpose", [op("MatMul", [op("Softmax", [s], axis=-1), parts[2]])], perm=[0, 2, 1, 3])
            x = op("Add", [x, self.linear(op("Reshape", [a, join]), block.out, name + "out")])
            h = self.gelu(self.linear(self.norm(x, block.after, name + "after"), block.up, name + "up"))
            x = op("Add", [x, self.linear(h, block.down, name + "down")])
        return self.norm(x, net.last, prefix + "end")


def values(p: torch.Tensor) -> np.ndarray:
    return p.detach().numpy().astype(np.float32)


def graph(net: Reader, old: onnx.ModelProto) -> onnx.ModelProto:
    """The ONNX graph: table and domain of `old`, the reader for attacks."""
    had, made = {t.name: numpy_helper.to_array(t) for t in old.graph.initializer}, Nodes()
    op, const, index = made.op, made.const, made.index
    q = op("Cast", [op("Gather", [const("table.q4", had["table.q4"]), "input_ids"], axis=0)], to=TensorProto.INT32)
    sixteen = const("sixteen", np.array(16, np.int32))
    q = op("Cast", [op("Concat", [op("Mod", [q, sixteen]), op("Div", [q, sixteen])], axis=-1)], to=TensorProto.FLOAT)
    scales = op("Cast", [op("Gather", [const("table.scale", had["table.scale"]), "input_ids"], axis=0)], to=TensorProto.FLOAT)
    flat = op("Cast", ["attention_mask"], to=TensorProto.FLOAT)
    mask = op("Unsqueeze", [flat, index("last", [-1])])
    pieces = op("Mul", [op("Mul", [op("Sub", [q, made.number("eight", 8)]), scales]), mask])
    whole, _ = made.unit(op("ReduceSum", [pieces, index("first", [1])], keepdims=0))
    h = made.gelu(op("Add", [op("MatMul", [whole, const("domain.0", had["domain.0"])]), const("domain.0.bias", had["domain.0.bias"])]))
    outputs = {"domain_logits": op("Add", [op("MatMul", [h, const("domain.1", had["domain.1"])]), const("domain.1.bias", had["domain.1.bias"])])}
    away = made.away(flat)
    x = made.encoder(net, pieces, mask, away)
    margins = op("Add", [op("MatMul", [x, const("head", values(net.head.weight).T)]), const("head.bias", values(net.head.bias))])
    weight = op("Softmax", [op("Add", [margins, op("Unsqueeze", [away, index("last", [-1])])])], axis=1)
    total = op("ReduceSum", [op("Mul", [weight, margins]), index("first", [1])], keepdims=0)
    for k, task in enumerate(ATTACKS):
        sides = np.zeros((len(ATTACKS), 2), np.float32)
        sides[k] = [-0.5, 0.5]
        outputs[task + "_logits"] = op("MatMul", [total, const("sides." + task, sides)])
    for name, value in outputs.items():
        made.nodes.append(helper.make_node("Identity", [value], [name], name="out_" + name))
    tensor = helper.make_tensor_value_info
    made_graph = helper.make_graph(
        made.nodes, "signalbox-multilingual", [tensor(n, TensorProto.INT64, ["batch", "tokens"]) for n in ("input_ids", "attention_mask")],
        [tensor(t + "_logits", TensorProto.FLOAT, ["batch", len(SEQUENCE[t])]) for t in foreign.TASKS], made.tensors)
    proto = helper.make_model(made_graph, producer_name="signalbox-training", opset_imports=[helper.make_opsetid("", 17)])
    proto.ir_version = 8
    return proto


# Calibration and figures


def margins(sess, ids: list[int]) -> np.ndarray:
    """The log-odds of a text for each kind of attack, as in the product: of the window most like one, less
    by its length."""
    starts = range(0, max(1, len(ids) - SIZE + foreign.STRIDE), foreign.STRIDE)
    best = np.full(len(ATTACKS), -np.inf)
    for at in starts:
        row = np.array([foreign.wrap(ids[at : at + SIZE])], np.int64)
        out = sess.run([t + "_logits" for t in ATTACKS], {"input_ids": row, "attention_mask": np.ones_like(row)})
        best = np.maximum(best, [2 * o[0, 1] for o in out])
    return best - LENGTH * math.log(len(starts))


def held_sets(sources: Sources) -> dict[str, list[list[int]]]:
    """Texts that nothing was learnt from. Documents of sentences: two to four harmless ones, or an order
    between two."""
    rng, part, out = random.Random(11), sources.held, defaultdict(list)
    for kind, language in sorted(part):
        texts = part[kind, language]
        if kind in ("chat", "jailbreak"):
            out[kind] += texts
        elif kind == "data" and len(texts) > 1:
            count = 24 if language in HELD_LANGUAGES else 9
            out["requests"] += [sum(rng.sample(texts, min(len(texts), rng.choice([2, 3, 4]))), []) for _ in range(count)]
            orders = [rng.choice(texts) + order + rng.choice(texts) if rng.random() < 0.7 else order for order in part["injection", language][:count]]
            out["orders"] += orders
    out |= {"documents": sources.calibration, "plain": sources.held_plain, "prompts": [ids for ids, _, _ in sources.held_prompts]}
    return out


def calibrated(sess, sources: Sources, beside: Path) -> tuple[dict, dict]:
    """The document shapes of the manifest, and figures. The product takes the larger score of two bundles by
    the threshold of the other one: what one in a hundred harmless texts exceeds is put there."""
    found = {k: np.array([margins(sess, ids) for ids in v if ids]) for k, v in held_sets(sources).items()}
    tasks = {t["name"]: t for t in yaml.safe_load(beside.read_text())["tasks"]}
    shapes, figures = {}, {}
    for k, (task, attack, calm) in enumerate((("jailbreak", "jailbreak", ("chat", "prompts", "documents", "plain")), ("injection", "orders", ("documents",)))):
        at = float(np.quantile(np.concatenate([found[name][:, k] for name in calm]), 1 - FALSE_POSITIVES))
        t = tasks[task]["threshold"]
        shapes[task] = {"threshold": t, "document": {"bias": round(math.log(t / (1 - t)) - at, 4), "top": [1.0], "length": LENGTH}}
        hard = "chat" if task == "jailbreak" else "requests"
        z = np.concatenate([found[attack][:, k], found[hard][:, k]])
        y = np.arange(len(z)) < len(found[attack])
        figures[task] = {"attacks": len(found[attack]), "harmless": len(found[hard]), "auc": evaluate.auc(z, y),
                         "found": float((found[attack][:, k] > at).mean()), "flagged": {n: [len(v), float((v[:, k] > at).mean())] for n, v in found.items() if n != attack}}
    return shapes, figures


def rewrite(folder: Path, proto: onnx.ModelProto) -> None:
    """The bundle with another reader, the manifest last; the rest of it stays."""
    manifest, content = yaml.safe_load((folder / "bundle.yaml").read_text(encoding="utf-8")), proto.SerializeToString()
    manifest["version"], manifest["graphs"] = foreign.VERSION, [bundle.entry("model_int8.onnx", content, precision="int8")]
    manifest["provenance"] = [{"name": n, "license": l} for n, l in foreign.PROVENANCE]
    next(t for t in manifest["tasks"] if t["name"] == "injection")["document"] = SHAPE
    bundle.replace(folder / "model_int8.onnx", content)
    text = yaml.safe_dump(manifest, sort_keys=False, width=120, default_flow_style=None, allow_unicode=True)
    bundle.replace(folder / "bundle.yaml", text.encode())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("step", choices=("teach", "fit", "again"))
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--trunk", type=Path, help="what build_trunk.py wrote of the 96,000 pieces of --base")
    parser.add_argument("--base", type=Path, default=Path("build/foreign"), help="the bundle of foreign.py; of `again` --out is read")
    parser.add_argument("--guides", type=Path, help="what guides.py wrote")
    parser.add_argument("--on", action="store_true", help="go on with the reader of --base, a bundle of this file, in place of distilling")
    parser.add_argument("--back", type=Path, help="bundle of this file of whose weights a part is kept")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--work", type=Path, default=Path("build"))
    parser.add_argument("--out", type=Path, default=Path("../models/foreign"))
    parser.add_argument("--beside", type=Path, default=Path("../models/default/bundle.yaml"))
    parser.add_argument("--pieces", type=int, default=630_000, help="that the teacher reads")
    parser.add_argument("--minutes", type=float, nargs=3, default=(9, 16, 9), help="of distilling, of fitting, and of fitting with mined documents; at half a core. `again`: the third, 42")
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    torch.set_num_threads(args.threads)
    begin, rng = time.time(), random.Random(6 + args.seed)
    log = lambda s: print(f"[{time.time() - begin:5.0f} s] {s}", flush=True)
    tok = foreign.tokenizer(args.out if args.step == "again" else args.base)
    encode = lambda texts: [e.ids for e in tok.encode_batch(texts, add_special_tokens=False)]
    if args.step == "teach":
        rows, said = teach(args.trunk, tok, taught_texts(args.data, random.Random(3)), args.pieces, log)
        np.savez(args.work / "foreign_taught.npz", ids=np.concatenate(rows), lengths=[len(r) for r in rows], said=np.concatenate(said))
        return
    if args.step == "again":
        old = onnx.load(args.out / "model_int8.onnx")
        net, sources = restored(old), Sources(args.data, encode, random.Random(5), args.guides)
        log(f"{len(sources.windows)} windows of harmless texts")
        first = {k: v.clone() for k, v in net.state_dict().items()}
        fit(net, sources, args.minutes[2], 4.5e-4, True, rng, log)
        net.load_state_dict({k: first[k].lerp(v, AGAIN) for k, v in net.state_dict().items()})
        rewrite(args.out, put(net, old))
        return
    old = onnx.load(args.base / "model_int8.onnx")
    if args.on:
        net = restored(old)
    else:
        net = Reader(piece_vectors(old))
        taught = np.load(args.work / "foreign_taught.npz")
        ends = np.cumsum(taught["lengths"])[:-1]
        distil(net, [r.tolist() for r in np.split(taught["ids"], ends)], np.split(taught["said"], ends), args.minutes[0], rng, log)
    sources = Sources(args.data, encode, random.Random(5))
    fit(net, sources, args.minutes[1], 8e-4, False, rng, log)
    before = {k: v.clone() for k, v in net.state_dict().items()}
    fit(net, sources, args.minutes[2], 4.5e-4, True, rng, log)
    # Orders are told best before the mined documents, documents after them: the mean has both.
    net.load_state_dict({k: (v + before[k]) / 2 for k, v in net.state_dict().items()})
    if args.back:
        first = restored(onnx.load(args.back / "model_int8.onnx")).state_dict()
        net.load_state_dict({k: first[k].lerp(v, WAY) for k, v in net.state_dict().items()})
    proto = graph(net, old)
    shapes, figures = calibrated(evaluate.session(proto.SerializeToString()), sources, args.beside)
    log(json.dumps({"shapes": shapes, "figures": figures}, indent=1))
    foreign.write(args.out, proto, (args.base / "tokenizer.json").read_bytes(), shapes)


if __name__ == "__main__":
    main()
