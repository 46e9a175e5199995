#!/usr/bin/env bash
# Starts the demo on free ports, runs every example that has a run.sh against it, and stops the demo.
# The last line of output is "N passed, N failed, N skipped"; the exit status is 1 when anything
# failed. An example that lacks what it needs exits with 77 and is skipped.
#
# Usage: examples/run.sh [EXAMPLE...]     the folders to run; default: all
# SIGNALBOX_BIN names another binary than bin/signalbox.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

bin=${SIGNALBOX_BIN:-bin/signalbox}
start_seconds=60   # how long the demo may take until it is ready
example_seconds=900 # how long one example may take, downloads included

tmp=$(mktemp -d)
demo=
stop() {
  status=$?
  if [ -n "$demo" ]; then
    kill "$demo" 2>/dev/null || true
    wait "$demo" 2>/dev/null || true
  fi
  rm -rf "$tmp"
  exit "$status"
}
trap stop EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

fail() {
  echo "examples: $1" >&2
  [ ! -s "$tmp/demo.log" ] || sed 's/^/  demo: /' "$tmp/demo.log" >&2
  echo "0 passed, ${#examples[@]} failed, 0 skipped"
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

# ready reports whether the demo answers 200 on /readyz.
ready() {
  local line
  exec 3<>"/dev/tcp/127.0.0.1/$port" || return 1
  printf 'GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n' >&3
  IFS= read -r -t 2 line <&3 || line=
  exec 3>&-
  [[ $line == "HTTP/1.1 200"* ]]
}

examples=("$@")
if [ ${#examples[@]} -eq 0 ]; then
  for script in examples/*/run.sh; do
    examples+=("$(basename "$(dirname "$script")")")
  done
fi

[ -x "$bin" ] || fail "$bin is missing: run make build"
port=$(free_port) || fail "no free port"
admin_port=$(free_port) || fail "no free port"
"$bin" demo --listen "127.0.0.1:$port" --admin-listen "127.0.0.1:$admin_port" > "$tmp/demo.log" 2>&1 &
demo=$!
deadline=$((SECONDS + start_seconds))
until ready 2>/dev/null; do
  kill -0 "$demo" 2>/dev/null || fail "the demo ended before it was ready"
  [ "$SECONDS" -lt "$deadline" ] || fail "the demo was not ready after $start_seconds s"
  sleep 0.1
done

passed=0 failed=0 skipped=0
for name in "${examples[@]}"; do
  echo "== $name"
  began=$SECONDS
  status=0
  SIGNALBOX_URL="http://127.0.0.1:$port/v1" timeout "$example_seconds" "examples/$name/run.sh" || status=$?
  if [ "$status" -eq 77 ]; then
    skipped=$((skipped + 1))
    echo "== $name skipped"
  elif [ "$status" -eq 0 ]; then
    passed=$((passed + 1))
    echo "== $name passed in $((SECONDS - began)) s"
  else
    echo "== $name failed after $((SECONDS - began)) s" >&2
    failed=$((failed + 1))
  fi
done
if [ "$failed" -gt 0 ]; then
  sed 's/^/  demo: /' "$tmp/demo.log" >&2
fi
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
