"""The head for turns of conversations in other languages: an encoder beside that of foreign_order.py, and its `turns.bin`.

Two blocks of 128 channels read the piece vectors of the multilingual bundle. They first learn to say of every piece what
multilingual-e5-small says of it, then to give a turn a vector (output `turn`) such that a small layer over it, its product with the
vector of the turn before and the features of the words (classify/lean) tells whether it follows that one. A larger net over what the
teacher itself says of both turns gives soft labels, also of pairs that nobody wrote.

It learns `turns/foreign.tsv`, 7,900 second turns in 16 languages, and what turns.py learns, for the table is of all languages.

    go build -o build/turns ./turns                               # in training/features
    python -m signalbox_training.foreign_turns teach --trunk TRUNK --dialogues mtbench101.jsonl --cast treccastweb
    python -m signalbox_training.foreign_turns fit --dialogues mtbench101.jsonl --cast treccastweb --out ../models/foreign
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import time
from pathlib import Path

import numpy as np
import onnx
import torch
import torch.nn.functional as F
import yaml
from onnx import TensorProto, helper
from torch import nn

from . import bundle, evaluate, foreign, foreign_order, turns

WIDTH, BLOCKS, DIMS, HEADS, UNITS = 128, 2, 128, 4, 48
PIECES = 126  # of a turn that are read in training
MOVED = 0.6  # weight of a change behind the first message of another conversation
INVENTED, SURE = 1.0, 2.0  # pairs that the teacher alone labels, for each that was written; the log-odds from which it is believed
DESCRIPTION = ("Subject domain, jailbreak and injection of texts in other languages than English, and what turns of conversations follow, "
               "from embeddings of word pieces and two small encoders.")
TABS = Path(__file__).parent / "turns" / "foreign.tsv"


def foreign_rows(rng: random.Random) -> list[turns.Row]:
    found = [line.split("\t") for line in TABS.read_text(encoding="utf-8").splitlines()]
    rows = [(language, turns.Row("writers", kind == "follows", [first], turn)) for kind, language, first, turn in found]
    firsts: dict[str, list[str]] = {}
    for language, r in rows:
        firsts.setdefault(language, []).append(r.before[0])
    moved = [turns.Row("moved", False, [rng.choice(firsts[language])], r.turn) for language, r in rows if not r.follows]
    return [r for _, r in rows] + moved


def invented(rows: list[turns.Row], count: int, rng: random.Random) -> list[turns.Row]:
    """Turns behind first messages of other conversations; what they are the teacher says."""
    written = [r for r in rows if r.source == "writers"]
    return [turns.Row("invented", False, [rng.choice(written).before[-1]], rng.choice(written).turn) for _ in range(count)]


class Cut(nn.Module):
    """Rows of vectors to one vector each [texts, DIMS]: HEADS weighted means of a part of the components."""

    def __init__(self, width: int):
        super().__init__()
        self.weigh, self.turn = nn.Linear(width, HEADS), nn.Linear(width, DIMS)

    def forward(self, x, mask):
        weight = torch.softmax(self.weigh(x) + ((mask - 1) * 1e4).unsqueeze(-1), 1)
        parts = self.turn(x).view(*x.shape[:2], HEADS, DIMS // HEADS)
        return torch.einsum("nph,nphd->nhd", weight, parts).flatten(1)


def layer() -> nn.Sequential:
    return nn.Sequential(nn.Dropout(0.3), nn.Linear(turns.WORDS + 2 * DIMS, UNITS), nn.GELU(), nn.Dropout(0.3), nn.Linear(UNITS, 1))


def together(head, words, own, before):
    scaled = [v / (v.norm(dim=1, keepdim=True) + 1e-6) * DIMS**0.5 for v in (own, before)]
    return head(torch.cat([words, scaled[0], scaled[0] * scaled[1]], 1))[:, 0]


class Student(nn.Module):
    def __init__(self, table: torch.Tensor):
        super().__init__()
        self.read, self.cut, self.head = foreign_order.Encoder(table, WIDTH, BLOCKS), Cut(WIDTH), layer()

    def vector(self, ids):
        x, mask, _ = foreign_order.padded(ids)
        return self.cut(self.read.hidden(x, mask, lost=0.12 if self.training else 0), mask)

    def forward(self, own, before, words):
        return together(self.head, words, self.vector(own), self.vector(before))


class Teacher(nn.Module):
    """Over what multilingual-e5-small says of the pieces of both turns."""

    def __init__(self, size: int, width: int = 192):
        super().__init__()
        self.enter, self.side = nn.Linear(size, width), nn.Embedding(2, width)
        self.block, self.last, self.drop = foreign_order.Block(width), nn.LayerNorm(width), nn.Dropout(0.2)
        self.weigh = nn.Linear(width, 1)
        self.head = nn.Sequential(nn.Dropout(0.3), nn.Linear(2 * width + turns.WORDS, UNITS), nn.GELU(), nn.Dropout(0.3), nn.Linear(UNITS, 1))

    def forward(self, own, before, words):
        rows = [np.concatenate([a, b]) for a, b in zip(own, before)]
        x = torch.zeros(len(rows), max(map(len, rows)), rows[0].shape[1])
        mask, side = torch.zeros(x.shape[:2]), torch.ones(x.shape[:2], dtype=torch.long)
        for i, row in enumerate(rows):
            x[i, : len(row)], mask[i, : len(row)], side[i, : len(own[i])] = torch.from_numpy(row), 1, 0
        if self.training:
            x = x * (torch.rand(*mask.shape, 1) > 0.1)
        x = self.drop(self.enter(x) + self.side(side))
        x = self.last(self.block(x, mask.unsqueeze(-1), ((mask - 1) * 1e4)[:, None, None, :], self.drop))
        score = self.weigh(x)[..., 0]
        means = [(torch.softmax(score.masked_fill((mask == 0) | (side != k), -1e4), 1).unsqueeze(-1) * x).sum(1) for k in (0, 1)]
        return self.head(torch.cat([*means, words], 1))[:, 0]


def batches(order: list[int], size, count: int, rng: random.Random) -> list[list[int]]:
    return [b for b in foreign_order.batches_of(order, count, size, rng, 1024) if len(b) > 7]


def fit(net, read, words, rows: list[turns.Row], target, weight, epochs: int, rate: float, log) -> None:
    """read gives what net reads of the turn and of the one before, by the number of the row."""
    rng, size = random.Random(0), lambda i: len(rows[i].turn) + len(rows[i].before[-1])
    optimiser = torch.optim.AdamW(net.parameters(), lr=rate, weight_decay=0.05)
    steps, done = epochs * len(batches(range(len(rows)), size, 64, rng)), 0
    for epoch in range(epochs):
        net.train()
        total = []
        for picked in batches(range(len(rows)), size, 64, rng):
            optimiser.param_groups[0]["lr"] = rate * min(1, done / steps / 0.05 + 0.01) * max(0.02, 1 - done / steps)
            done += 1
            own, before = zip(*(read(i) for i in picked))
            kept = words[picked] * (torch.rand(len(picked), 1) > 0.3)
            each = F.binary_cross_entropy_with_logits(net(own, before, kept), target[picked], reduction="none")
            loss = (each * weight[picked]).sum() / weight[picked].sum().clamp(min=1e-6)
            optimiser.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            optimiser.step()
            total.append(loss.item())
        log(f"epoch {epoch + 1}: loss {np.mean(total):.4f}")
    net.eval()


def said_by(net, read, words, rows) -> np.ndarray:
    order, out = sorted(range(len(rows)), key=lambda i: len(rows[i].turn) + len(rows[i].before[-1])), np.zeros(len(rows), np.float32)
    with torch.no_grad():
        for at in range(0, len(order), 64):
            picked = order[at : at + 64]
            own, before = zip(*(read(i) for i in picked))
            out[picked] = net(own, before, words[picked]).numpy()
    return out


def distil(net: foreign_order.Encoder, ids: list[list[int]], states: list[np.ndarray], minutes: float, log) -> None:
    """Every piece, and the mean of a text, point to where the teacher's do."""
    turn, rng, begin, step = nn.Linear(WIDTH, states[0].shape[1]), random.Random(0), time.time(), 0
    optimiser = torch.optim.AdamW([*net.parameters(), *turn.parameters()], weight_decay=0.01)
    away = lambda a, b: 1 - F.cosine_similarity(a, b, dim=-1)
    net.eval()  # nothing dropped
    while (done := (time.time() - begin) / (60 * minutes)) < 1:
        total = []
        for picked in foreign_order.batches_of(range(len(ids)), 64, lambda i: len(ids[i]), rng, 1024):
            done = (time.time() - begin) / (60 * minutes)
            if done >= 1:
                break
            optimiser.param_groups[0]["lr"] = 2e-3 * min(1, done / 0.03 + 0.01) * max(0.02, 1 - done)
            x, mask, _ = foreign_order.padded([ids[i] for i in picked])
            want = torch.zeros(*x.shape, states[0].shape[1])
            for j, i in enumerate(picked):
                want[j, : len(ids[i])] = torch.from_numpy(states[i])
            got, m = turn(net.hidden(x, mask)), mask.unsqueeze(-1)
            mean = lambda v: (v * m).sum(1) / m.sum(1)
            loss = (away(got, want) * mask).sum() / mask.sum() + away(mean(got), mean(want)).mean()
            optimiser.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            optimiser.step()
            total.append(loss.item())
            step += 1
        log(f"distil: step {step}, loss {np.mean(total):.4f}")


class States:
    """What the teacher's last layer says of the pieces of texts, each component by its spread; read from a file as needed."""

    def __init__(self, work: Path):
        self.said = np.load(work / "foreign_turns.npy", mmap_mode="r")
        told = json.loads((work / "foreign_turns.json").read_text(encoding="utf-8"))
        self.at = {t: i for i, t in enumerate(told["texts"])}
        self.ids, self.ends = told["ids"], np.cumsum([0, *map(len, told["ids"])])
        sample = self.said[::37].astype(np.float32)
        self.mean, self.spread = sample.mean(0), sample.std(0)

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, i):
        return (self.said[self.ends[i] : self.ends[i + 1]].astype(np.float32) - self.mean) / self.spread

    def of(self, text: str):
        return self[self.at[text]]


def clipped(ids: list[int]) -> list[int]:
    return ids if len(ids) <= PIECES else ids[: PIECES * 3 // 4] + ids[-(PIECES - PIECES * 3 // 4) :]


def encoder_of(folder: Path):
    tok = foreign.tokenizer(folder)
    return lambda texts: [foreign.wrap(clipped(e.ids)) for e in tok.encode_batch([t[:4000] for t in texts], add_special_tokens=False)]


def teach(trunk: Path, encode, rows: list[turns.Row], folder: Path, work: Path, log) -> None:
    import onnxruntime as ort

    own = [t for r in rows for t in (r.turn, r.before[-1])]
    texts = list(dict.fromkeys(own + foreign_order.taught_texts(folder, random.Random(3))))
    ids = encode(texts)
    ends = np.cumsum([0, *map(len, ids)])
    said = np.lib.format.open_memmap(work / "foreign_turns.npy", "w+", np.float16, (int(ends[-1]), 384))
    options = ort.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    sess = ort.InferenceSession(str(trunk / "model_int8.onnx"), options)
    order = sorted(range(len(ids)), key=lambda i: len(ids[i]))
    for at in range(0, len(order), 32):
        picked = order[at : at + 32]
        x, mask, _ = foreign_order.padded([ids[i] for i in picked])
        out = sess.run(["last_hidden_state"], {"input_ids": x.numpy(), "attention_mask": mask.numpy().astype(np.int64)})[0]
        for j, i in enumerate(picked):
            said[ends[i] : ends[i + 1]] = out[j, : len(ids[i])]
    said.flush()
    (work / "foreign_turns.json").write_text(json.dumps({"texts": texts, "ids": ids}), encoding="utf-8")
    log(f"{len(texts)} texts, {ends[-1]} pieces taught")


def graph(net: Student, old: onnx.ModelProto) -> onnx.ModelProto:
    """The graph of the bundle with the output `turn` beside its own. Of an older one of this file its part is left out."""
    tail = {n.name for n in old.graph.node if n.name.startswith("turns_") or n.name == "out_turn"}
    had = [n for n in old.graph.node if n.name not in tail]
    made = foreign_order.Nodes(had, [t for t in old.graph.initializer if not t.name.startswith("turns.")])
    by = {n.name: n for n in had}
    bars = next(n for n in had if "barred" in n.input)
    flat = by[bars.input[0]].input[0]
    mask = next(n.output[0] for n in had if n.op_type == "Unsqueeze" and n.input[0] == flat)
    pieces = next(n.output[0] for n in had if n.op_type == "Mul" and n.input[1] == mask)
    begin = len(made.nodes)
    x = made.encoder(net.read, pieces, mask, bars.output[0], "turns.")
    weight = made.linear(x, net.cut.weigh, "turns.part")
    weight = made.op("Softmax", [made.op("Add", [weight, made.op("Unsqueeze", [bars.output[0], made.index("last", [-1])])])], axis=1)
    parts = made.op("Reshape", [made.linear(x, net.cut.turn, "turns.cut"), made.index("turns.parts", [0, 0, HEADS, DIMS // HEADS])])
    total = made.op("ReduceSum", [made.op("Mul", [parts, made.op("Unsqueeze", [weight, made.index("last", [-1])])]), made.index("first", [1])], keepdims=0)
    vector = made.op("Reshape", [total, made.index("turns.whole", [0, DIMS])])
    renamed = {n.output[0]: "turns_" + n.output[0] for n in made.nodes[begin:]}
    for n in made.nodes[begin:]:
        n.name = "turns_" + n.name
        n.input[:], n.output[:] = [renamed.get(v, v) for v in n.input], [renamed[v] for v in n.output]
    made.nodes.append(helper.make_node("Identity", [renamed[vector]], ["turn"], name="out_turn"))
    outputs = [o for o in old.graph.output if o.name != "turn"] + [helper.make_tensor_value_info("turn", TensorProto.FLOAT, ["batch", DIMS])]
    proto = helper.make_model(helper.make_graph(made.nodes, old.graph.name, list(old.graph.input), outputs, made.tensors),
                              producer_name=old.producer_name, opset_imports=list(old.opset_import))
    proto.ir_version = old.ir_version
    return proto


def write(folder: Path, proto: onnx.ModelProto, head: bytes) -> None:
    """The bundle, the manifest last; the rest of it stays."""
    manifest = yaml.safe_load((folder / "bundle.yaml").read_text(encoding="utf-8"))
    content = proto.SerializeToString()
    manifest["version"] = foreign.VERSION
    manifest["description"] = DESCRIPTION
    manifest["provenance"] = [{"name": n, "license": l} for n, l in foreign.PROVENANCE]
    manifest["graphs"] = [bundle.entry("model_int8.onnx", content, precision="int8")]
    manifest["turns"] = bundle.entry("turns.bin", head)
    window = {"tokens": PIECES + 2, "stride": PIECES + 2 - 32, "max": 2, "combine": "mean"}
    turn = {"name": "embedding", "kind": "embedding", "output": "turn", "dims": DIMS, "window": window}
    manifest["tasks"] = [t for t in manifest["tasks"] if t["name"] != "embedding"] + [turn]
    bundle.replace(folder / "model_int8.onnx", content)
    bundle.replace(folder / "turns.bin", head)
    text = yaml.safe_dump(manifest, sort_keys=False, width=120, default_flow_style=None, allow_unicode=True)
    bundle.replace(folder / "bundle.yaml", text.encode())


def main() -> None:
    here = Path(__file__).resolve().parent.parent
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("step", choices=("teach", "fit"))
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--features", type=Path, default=here / "build" / "turns", help="program built from training/features/turns")
    parser.add_argument("--dialogues", type=Path, required=True, help="MT-Bench-101, a dialogue a line: id, task, history of user and bot")
    parser.add_argument("--cast", type=Path, required=True, help="folder of treccastweb")
    parser.add_argument("--trunk", type=Path, help="what build_trunk.py wrote of the pieces of the bundle, with --int8")
    parser.add_argument("--work", type=Path, default=here / "build")
    parser.add_argument("--minutes", type=float, default=12, help="of distilling, on a core")
    parser.add_argument("--out", type=Path, default=Path("../models/foreign"), help="the bundle; all but the turns of it stays as it is")
    args = parser.parse_args()
    if args.step == "teach" and not args.trunk:
        parser.error("teach needs --trunk")
    torch.manual_seed(0)
    begin, rng = time.time(), random.Random(4)
    log = lambda s: print(f"[{time.time() - begin:5.0f} s] {s}", flush=True)
    english = turns.dialogues(args.dialogues, rng) + turns.topics(args.cast, rng) + turns.alone(args.data, rng) + turns.writers(rng)
    rows = english + foreign_rows(rng)
    rows += invented(rows, int(INVENTED * sum(r.source == "writers" for r in rows)), rng)
    encode = encoder_of(args.out)
    if args.step == "teach":
        teach(args.trunk, encode, rows, args.data, args.work, log)
        return
    torch.set_num_threads(1)
    lines = "\n".join(json.dumps({"before": r.before[-1:], "turn": r.turn}) for r in rows)
    told = subprocess.run([args.features], input=lines, capture_output=True, text=True, check=True).stdout.splitlines()
    words = np.array([json.loads(t)["features"] for t in told], np.float32)
    mean, spread = words.mean(0), np.where(words.std(0) > 0, words.std(0), 1)
    words = torch.from_numpy(((words - mean) / spread).astype(np.float32))
    states, texts = States(args.work), sorted({t for r in rows for t in (r.turn, r.before[-1])})
    ids = dict(zip(texts, encode(texts)))
    target = torch.tensor([float(r.follows) * 0.94 + 0.03 for r in rows])
    weight = torch.tensor([{**turns.WEIGHTS, "moved": MOVED, "invented": 0.0}[r.source] for r in rows])

    written = [i for i, r in enumerate(rows) if r.source != "invented"]
    teacher, taught = Teacher(states.said.shape[1]), [rows[i] for i in written]
    by_teacher = lambda r: (states.of(r.turn), states.of(r.before[-1]))
    fit(teacher, lambda k: by_teacher(taught[k]), words[written], taught, target[written], weight[written], 4, 7e-4, log)
    said = said_by(teacher, lambda i: by_teacher(rows[i]), words, rows)
    soft = torch.sigmoid(torch.from_numpy(said))
    for i, r in enumerate(rows):
        if r.source != "invented":
            target[i] = (target[i] + soft[i]) / 2
        elif abs(said[i]) > SURE:
            target[i], weight[i] = soft[i], 1.0

    old = onnx.load(args.out / "model_int8.onnx")
    net = Student(foreign_order.piece_vectors(old))
    distil(net.read, states.ids, states, args.minutes, log)
    fit(net, lambda i: (ids[rows[i].turn], ids[rows[i].before[-1]]), words, rows, target, weight, 4, 5e-4, log)
    torch.save(net.state_dict(), args.work / "foreign_turns.pt")
    proto = graph(net, old)
    row = np.array([ids[rows[-1].turn]], np.int64)
    got = evaluate.session(proto.SerializeToString()).run(["turn"], {"input_ids": row, "attention_mask": np.ones_like(row)})[0]
    with torch.no_grad():
        log(f"the graph's vector differs from the network's by {np.abs(got - net.vector([row[0].tolist()]).numpy()).max():.4f}")
    write(args.out, proto, turns.pack([net.head], mean, spread, DIMS))


if __name__ == "__main__":
    main()
