package setup

import (
	"cmp"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// semanticFile is what is read of a configuration of vLLM Semantic Router: that of its categories
// and that of its decisions.
type semanticFile struct {
	Endpoints []struct {
		Name    string `yaml:"name"`
		Address string `yaml:"address"`
		Port    int    `yaml:"port"`
		Weight  int    `yaml:"weight"`
	} `yaml:"vllm_endpoints"`
	Models map[string]struct {
		Family    string   `yaml:"reasoning_family"`
		Endpoints []string `yaml:"preferred_endpoints"`
		Pricing   struct {
			Prompt     float64 `yaml:"prompt_per_1m"`
			Completion float64 `yaml:"completion_per_1m"`
		} `yaml:"pricing"`
		PII yaml.Node `yaml:"pii_policy"`
	} `yaml:"model_config"`
	Families map[string]struct {
		Type      string `yaml:"type"`
		Parameter string `yaml:"parameter"`
	} `yaml:"reasoning_families"`
	Categories []struct {
		Name   string     `yaml:"name"`
		Prompt string     `yaml:"system_prompt"`
		Scores []modelRef `yaml:"model_scores"`
	} `yaml:"categories"`
	Decisions []semanticDecision `yaml:"decisions"`
	Default   string             `yaml:"default_model"`
	Effort    string             `yaml:"default_reasoning_effort"`
	Guard     struct {
		Enabled   bool    `yaml:"enabled"`
		Threshold float64 `yaml:"threshold"`

		Rest map[string]yaml.Node `yaml:",inline"`
	} `yaml:"prompt_guard"`
	Cache struct {
		Enabled    bool    `yaml:"enabled"`
		TTL        int     `yaml:"ttl_seconds"`
		Similarity float64 `yaml:"similarity_threshold"`

		Rest map[string]yaml.Node `yaml:",inline"`
	} `yaml:"semantic_cache"`
}

// semanticDecision is a rule of the newer files.
type semanticDecision struct {
	Name     string `yaml:"name"`
	Priority int    `yaml:"priority"`
	Rules    struct {
		Operator   string `yaml:"operator"`
		Conditions []struct {
			Type string `yaml:"type"`
			Name string `yaml:"name"`
		} `yaml:"conditions"`
	} `yaml:"rules"`
	Models  []modelRef `yaml:"modelRefs"`
	Plugins []struct {
		Type          string         `yaml:"type"`
		Configuration map[string]any `yaml:"configuration"`
	} `yaml:"plugins"`
}

// modelRef is a candidate of a category or of a decision.
type modelRef struct {
	Model     string  `yaml:"model"`
	Score     float64 `yaml:"score"`
	Reasoning *bool   `yaml:"use_reasoning"`
	Effort    string  `yaml:"reasoning_effort"`
}

// domains are the subjects that the embedded model knows, those of MMLU-Pro, as the classifier of
// vLLM Semantic Router does.
func domains() []string {
	return []string{
		"biology", "business", "chemistry", "computer science", "economics", "engineering", "health", "history",
		"law", "math", "other", "philosophy", "physics", "psychology",
	}
}

func (p *Plan) semantic(top map[string]yaml.Node) error {
	var f semanticFile
	for key, into := range map[string]any{
		"vllm_endpoints": &f.Endpoints, "model_config": &f.Models, "reasoning_families": &f.Families, "categories": &f.Categories,
		"decisions": &f.Decisions, "default_model": &f.Default, "default_reasoning_effort": &f.Effort, "prompt_guard": &f.Guard, "semantic_cache": &f.Cache,
	} {
		if n, ok := top[key]; ok {
			if err := n.Decode(into); err != nil {
				return fmt.Errorf("%s: %w", key, err)
			}
		}
	}
	p.semanticModels(&f)
	if f.Guard.Enabled {
		text := "{any: [{jailbreak: true}, {injection: true}]}"
		p.Extra = "  - name: block-attacks # was prompt_guard\n    when: " + text + "\n    block: {message: \"This request was declined by policy.\"}"
		p.leave("prompt_guard.", f.Guard.Rest)
		if f.Guard.Threshold > 0 {
			p.note("prompt_guard.threshold %g was that of another model: the embedded one brings its own (classify.tasks[].threshold)", f.Guard.Threshold)
		}
	}
	var prompts []string
	slices.SortStableFunc(f.Decisions, func(a, b semanticDecision) int { return b.Priority - a.Priority })
	for i := range f.Decisions {
		prompts = p.decision(&f, &f.Decisions[i], prompts)
	}
	for _, c := range f.Categories {
		if len(c.Scores) > 0 {
			prompts = p.route(&f, c.Name, []string{strings.ToLower(c.Name)}, c.Scores, c.Prompt, prompts)
		}
	}
	if len(prompts) > 0 {
		p.More = join(p.More, "prompts:\n"+strings.Join(prompts, "\n"))
	}
	p.semanticCache(&f)
	p.leave("", top, "vllm_endpoints", "model_config", "reasoning_families", "categories", "decisions", "default_model",
		"default_reasoning_effort", "prompt_guard", "semantic_cache", "bert_model", "classifier")
	if has(top, "classifier") || has(top, "bert_model") {
		p.note("classifier, bert_model: the embedded models take their place; docs/models.md has how to use others")
	}
	return nil
}

func (p *Plan) semanticCache(f *semanticFile) {
	if !f.Cache.Enabled {
		return
	}
	cache := "cache: {mode: semantic"
	if f.Cache.TTL > 0 {
		cache += fmt.Sprintf(", ttl: %ds", f.Cache.TTL)
	}
	p.More = join(p.More, cache+"}")
	p.leave("semantic_cache.", f.Cache.Rest)
	if f.Cache.Similarity > 0 {
		p.note("semantic_cache.similarity_threshold was that of another model: cache.min_similarity was measured with the embedded one")
	}
}

// decision makes a route of a decision over domains, and returns the prompts with its own.
func (p *Plan) decision(f *semanticFile, d *semanticDecision, prompts []string) []string {
	var of []string
	for _, c := range d.Rules.Conditions {
		if c.Type != "domain" || strings.EqualFold(d.Rules.Operator, "AND") && len(d.Rules.Conditions) > 1 {
			of = nil
			break
		}
		of = append(of, strings.ToLower(c.Name))
	}
	if of == nil {
		p.note("decision %q: only decisions over domains are kept; write its conditions as a route (docs/rules.md)", d.Name)
		return prompts
	}
	prompt := ""
	for _, plugin := range d.Plugins {
		if text, ok := plugin.Configuration["system_prompt"].(string); ok && plugin.Type == "system_prompt" {
			prompt = text
			continue
		}
		p.note("decision %q: the plugin %s is not kept", d.Name, plugin.Type)
	}
	return p.route(f, d.Name, of, d.Models, prompt, prompts)
}

// semanticModels makes the models, each with the endpoints that serve it.
func (p *Plan) semanticModels(f *semanticFile) {
	for _, served := range slices.Sorted(maps.Keys(f.Models)) {
		c := f.Models[served]
		m := Model{Name: p.name(served), ServedAs: served, VLLM: true, Input: c.Pricing.Prompt, Output: c.Pricing.Completion}
		m.Thinking = p.dialect(f, c.Family)
		for _, e := range f.Endpoints {
			if len(c.Endpoints) > 0 && !slices.Contains(c.Endpoints, e.Name) {
				continue
			}
			m.Endpoints = append(m.Endpoints, Endpoint{
				Name: e.Name, URL: "http://" + net.JoinHostPort(e.Address, strconv.Itoa(e.Port)) + "/v1", Weight: min(max(e.Weight, 0), 1000),
			})
		}
		if !c.PII.IsZero() {
			p.note("pii_policy of %q: a route decides, as in `when: {pii: true}` and `redact: true` (docs/rules.md)", served)
		}
		if len(m.Endpoints) == 0 {
			p.note("model %q has no endpoint that is listed", served)
			continue
		}
		p.Models = append(p.Models, m)
	}
	for _, m := range p.Models {
		if m.ServedAs == f.Default {
			p.Default = append([]string{m.Name}, p.Default...)
		} else {
			p.Default = append(p.Default, m.Name)
		}
	}
}

// dialect is the word for a family of models that reason; empty for none.
func (p *Plan) dialect(f *semanticFile, name string) string {
	family, ok := f.Families[name]
	switch {
	case !ok:
	case family.Type == "chat_template_kwargs" && family.Parameter == "enable_thinking":
		return "qwen3"
	case family.Type == "chat_template_kwargs" && family.Parameter == "thinking":
		return "deepseek"
	case family.Type == "reasoning_effort":
		return "reasoning_effort"
	default:
		p.note("reasoning_families.%s: write it as models[].reasoning (docs/parameters.md)", name)
	}
	return ""
}

// candidates are the models of some references that are kept, the best first.
func (p *Plan) candidates(refs []modelRef) (models []string) {
	slices.SortStableFunc(refs, func(a, b modelRef) int { return cmp.Compare(b.Score, a.Score) })
	for _, r := range refs {
		known := false
		for _, m := range p.Models {
			known = known || m.ServedAs == r.Model
			if m.ServedAs == r.Model && !slices.Contains(models, m.Name) {
				models = append(models, m.Name)
			}
		}
		if !known {
			p.note("model %q is not in model_config, or has no endpoint: no route names it", r.Model)
		}
	}
	return models
}

// effort is the reasoning of a reference; empty where it says nothing.
func (f *semanticFile) effort(r *modelRef) string {
	switch {
	case r.Reasoning == nil:
		return ""
	case !*r.Reasoning:
		return "none"
	}
	for _, e := range []string{r.Effort, f.Effort} {
		if slices.Contains([]string{"low", "medium", "high"}, e) {
			return e
		}
	}
	return "high"
}

// route makes a route of some subjects, and returns the prompts with its own.
func (p *Plan) route(f *semanticFile, name string, of []string, refs []modelRef, prompt string, prompts []string) []string {
	for _, d := range of {
		if !slices.Contains(domains(), d) {
			p.note("%q: the embedded model does not know the subject %q; an intent of your own does, by examples (signals.intents)", name, d)
			return prompts
		}
	}
	models := p.candidates(refs)
	if len(models) == 0 {
		p.note("%q names no model that is kept", name)
		return prompts
	}
	names, err := list(models)
	subjects, err2 := list(of)
	if err != nil || err2 != nil {
		return prompts
	}
	id := strings.Trim(badInName.ReplaceAllString(strings.ReplaceAll(strings.ToLower(name), ":", "-"), "-"), "-._")
	if id == "" || len(id) > 64 || strings.Contains(p.Extra, "- name: "+id+"\n") {
		p.note("%q: a route needs a name of its own, of letters, digits, '.', '_' and '-'", name)
		return prompts
	}
	use := "models: " + names
	if effort := f.effort(&refs[0]); effort != "" {
		use += ", reasoning: " + effort
	}
	if text := strings.TrimSpace(prompt); text != "" {
		b, err := yaml.Marshal(&yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: text, Style: yaml.DoubleQuotedStyle})
		if err == nil {
			prompts = append(prompts, fmt.Sprintf("  - name: %s\n    text: %s", id, strings.TrimSpace(strings.ReplaceAll(string(b), "\n", " "))))
			use += ", prompt: " + id
		}
	}
	p.Extra = join(p.Extra, fmt.Sprintf("  - name: %s\n    when: {domain: {in: %s, min_score: 0.5}}\n    use: {%s}", id, subjects, use))
	return prompts
}
