package recall

import (
	"testing"

	"signalbox/rules"
)

func TestRoutesThatChangeRequestsAlikeShareAnswers(t *testing.T) {
	t.Parallel()
	tools := func(keep int) *rules.Tools { return &rules.Tools{Keep: keep, Always: []string{"f"}} }
	seen := map[string]string{}
	for name, a := range map[string]rules.Action{
		"nothing":         {},
		"effort":          {Reasoning: "high"},
		"prompt":          {Prompt: rules.Prompt{Name: "p"}},
		"limit":           {MaxTokens: rules.MaxTokens{Limit: 20}},
		"another limit":   {MaxTokens: rules.MaxTokens{Limit: 30}},
		"field":           {Body: []rules.Field{{Name: "top_p", JSON: []byte("1")}}},
		"header":          {Headers: []rules.Header{{Name: "A", Value: "b"}}},
		"tools":           {Tools: tools(3)},
		"another of them": {Tools: tools(4)},
	} {
		if was, ok := seen[Treatment(&a)]; ok {
			t.Errorf("%s is as %s", name, was)
		}
		seen[Treatment(&a)] = name
	}
	if Treatment(&rules.Action{Tools: tools(3)}) != Treatment(&rules.Action{Tools: tools(3), Guard: "off"}) {
		t.Error("two routes that send the same are told apart")
	}
}
