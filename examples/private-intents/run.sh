#!/usr/bin/env bash
# Private intents from five sentences: starts two simulated backends and signalbox on free ports,
# asks some questions, adds a sentence through the API, asks again. Exits with 1 and a message when a
# question is not routed as it should be.
#
# SIGNALBOX_BIN names another binary than bin/signalbox. Needs bash and curl.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
cd "$root"
source examples/lib.sh

# ask QUESTION prints which intent it has and which route and model answered, and sets these.
ask() {
  local body="{\"model\": \"auto\", \"max_tokens\": 16, \"messages\": [{\"role\": \"user\", \"content\": \"$1\"}]}"
  post /v1/chat/completions "$body" "$tmp/answer"
  route=$(header x-signalbox-route) model=$(header x-signalbox-model)
  post /signalbox/v1/explain "$body" "$tmp/explanation"
  intent=$(field value) score=$(field score)
  printf '%-54s intent %-5s score %-6.4s route %-16s model %s\n' "$1" "${intent:--}" "${score:--}" "$route" "$model"
}

# post PATH BODY FILE sends a request and writes the answer to FILE.
post() {
  curl --silent --show-error --fail-with-body --max-time 30 --dump-header "$tmp/headers" --output "$3" \
    --header 'Content-Type: application/json' --data "$2" "$url$1" || fail "$1: $(cat "$3" 2>/dev/null)"
}

# field NAME prints a field of the intent signal in the explanation.
field() {
  grep -o '"intent": *{[^}]*}' "$tmp/explanation" | sed -n "s/.*\"$1\": *\"\{0,1\}\([^\",}]*\).*/\1/p"
}

header() {
  tr -d '\r' < "$tmp/headers" | awk -v name="$1:" 'tolower($1) == name { print $2 }'
}

# expect ROUTE MODEL checks the last answer.
expect() {
  [ "$route" = "$1" ] && [ "$model" = "$2" ] || fail "expected route $1 and model $2"
}

hr=$(free_port) general=$(free_port) port=$(free_port) admin=$(free_port)
url=http://127.0.0.1:$port
sed -e "s/:8101/:$hr/" -e "s/:8102/:$general/" examples/private-intents/signalbox.yaml > "$tmp/signalbox.yaml"

start hr "$bin" simulate --listen "127.0.0.1:$hr" --model hr/HR-Bot-8B
start general "$bin" simulate --listen "127.0.0.1:$general" --model general/General-7B
wait_for "http://127.0.0.1:$hr/health"
wait_for "http://127.0.0.1:$general/health"
start signalbox "$bin" serve --config "$tmp/signalbox.yaml" --listen "127.0.0.1:$port" --admin-listen "127.0.0.1:$admin"
wait_for "$url/readyz"

echo "Like one of the five sentences, in other words:"
ask "Where can I hand in the receipts of my business trip?"
expect human-resources HR_Bot
ask "I am ill, who gets the note of my doctor?"
expect human-resources HR_Bot
ask "How much paid leave is left for me until December?"
expect human-resources HR_Bot

echo "About something else:"
ask "What is the capital of Mongolia?"
expect default general
ask "Write a function that reverses a linked list."
expect default general

question="Does the company pay for a course in Spanish?"
echo "An HR question that is like none of the five:"
ask "$question"
expect default general

echo "One sentence is added while the server runs:"
post /signalbox/v1/intents/hr/examples '{"examples": ["Will the company pay for my language course?"]}' "$tmp/added"
cat "$tmp/added" && echo
ask "$question"
expect human-resources HR_Bot
ask "What is the capital of Mongolia?"
expect default general

echo "The intents now:"
curl --silent --show-error --fail --max-time 10 "$url/signalbox/v1/intents" || fail "the intents were not listed"
echo
