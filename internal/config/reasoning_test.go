package config_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/config"
	"signalbox/proxy/reasoning"
	"signalbox/proxy/settings"
)

func TestEveryDialectIsReadAsWritten(t *testing.T) {
	const text = `models:
  - {name: a, endpoints: [{name: a, url: "http://h"}], reasoning: {dialect: reasoning_effort}}
  - {name: b, endpoints: [{name: a, url: "http://h"}], reasoning: {dialect: chat_template_kwargs, key: enable_thinking}}
  - {name: c, endpoints: [{name: a, url: "http://h"}], reasoning: {dialect: openai, efforts: [minimal, high]}, max_tokens_field: max_tokens}
  - {name: d, endpoints: [{name: a, url: "http://h"}], reasoning: {dialect: qwen3, values: {none: false, high: 'true', low: 7, max: null}}}
  - name: e
    endpoints: [{name: a, url: "http://h"}]
    reasoning:
      dialect: custom
      custom:
        none: {extra.body: {Think: off, list: [1, 2.5, {x: null}]}}
        high: {}
  - {name: f, endpoints: [{name: a, url: "http://h"}], reasoning: {dialect: none}}
server: {auto_max_tokens: {headroom: 2, cold_start: {high: 32000}}}
default: {models: [a, b, c, d, e, f], max_tokens: auto, reasoning: auto, prompt: {name: p, position: before}}
prompts: [{name: p, text: x}]
`
	cfg, _, err := config.Parse("f.yaml", []byte(text), noEnv, catalog)
	if err != nil {
		t.Fatal(err)
	}
	var got []reasoning.Options
	for _, m := range cfg.Models {
		got = append(got, m.Reasoning)
	}
	want := []reasoning.Options{
		{Dialect: "reasoning_effort"},
		{Dialect: "chat_template_kwargs", Key: "enable_thinking"},
		{Dialect: "openai", Efforts: []string{"minimal", "high"}},
		{Dialect: "qwen3", Values: map[string]any{"none": false, "high": "true", "low": 7, "max": nil}},
		{Dialect: "custom", Custom: map[string]map[string]any{
			"none": {"extra.body": map[string]any{"Think": "off", "list": []any{1, 2.5, map[string]any{"x": nil}}}},
			"high": {},
		}},
		{Dialect: "none"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	auto := settings.DefaultServer().AutoMaxTokens
	auto.Headroom, auto.ColdStart.High = 2, 32000
	if diff := cmp.Diff(auto, cfg.Server.AutoMaxTokens); diff != "" {
		t.Errorf("auto_max_tokens (-want +got):\n%s", diff)
	}
}
