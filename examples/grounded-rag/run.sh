#!/usr/bin/env bash
# Answers checked against facts while they stream: starts a simulated server that recites an answer
# with one false sentence, signalbox with its guard, and the page of this example, on free ports. Asks
# in every mode and exits with 1 and a message when an answer is not what it should be.
#
# Usage: run.sh           asks in the terminal, in every mode, and ends
#        run.sh --page    serves the page until it is interrupted
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
sim=$(free_port) port=$(free_port) admin=$(free_port) page=$(free_port)
sed -e "s/:8101/:$sim/" "$here/signalbox.yaml" > "$tmp/signalbox.yaml"

start simulator "$bin" simulate --listen "127.0.0.1:$sim" --model sim/Support-8B --answers "$here/answers.jsonl"
start signalbox "$bin" serve --config "$tmp/signalbox.yaml" --listen "127.0.0.1:$port" --admin-listen "127.0.0.1:$admin"
start page "$python" "$here/page.py" "$page" "http://127.0.0.1:$port/v1"
wait_for "http://127.0.0.1:$sim/health"
wait_for "http://127.0.0.1:$port/readyz"
wait_for "http://127.0.0.1:$page/facts.json"

if [ "${1:-}" = --page ]; then
  echo "open http://127.0.0.1:$page in a browser; interrupt to end"
  wait
fi

SIGNALBOX_URL="http://127.0.0.1:$port/v1" "$python" "$here/main.py" "$@"

echo "== through the page's server"
body='{"model": "auto", "stream": true, "signalbox": {"facts": '$(cat "$here/facts.json")', "guard": "annotate"},
  "messages": [{"role": "user", "content": "How do I return my headphones?"}]}'
curl --silent --show-error --fail --max-time 30 --header 'Content-Type: application/json' --data "$body" \
  --dump-header "$tmp/headers" --output "$tmp/stream" "http://127.0.0.1:$page/v1/chat/completions" || fail "the page got no answer"
grep --quiet --ignore-case '^x-signalbox-guard: annotate' "$tmp/headers" || fail "the page got no x-signalbox-guard header"
grep --quiet --fixed-strings '[unverified]' "$tmp/stream" || fail "the page got no marker"
echo "   the marker came, and $(grep --count '^data: ' "$tmp/stream") events"
