# What the examples that bring servers of their own share: source it from a run.sh, which has set `here` to its folder. It goes to the root
# of the checkout, and ends the servers and removes the files when the script ends.
#
# SIGNALBOX_BIN names another binary than bin/signalbox. Needs bash and curl, and for `python` Python 3.11 with venv.
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
  echo "$(basename "$here"): $1" >&2
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
    python3 -m venv --clear "$venv"
    "$venv/bin/pip" install --quiet --disable-pip-version-check -r "$here/requirements.txt"
    touch "$venv/installed"
  fi
  echo "$venv/bin/python"
}

[ -x "$bin" ] || fail "$bin is missing: run make build"
