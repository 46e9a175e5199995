#!/usr/bin/env bash
# Runs the example beside its packages, which are kept outside the checkout.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

key=$(cksum < package-lock.json | cut -d' ' -f1)
dir="${XDG_CACHE_HOME:-$HOME/.cache}/signalbox/examples/node-$key"
if [ ! -e "$dir/installed" ]; then
  echo "installing package-lock.json" >&2
  mkdir -p "$dir"
  cp package.json package-lock.json "$dir/"
  npm ci --prefix "$dir" --ignore-scripts --no-audit --no-fund --loglevel=error
  touch "$dir/installed"
fi
cp main.mjs "$dir/"
exec node "$dir/main.mjs"
