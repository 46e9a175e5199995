#!/usr/bin/env bash
# Fetches the shared library of ONNX Runtime once, verifies it and prints its path.
#
#   fetch-onnxruntime.sh [DEST]     DEST defaults to the user's cache directory
#
# Sources, in order:
#   1. `npm pack onnxruntime-node`: the package holds the CPU library; packing runs no install script
#   2. the same tarball from the npm registry with curl (NPM_REGISTRY names a mirror)
#   3. the release tarball of the project with curl. Its library is another build, so its hash is
#      not among the pins below: only when SIGNALBOX_ORT_SHA256 holds the hash that you expect
# A file that matches neither a pin nor SIGNALBOX_ORT_SHA256 is never put in place.
set -euo pipefail

readonly version=1.30.0
readonly package_sha512=b7086cd42d82fc1164cf5c9ce4e634288536194aba0d444eee10f86f1e50d90cb79c0309c115d6f31537355733136f5503d96894b3987a9a03f1f8d318e7c8ab
readonly x64_sha256=ffb75a925ba05e47b235bb66e3e3911714a80b328a9c9425539feb204aa32a23
readonly arm64_sha256=1f549d46250b005580b597f4164984aaf75b3bcb9f3aeb07c7f8a8fe60b23c76

say() { printf 'fetch-onnxruntime: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }

if [ "$(uname -s)" != Linux ]; then
  die "only Linux is supported (this is $(uname -s))"
fi
case "$(uname -m)" in
  x86_64 | amd64) arch=x64 release_arch=x64 pin=$x64_sha256 ;;
  aarch64 | arm64) arch=arm64 release_arch=aarch64 pin=$arm64_sha256 ;;
  *) die "only x86_64 and aarch64 have a pinned library (this is $(uname -m))" ;;
esac

dest=${1:-${XDG_CACHE_HOME:-$HOME/.cache}/signalbox/onnxruntime/$version}
own_pin=${SIGNALBOX_ORT_SHA256:-}
mkdir -p "$dest"
dest=$(cd "$dest" && pwd)
library=$dest/libonnxruntime.so.$version

sha256_of() { sha256sum "$1" | cut -d' ' -f1; }

# trusted FILE: its hash is a pin. An operator's pin replaces the built-in one.
trusted() { [ -f "$1" ] && [ "$(sha256_of "$1")" = "${own_pin:-$pin}" ]; }

if trusted "$library"; then
  printf '%s\n' "$library"
  exit 0
fi
if [ -e "$library" ]; then
  say "$library does not match its checksum: fetching it again"
fi

work=$(mktemp -d "${TMPDIR:-/tmp}/onnxruntime.XXXXXX")
staged=$library.part.$$
trap 'rm -rf "$work" "$staged"' EXIT
trap 'exit 130' INT TERM

# place FILE: verify, then rename within the destination, so that no reader sees half a file.
place() {
  trusted "$1" || { say "$1: sha256 $(sha256_of "$1"), expected ${own_pin:-$pin}"; return 1; }
  cp "$1" "$staged"
  chmod 0644 "$staged"
  trusted "$staged" || { say "$staged: damaged while copying (is the disk full?)"; return 1; }
  mv -f "$staged" "$library"
  printf '%s\n' "$library"
}

download() { curl --fail --silent --show-error --location --proto '=https' --retry 2 --connect-timeout 20 --output "$2" "$1"; }

# from_package TARBALL: verify the npm package and take this machine's library out of it.
from_package() {
  local inner=package/bin/napi-v6/linux/$arch/libonnxruntime.so.1 sum
  sum=$(sha512sum "$1" | cut -d' ' -f1)
  [ "$sum" = "$package_sha512" ] || { say "$1: sha512 $sum is not the pinned one"; return 1; }
  tar -xzf "$1" -C "$work" "$inner" && place "$work/$inner"
}

via_npm() {
  command -v npm >/dev/null || { say "npm is not installed"; return 1; }
  say "fetching onnxruntime-node@$version with npm (113 MB)"
  (cd "$work" && npm pack --silent "onnxruntime-node@$version" >/dev/null) || { say "npm pack did not succeed"; return 1; }
  from_package "$work/onnxruntime-node-$version.tgz"
}

via_registry() {
  command -v curl >/dev/null || { say "curl is not installed"; return 1; }
  local registry=${NPM_REGISTRY:-https://registry.npmjs.org}
  say "fetching onnxruntime-node-$version.tgz from $registry with curl (113 MB)"
  download "${registry%/}/onnxruntime-node/-/onnxruntime-node-$version.tgz" "$work/registry.tgz" || return 1
  from_package "$work/registry.tgz"
}

via_release() {
  local name=onnxruntime-linux-$release_arch-$version
  local inner=$name/lib/libonnxruntime.so.$version
  if [ -z "$own_pin" ]; then
    say "not using the release tarball $name.tgz: its checksum is not pinned; set SIGNALBOX_ORT_SHA256 to the sha256 of its libonnxruntime.so.$version to accept it"
    return 1
  fi
  command -v curl >/dev/null || return 1
  say "fetching $name.tgz from the releases of ONNX Runtime"
  download "https://github.com/microsoft/onnxruntime/releases/download/v$version/$name.tgz" "$work/release.tgz" || return 1
  tar -xzf "$work/release.tgz" -C "$work" "$inner" && place "$work/$inner"
}

# With an operator's pin the npm library is refused by design, unless that is the one it names.
if [ -z "$own_pin" ] || [ "$own_pin" = "$pin" ]; then
  via_npm && exit 0
  via_registry && exit 0
fi
via_release && exit 0
die "no verified library. Put one at $library yourself, or name another in the configuration"
