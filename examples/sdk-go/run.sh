#!/usr/bin/env bash
# Runs both Go clients from source.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

echo "compiling the Go clients" >&2
go run ./openai-go
go run ./go-openai
