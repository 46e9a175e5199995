"""The head that tells from embeddings whether a turn of a conversation follows the one before (classify/lean, `turns.bin`).

It learns turns that lean and changes of subject: the dialogues of MT-Bench-101 with an even id (Apache-2.0), the topics of
TREC CAsT 2019 (1 to 30) to 2022 (MIT), raw and rewritten so that they stand alone, questions of the training behind questions of
another domain, and 1,305 second turns by four writers (`turns/en.tsv`), whose changes also stand behind the first messages of
others. What is read in the words comes from Go: `go build -o build/turns ./turns` in training/features.

    python -m signalbox_training.turns --features build/turns --dialogues mtbench101.jsonl --cast treccastweb --bundle ../models/default [--left-out]
"""

from __future__ import annotations

import argparse
import json
import random
import struct
import subprocess
import zlib
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from . import batches, data, evaluate

WORDS, WHOLE, FADE = 12, 0.8, 0.95  # features of the words, the last of them the cosine; wholeWeight in Go; of older turns
UNITS, DROP, SEEDS, EPOCHS, BATCH, RATE, DECAY = 32, 0.4, (0, 1), 25, 128, 2e-3, 1e-2
WEIGHTS = {"mtbench101": 0.6, "cast": 0.5, "rewritten": 0.4, "alone": 0.35, "moved": 0.6, "writers": 2.0}
CAST = {
    "2019/data/training/train_topics_v1.0.json": "raw_utterance",
    "2020/2020_manual_evaluation_topics_v1.0.json": "raw_utterance",
    "2021/2021_manual_evaluation_topics_v1.0.json": "raw_utterance",
    "2022/2022_evaluation_topics_flattened_duplicated_v1.0.json": "utterance",
}


@dataclass
class Row:
    source: str
    follows: bool
    before: list[str]
    turn: str
    writer: int = -1


def dialogues(file: Path, rng: random.Random) -> list[Row]:
    found = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    found = [d for d in found if d["id"] % 2 == 0 and d["task"] not in ("TS", "CC")]
    users = lambda d: [h["user"] for h in d["history"]]
    out = [Row("mtbench101", True, u[:n], u[n]) for u in map(users, found) for n in range(1, len(u))]
    firsts = [users(d) for d in found if d["task"] != "SI"]
    for _ in range(900):
        a, other = rng.choice(firsts), rng.choice(firsts)
        if a is not other:
            out.append(Row("mtbench101", False, a[: rng.randint(1, len(a))], other[0]))
    return out


def topics(folder: Path, rng: random.Random) -> list[Row]:
    out, seen, all_ = [], set(), []
    for name, key in CAST.items():
        for topic in json.loads((folder / name).read_text(encoding="utf-8")):
            said = [(t.get(key) or t.get("raw_utterance"), t.get("manual_rewritten_utterance")) for t in topic["turn"]]
            said = [s for s in said if s[0]]
            raw = [s[0] for s in said]
            all_.append(raw)
            for n in range(1, len(said)):
                for source, text in (("cast", raw[n]), ("rewritten", said[n][1])):
                    if text and (source, text, raw[n - 1]) not in seen and (source == "cast" or text != raw[n]):
                        seen.add((source, text, raw[n - 1]))
                        out.append(Row(source, True, raw[:n], text))
    for _ in range(700):
        a, other = rng.choice(all_), rng.choice(all_)
        if a[0] != other[0]:
            out.append(Row("cast", False, a[: rng.randint(1, len(a))], other[0]))
    return out


def alone(folder: Path, rng: random.Random) -> list[Row]:
    """Texts that stand for themselves behind one of another domain."""
    banned, by = data.dev_keys(folder), defaultdict(list)
    for r in data.domain_rows(folder):
        if 8 < len(r.text) < 400 and not r.variant and data.key(r.text) not in banned:
            by[r.src.split("/")[0], r.domain].append(r)
    picked = [r for rows in by.values() for r in rng.sample(rows, min(25, len(rows)))]
    return [Row("alone", False, [o.text], r.text) for r in picked if (o := rng.choice(picked)).domain != r.domain]


def writers(rng: random.Random) -> list[Row]:
    lines = (Path(__file__).parent / "turns" / "en.tsv").read_text(encoding="utf-8").splitlines()
    ends, rows = (330, 505, 905, 1305), []
    for i, line in enumerate(lines):
        kind, _, first, turn = line.split("\t")
        rows.append(Row("writers", kind == "follows", [first], turn, next(k for k, end in enumerate(ends) if i < end)))
    firsts = sorted({r.before[0] for r in rows})
    return rows + [Row("moved", False, [rng.choice(firsts)], r.turn, r.writer) for r in rows if not r.follows for _ in range(2)]


def embeddings(bundle: Path, texts: list[str]) -> np.ndarray:
    sess, tok = evaluate.session(bundle / "model_int8.onnx"), batches.tokenizer()
    ids = [e.ids[:120] for e in tok.encode_batch([t[:3000] for t in texts], add_special_tokens=False)]
    out, order = np.zeros((len(texts), 384), np.float32), sorted(range(len(texts)), key=lambda i: len(ids[i]))
    for start in range(0, len(order), 32):
        picked = order[start : start + 32]
        x, mask = batches.pad([batches.wrap(ids[i]) for i in picked])
        out[picked] = sess.run(["embedding"], {"input_ids": x.numpy(), "attention_mask": mask.numpy()})[0]
    return out


def inputs(rows: list[Row], words: np.ndarray, bundle: Path) -> np.ndarray:
    """[n, WORDS + 2 * 384]: what the words say, the embedding of the turn and its product with that of the turn before."""
    texts = sorted({r.turn for r in rows} | {b for r in rows for b in r.before[-4:]})
    at, e = {t: i for i, t in enumerate(texts)}, embeddings(bundle, texts)
    cosine = lambda a, b: float(a @ b / (np.sqrt((a @ a) * (b @ b)) + 1e-9))
    words = words.copy()
    for i, r in enumerate(rows):
        whole = np.zeros(384)
        for b in r.before[-4:]:
            whole = e[at[b]] + FADE * whole
        own = e[at[r.turn]]
        words[i, WORDS - 1] = max(cosine(own, e[at[r.before[-1]]]), WHOLE * cosine(own, whole))
    e = e / (np.linalg.norm(e, axis=1, keepdims=True) + 1e-6) * np.sqrt(384)
    own, last = e[[at[r.turn] for r in rows]], e[[at[r.before[-1]] for r in rows]]
    return np.concatenate([words, own, own * last], 1)


def fit(x, rows: list[Row], picked: np.ndarray, seed: int) -> nn.Sequential:
    torch.manual_seed(seed)
    y, w = torch.tensor([float(r.follows) for r in rows]), torch.tensor([WEIGHTS[r.source] for r in rows])
    net = nn.Sequential(nn.Dropout(DROP), nn.Linear(x.shape[1], UNITS), nn.GELU(), nn.Dropout(DROP), nn.Linear(UNITS, 1))
    opt = torch.optim.AdamW(net.parameters(), lr=RATE, weight_decay=DECAY)
    index, done = torch.from_numpy(picked), 0
    steps = EPOCHS * (len(index) // BATCH + 1)
    for _ in range(EPOCHS):
        order = index[torch.randperm(len(index))]
        for start in range(0, len(order), BATCH):
            opt.param_groups[0]["lr"] = RATE * (1 - done / steps)
            at, done = order[start : start + BATCH], done + 1
            each = F.binary_cross_entropy_with_logits(net(x[at])[:, 0], y[at] * 0.96 + 0.02, reduction="none")
            opt.zero_grad()
            ((each * w[at]).sum() / w[at].sum()).backward()
            opt.step()
    return net.eval()


def auc(z: np.ndarray, y: np.ndarray) -> float:
    rank = np.empty(len(z))
    rank[np.argsort(z)] = np.arange(1, len(z) + 1)
    positive = int(y.sum())
    return (rank[y].sum() - positive * (positive + 1) / 2) / (positive * (len(z) - positive))


def left_out(x, rows: list[Row]) -> None:
    """What a fit without a writer says of his turns."""
    for k in range(4):
        nets = [fit(x, rows, np.array([i for i, r in enumerate(rows) if r.writer != k]), s) for s in SEEDS]
        at = np.array([i for i, r in enumerate(rows) if r.writer == k and r.source == "writers"])
        with torch.no_grad():
            z = (sum(n(x[at])[:, 0] for n in nets) / len(nets)).numpy()
        y = np.array([rows[i].follows for i in at])
        print(f"writer {k + 1}: AUC {auc(z, y):.3f}, follow-ups kept {(z[y] > 0).mean():.3f}, changes moved {(z[~y] <= 0).mean():.3f}", flush=True)


def pack(nets: list[nn.Sequential], mean: np.ndarray, spread: np.ndarray, dims: int = 384) -> bytes:
    """The file that lean.LoadHead reads; the scale of the words' features goes into their weights."""
    cat = lambda part: torch.cat([part(n) for n in nets]).detach().numpy()
    w, b, out = cat(lambda n: n[1].weight), cat(lambda n: n[1].bias), cat(lambda n: n[4].weight[0]) / len(nets)
    b = b - (w[:, :WORDS] * (mean / spread)).sum(1)
    body = struct.pack("<f", sum(n[4].bias.item() for n in nets) / len(nets))
    for unit, bias, weight in zip(w, b, out):
        scale = float(np.abs(unit[WORDS:]).max() / 127)
        body += struct.pack(f"<{3 + WORDS}f", scale, bias, weight, *(unit[:WORDS] / spread))
        body += np.clip(np.rint(unit[WORDS:] / scale), -127, 127).astype(np.int8).tobytes()
    return b"sbxturns" + struct.pack("<HHHHI", 1, dims, len(b), 0, zlib.crc32(body)) + body


def main() -> None:
    here = Path(__file__).resolve().parent.parent
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--features", type=Path, required=True, help="program built from training/features/turns")
    parser.add_argument("--dialogues", type=Path, required=True, help="MT-Bench-101, a dialogue a line: id, task, history of user and bot")
    parser.add_argument("--cast", type=Path, required=True, help="folder of treccastweb")
    parser.add_argument("--bundle", type=Path, required=True, help="folder of the bundle that gives the embeddings")
    parser.add_argument("--left-out", action="store_true", help="print what is said of each writer without his turns, write nothing")
    parser.add_argument("--out", type=Path, default=here / "build" / "turns.bin")
    args = parser.parse_args()
    torch.set_num_threads(1)
    rng = random.Random(4)
    rows = dialogues(args.dialogues, rng) + topics(args.cast, rng) + alone(args.data, rng) + writers(rng)
    lines = "\n".join(json.dumps({"before": r.before, "turn": r.turn}) for r in rows)
    told = [json.loads(x) for x in subprocess.run([args.features], input=lines, capture_output=True, text=True, check=True).stdout.splitlines()]
    rows = [r for r, t in zip(rows, told) if t["english"]]
    x = inputs(rows, np.array([t["features"] for t in told if t["english"]], np.float32), args.bundle)
    mean, spread = x[:, :WORDS].mean(0), x[:, :WORDS].std(0) + 1e-6
    x[:, :WORDS] = (x[:, :WORDS] - mean) / spread
    x = torch.from_numpy(x.astype(np.float32))
    if args.left_out:
        left_out(x, rows)
        return
    args.out.parent.mkdir(parents=True, exist_ok=True)
    args.out.write_bytes(pack([fit(x, rows, np.arange(len(rows)), s) for s in SEEDS], mean, spread))


if __name__ == "__main__":
    main()
