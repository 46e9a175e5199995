package reasoning

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"signalbox/internal/option"
)

// The reasoning dialects.
const (
	// DialectNone sends nothing.
	DialectNone = "none"
	// DialectEffort sends the top-level field reasoning_effort.
	DialectEffort = "reasoning_effort"
	// DialectKwargs sends a member of chat_template_kwargs.
	DialectKwargs = "chat_template_kwargs"
	// DialectCustom sends the fields that the configuration gives for each effort.
	DialectCustom = "custom"
	// DialectOpenAI is that of OpenAI's API.
	DialectOpenAI = "openai"
	// DialectGPTOSS is that of the gpt-oss models.
	DialectGPTOSS = "gpt_oss"
	// DialectQwen3 is that of the Qwen3 models.
	DialectQwen3 = "qwen3"
	// DialectDeepSeek is that of DeepSeek-V3.1 and its successors.
	DialectDeepSeek = "deepseek"
	// DialectMistral is that of Mistral's adjustable models.
	DialectMistral = "mistral"
)

// Options selects a dialect. An effort that the model lacks is replaced by the nearest one; of two
// equally near, the lower.
type Options struct {
	// Dialect selects how the reasoning effort is sent to the model: openai, gpt_oss, qwen3,
	// deepseek, mistral, reasoning_effort, chat_template_kwargs, custom or none. openai, gpt_oss
	// and mistral are presets of reasoning_effort; qwen3 and deepseek are presets of
	// chat_template_kwargs. Use none for models that always reason, such as Magistral and
	// DeepSeek-R1. Default none: nothing is sent.
	Dialect string `yaml:"dialect" words:"openai gpt_oss qwen3 deepseek mistral reasoning_effort chat_template_kwargs custom none"`
	// Key is the member of chat_template_kwargs that is set, such as enable_thinking (Qwen3, GLM)
	// or thinking (DeepSeek, Granite). Required by dialect chat_template_kwargs; qwen3 and deepseek
	// set their own.
	Key string `yaml:"key"`
	// Efforts lists the values of reasoning_effort that the model accepts, out of none, minimal,
	// low, medium, high, xhigh and max. Only for dialects that use this field. Default none, low,
	// medium and high; with gpt_oss low, medium and high, since it cannot turn reasoning off; with
	// mistral none and high.
	Efforts []string `yaml:"efforts"`
	// Values maps efforts to the values that key is set to, such as {none: false, high: true}. An
	// effort that is left out is replaced by the nearest one. Only for dialects that use
	// chat_template_kwargs. Default false for none and low, true for medium and high.
	Values map[string]any `yaml:"values"`
	// Custom maps efforts to the body fields that are set: {none: {FIELD: VALUE}, high: {FIELD:
	// VALUE}}. If VALUE is a mapping, its members are merged into those that the client sent. An
	// effort that is left out is replaced by the nearest one. Fields that limit the response, n,
	// tools and stream_options are refused. Required by dialect custom, and only allowed with it.
	Custom map[string]map[string]any `yaml:"custom"`
	// Budget is the body field that limits reasoning in tokens: thinking_token_budget (vLLM 0.20
	// and later, which refuses it unless started with --reasoning-parser) or thinking_budget_tokens
	// (llama.cpp). If the model is to reason, the field is set to the budget that a client of the
	// Messages API gives. Default none: such a budget only selects an effort.
	Budget string `yaml:"budget"`
}

// preset is the definition of a named dialect.
type preset struct {
	field   string   // DialectEffort, DialectKwargs or DialectCustom; empty if there is none
	key     string   // for DialectKwargs; empty if the configuration must set it
	efforts []string // for DialectEffort
	closed  bool     // the server refuses a client's word outside efforts
}

// presetOf looks a dialect up.
//
//   - openai: gpt-5.1 and later take none, low, medium and high; models before it no none, gpt-5
//     also minimal, the last ones xhigh (OpenAI API reference, chat completions, reasoning_effort,
//     as quoted at learn.microsoft.com/javascript/api/@azure/ai-projects/reasoningeffort). What a
//     model lacks is for `efforts` to say.
//   - gpt_oss: low, medium and high, no off (huggingface.co/openai/gpt-oss-20b, "Reasoning levels";
//     vLLM vllm/entrypoints/openai/parser/harmony_utils.py, REASONING_EFFORT).
//   - qwen3: enable_thinking, on unless told otherwise; deepseek: thinking, off unless told
//     otherwise (docs.vllm.ai/en/v0.26.0/features/reasoning_outputs, docs.vllm.ai/projects/recipes,
//     DeepSeek-V3.1).
//   - mistral: none and high for Small 4 and Medium 3.5
//     (docs.mistral.ai/capabilities/reasoning/adjustable); later ones take more words. Magistral
//     always reasons and takes no parameter (docs.mistral.ai/capabilities/reasoning/native): for
//     it, dialect none.
//   - vLLM itself takes none, minimal, low, medium, high, xhigh and max as reasoning_effort, hands
//     them to the chat template, and sets enable_thinking from them when a client did not
//     (vllm/entrypoints/openai/chat_completion/protocol.py, build_chat_params, at 002032ee).
func presetOf(dialect string) (p preset, ok bool) {
	switch dialect {
	case "", DialectNone:
	case DialectEffort, DialectOpenAI:
		p = preset{field: DialectEffort, efforts: []string{None, Low, Medium, High}}
	case DialectGPTOSS:
		p = preset{field: DialectEffort, efforts: []string{Low, Medium, High}, closed: true}
	case DialectMistral:
		p = preset{field: DialectEffort, efforts: []string{None, High}, closed: true}
	case DialectKwargs:
		p = preset{field: DialectKwargs}
	case DialectQwen3:
		p = preset{field: DialectKwargs, key: "enable_thinking"}
	case DialectDeepSeek:
		p = preset{field: DialectKwargs, key: "thinking"}
	case DialectCustom:
		p = preset{field: DialectCustom}
	default:
		return p, false
	}
	return p, true
}

// Check reports every bad option to p; at is the path of the section.
func (o *Options) Check(p *option.Problems, at string) {
	with, ok := presetOf(o.Dialect)
	if !ok {
		p.Addf(at+".dialect", "%q is not one of %s", o.Dialect, strings.Join([]string{
			DialectOpenAI, DialectGPTOSS, DialectQwen3, DialectDeepSeek, DialectMistral, DialectEffort, DialectKwargs, DialectCustom, DialectNone,
		}, ", "))
		return
	}
	kwargs := with.field == DialectKwargs
	switch {
	case o.Key != "" && !kwargs:
		p.Addf(at+".key", "only the dialect %s has a key", DialectKwargs)
	case o.Key != "" && with.key != "" && o.Key != with.key:
		p.Addf(at+".key", "the dialect %s has the key %s; for another, name the dialect %s", o.Dialect, with.key, DialectKwargs)
	case o.Key == "" && kwargs && with.key == "":
		p.Addf(at+".key", "the dialect %s needs one, such as enable_thinking", DialectKwargs)
	}
	if o.Budget != "" {
		checkField(p, at+".budget", o.Budget)
	}
	if o.Efforts != nil && with.field != DialectEffort {
		p.Addf(at+".efforts", "only dialects that send %s have efforts", DialectEffort)
	}
	if o.Values != nil && !kwargs {
		p.Addf(at+".values", "only dialects that send %s have values", DialectKwargs)
	}
	if o.Custom != nil && with.field != DialectCustom {
		p.Addf(at+".custom", "only the dialect %s has fields of its own", DialectCustom)
	}
	if len(o.Custom) == 0 && with.field == DialectCustom {
		p.Addf(at+".custom", "the dialect %s needs fields, such as {none: {thinking: false}, high: {thinking: true}}", DialectCustom)
	}
	o.checkEfforts(p, at)
	o.checkCustom(p, at)
}

func (o *Options) checkEfforts(p *option.Problems, section string) {
	if o.Efforts != nil && len(o.Efforts) == 0 {
		p.Addf(section+".efforts", "the list is empty; for a model that has no reasoning control, use the dialect %s", DialectNone)
	}
	seen := option.Unique{}
	for i, e := range o.Efforts {
		at := fmt.Sprintf("%s.efforts[%d]", section, i)
		if rankOf(e) < 0 {
			p.Addf(at, "%q is not one of %s", e, strings.Join(effortWords[:], ", "))
		}
		seen.Check(p, at, e)
	}
	if o.Values != nil && len(o.Values) == 0 {
		p.Addf(section+".values", "the mapping is empty")
	}
	for _, e := range slices.Sorted(maps.Keys(o.Values)) {
		at := section + ".values." + e
		if rankOf(e) < 0 {
			p.Addf(at, "%q is not one of %s", e, strings.Join(effortWords[:], ", "))
		}
		if _, err := valueJSON(o.Values[e]); err != nil {
			p.Addf(at, "%v", err)
		}
	}
}

func (o *Options) checkCustom(p *option.Problems, section string) {
	for _, e := range slices.Sorted(maps.Keys(o.Custom)) {
		at := section + ".custom." + e
		if rankOf(e) < 0 {
			p.Addf(at, "%q is not one of %s", e, strings.Join(effortWords[:], ", "))
		}
		for _, field := range slices.Sorted(maps.Keys(o.Custom[e])) {
			checkField(p, at+"."+field, field)
			if _, err := valueJSON(o.Custom[e][field]); err != nil {
				p.Addf(at+"."+field, "%v", err)
			}
		}
	}
}

// checkField reports a field that no dialect may set.
func checkField(p *option.Problems, at, field string) {
	switch field {
	case "", "model", "messages", "prompt", "input", "stream", "signalbox":
		p.Addf(at, "a dialect cannot set the field %q", field)
	case "max_tokens", "max_completion_tokens", "n", "tools", "stream_options":
		p.Addf(at, "the field %q does not control reasoning: leave it to clients and routes", field)
	}
}

// valueJSON encodes a value of the configuration, since YAML has more kinds of values than JSON.
func valueJSON(v any) ([]byte, error) {
	if err := checkJSON(v); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

func checkJSON(v any) error {
	switch v := v.(type) {
	case nil, bool, string, int, int64, uint64:
		return nil
	case float64:
		if _, err := json.Marshal(v); err != nil {
			return fmt.Errorf("found %v, expected a finite number", v)
		}
		return nil
	case []any:
		for _, e := range v {
			if err := checkJSON(e); err != nil {
				return err
			}
		}
		return nil
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			if err := checkJSON(v[k]); err != nil {
				return err
			}
		}
		return nil
	}
	return fmt.Errorf("found %v, expected a value that JSON can hold: put it in quotes", v)
}
