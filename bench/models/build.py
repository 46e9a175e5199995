"""Builds models of six architectures at their published sizes, with random weights, as folders of the hub's layout.

    pip install torch transformers onnx onnxscript onnxruntime tokenizers numpy
    python bench/models/build.py --out DIR [--only NAME ...] [--small] --tokenizer NAME=FILE ...

The configurations are the published ones; --small divides widths and layers, for a first look. Each folder holds
config.json, tokenizer.json, the graph that PyTorch's exporter makes (weights beside it where they are large), its
8-bit version, and reference.jsonl: for some texts the ids and the vector of PyTorch, pooled and normalised here.
`go run ./bench/models --dir DIR` reads the folders with the product and compares.
"""

import argparse
import gc
import json
import pathlib
import shutil
import time

import numpy as np
import onnx
import torch
import transformers
from onnxruntime.quantization import QuantType, quantize_dynamic
from tokenizers import Tokenizer

TEXTS = [
    "What is the derivative of x squared?",
    "Der Zug nach Köln fährt um 17:45 Uhr, bitte einsteigen!",
    "El niño pequeño preguntó cuántos kilómetros faltan hasta la próxima estación.",
    "次の電車は何時に出発しますか。",
    "def route(prompt): return 'large' if len(prompt) > 512 else 'small'",
    "The signal box stands beside the railway and sets the points for every train. " * 30,
]

# The published configurations, as far as they differ from the defaults of the classes.
MODELS = {
    "modernbert-base": ("ModernBertConfig", "ModernBertModel", "mean", {}),
    "mmbert-base": ("ModernBertConfig", "ModernBertModel", "mean", dict(
        vocab_size=256000, max_position_embeddings=8192, pad_token_id=0, bos_token_id=2, eos_token_id=1, cls_token_id=1, sep_token_id=1)),
    "qwen3-embedding-0.6b": ("Qwen3Config", "Qwen3Model", "last_token", dict(
        vocab_size=151669, hidden_size=1024, intermediate_size=3072, num_hidden_layers=28, num_attention_heads=16, num_key_value_heads=8,
        head_dim=128, max_position_embeddings=32768, rope_theta=1000000.0, tie_word_embeddings=True, eos_token_id=151643, use_cache=False)),
    "embeddinggemma-300m": ("Gemma3TextConfig", "Gemma3TextModel", "mean", dict(
        vocab_size=262144, hidden_size=768, intermediate_size=1152, num_hidden_layers=24, num_attention_heads=3, num_key_value_heads=1,
        head_dim=256, max_position_embeddings=2048, query_pre_attn_scalar=256, sliding_window=512, use_bidirectional_attention=True, use_cache=False)),
    "deberta-v3-base": ("DebertaV2Config", "DebertaV2Model", "cls", dict(
        vocab_size=128100, hidden_size=768, num_hidden_layers=12, num_attention_heads=12, intermediate_size=3072, max_position_embeddings=512,
        type_vocab_size=0, relative_attention=True, position_buckets=256, norm_rel_ebd="layer_norm", share_att_key=True, max_relative_positions=-1,
        pos_att_type=["p2c", "c2p"], layer_norm_eps=1e-7, position_biased_input=False)),
    "xlm-roberta-base": ("XLMRobertaConfig", "XLMRobertaModel", "mean", dict(
        vocab_size=250002, max_position_embeddings=514, type_vocab_size=1, layer_norm_eps=1e-5)),
}
SMALL = {"hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16}


class Body(torch.nn.Module):
    """The last hidden state of ids and a mask."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, input_ids, attention_mask):
        return self.model(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state


def make(name, small):
    config_class, model_class, pooling, changes = MODELS[name]
    if small:
        changes = changes | {k: v for k, v in SMALL.items() if k in changes or k in ("hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads")}
        if "layer_types" in changes:
            del changes["layer_types"]
    config = getattr(transformers, config_class)(**changes, attn_implementation="eager")
    torch.manual_seed(1)
    model = getattr(transformers, model_class)(config).eval()
    model.config.architectures = [model_class]
    return Body(model), config, pooling


def export(body, path):
    ids = torch.randint(10, 100, (2, 24))
    mask = torch.ones_like(ids)
    mask[1, 17:] = 0
    rows, tokens = torch.export.Dim("rows", min=1, max=64), torch.export.Dim("tokens", min=2, max=32768)
    shape = {0: rows, 1: tokens}
    with torch.no_grad():
        program = torch.onnx.export(
            body, (ids, mask), dynamo=True, input_names=["input_ids", "attention_mask"], output_names=["last_hidden_state"],
            dynamic_shapes={"input_ids": shape, "attention_mask": shape}, opset_version=18)
    program.save(str(path), external_data=True)


def vector(body, pooling, ids):
    with torch.no_grad():
        hidden = body(torch.tensor([ids]), torch.ones(1, len(ids), dtype=torch.long))[0]
    v = {"mean": hidden.mean(0), "cls": hidden[0], "last_token": hidden[-1]}[pooling]
    return (v / v.norm()).tolist()


def build(name, out, tokenizer, small):
    begun = time.time()
    body, config, pooling = make(name, small)
    folder = out / name
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "onnx").mkdir(parents=True)
    (folder / "1_Pooling").mkdir()
    config.save_pretrained(folder)
    (folder / "1_Pooling/config.json").write_text(json.dumps({
        "pooling_mode_mean_tokens": pooling == "mean", "pooling_mode_cls_token": pooling == "cls", "pooling_mode_lasttoken": pooling == "last_token"}))
    shutil.copy(tokenizer, folder / "tokenizer.json")
    tok = Tokenizer.from_file(str(tokenizer))
    tok.no_truncation()
    tok.no_padding()
    limit = min(config.max_position_embeddings - (2 if name.startswith("xlm") else 0), 8192)
    rows = []
    for text in TEXTS:
        ids = tok.encode(text).ids
        if pooling == "last_token" and ids[-1] != config.eos_token_id:
            ids.append(config.eos_token_id)
        if len(ids) <= limit:
            rows.append({"text": text, "ids": ids, "vector": vector(body, pooling, ids)})
    (folder / "reference.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    size = sum(p.numel() for p in body.parameters())
    export(body, folder / "onnx/model.onnx")
    del body
    gc.collect()
    print(f"{name}: {size / 1e6:.0f}M parameters, exported after {time.time() - begun:.0f} s", flush=True)
    quantize_dynamic(str(folder / "onnx/model.onnx"), str(folder / "onnx/model_int8.onnx"), weight_type=QuantType.QInt8, per_channel=True,
                     op_types_to_quantize=["MatMul", "Gather", "Gemm"], use_external_data_format=False)
    print(f"{name}: quantised after {time.time() - begun:.0f} s", flush=True)


def real(name, source, out, texts):
    """A model whose weights a package brings: BERT-like, mean of the tokens."""
    folder = out / name
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "onnx").mkdir(parents=True)
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling/config.json").write_text(json.dumps({"pooling_mode_mean_tokens": True}))
    for file in ("config.json", "tokenizer.json"):
        shutil.copy(source / file, folder / file)
    config = transformers.AutoConfig.from_pretrained(source, attn_implementation="eager")
    body = Body(transformers.BertModel.from_pretrained(source, config=config, add_pooling_layer=False).eval())
    tok = Tokenizer.from_file(str(source / "tokenizer.json"))
    tok.no_truncation()
    tok.no_padding()
    rows = []
    for text in TEXTS + texts:
        ids = tok.encode(text).ids
        if len(ids) <= config.max_position_embeddings:
            rows.append({"text": text, "ids": ids, "vector": vector(body, "mean", ids)})
    (folder / "reference.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    export(body, folder / "onnx/model.onnx")
    quantize_dynamic(str(folder / "onnx/model.onnx"), str(folder / "onnx/model_int8.onnx"), weight_type=QuantType.QInt8, per_channel=True,
                     op_types_to_quantize=["MatMul", "Gather", "Gemm"])
    print(f"{name}: {len(rows)} texts", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--only", nargs="*", default=list(MODELS))
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--tokenizer", nargs="*", default=[], help="NAME=tokenizer.json")
    parser.add_argument("--real", nargs="*", default=[], help="NAME=FOLDER with config.json, tokenizer.json and model.safetensors of a BertModel")
    parser.add_argument("--texts", type=pathlib.Path, help="rows with more texts for --real")
    o = parser.parse_args()
    texts = [json.loads(line)["text"] for line in o.texts.read_text().split("\n") if line.strip()] if o.texts else []
    for name, source in (r.split("=", 1) for r in o.real):
        real(name, pathlib.Path(source), o.out, texts)
    if o.real:
        return
    tokenizers = dict(t.split("=", 1) for t in o.tokenizer)
    for name in o.only:
        build(name, o.out, pathlib.Path(tokenizers[name]), o.small)


main()
