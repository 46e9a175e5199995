package setup

import (
	"errors"
	"fmt"
	"math"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"signalbox/internal/option"
)

// ErrForeign reports a file that is of no router that is known here.
var ErrForeign = errors.New("this is neither a configuration of LiteLLM (model_list) nor one of vLLM Semantic Router (vllm_endpoints)")

// FromFile plans a configuration that does what that of another router does, LiteLLM's or vLLM
// Semantic Router's. What cannot be kept is in Notes, each with what to do about it. No secret of
// the file is in the plan.
func FromFile(name string, b []byte) (*Plan, error) {
	var top map[string]yaml.Node
	if err := yaml.Unmarshal(b, &top); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	p := &Plan{Listen: "127.0.0.1:8080", AdminListen: "127.0.0.1:9090"}
	var err error
	switch {
	case has(top, "model_list"):
		p.From = "Written by `signalbox init --from` from LiteLLM's " + oneLine(name) + "."
		err = p.litellm(top)
	case has(top, "vllm_endpoints"):
		p.From = "Written by `signalbox init --from` from vLLM Semantic Router's " + oneLine(name) + "."
		err = p.semantic(top)
	default:
		err = ErrForeign
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if len(p.Models) == 0 {
		return nil, fmt.Errorf("%s: %w: %s", name, errors.New("nothing of it can be kept"), strings.Join(p.Notes, "; "))
	}
	return p, nil
}

func has(top map[string]yaml.Node, key string) bool {
	_, ok := top[key]
	return ok
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// note says once what could not be kept.
func (p *Plan) note(format string, args ...any) {
	if text := oneLine(fmt.Sprintf(format, args...)); !slices.Contains(p.Notes, text) {
		p.Notes = append(p.Notes, text)
	}
}

// leave notes the keys of a section that nothing was made of.
func (p *Plan) leave(section string, of map[string]yaml.Node, known ...string) {
	var rest []string
	for key := range of {
		if !slices.Contains(known, key) {
			rest = append(rest, section+key)
		}
	}
	slices.Sort(rest)
	if len(rest) > 0 {
		p.note("not kept: %s", strings.Join(rest, ", "))
	}
}

// deployment is an item of LiteLLM's model_list.
type deployment struct {
	Name   string `yaml:"model_name"`
	Params struct {
		Model    string    `yaml:"model"`
		Base     string    `yaml:"api_base"`
		Key      string    `yaml:"api_key"`
		Weight   float64   `yaml:"weight"`
		Provider string    `yaml:"custom_llm_provider"`
		Input    *float64  `yaml:"input_cost_per_token"`
		Output   *float64  `yaml:"output_cost_per_token"`
		RPM      yaml.Node `yaml:"rpm"`
		TPM      yaml.Node `yaml:"tpm"`

		Rest map[string]yaml.Node `yaml:",inline"`
	} `yaml:"litellm_params"`
	About struct {
		Window int      `yaml:"max_input_tokens"`
		Input  *float64 `yaml:"input_cost_per_token"`
		Output *float64 `yaml:"output_cost_per_token"`
	} `yaml:"model_info"`
}

// speaks are the providers whose API is that of OpenAI, with their addresses where they have one.
func speaks(provider string) (base string, ok bool) {
	base, ok = map[string]string{
		"openai": "https://api.openai.com/v1", "hosted_vllm": "", "vllm": "", "text-completion-openai": "https://api.openai.com/v1",
		"ollama": "http://localhost:11434/v1", "ollama_chat": "http://localhost:11434/v1", "lm_studio": "", "llamafile": "", "openai_like": "", "litellm_proxy": "",
		"mistral": "https://api.mistral.ai/v1", "deepseek": "https://api.deepseek.com/v1", "groq": "https://api.groq.com/openai/v1",
		"xai": "https://api.x.ai/v1", "together_ai": "https://api.together.xyz/v1", "openrouter": "https://openrouter.ai/api/v1",
		"fireworks_ai": "https://api.fireworks.ai/inference/v1", "perplexity": "https://api.perplexity.ai", "nvidia_nim": "https://integrate.api.nvidia.com/v1",
	}[provider]
	return base, ok
}

// foreign are the providers with an API of their own, whatever their address is; azure_text and the
// like too. One that is in no list may speak that of OpenAI at the address that the file gives.
var foreign = regexp.MustCompile(`^(azure|azure_text|(anthropic|bedrock|vertex_ai|sagemaker|gemini|palm|cohere|replicate|watsonx)(_.*)?)$`)

func (p *Plan) litellm(top map[string]yaml.Node) error {
	var items []deployment
	node := top["model_list"]
	if err := node.Decode(&items); err != nil {
		return fmt.Errorf("model_list: %w", err)
	}
	for i := range items {
		p.deployment(&items[i])
	}
	for _, m := range p.Models {
		p.Default = append(p.Default, m.Name)
	}
	p.note("LiteLLM's clients name a model, and still can. model auto goes by the routes, and without any to the first of `default`: put the models in the order that you want")
	var router, settings, general map[string]yaml.Node
	for key, into := range map[string]*map[string]yaml.Node{"router_settings": &router, "litellm_settings": &settings, "general_settings": &general} {
		if n, ok := top[key]; ok {
			if err := n.Decode(into); err != nil {
				return fmt.Errorf("%s: %w", key, err)
			}
		}
	}
	for _, section := range []map[string]yaml.Node{router, settings} { // of two the first counts
		p.times(section)
	}
	if n, ok := settings["cache"]; ok && n.Value == "true" {
		p.note("cache: an answer is given again to the same request (mode exact); over replicas it takes memory.redis and cache.shared, see docs/cache.md")
		p.More = join(p.More, "cache: {mode: exact}")
	}
	if has(general, "master_key") {
		p.note("general_settings.master_key: callers need keys of their own. `signalbox keys new NAME` makes one; to keep the old key, put the SHA-256 of it under auth.keys")
	}
	if has(router, "routing_strategy") {
		p.note("router_settings.routing_strategy: among the servers of a model the one that has the prompt cached or the less loaded one is taken; among models a route chooses by order, weight, quality, cost or latency (docs/routing.md)")
	}
	p.leave("", top, "model_list", "router_settings", "litellm_settings", "general_settings")
	p.leave("router_settings.", router, "fallbacks", "timeout", "num_retries", "routing_strategy")
	p.leave("litellm_settings.", settings, "fallbacks", "request_timeout", "num_retries", "cache", "drop_params")
	p.leave("general_settings.", general, "master_key")
	return nil
}

// maxTimeout is a week in seconds: more than any response takes.
const maxTimeout = 7 * 24 * 60 * 60

// times keeps fallbacks, time limits and retries of a section of settings.
func (p *Plan) times(section map[string]yaml.Node) {
	if n, ok := section["fallbacks"]; ok {
		p.fallbacks(&n)
	}
	for _, key := range []string{"timeout", "request_timeout"} {
		if x, ok := float(section, key); ok && x > 0 {
			p.serves("answer_timeout", strconv.FormatFloat(min(x, maxTimeout), 'f', -1, 64)+"s")
		}
	}
	if n, ok := float(section, "num_retries"); ok && n >= 0 && n < 10 {
		p.serves("max_attempts", strconv.Itoa(int(n)+1))
	}
}

// serves sets a key of the section server, unless it is set already.
func (p *Plan) serves(key, value string) {
	if !slices.ContainsFunc(p.Server, func(s string) bool { return strings.HasPrefix(s, key+":") }) {
		p.Server = append(p.Server, key+": "+value)
	}
}

func float(section map[string]yaml.Node, key string) (float64, bool) {
	n, ok := section[key]
	if !ok {
		return 0, false
	}
	x, err := strconv.ParseFloat(n.Value, 64)
	return x, err == nil
}

func join(a, b string) string {
	if a == "" {
		return b
	}
	return a + "\n" + b
}

// provider returns what LiteLLM would send the model to, and the name that it has there: by
// custom_llm_provider, else by the prefix of the model, else by its name.
func (d *deployment) provider() (name, served string) {
	name, served, prefixed := strings.Cut(d.Params.Model, "/")
	switch given := d.Params.Provider; {
	case given != "":
		return given, strings.TrimPrefix(d.Params.Model, given+"/")
	case prefixed:
		return name, served
	case strings.HasPrefix(d.Params.Model, "claude-"):
		return "anthropic", d.Params.Model
	case strings.HasPrefix(d.Params.Model, "gemini-"):
		return "vertex_ai", d.Params.Model
	}
	return "openai", d.Params.Model
}

// deployment makes an endpoint of an item of model_list.
func (p *Plan) deployment(d *deployment) {
	provider, served := d.provider()
	base, ok := speaks(provider)
	switch {
	case strings.Contains(d.Name, "*") || d.Name == "" || served == "":
		p.note("model %q: a pattern names no model; list the models by name", d.Name)
		return
	case !option.VisibleASCII(d.Name) || len(d.Name) > 200:
		p.note("model %q: a name has visible ASCII characters alone", d.Name)
		return
	case foreign.MatchString(provider), !ok && d.Params.Base == "":
		p.note("model %q: %s does not speak OpenAI's API; put a server in front that does, and name it under endpoints", d.Name, provider)
		return
	case d.Params.Base != "":
		base = d.Params.Base
	}
	if name, ok := strings.CutPrefix(base, "os.environ/"); ok || base == "" {
		p.note("model %q: its address is in the environment variable %q; write it into endpoints[].url", d.Name, name)
		return
	}
	if strings.HasPrefix(provider, "ollama") && !strings.HasSuffix(strings.TrimSuffix(base, "/"), "/v1") {
		base = strings.TrimSuffix(base, "/") + "/v1"
	}
	if u, err := url.Parse(base); err != nil || u.Host == "" || u.User != nil {
		p.note("model %q: %q cannot be an endpoint", d.Name, "api_base")
		return
	}
	m := p.modelOf(d, served)
	m.Input, m.Output = max(m.Input, perMillion(d.Params.Input), perMillion(d.About.Input)), max(m.Output, perMillion(d.Params.Output), perMillion(d.About.Output))
	e := Endpoint{Name: string(rune('a' + len(m.Endpoints)%26)), URL: strings.TrimSuffix(base, "/")}
	if n := len(m.Endpoints) / 26; n > 0 {
		e.Name += strconv.Itoa(n)
	}
	if w := d.Params.Weight; w >= 1 {
		e.Weight = int(min(w, 1000))
	}
	e.Key = p.reference(d, m.Name)
	if d.Params.RPM.Value != "" || d.Params.TPM.Value != "" {
		p.note("rpm and tpm of deployments: limits are of callers here (auth.roles[].rate); a server is bounded by endpoints[].max_inflight")
	}
	p.leave("litellm_params.", d.Params.Rest)
	m.Endpoints = append(m.Endpoints, e)
}

// modelOf finds the model of a deployment, or adds it. The pointer holds until the next one is
// added.
func (p *Plan) modelOf(d *deployment, served string) *Model {
	i := slices.IndexFunc(p.Models, func(m Model) bool { return m.Name == d.Name && m.ServedAs == served })
	if i < 0 {
		if slices.ContainsFunc(p.Models, func(m Model) bool { return m.Name == d.Name }) {
			p.note("model %q stands for %q too: one model is one set of weights here, so that one is another model", d.Name, served)
		}
		i = len(p.Models)
		m := Model{Name: d.Name, ServedAs: served, Window: d.About.Window, Comment: "was " + oneLine(d.Params.Model)}
		if slices.ContainsFunc(p.Models, func(m Model) bool { return m.Name == d.Name }) || d.Name == "auto" {
			m.Name = p.name(served)
		}
		p.Models = append(p.Models, m)
	}
	return &p.Models[i]
}

func perMillion(perToken *float64) float64 {
	if perToken == nil || *perToken <= 0 {
		return 0
	}
	return math.Round(*perToken*1e12) / 1e6
}

var inEnvironment = regexp.MustCompile(`^os\.environ/([A-Za-z_][A-Za-z0-9_]*)$`)

// reference is where a key is, never the key itself.
func (p *Plan) reference(d *deployment, model string) string {
	switch m := inEnvironment.FindStringSubmatch(d.Params.Key); {
	case m != nil:
		return "${" + m[1] + "}"
	case d.Params.Key == "" || strings.EqualFold(d.Params.Key, "none") || strings.EqualFold(d.Params.Key, "fake-key"):
		return ""
	}
	name := strings.ToUpper(strings.Trim(regexp.MustCompile(`[^A-Za-z0-9]+`).ReplaceAllString(model, "_"), "_")) + "_API_KEY"
	if name[0] >= '0' && name[0] <= '9' {
		name = "_" + name
	}
	p.note("model %q: its key stood in the file; set the environment variable %s to it", model, name)
	return "${" + name + "}"
}

// fallbacks makes routes of LiteLLM's, for requests that name a model.
func (p *Plan) fallbacks(n *yaml.Node) {
	var items []map[string][]string
	if n.Decode(&items) != nil {
		p.note("fallbacks: not understood")
		return
	}
	for _, item := range items {
		for name, others := range item {
			p.fallback(name, others)
		}
	}
}

// fallback makes the route of one model.
func (p *Plan) fallback(name string, others []string) {
	known := func(name string) bool {
		return slices.ContainsFunc(p.Models, func(m Model) bool { return m.Name == name })
	}
	kept := []string{name}
	for _, o := range others {
		if known(o) && !slices.Contains(kept, o) {
			kept = append(kept, o)
		}
	}
	if !known(name) || len(kept) < 2 {
		p.note("the fallback of %q leads to no model that is kept", name)
		return
	}
	words, err := list(kept)
	if err != nil {
		return
	}
	one, _ := scalar(name)
	p.Extra = join(p.Extra, fmt.Sprintf("  - name: fallback-%d # of %s\n    when: {model: %s}\n    use: {models: %s}", 1+strings.Count(p.Extra, "- name: "), oneLine(name), one, words))
	p.serves("route_named_models", "true")
}
