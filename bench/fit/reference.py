"""scikit-learn's logistic regression on the features and at the strength of `signalbox fit`.

    pip install scikit-learn scipy numpy
    python bench/fit/reference.py PREFIX ...      PREFIX as of `go run ./bench/fit --features PREFIX`
"""

import json
import sys
import time

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.linear_model import LogisticRegression


def read(path):
    with open(path) as lines:
        head = json.loads(next(lines))
        labels, at, values, ends = [], [], [], [0]
        for line in lines:
            row = json.loads(line)
            labels.append(row["label"])
            at += row["at"]
            values += row["values"]
            ends.append(len(at))
    return head, np.array(labels), csr_matrix((np.array(values, np.float64), at, ends), shape=(len(labels), head["width"]))


for prefix in sys.argv[1:]:
    head, labels, x = read(prefix + ".train.jsonl")
    _, want, held = read(prefix + ".test.jsonl")
    begun, used = time.time(), time.process_time()
    # Classes are weighted as `fit` weighs them; the intercept is not regularised in either.
    model = LogisticRegression(C=head["strength"], class_weight="balanced", max_iter=1000).fit(x, labels)
    print(f"{prefix}: {len(labels)} rows, C {head['strength']}: accuracy {np.mean(model.predict(held) == want):.4f}, "
          f"{time.time() - begun:.0f} s, {time.process_time() - used:.0f} s of processors", flush=True)
