package config_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/config"
	"signalbox/internal/option"
	"signalbox/proxy/guardrail"
)

func TestTheSectionOfTheGuardTurnsItOn(t *testing.T) {
	t.Parallel()
	const models = "models: [{name: small, endpoints: [{name: a, url: http://127.0.0.1:8000/v1}]}]\n"
	strict := guardrail.Options{
		Mode: "hold", ActOn: []string{"contradicted"}, Marker: " (?)", MarkerAs: "field",
		MaxHold: option.Duration(time.Second), OnUnchecked: "block", Structured: "hold",
		Failures: 3, Documents: true, Reasoning: true, Workers: 2, Queue: 16,
	}
	with := func(change func(*guardrail.Options)) guardrail.Options {
		o := guardrail.DefaultOptions()
		change(&o)
		return o
	}
	for name, tt := range map[string]struct {
		text    string
		want    guardrail.Options
		guarded bool
	}{
		"no section": {"default: {models: [small]}", with(func(o *guardrail.Options) { o.Mode = "off" }), false},
		"an empty section": {
			"default: {models: [small]}\nguard: {}", with(func(o *guardrail.Options) { o.Mode = "observe" }), true,
		},
		"a section without a mode": {
			"default: {models: [small]}\nguard: {max_hold: 1s}",
			with(func(o *guardrail.Options) { o.Mode, o.MaxHold = "observe", option.Duration(time.Second) }), true,
		},
		"a section that is off": {
			"default: {models: [small]}\nguard: {mode: off}", with(func(o *guardrail.Options) { o.Mode = "off" }), false,
		},
		"no section, and a route that asks": {
			"default: {models: [small], guard: hold}", with(func(o *guardrail.Options) { o.Mode = "off" }), true,
		},
		"every key": {
			"default: {models: [small]}\nguard: {mode: hold, act_on: [contradicted], marker: \" (?)\", marker_as: field, max_hold: 1s, on_unchecked: block, " +
				"structured: hold, failures: 3, documents: true, tool_results: false, " +
				"reasoning: true, workers: 2, queue: 16}", strict, true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg, warnings, err := config.Parse("f.yaml", []byte(models+tt.text), noEnv, catalog)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, cfg.Guard); diff != "" {
				t.Errorf("guard (-want +got):\n%s", diff)
			}
			if cfg.Guarded != tt.guarded || (len(warnings) > 0) != tt.guarded {
				t.Errorf("guarded %v with warnings %v", cfg.Guarded, warnings)
			}
		})
	}
}

func TestAGuardWithAModelIsNotWarnedOf(t *testing.T) {
	t.Parallel()
	const text = "models: [{name: small, endpoints: [{name: a, url: http://127.0.0.1:8000/v1}]}]\ndefault: {models: [small]}\n" +
		"guard: {}\nclassify: {tasks: [{name: grounding, model: embedded}]}\nroutes: [{name: r, when: {has: facts}, use: {models: [small], guard: annotate}}]\n"
	_, warnings, err := config.Parse("f.yaml", []byte(text), noEnv, catalog)
	if err != nil || len(warnings) > 0 {
		t.Errorf("%v, warnings %v", err, warnings)
	}
	_, _, err = config.Parse("f.yaml", []byte(strings.Replace(text, "facts", "context", 1)), noEnv, catalog)
	if err != nil {
		t.Errorf("has: context: %v", err)
	}
}
