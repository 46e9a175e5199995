#!/usr/bin/env bash
# A classifier of one's own, from 40 rows, reads answers while they stream: an answer without an insult
# comes whole, one with an insult is ended at it. Another classifier, a model on a
# server that is asked over HTTP, is asked only where nothing cheaper decides.
# Exits with 1 and a message when an answer is not what it should be.
#
# SIGNALBOX_BIN names another binary than bin/signalbox. Needs bash and curl.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
cd "$root"
source examples/lib.sh

# answer QUESTION prints the text of a streamed answer, and sets what came: text, finish, whole stream.
answer() {
  local body="{\"model\": \"auto\", \"stream\": true, \"messages\": [{\"role\": \"user\", \"content\": \"$1\"}]}"
  curl --silent --show-error --no-buffer --max-time 60 --output "$tmp/stream" \
    --header 'Content-Type: application/json' --data "$body" "$url/v1/chat/completions" ||
    fail "$1: $(cat "$tmp/stream" 2>/dev/null)"
  text=$(grep -o '"content":"[^"]*"' "$tmp/stream" | sed 's/^"content":"//; s/"$//' | tr -d '\n')
  finish=$(grep -o '"finish_reason":"[^"]*"' "$tmp/stream" | tail -n 1 | sed 's/.*:"//; s/"$//')
  printf '%-22s %s: %s\n' "$1" "$finish" "$text"
}

port=$(free_port) admin=$(free_port) model=$(free_port)
url=http://127.0.0.1:$port
sed -e "s|models_dir: models|models_dir: $tmp/models|" -e "s|127.0.0.1:8101|127.0.0.1:$model|" \
  examples/moderation/signalbox.yaml > "$tmp/signalbox.yaml"

"$bin" fit --name insults --data examples/moderation/rows.jsonl --out "$tmp/models"
start model "$bin" simulate --listen "127.0.0.1:$model" --model general --answers examples/moderation/answers.jsonl
start signalbox "$bin" serve --config "$tmp/signalbox.yaml" --listen "127.0.0.1:$port" --admin-listen "127.0.0.1:$admin"
wait_for "http://127.0.0.1:$model/v1/models"
wait_for "$url/v1/models"

answer "Write a poem"
[ "$finish" = stop ] || fail "a harmless answer was ended with $finish"
[[ $text == *"in the evening."* ]] || fail "a harmless answer is not whole"

answer "Write a rude poem"
[ "$finish" = content_filter ] || fail "the insult came through, finish_reason $finish"
grep -q '"reason":"insults: insult"' "$tmp/stream" || fail "the stream does not tell which classifier ended it"

body='{"model": "auto", "messages": [{"role": "user", "content": "Write a poem"}]}'
curl --silent --show-error --max-time 30 --output "$tmp/explanation" --header 'Content-Type: application/json' \
  --data "$body" "$url/signalbox/v1/explain" || fail "explain: $(cat "$tmp/explanation" 2>/dev/null)"
grep -q '"mood"' "$tmp/explanation" || fail "the classifier on a server was not asked: $(cat "$tmp/explanation")"
echo "The classifier on a server was asked as well, see mood in the explanation."
