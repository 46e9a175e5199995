"""Models that each have not seen a part of the claims about pages, so that all of these can be read for the fusion.

Real claims about pages (WiCE) are too few to hold enough of them out of the training. From weights that know none of them, one model
a fold is trained on the others, as the shipped one is on all; every claim is read by the model that has not seen it.
"""

from __future__ import annotations

import argparse
import random
from pathlib import Path

from . import data, nli_bundle, nli_data, nli_export, nli_fusion, nli_model, nli_train

MINUTES = 4.0  # of a fold
REST = 0.06  # of the other sources in an epoch


def train(rows: list[nli_data.Pair], base: Path, out: Path, minutes: float = MINUTES) -> None:
    """Write 0.pt, 1.pt, ... to the folder `out`."""
    out.mkdir(parents=True, exist_ok=True)
    rng = random.Random(41)
    about = [r for r in rows if r.root]
    others = [r for r in rows if not r.root]
    others = rng.sample(others, len(others) // 3)  # more than is seen; every fold has the same
    for k in range(nli_fusion.FOLDS):
        chosen = [r for r in about if data.bucket(r.root, nli_fusion.FOLDS) != k]
        nli_train.train(chosen + others, out / f"{k}.pt", minutes, base, rounding=False, rate=6e-5, rest=3 * REST)


def bundles(folder: Path) -> list[Path]:
    """A bundle for every fold, in fp32, beside its weights."""
    out = []
    for k in range(nli_fusion.FOLDS):
        out.append(folder / str(k))
        out[-1].mkdir(exist_ok=True)
        graph = nli_export.build(nli_model.load(folder / f"{k}.pt").eval(), "fp32").SerializeToString()
        nli_bundle.write(out[-1], graph, 1.0, None, nli_bundle.EASY)
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--base", type=Path, required=True, help="weights of `nli_train --without wice`")
    parser.add_argument("--out", type=Path, default=Path("build/cross"))
    parser.add_argument("--minutes", type=float, default=MINUTES, help="of a fold")
    args = parser.parse_args()
    train(nli_train.pairs(args.data), args.base, args.out, args.minutes)


if __name__ == "__main__":
    main()
