#!/usr/bin/env bash
# An agent with 24 tools and two long results of searches. The model is sent the tools that fit and
# the older result in short; the whole result comes back by its pointer. The turn after a call takes
# another route. Exits with 1 and a message when something is not so.
#
# SIGNALBOX_BIN names another binary than bin/signalbox. Needs bash and curl.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
cd "$root"
source examples/lib.sh

port=$(free_port) admin=$(free_port) small=$(free_port) large=$(free_port)
url=http://127.0.0.1:$port
sed -e "s|127.0.0.1:8101|127.0.0.1:$small|" -e "s|127.0.0.1:8102|127.0.0.1:$large|" \
  examples/agent-tools/signalbox.yaml > "$tmp/signalbox.yaml"
start small "$bin" simulate --listen "127.0.0.1:$small" --model small --record 10
start large "$bin" simulate --listen "127.0.0.1:$large" --model large --record 10
start signalbox "$bin" serve --config "$tmp/signalbox.yaml" --listen "127.0.0.1:$port" --admin-listen "127.0.0.1:$admin"
wait_for "http://127.0.0.1:$small/v1/models"
wait_for "http://127.0.0.1:$large/v1/models"
wait_for "$url/v1/models"

# send FILE sends a request of the agent, and sets what the headers of the response say.
send() {
  curl --silent --show-error --fail --max-time 60 --output "$tmp/response" --dump-header "$tmp/headers" \
    --header 'Content-Type: application/json' --data-binary "@examples/agent-tools/$1" "$url/v1/chat/completions" ||
    fail "$1: $(cat "$tmp/response" 2>/dev/null)"
  route=$(header x-signalbox-route) tools=$(header x-signalbox-tools) results=$(header x-signalbox-tool-results)
  echo "$1: route $route, tools $tools, results shortened ${results:-none}"
}

# header NAME prints a header of the response; nothing where it is not there.
header() { sed -n "s/^$1: *//Ip" "$tmp/headers" | tr -d '\r'; }

send request.json
[ "$route" = default ] || fail "expected the default"
[[ $tools == */24 && ${tools%/*} -lt 12 ]] || fail "expected a few of 24 tools"
[ "$results" = 1/2 ] || fail "expected one of two results in short"
curl --silent --fail "http://127.0.0.1:$large/sim/requests" | grep -o '"body":"[^"]*"' | sed 's/^"body":"//; s/"$//' |
  base64 --decode > "$tmp/sent"
for name in book_flight get_weather search_flights ask_colleague; do
  grep -q "\"name\": *\"$name\"" "$tmp/sent" || fail "$name was not offered"
done
pointer=$(grep -o 'ctx_[a-z0-9]*' "$tmp/sent" | head -n 1)
[ -n "$pointer" ] || fail "the short result names no pointer"
curl --silent --fail "$url/v1/contexts/$pointer/content" > "$tmp/whole"
grep -q "Flight LI139" "$tmp/whole" || fail "$pointer is not the whole result"
echo "the whole result is $pointer, $(wc -c < "$tmp/whole") bytes"

send loop.json
[ "$route" = loop ] || fail "expected the route of loops"
