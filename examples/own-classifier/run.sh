#!/usr/bin/env bash
# A classifier of one's own from 90 rows: trains it, starts signalbox on a free port, asks for some
# questions which team they are for, trains it again with one more rows and sees it taken up.
# Exits with 1 and a message when a question is not routed as it should be.
#
# SIGNALBOX_BIN names another binary than bin/signalbox. Needs bash and curl.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
cd "$root"
source examples/lib.sh

port=$(free_port) admin=$(free_port)
url=http://127.0.0.1:$port
sed "s|models_dir: models|models_dir: $tmp/models|" examples/own-classifier/signalbox.yaml > "$tmp/signalbox.yaml"

"$bin" fit --name team --data examples/own-classifier/rows.jsonl --out "$tmp/models"
start signalbox "$bin" serve --config "$tmp/signalbox.yaml" --listen "127.0.0.1:$port" --admin-listen "127.0.0.1:$admin"
wait_for "$url/signalbox/v1/intents"

ask_route "There is a wrong amount on the invoice of May"
expect_route billing
ask_route "The program crashes whenever I log in"
expect_route support
ask_route "We are interested in a plan for our school"
expect_route sales

echo "Trained again while the server runs, with parcels for the billing team:"
question="Where is my parcel?"
{
  cat examples/own-classifier/rows.jsonl
  for thing in parcel package box letter delivery; do
    for words in "Where is my %s?" "The %s has not come" "My %s is late" "Who brings the %s?"; do
      # shellcheck disable=SC2059 # the words are a format
      printf '{"text": "%s", "label": "billing"}\n' "$(printf "$words" "$thing")"
    done
  done
} > "$tmp/more.jsonl"
ask_route "$question"
expect_route support
"$bin" fit --name team --data "$tmp/more.jsonl" --out "$tmp/models" > "$tmp/fit.log"
deadline=$((SECONDS + start_seconds))
until ask_route "$question" && [ "$route" = billing ]; do
  [ "$SECONDS" -lt "$deadline" ] || fail "the classifier that was trained again was not taken up"
  sleep 0.5
done
