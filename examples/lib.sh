# What the examples that start servers of their own share; sourced by their run.sh, in the root of the
# checkout. It keeps what they need in $tmp, which goes, with the servers, when the script ends.
# shellcheck shell=bash
bin=${SIGNALBOX_BIN:-bin/signalbox}
start_seconds=60 # how long the servers may take until they are ready
example=$(basename "$(dirname "${BASH_SOURCE[1]}")")

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
  echo "$example: $1" >&2
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

# ask_route QUESTION prints the route that takes it, and sets it.
ask_route() {
  local body="{\"model\": \"auto\", \"messages\": [{\"role\": \"user\", \"content\": \"$1\"}]}"
  curl --silent --show-error --max-time 30 --output "$tmp/explanation" \
    --header 'Content-Type: application/json' --data "$body" "$url/signalbox/v1/explain" ||
    fail "$1: $(cat "$tmp/explanation" 2>/dev/null)"
  route=$(grep -o '"route": *"[^"]*"' "$tmp/explanation" | head -n 1 | sed 's/.*"\([^"]*\)"$/\1/')
  printf '%-60s route %s\n' "$1" "$route"
}

# expect_route ROUTE checks the last answer.
expect_route() {
  [ "$route" = "$1" ] || fail "expected route $1"
}

[ -x "$bin" ] || fail "$bin is missing: run make build"
