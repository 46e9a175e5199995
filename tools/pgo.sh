#!/usr/bin/env bash
# Writes default.pgo anew: what the program does with plain and streamed requests in bench/proxy, by
# which the compiler decides what to inline. It takes two minutes and wants a quiet machine.
set -euo pipefail
cd "$(dirname "$0")/.."
go=${GO:-go}
dir=$(mktemp -d)
bench=
trap 'kill $bench 2>/dev/null || true; cat "$dir/log" >&2 2>/dev/null || true; rm -r "$dir"' EXIT
"$go" build -o "$dir/bench" ./bench/proxy
"$go" build -pgo=off -o "$dir/signalbox" .
for load in "plain, closed" "streamed, one"; do
  "$dir/bench" -signalbox "$dir/signalbox" -ways signalbox -only "$load" -rounds 2 -time 8s 2>"$dir/log" >&2 &
  bench=$!
  until url=$(grep -o 'http://.*/debug/pprof/' "$dir/log"); do
    kill -0 "$bench"
    sleep .1
  done
  # as long as the warm-up and two rounds of two ways of 8 seconds
  curl -sf "${url}profile?seconds=44" -o "$dir/${load%%,*}.prof"
  wait "$bench"
done
"$go" tool pprof -proto "$dir"/*.prof >"$dir/default.pgo"
mv "$dir/default.pgo" default.pgo
