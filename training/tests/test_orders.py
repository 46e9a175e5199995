"""The texts of `orders` are whole."""

import re
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from signalbox_training import orders  # noqa: E402

ATTACKS = (orders.asking, orders.lifting, orders.planted)
TWINS = (orders.honest, orders.notes, orders.talks)


@pytest.mark.parametrize("draw", ATTACKS + TWINS)
def test_every_blank_is_filled(draw):
    for text in draw(3000):
        assert not re.search(r"\{[a-z0-9]*\}", text), text


def test_no_text_is_both_an_attack_and_harmless():
    attacks = {t.lower().rstrip(".") for draw in ATTACKS for t in draw(6000)}
    harmless = {t.lower().rstrip(".") for draw in TWINS for t in draw(6000)}
    assert not attacks & harmless
