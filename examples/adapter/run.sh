#!/usr/bin/env bash
# An adapter from the 90 rows of own-classifier: a last layer of its own on the embedded model. Trains
# it in less than a minute, starts signalbox on a free port, and asks which team some questions are for.
# Exits with 1 and a message when a question is not routed as it should be, and with 77 when there is
# no Python that has what training needs.
#
# SIGNALBOX_BIN names another binary than bin/signalbox, SIGNALBOX_PYTHON another Python than python3.
# Needs bash, curl, and a Python with training/requirements.txt, of which torch is the large one.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
cd "$root"
python=${SIGNALBOX_PYTHON:-python3}
source examples/lib.sh

if ! why=$("$python" -c "import onnx, onnxruntime, scipy, sklearn, tokenizers, torch, yaml" 2>&1); then
  echo "adapter: skipped, $python cannot train: ${why##*$'\n'}"
  echo "adapter: SIGNALBOX_PYTHON names one that has training/requirements.txt"
  exit 77
fi
port=$(free_port) admin=$(free_port)
url=http://127.0.0.1:$port
sed "s|models_dir: models|models_dir: $tmp/models|" examples/own-classifier/signalbox.yaml > "$tmp/signalbox.yaml"

(cd training && "$python" -m signalbox_training.adapter --name team --data ../examples/own-classifier/rows.jsonl \
  --out "$tmp/models" --epochs 10 --batch 8) > "$tmp/training.log" 2>&1 || fail "training failed"
ls -l "$tmp/models/team.onnx" | awk '{print "adapter of " $5 " bytes"}'
start signalbox "$bin" serve --config "$tmp/signalbox.yaml" --listen "127.0.0.1:$port" --admin-listen "127.0.0.1:$admin"
wait_for "$url/signalbox/v1/intents"

ask_route "There is a wrong amount on the invoice of May"
expect_route billing
ask_route "The program crashes whenever I log in"
expect_route support
ask_route "We are interested in a plan for our school"
expect_route sales
