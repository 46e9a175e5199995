#!/usr/bin/env bash
# Runs the example in a virtual environment that is kept outside the checkout.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

key=$(cksum < requirements.txt | cut -d' ' -f1)
venv="${XDG_CACHE_HOME:-$HOME/.cache}/signalbox/examples/documentation-$key"
if [ ! -e "$venv/installed" ]; then
  echo "installing requirements.txt" >&2
  python3 -m venv --clear "$venv"
  "$venv/bin/pip" install --quiet --disable-pip-version-check -r requirements.txt
  touch "$venv/installed"
fi
exec "$venv/bin/python" main.py
