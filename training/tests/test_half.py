"""The graph of half precision against the same weights in single precision, and against the shipped int8 graph, on the CPU."""

import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from tokenizers import Tokenizer

HERE = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(HERE))

from signalbox_training import half  # noqa: E402

SHIPPED = HERE.parent / "models" / "default"

# The largest difference that a logit, or a number of the embedding, may have. Half precision has 11 bits: measured on the texts of
# parity_texts.txt and seven batches with padding. Rounding to 8 bits may take 0.15 (test of the int8 graph).
LOGITS, EMBEDDING = 0.05, 0.002

PAIRS = [
    ("The Harbour Tower is 330 metres tall and was completed in 1889.", "The Harbour Tower is 250 metres tall."),
    ("The Harbour Tower is 330 metres tall and was completed in 1889.", "The tower was completed in 1889."),
    ("Trains to the coast leave twice a day.", "Tickets are sold on board."),
    ("The committee met on Tuesday, with nine of its twelve members present, and put the vote off.", "The vote was taken."),
]


def session(graph: onnx.ModelProto) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(graph.SerializeToString(), options, providers=["CPUExecutionProvider"])


@pytest.fixture(scope="module")
def sessions():
    shipped = onnx.load(SHIPPED / "model_int8.onnx")
    return {"int8": session(shipped), **{p: session(half.build(shipped, p)) for p in ("fp32", "fp16")}}


@pytest.fixture(scope="module")
def batches():
    """Batches of eight rows of different lengths."""
    tok = Tokenizer.from_file(str(SHIPPED / "tokenizer.json"))
    texts = (HERE / "parity_texts.txt").read_text().splitlines()[:56]
    rows = [tok.encode(t).ids[:126] for t in texts if t.strip()]
    out = []
    for i in range(0, len(rows), 8):
        group = rows[i : i + 8]
        ids, mask = (np.zeros((len(group), max(map(len, group))), np.int64) for _ in range(2))
        for r, row in enumerate(group):
            ids[r, : len(row)], mask[r, : len(row)] = row, 1
        out.append({"input_ids": ids, "attention_mask": mask})
    return out


def worst(one, other, batches):
    """The largest difference of each output, where there are tokens."""
    found = {}
    for feed in batches:
        for spec, a, b in zip(one.get_outputs(), one.run(None, feed), other.run(None, feed)):
            gap = np.abs(a.astype(np.float64) - b)
            if gap.ndim == 3:
                gap = gap[feed["attention_mask"] == 1]
            assert np.isfinite(gap).all(), spec.name
            found[spec.name] = max(found.get(spec.name, 0), gap.max())
    return found


def test_half_precision_agrees_with_single(sessions, batches):
    gaps = worst(sessions["fp32"], sessions["fp16"], batches)
    print(gaps)
    assert gaps.pop("embedding") <= EMBEDDING
    assert gaps and max(gaps.values()) <= LOGITS


def test_single_precision_of_the_shipped_weights_is_near_int8(sessions, batches):
    gaps = worst(sessions["fp32"], sessions["int8"], batches)
    print(gaps)
    assert max(gap for name, gap in gaps.items() if name != "pii_logits") <= 0.5


def test_rows_do_not_depend_on_their_padding(sessions, batches):
    feed = batches[0]
    n = int(feed["attention_mask"][0].sum())
    together = sessions["fp16"].run(["domain_logits", "embedding"], feed)
    alone = sessions["fp16"].run(["domain_logits", "embedding"], {k: v[:1, :n] for k, v in feed.items()})
    for a, b in zip(together, alone):
        assert np.abs(a[:1] - b).max() <= 0.02


def test_the_graph_has_the_fused_operators_of_a_gpu():
    graph = half.build(onnx.load(SHIPPED / "model_int8.onnx"))
    kinds = [n.op_type for n in graph.graph.node]
    assert kinds.count("MultiHeadAttention") == 7 and kinds.count("SkipLayerNormalization") >= 10
    half_bytes = sum(len(x.raw_data) for x in graph.graph.initializer if x.data_type == onnx.TensorProto.FLOAT16)
    assert half_bytes > sum(len(x.raw_data) for x in graph.graph.initializer) / 2


def test_pairs_agree_with_single_precision_and_the_shipped_graph():
    shipped = onnx.load(HERE.parent / "models" / "grounding" / "model_int8.onnx")
    by = {"int8": session(shipped), **{p: session(half.build(shipped, p)) for p in ("fp32", "fp16")}}
    tok = Tokenizer.from_file(str(SHIPPED / "tokenizer.json"))
    rows = [tok.encode(a, b) for a, b in PAIRS]
    width = max(len(row.ids) for row in rows)
    feed = {name: np.zeros((len(rows), width), np.int64) for name in ("input_ids", "attention_mask", "token_type_ids")}
    for i, row in enumerate(rows):
        for name, values in zip(feed, (row.ids, row.attention_mask, row.type_ids)):
            feed[name][i, : len(values)] = values
    assert worst(by["fp32"], by["fp16"], [feed])["logits"] <= LOGITS
    assert worst(by["fp32"], by["int8"], [feed])["logits"] <= 0.5


@pytest.mark.parametrize("bundle", ["default", "grounding"])
def test_the_folder_is_a_bundle(tmp_path, bundle):
    shipped_folder = HERE.parent / "models" / bundle
    half.write(tmp_path, shipped_folder)
    import hashlib

    import yaml

    manifest = yaml.safe_load((tmp_path / "bundle.yaml").read_text())
    shipped = yaml.safe_load((shipped_folder / "bundle.yaml").read_text())
    for part in manifest.values():
        for file in part if isinstance(part, list) else [part]:
            if isinstance(file, dict) and "sha256" in file and "file" in file:
                assert file["sha256"] == hashlib.sha256((tmp_path / file["file"]).read_bytes()).hexdigest()
    assert (manifest["name"], manifest["version"]) == (shipped["name"], shipped["version"])
    (graph,) = manifest["graphs"]
    assert graph["precision"] == "fp16"
    assert graph["sha256"] == hashlib.sha256((tmp_path / graph["file"]).read_bytes()).hexdigest()
