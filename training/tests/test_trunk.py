"""What a row counts for where its source is small or large, and how two readings are held together."""

import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from signalbox_training import data, model, trunk  # noqa: E402


def rows(src, count, jailbreak):
    return [data.Row(f"{src} {i}", src=src, jailbreak=jailbreak) for i in range(count)]


def test_a_source_counts_by_the_root_of_its_size():
    found = rows("a/x", 400, 1) + rows("b/y", 100, 1) + rows("c/z", 50, 0)
    weights = trunk.Losses(found).weights(found)
    large, small, other = weights[0], weights[400], weights[500]
    assert torch.isclose(small / large, torch.tensor(2.0))
    assert torch.isclose(weights[:500].mean(), torch.tensor(1.0)) and torch.isclose(other, torch.tensor(1.0))


def test_rows_that_are_not_judged_count_as_one():
    found = rows("a/x", 4, 1)
    assert trunk.Losses(found).weights([data.Row("t", src="mmlu/law")]).tolist() == [1.0]


def test_equal_readings_are_not_apart():
    one = {task: torch.randn(3, len(labels)) for task, labels in model.SEQUENCE.items()}
    other = {task: x + 1 for task, x in one.items()}  # the same probabilities
    assert trunk.apart(one, other).abs() < 1e-5
    other["jailbreak"] = one["jailbreak"].flip(-1)
    assert trunk.apart(one, other) > 0
