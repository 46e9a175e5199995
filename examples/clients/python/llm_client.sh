#!/usr/bin/env bash
# The `llm` command: one prompt, a second turn with -c, a template's system prompt, without stream.
set -euo pipefail
export LLM_USER_PATH
LLM_USER_PATH=$(mktemp -d)
trap 'rm -rf "$LLM_USER_PATH"' EXIT
cat > "$LLM_USER_PATH/extra-openai-models.yaml" <<YAML
- model_id: signalbox
  model_name: auto
  api_base: ${SIGNALBOX_URL:-http://127.0.0.1:8080/v1}
  supports_tools: true
  supports_schema: true
YAML
export OPENAI_API_KEY=${SIGNALBOX_API_KEY:-none}
llm=$1/llm

said() {
  local text
  text=$("${@:2}")
  case $text in
    "" | *"declined by policy"*) echo "llm_client: $1: $text" >&2; exit 1 ;;
  esac
}
said "prompt" "$llm" -m signalbox "How long do I simmer risotto for four people?"
said "second turn" "$llm" -c "And for six?"
said "system, no stream" "$llm" -m signalbox --no-stream -s "Be brief." "What is a risotto?"
said "schema" "$llm" -m signalbox --schema "title, minutes int" "How long do I simmer risotto?"
echo "tried: prompt, second turn, system prompt, no stream, schema"
