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
bin=${SIGNALBOX_BIN:-bin/signalbox}
python=${SIGNALBOX_PYTHON:-python3}
start_seconds=60 # how long the servers may take until they are ready

tmp=$(mktemp -d)
pids=()
stop() {
  status=$?
  for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; done
  for pid in "${pids[@]}"; do wait "$pid" 2>/dev/null || true; done
  rm -rf "$tmp"
  exit "$status"
}
trap stop EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

fail() {
  echo "adapter: $1" >&2
  for log in "$tmp"/*.log; do [ ! -s "$log" ] || sed "s|^|  $(basename "$log" .log): |" "$log" >&2; done
  exit 1
}

# free_port prints a port below the range that the kernel gives out by itself and that nobody answers on.
free_port() {
  local port
  for _ in $(seq 50); do
    port=$((10000 + RANDOM % 20000))
    if ! (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then
      echo "$port"
      return
    fi
  done
  return 1
}

# start NAME COMMAND... runs a server and keeps its output in NAME.log.
start() {
  local name=$1
  shift
  "$@" > "$tmp/$name.log" 2>&1 &
  pids+=("$!")
}

# wait_for URL waits until it answers with 200.
wait_for() {
  local deadline=$((SECONDS + start_seconds)) pid
  until curl --silent --fail --output /dev/null --max-time 2 "$1"; do
    for pid in "${pids[@]}"; do kill -0 "$pid" 2>/dev/null || fail "a server ended before it was ready"; done
    [ "$SECONDS" -lt "$deadline" ] || fail "$1 was not ready after $start_seconds s"
    sleep 0.1
  done
}

# ask QUESTION prints the route that takes it, and sets it.
ask() {
  local body="{\"model\": \"auto\", \"messages\": [{\"role\": \"user\", \"content\": \"$1\"}]}"
  curl --silent --show-error --max-time 30 --output "$tmp/explanation" \
    --header 'Content-Type: application/json' --data "$body" "$url/signalbox/v1/explain" ||
    fail "$1: $(cat "$tmp/explanation" 2>/dev/null)"
  route=$(grep -o '"route": *"[^"]*"' "$tmp/explanation" | head -n 1 | sed 's/.*"\([^"]*\)"$/\1/')
  printf '%-60s route %s\n' "$1" "$route"
}

# expect ROUTE checks the last answer.
expect() {
  [ "$route" = "$1" ] || fail "expected route $1"
}

if ! why=$("$python" -c "import onnx, onnxruntime, scipy, sklearn, tokenizers, torch, yaml" 2>&1); then
  echo "adapter: skipped, $python cannot train: ${why##*$'\n'}"
  echo "adapter: SIGNALBOX_PYTHON names one that has training/requirements.txt"
  exit 77
fi
[ -x "$bin" ] || fail "$bin is missing: run make build"
port=$(free_port) admin=$(free_port)
url=http://127.0.0.1:$port
sed "s|models_dir: models|models_dir: $tmp/models|" examples/own-classifier/signalbox.yaml > "$tmp/signalbox.yaml"

(cd training && "$python" -m signalbox_training.adapter --name team --data ../examples/own-classifier/rows.jsonl \
  --out "$tmp/models" --epochs 10 --batch 8) > "$tmp/training.log" 2>&1 || fail "training failed"
ls -l "$tmp/models/team.onnx" | awk '{print "adapter of " $5 " bytes"}'
start signalbox "$bin" serve --config "$tmp/signalbox.yaml" --listen "127.0.0.1:$port" --admin-listen "127.0.0.1:$admin"
wait_for "$url/signalbox/v1/intents"

ask "There is a wrong amount on the invoice of May"
expect billing
ask "The program crashes whenever I log in"
expect support
ask "We are interested in a plan for our school"
expect sales
