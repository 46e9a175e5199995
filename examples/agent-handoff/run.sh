#!/usr/bin/env bash
# One agent reads a long contract and hands over to another by a pointer: starts three simulated model
# servers and signalbox on free ports, lets both agents ask, and compares with sending everything again.
# Exits with 1 and a message when something is not as it should be.
#
# SIGNALBOX_BIN names another binary than bin/signalbox. Needs bash, curl and Python 3.11 with venv.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cd "$here/../.."
source examples/lib.sh

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
