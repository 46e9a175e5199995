#!/usr/bin/env bash
# One agent reads a long contract and hands over to another by a pointer: starts three simulated model
# servers and signalbox on free ports, lets both agents ask, and compares with sending everything again.
# Exits with 1 and a message when something is not as it should be.
#
# SIGNALBOX_BIN names another binary than bin/signalbox. Needs bash, curl and Python 3.11 with venv.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cd "$here/../.."
bin=${SIGNALBOX_BIN:-bin/signalbox}
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
  echo "agent-handoff: $1" >&2
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

# python prints the interpreter of a virtual environment outside the checkout, made when it is missing.
python() {
  local venv
  venv="${XDG_CACHE_HOME:-$HOME/.cache}/signalbox/examples/python-$(cksum < "$here/requirements.txt" | cut -d' ' -f1)"
  if [ ! -e "$venv/installed" ]; then
    echo "installing requirements.txt" >&2
    python3 -m venv --clear "$venv"
    "$venv/bin/pip" install --quiet --disable-pip-version-check -r "$here/requirements.txt"
    touch "$venv/installed"
  fi
  echo "$venv/bin/python"
}

[ -x "$bin" ] || fail "$bin is missing: run make build"
python=$(python)
port=$(free_port) admin=$(free_port)
cp "$here/signalbox.yaml" "$tmp/signalbox.yaml"

simulators=()
for i in 1 2 3; do
  sim=$(free_port)
  sed -i -e "s/:810$i/:$sim/" "$tmp/signalbox.yaml"
  start "simulator-$i" "$bin" simulate --listen "127.0.0.1:$sim" --model sim/Analyst-8B --max-model-len 131072 \
    --prefill-per-token 40us --tpot 1ms --record 100
  wait_for "http://127.0.0.1:$sim/health"
  simulators+=("http://127.0.0.1:$sim")
done
start signalbox "$bin" serve --config "$tmp/signalbox.yaml" --listen "127.0.0.1:$port" --admin-listen "127.0.0.1:$admin"
wait_for "http://127.0.0.1:$port/readyz"

SIMULATORS="${simulators[*]}" SIGNALBOX_URL="http://127.0.0.1:$port/v1" "$python" "$here/main.py"
