"""What is put into a graph changes its task and nothing else."""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
import torch

HERE = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(HERE))

from signalbox_training import batches, half, model, restore, tails, topics, wide  # noqa: E402

SHIPPED = HERE.parent / "models" / "default" / "model_int8.onnx"


def outputs(graph: onnx.ModelProto) -> dict[str, np.ndarray]:
    session = onnxruntime.InferenceSession(graph.SerializeToString(), providers=["CPUExecutionProvider"])
    texts = (HERE / "parity_texts.txt").read_text().splitlines()[:8]
    found = batches.tokenizer().encode_batch(texts, add_special_tokens=False)
    ids, mask = batches.pad([batches.wrap(e.ids[:60]) for e in found])
    names = [o.name for o in session.get_outputs()]
    return dict(zip(names, session.run(names, {"input_ids": ids.numpy(), "attention_mask": mask.numpy()})))


def tail(graph: onnx.ModelProto, task: str) -> tails.Tail:
    net = model.Bundle(0.0).eval()
    net.load_state_dict(restore.checkpoint(graph)[0])
    return tails.Tail(net, task)


@pytest.mark.parametrize("task", (*model.ATTACKS, topics.TASK))
def test_a_tail_that_was_not_trained_changes_nothing(task):
    graph = onnx.load(SHIPPED)
    before = outputs(graph)
    tails.put(graph, tail(graph, task))
    after = outputs(graph)
    assert all(np.array_equal(before[name], after[name]) for name in before)


@pytest.mark.parametrize("task", (*model.ATTACKS, topics.TASK))
def test_a_trained_tail_changes_its_task_alone(task):
    graph = onnx.load(SHIPPED)
    before, new = outputs(graph), tail(graph, task)
    with torch.no_grad():
        for parameter in new.parameters():
            parameter += 0.01 if parameter.requires_grad else 0.0
    tails.put(graph, new)
    after = outputs(graph)
    changed = {name for name in before if not np.array_equal(before[name], after[name])}
    assert changed == {task + "_logits"}


def test_a_new_mix_of_domain_changes_domain_alone():
    graph = onnx.load(SHIPPED)
    before = outputs(graph)
    mix, shift = np.ones((3, 4), np.float32), [np.zeros(n, np.float32) for n in wide.WIDTHS]
    topics.blend(graph, replace(half.fusion_of(graph), mix=mix, shift=shift, noise=0.25))
    after = outputs(graph)
    changed = {name for name in before if not np.array_equal(before[name], after[name])}
    assert changed == {"domain_logits"}
    least = np.exp(after["domain_logits"]).min()
    assert least >= 0.25 / len(model.DOMAINS) - 1e-6, "the share of wrong labels bounds every probability from below"
