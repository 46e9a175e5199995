"""The head for the subject of texts in other languages, over what two parts of the multilingual bundle say.

It reads the sum of the piece vectors, as that of foreign.py did, and beside it the mean of what the encoder of
foreign_turns.py says of the pieces: its vectors of all languages lie closer together. From both is taken away what
tells languages apart whatever the subject, so that what English questions teach holds in languages without them.
Half of a label is what heads over multilingual-e5-small say, made alike. Encoders, table and all other outputs stay.

    python -m signalbox_training.foreign_domain --trunk TRUNK --out ../models/foreign
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np
import onnx
import torch
import torch.nn.functional as F
import yaml
from onnx import TensorProto, helper
from tokenizers import Tokenizer
from torch import nn

from . import bundle, data, evaluate, foreign, foreign_order
from .model import DOMAINS

UNITS, DROPPED, EPOCHS, RATE, ROWS = 256, 0.3, 6, 2e-3, 512
ERASED = 16  # directions that tell languages apart
LEAST = 30  # rows of a language from which it is looked for
TEACHERS = 3
LONGEST = 96  # pieces that the teacher reads
WEIGHTS = {"own": 3.0, "own/en": 2.0, "exams": 0.4, "mmlu": 1.0, "mmlu_pro": 0.7, "openstax": 0.4, "en": 0.3}


def rows(folder: Path) -> list[data.Row]:
    """Rows of domain; src is a key of WEIGHTS and, behind a colon, the language."""
    said = {data.key(r["text"]): r["lang"] for r in data.read(folder, "exams_multilingual")}
    for file in (Path(__file__).parent / "prompts").glob("*.tsv"):
        for line in file.read_text(encoding="utf-8").splitlines():
            _, language, text = line.split("\t")
            said[data.key(text.replace("\\n", "\n"))] = language
    seen, kept, many = data.dev_keys(folder), [], []
    for r in data.domain_rows(folder):
        k = data.key(r.text) or r.text
        if k in seen:
            continue
        seen.add(k)
        first, language = r.src.split("/")[0], said.get(k, "en")
        if r.src == "own/everyday":
            r.src = f"own:{language}" if language != "en" else "own/en:en"
            kept.append(r)
        elif first == "exams":
            r.src = f"exams:{language}"
            kept.append(r)
        elif first in ("mmlu", "mmlu_pro"):
            r.src = f"{first}:en"
            kept.append(r)
        else:
            many.append(r)
    parts = {True: [r for r in many if r.src.startswith("openstax")], False: [r for r in many if not r.src.startswith("openstax")]}
    few = data.subsample(parts[True], 400, lambda r: r.domain) + data.subsample(parts[False], 250, lambda r: ("en/" + r.src, r.domain))
    for r in few:
        r.src = "openstax:en" if r.src.startswith("openstax") else "en:en"
    return kept + few


def read(sess, ids: list[list[int]], names: list[str]) -> np.ndarray:
    """The outputs of texts [texts, components]; of an output for each piece the mean."""
    order, out = sorted(range(len(ids)), key=lambda i: len(ids[i])), []
    for at in range(0, len(order), 32):
        x, mask, _ = foreign_order.padded([ids[i] for i in order[at : at + 32]])
        m = mask.numpy()
        got = sess.run(names, {"input_ids": x.numpy(), "attention_mask": m.astype(np.int64)})
        means = [v if v.ndim == 2 else (v * m[..., None]).sum(1) / m.sum(1, keepdims=True) for v in got]
        out.append(np.concatenate(means, 1))
    result = np.zeros((len(ids), out[0].shape[1]), np.float32)
    result[order] = np.concatenate(out)
    return result


class Scale:
    """Each component by its spread, and without the directions in which the languages lie apart."""

    def __init__(self, x: np.ndarray, found: list[data.Row]):
        self.mean, self.spread = x.mean(0), x.std(0) + 1e-4
        z = (x - self.mean) / self.spread
        y, language = np.array([r.domain for r in found]), np.array([r.src.split(":")[1] for r in found])
        middle = {d: z[y == d].mean(0) for d in range(len(DOMAINS))}
        apart = []
        for l in sorted(set(language)):
            of = {d: (language == l) & (y == d) for d in middle}
            if (language == l).sum() >= LEAST:
                apart.append(np.mean([z[at].mean(0) - middle[d] for d, at in of.items() if at.sum() > 2], 0))
        away = np.linalg.svd(np.stack(apart), full_matrices=False)[2][:ERASED]
        self.turn = (np.eye(len(self.mean)) - away.T @ away).astype(np.float32)

    def __call__(self, x: np.ndarray) -> torch.Tensor:
        return torch.from_numpy(((x - self.mean) / self.spread) @ self.turn).float()

    def folded(self, layer: nn.Linear) -> nn.Linear:
        """The layer behind the scale as one that reads what is not scaled."""
        out = nn.Linear(layer.in_features, layer.out_features)
        weight = (layer.weight.detach() @ torch.from_numpy(self.turn)) / torch.from_numpy(self.spread)
        out.weight.data, out.bias.data = weight, layer.bias.detach() - weight @ torch.from_numpy(self.mean)
        return out


def fit(x: torch.Tensor, target: torch.Tensor, weight: torch.Tensor, seed: int) -> nn.Sequential:
    torch.manual_seed(seed)
    net = nn.Sequential(nn.Dropout(DROPPED), nn.Linear(x.shape[1], UNITS), nn.GELU(), nn.Dropout(DROPPED), nn.Linear(UNITS, len(DOMAINS)))
    optimiser = torch.optim.AdamW(net.parameters(), lr=RATE, weight_decay=0.05)
    steps, done = EPOCHS * (len(x) // ROWS), 0
    for _ in range(EPOCHS):
        for p in torch.randperm(len(x))[: len(x) // ROWS * ROWS].view(-1, ROWS):
            optimiser.param_groups[0]["lr"] = RATE * min(1, (done + 1) / 30) * (1 - done / steps)
            done += 1
            each = -(target[p] * F.log_softmax(net(x[p]), 1)).sum(1)
            loss = (each * weight[p]).sum() / weight[p].sum()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
    return net.eval()


def whole(old: onnx.ModelProto) -> str:
    """The sum of the vectors at length 8: what the head of domain reads first."""
    made = {o for n in old.graph.node if n.op_type == "Div" for o in n.output}
    return next(n.output[0] for n in old.graph.node if n.op_type == "Mul" and n.input[0] in made and n.input[1] == "eight")


def states(old: onnx.ModelProto) -> str:
    return next(n.output[0] for n in old.graph.node if n.op_type == "LayerNormalization" and n.input[1] == "turns.end.weight")


def graph(net: nn.Sequential, scale: Scale, old: onnx.ModelProto) -> onnx.ModelProto:
    """The graph of the bundle with this head. The one that was there is left out."""
    by = {n.output[0]: n for n in old.graph.node}
    mask = next(n.output[0] for n in old.graph.node if n.op_type == "Unsqueeze" and "attention_mask" in by[n.input[0]].input)
    tail, wanted = set(), ["domain_logits"]
    while wanted:
        name = wanted.pop()
        if name in by and name not in (whole(old), states(old), mask):
            tail.add(name)
            wanted += by[name].input
    had = [n for n in old.graph.node if n.output[0] not in tail]
    made = foreign_order.Nodes(had, [t for t in old.graph.initializer if not t.name.startswith("domain.")])
    begin, first = len(made.nodes), made.index("first", [1])
    total = made.op("ReduceSum", [made.op("Mul", [states(old), mask]), first], keepdims=0)
    mean = made.op("Div", [total, made.op("ReduceSum", [mask, first], keepdims=0)])
    hidden = made.gelu(made.linear(made.op("Concat", [whole(old), mean], axis=-1), scale.folded(net[1]), "domain.0"))
    out = made.linear(hidden, net[4], "domain.1")
    renamed = {n.output[0]: "domain_" + n.output[0] for n in made.nodes[begin:]}
    for n in made.nodes[begin:]:
        n.name = "domain_" + n.name
        n.input[:], n.output[:] = [renamed.get(v, v) for v in n.input], [renamed[v] for v in n.output]
    made.nodes.append(helper.make_node("Identity", [renamed[out]], ["domain_logits"], name="domain_out"))
    proto = helper.make_model(helper.make_graph(made.nodes, old.graph.name, list(old.graph.input), list(old.graph.output), made.tensors),
                              producer_name=old.producer_name, opset_imports=list(old.opset_import))
    proto.ir_version = old.ir_version
    return proto


def teacher_of(trunk: Path, texts: list[str]) -> np.ndarray:
    tok = Tokenizer.from_file(str(trunk / "tokenizer.json"))
    tok.no_padding()
    tok.enable_truncation(LONGEST)
    sess = evaluate.session((trunk / "model_int8.onnx").read_bytes())
    return read(sess, [e.ids for e in tok.encode_batch([t[:2000] for t in texts])], ["last_hidden_state"])


def write(folder: Path, proto: onnx.ModelProto) -> None:
    """The bundle, the manifest last; the rest of it stays."""
    manifest, content = yaml.safe_load((folder / "bundle.yaml").read_text(encoding="utf-8")), proto.SerializeToString()
    manifest["version"], manifest["graphs"] = foreign.VERSION, [bundle.entry("model_int8.onnx", content, precision="int8")]
    bundle.replace(folder / "model_int8.onnx", content)
    text = yaml.safe_dump(manifest, sort_keys=False, width=120, default_flow_style=None, allow_unicode=True)
    bundle.replace(folder / "bundle.yaml", text.encode())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--trunk", type=Path, required=True, help="what build_trunk.py wrote of the pieces of the bundle, with --int8")
    parser.add_argument("--work", type=Path, default=Path("build"))
    parser.add_argument("--out", type=Path, default=Path("../models/foreign"), help="the bundle; all but domain stays as it is")
    args = parser.parse_args()
    torch.set_num_threads(1)
    begin = time.time()
    log = lambda s: print(f"[{time.time() - begin:5.0f} s] {s}", flush=True)
    found = rows(args.data)
    said = args.work / "foreign_domain.npy"
    if not said.exists():
        np.save(said, teacher_of(args.trunk, [r.text for r in found]))
        log(f"{len(found)} rows taught")
    taught = np.load(said)
    held = [r.src.startswith("own:") and data.bucket(r.text, foreign.HELD_OUT_ONE_IN) == 0 for r in found]
    kept = [i for i in range(len(found)) if not held[i]]
    measured, found, taught = [r for r, h in zip(found, held) if h], [found[i] for i in kept], taught[kept]
    weight = torch.tensor([WEIGHTS[r.src.split(":")[0]] for r in found])
    target = F.one_hot(torch.tensor([r.domain for r in found]), len(DOMAINS)).float() * 0.95 + 0.05 / len(DOMAINS)

    x = Scale(taught, found)(taught)
    heads = [fit(x, target, weight, seed) for seed in range(TEACHERS)]
    with torch.no_grad():
        soft = torch.stack([F.log_softmax(head(x), 1) for head in heads]).mean(0)
    target = (target + torch.softmax(soft, 1)) / 2

    old = onnx.load(args.out / "model_int8.onnx")
    tapped, names = onnx.ModelProto(), [whole(old), states(old)]
    tapped.CopyFrom(old)
    tapped.graph.output.extend(helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in names)
    tok = foreign.tokenizer(args.out)
    ids = [foreign.wrap(e.ids[: foreign.TOKENS - 2]) for e in tok.encode_batch([r.text[:3000] for r in found], add_special_tokens=False)]
    x = read(evaluate.session(tapped.SerializeToString()), ids, names)
    scale = Scale(x, found)
    net = fit(scale(x), target, weight, 0)
    proto = graph(net, scale, old)
    log(f"{len(found)} rows, {len(proto.SerializeToString()):,} bytes, {len(old.SerializeToString()):,} before")
    for name, p in (("before", old), ("after", proto)):
        log(name + " " + json.dumps(foreign.figures(evaluate.session(p.SerializeToString()), tok, args.data, measured)["domain"]))
    write(args.out, proto)


if __name__ == "__main__":
    main()
