#!/usr/bin/env bash
# Runs the tests that judge time, those that ask testkit.Timed(), and no others of their packages.
set -euo pipefail
cd "$(dirname "$0")/.."
# clock_test.go is the one that reads the others.
files=$(grep -rl --include=*_test.go --exclude=clock_test.go 'testkit\.Timed()' .)
tests=$(awk '
  /^func /                    { name = "" }
  /^func Test/                { name = $2; sub(/\(.*/, "", name) }
  /testkit\.Timed\(\)/ && name { print name }
' $files | sort -u | paste -sd'|')
SIGNALBOX_TIMED=1 "${GO:-go}" test -count=1 -p 1 -run "^($tests)\$" "$@" \
  $(xargs -n1 dirname <<<"$files" | sort -u)
