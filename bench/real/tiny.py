"""Writes the folder of a tiny Qwen3 for `--load-format dummy`: configuration, tokenizer, template.

Usage: tiny.py OUT, from the root of the checkout: the tokenizer is trained on docs/*.md.
"""

import glob
import json
import pathlib
import sys

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers

VOCABULARY = 4096
CONTROL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
MARKS = [f"<{slash}{name}>" for name in ("think", "tool_call", "tool_response") for slash in ("", "/")]
TEMPLATE = """
{%- if tools or messages[0].role == 'system' %}{{ '<|im_start|>system\\n' }}
{%- if messages[0].role == 'system' %}{{ messages[0].content }}{% endif %}
{%- for tool in tools or [] %}{{ '\\n' + (tool | tojson) }}{% endfor %}{{ '<|im_end|>\\n' }}{% endif %}
{%- for m in messages %}{% if not (m.role == 'system' and loop.first) %}
{{- '<|im_start|>' + m.role + '\\n' + (m.content or '') }}
{%- for t in m.tool_calls or [] %}{{ '<tool_call>' + (t.function | tojson) + '</tool_call>' }}
{%- endfor %}{{ '<|im_end|>\\n' }}{% endif %}{% endfor %}
{%- if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}
{%- if enable_thinking is defined and not enable_thinking %}{{ '<think>\\n\\n</think>\\n\\n' }}
{%- endif %}{% endif %}"""


def main(out):
    out.mkdir(parents=True, exist_ok=True)
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train(sorted(glob.glob("docs/*.md")), trainers.BpeTrainer(
        vocab_size=VOCABULARY - len(CONTROL) - len(MARKS),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    ))
    tokenizer.add_special_tokens(CONTROL)
    tokenizer.add_tokens([AddedToken(mark, special=False) for mark in MARKS])
    tokenizer.save(str(out / "tokenizer.json"))
    end, pad = tokenizer.token_to_id("<|im_end|>"), tokenizer.token_to_id("<|endoftext|>")

    def write(name, value):
        (out / name).write_text(json.dumps(value, indent=1))

    write("tokenizer_config.json", {
        "tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "<|im_end|>",
        "pad_token": "<|endoftext|>", "model_max_length": 8192, "chat_template": TEMPLATE.lstrip(),
    })
    write("config.json", {
        "architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "vocab_size": VOCABULARY,
        "hidden_size": 128, "intermediate_size": 256, "num_hidden_layers": 2, "head_dim": 64,
        "num_attention_heads": 2, "num_key_value_heads": 1, "max_position_embeddings": 8192,
        "rms_norm_eps": 1e-6, "rope_theta": 10000.0, "hidden_act": "silu",
        "tie_word_embeddings": False, "attention_bias": False, "torch_dtype": "bfloat16",
        "eos_token_id": end, "pad_token_id": pad, "bos_token_id": None, "initializer_range": 0.02,
    })
    write("generation_config.json", {"eos_token_id": end, "pad_token_id": pad})


main(pathlib.Path(sys.argv[1]))
