#!/usr/bin/env bash
# Runs the clients that people use against a server, and prints a table of what each tried.
# Exits with 1 when one fails.
#
# Usage: clients/run.sh [CLIENT...]     the names in the first column of the table; default: all
# SIGNALBOX_URL is the base URL. Packages are kept outside the checkout, once for each lock file.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

export SIGNALBOX_URL=${SIGNALBOX_URL:-http://127.0.0.1:8080/v1}
cache=${XDG_CACHE_HOME:-$HOME/.cache}/signalbox/examples
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# fresh DIR: whether DIR has still to be filled; it is emptied then.
fresh() {
  [ ! -e "$1/installed" ] || return 1
  rm -rf "$1"
  mkdir -p "$1"
}

key() { cat "$@" | cksum | cut -d' ' -f1; }

# environment NAME: a virtual environment with requirements/NAME.txt, whose folder it prints.
environment() {
  local dir file=requirements/$1.txt
  dir=$cache/clients-$1-$(key "$file")
  if fresh "$dir"; then
    echo "clients: installing $file" >&2
    python3 -m venv "$dir"
    "$dir/bin/pip" install --quiet --disable-pip-version-check --no-deps -r "$file" >&2
    touch "$dir/installed"
  fi
  echo "$dir"
}

# modules: the packages of node/package-lock.json, whose folder it prints.
modules() {
  local dir
  dir=$cache/clients-node-$(key node/package-lock.json)
  if fresh "$dir"; then
    echo "clients: installing node/package-lock.json" >&2
    cp node/package.json node/package-lock.json "$dir/"
    npm ci --prefix "$dir" --ignore-scripts --no-audit --no-fund --loglevel=error >&2
    touch "$dir/installed"
  fi
  cp node/*.mjs "$dir/"
  echo "$dir"
}

# webui: the source of Open WebUI, without what it needs to run; prints its folder.
webui() {
  local dir pin
  pin=$(cat requirements/open-webui.txt)
  dir=$cache/clients-open-webui-$(key requirements/open-webui.txt)
  if fresh "$dir"; then
    echo "clients: fetching $pin" >&2
    python3 -m pip download --quiet --disable-pip-version-check --no-deps --dest "$dir" "$pin" >&2
    python3 -m zipfile -e "$dir"/*.whl "$dir/all" >&2
    mkdir "$dir/open_webui"
    mv "$dir/all/open_webui/config.py" "$dir/open_webui/"
    rm -rf "$dir/all" "$dir"/*.whl
    touch "$dir/installed"
  fi
  echo "$dir"
}

version() { grep -hoE "^$1==[^ ;]+" requirements/*.txt | head -1 | sed 's/==/ /'; }
npm_version() { echo "$1 $(node -p "require('./node/package.json').dependencies['$1']")"; }

# client NAME ENVIRONMENT: how to run it is written to $tmp/run, its version to $tmp/version.
client() {
  local dir
  case $1 in
    langchain | litellm | openai-agents | pydantic-ai | instructor)
      dir=$(environment main)
      printf '%s\n' "$dir/bin/python" "python/${1//-/_}_client.py" >"$tmp/run"
      case $1 in
        langchain) version langchain-openai ;;
        pydantic-ai) version pydantic-ai-slim ;;
        *) version "$1" ;;
      esac ;;
    llm)
      dir=$(environment main)
      printf '%s\n' python/llm_client.sh "$dir/bin" >"$tmp/run"
      version llm ;;
    llama-index)
      dir=$(environment llama-index)
      printf '%s\n' "$dir/bin/python" python/llama_index_client.py >"$tmp/run"
      version llama-index-llms-openai-like ;;
    guidellm)
      dir=$(environment guidellm)
      printf '%s\n' "$dir/bin/python" python/guidellm_client.py >"$tmp/run"
      version guidellm ;;
    open-webui)
      dir=$(environment main)
      printf '%s\n' "$dir/bin/python" python/open_webui_client.py "$(webui)" >"$tmp/run"
      sed 's/==/ /' requirements/open-webui.txt ;;
    ai-sdk)
      dir=$(modules)
      printf '%s\n' node "$dir/ai-sdk.mjs" >"$tmp/run"
      npm_version ai ;;
    *)
      echo "clients: no client is called $1" >&2
      return 1 ;;
  esac
}

clients=("$@")
if [ ${#clients[@]} -eq 0 ]; then
  clients=(langchain llama-index ai-sdk litellm openai-agents pydantic-ai instructor llm
    open-webui guidellm)
fi

failed=0
for name in "${clients[@]}"; do
  client "$name" >"$tmp/version"
  mapfile -t command <"$tmp/run"
  if timeout 120 "${command[@]}" >"$tmp/out" 2>&1; then
    result=$(sed -n 's/^tried: //p' "$tmp/out")
  else
    result="FAILS"
    failed=1
    tail -n 25 "$tmp/out" | sed "s/^/  $name: /" >&2
  fi
  printf '| %s | %s | %s |\n' "$name" "$(cat "$tmp/version")" "$result"
done
exit "$failed"
