package rules

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/signal"
)

func TestActionSaysHowToChooseAndWantsWhatThatTakes(t *testing.T) {
	t.Parallel()
	type choice struct {
		By     string
		Margin float64
		Wants  signal.Mask
	}
	domain := signal.MaskOf(signal.Domain)
	for name, c := range map[string]struct {
		use  string
		want choice
	}{
		"the order is the default":                       {"{models: [qwen-7b, qwen-32b]}", choice{"order", 0, 0}},
		"weights want nothing":                           {"{models: [qwen-7b, qwen-32b], by: weight}", choice{"weight", 0, 0}},
		"quality is told apart by domain":                {"{models: [qwen-7b, qwen-32b], by: quality}", choice{"quality", 0, domain}},
		"cost keeps close to the best":                   {"{models: [qwen-7b, qwen-32b], by: cost}", choice{"cost", 0.05, domain}},
		"a margin of its own":                            {"{quality_margin: 0.2, models: [qwen-7b, qwen-32b], by: cost}", choice{"cost", 0.2, domain}},
		"cost alone":                                     {"{models: [qwen-7b, qwen-32b], by: cost, quality_margin: 1}", choice{"cost", 1, 0}},
		"latency does not look at quality":               {"{models: [qwen-7b, qwen-32b], by: latency}", choice{"latency", 1, 0}},
		"latency among the best":                         {"{models: [qwen-7b, qwen-32b], by: latency, quality_margin: 0}", choice{"latency", 0, domain}},
		"a single candidate needs no signal":             {"{models: [qwen-7b], by: quality}", choice{"quality", 0, 0}},
		"what else the action reads comes from one pass": {"{models: [qwen-7b, qwen-32b], by: quality, reasoning: auto}", choice{"quality", 0, domain | signal.MaskOf(signal.Complexity)}},
		"what nothing provides is not asked for":         {"{models: [qwen-7b, qwen-32b], by: quality, absent: domain}", choice{"quality", 0, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env := testEnv()
			use, absent := strings.CutSuffix(c.use, ", absent: domain}")
			if absent {
				env.Signals &^= domain
				use += "}"
			}
			p, problems := Compile(sourceOf(t, "routes: [{name: r, when: {role: staff}, use: "+use+"}]\ndefault: "+use), env)
			if p == nil {
				t.Fatal(problems)
			}
			for _, a := range []*Action{&p.routes[0].action, &p.fallback} {
				if diff := cmp.Diff(c.want, choice{a.By, a.Margin, p.wantsOf(a)}); diff != "" {
					t.Errorf("choice (-want +got):\n%s", diff)
				}
			}
			if got := p.routes[0].wants; got != c.want.Wants {
				t.Errorf("the route wants %v", got.Kinds())
			}
		})
	}
}
