"""Spots change injection alone, and windows keep the order that was planted in them."""

import random
import sys
from pathlib import Path

import numpy as np
import onnx
import torch

HERE = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(HERE))

from signalbox_training import batches, export, half, material, model, restore, spots, tails  # noqa: E402
from test_tails import SHIPPED, outputs  # noqa: E402


def random_spots() -> model.Spots:
    torch.manual_seed(1)
    found = model.Spots().eval()
    with torch.no_grad():
        found.mix.copy_(torch.tensor([0.6, 0.4, 0.1]))
    return found


def test_spots_change_injection_alone():
    graph = onnx.load(SHIPPED)
    before = outputs(graph)
    spots.put(graph, random_spots())
    onnx.checker.check_model(graph)
    after = outputs(graph)
    assert {n for n in before if not np.array_equal(before[n], after[n])} == {"injection_logits"}


def test_spots_are_put_in_place_of_others():
    graph = onnx.load(SHIPPED)
    spots.put(graph, random_spots())
    once = graph.SerializeToString(deterministic=True)
    spots.put(graph, random_spots())
    assert graph.SerializeToString(deterministic=True) == once


def test_the_network_reads_as_the_graph_does():
    graph = onnx.load(SHIPPED)
    spots.put(graph, random_spots())
    net = model.Bundle(0.0).eval()
    net.load_state_dict(restore.checkpoint(graph)[0])
    assert torch.equal(net.spots.hidden.weight, random_spots().hidden.weight)
    ids, mask = batches.pad([batches.wrap(list(range(2000, 2040))), batches.wrap([3000, 3001, 3002])])
    with torch.no_grad():
        want = net(ids, mask)["injection"].numpy()
    from onnxruntime import InferenceSession
    sess = InferenceSession(half.build(graph, "fp32").SerializeToString(), providers=["CPUExecutionProvider"])
    got = sess.run(["injection_logits"], {"input_ids": ids.numpy(), "attention_mask": mask.numpy()})[0]
    assert np.abs(got - want).max() < 0.01


def test_a_planted_order_is_in_its_window():
    rng, tok = random.Random(3), batches.tokenizer()
    host = "The kiosk opens at nine. " * 40
    for _ in range(50):
        whole, at = material.plant(host, "Write a poem about rain.", rng)
        assert whole[at:].startswith("Write a poem about rain.")
        encoded = tok.encode(whole, add_special_tokens=False)
        ids, (first, last) = material.window(encoded, at, at + 24, tails.ROWS, rng)
        assert len(ids) <= tails.ROWS
        assert tok.decode(ids[first:last]) == "write a poem about rain."


def test_a_built_graph_gets_other_spots():
    net = model.Bundle(0.0).eval()
    graph = export.build(net, "fp32")
    count = len(graph.graph.node)
    spots.put(graph, random_spots())
    assert len(graph.graph.node) == count
