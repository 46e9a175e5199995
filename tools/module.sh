#!/usr/bin/env bash
# Gives the module another path: in go.mod, imports, the linter's rules and wherever else code names
# a package of it. The path is chosen once, by whoever has the host that it names.
set -euo pipefail
cd "$(dirname "$0")/.."
go=${GO:-go}
new=$1
case $new in
*.*/*) ;;
*)
  echo "module: MODULE must be a path that begins with a host, as in example.org/signalbox" >&2
  exit 2
  ;;
esac
export GOWORK=off
old=$("$go" list -m)
dirs=$(git ls-files '*.go' | grep / | cut -d/ -f1 | sort -u | paste -sd'|')
git ls-files -z '*.go' 'go.mod' '*/go.mod' .golangci.yml |
  xargs -0 sed -Ei "s#(^|[\" ])$old/($dirs)([\"/ ,\$]|\$)#\1$new/\2\3#g; s#^(module|replace|require|[ \t]+module-path:) $old( |\$)#\1 $new\2#; s#^\t$old v#\t$new v#"
# what names the program or all of its packages in a text
sed -i "s#\(out, \)\"$old\"#\1\"$new\"#" bench/lab/process.go
sed -Ei "s#\"$old/(\.\.\.)?\"#\"$new/\1\"#" internal/app/imports_test.go
"$go" tool -modfile=tools/go.mod golangci-lint fmt
echo "module: $old is $new now; make pgo tells the profile of it"
