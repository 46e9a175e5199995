#!/usr/bin/env bash
# Builds what a release consists of, for the machine it runs on, into dist/:
#   signalbox-VERSION-OS-ARCH.tar.gz   the stripped binary, ONNX Runtime beside it, LICENSE, a
#                                      configuration to begin with, the unit for systemd
#   signalbox-VERSION-OS-ARCH.cdx.json the modules in the binary, as CycloneDX
#   NOTES.md                           the section of CHANGELOG.md for VERSION, or "Unreleased"
#   SHA256SUMS                         checksums of all of them
# Two runs on the same commit give the same archive, byte for byte.
#
# Usage: release.sh VERSION ORT_DIR
set -euo pipefail
cd "$(dirname "$0")/.."
version=${1:?a version is required, such as v0.3.0} library=${2:?the folder of ONNX Runtime}
go=${GO:-go}
name=signalbox-$version-$($go env GOOS)-$($go env GOARCH)
epoch=$(git log -1 --format=%ct)
export GOWORK=off

rm -rf dist
mkdir -p "dist/$name"
$go build -pgo=auto -trimpath -ldflags "-s -w -buildid= -X main.version=$version" -o "dist/$name/signalbox" .
cp "$library"/libonnxruntime.so* LICENSE configs/minimal.yaml configs/signalbox.schema.json \
  deploy/systemd/signalbox.service "dist/$name/"
chmod -R u=rwX,go=rX "dist/$name"

(cd tools && GOFLAGS=-mod=mod $go run github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod \
  bin -json -noserial -notimestamp -version "$version" -output "../dist/$name.cdx.json" \
  "../dist/$name/signalbox")

tar --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$epoch" -C dist -cf - "$name" |
  gzip -n -9 >"dist/$name.tar.gz"
rm -r "dist/${name:?}"

awk -v want="${version#v}" '
  /^## / { on = ($2 == want || $2 == "[" want "]") ; if ($2 == "Unreleased") { on = 0; u = 1 } else u = 0; next }
  on { found = 1; print }
  u { rest = rest $0 "\n" }
  END { if (!found) printf "%s", rest }' CHANGELOG.md >dist/NOTES.md

cd dist
sha256sum -- *.tar.gz *.cdx.json NOTES.md >SHA256SUMS
ls -l >&2
