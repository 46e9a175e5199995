// Package setup writes first configurations: from what model servers tell of themselves, and from
// the files of other routers.
//
// What it writes is text with comments, for a person to go on with; whether it is valid is for
// internal/config to say, which this package does not know.
package setup

import (
	"bytes"
	"cmp"
	_ "embed"
	"errors"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/template"

	"go.yaml.in/yaml/v3"

	"signalbox/internal/modelserver"
)

// Found is a server that was looked at.
type Found struct {
	Server *modelserver.Server
	// KeyEnv names the environment variable that holds its key; empty for a server without one.
	KeyEnv string
}

// Plan is a configuration to be written.
type Plan struct {
	// From says in a sentence what it was made of.
	From string
	// Listen and AdminListen are addresses, HOST:PORT.
	Listen, AdminListen string
	Models              []Model
	// Server are further keys of the section server, each "key: value".
	Server []string
	// Default are the models of what no route matches, the first of which answers.
	Default []string
	// Hard are the models of questions that ask for the largest; empty for no such route.
	Hard []string
	// Attacks: a route blocks jailbreaks and injections.
	Attacks bool
	// More are sections in YAML that stand as they are before the default.
	More string
	// Extra are routes in YAML, items of the list, in front of those above.
	Extra string
	// Notes are what could not be kept, or has to be looked at.
	Notes []string
}

// Thinks reports whether a model of Hard is known to take an effort of reasoning.
func (p *Plan) Thinks() bool {
	return slices.ContainsFunc(p.Models, func(m Model) bool {
		return m.Thinking != "" && slices.Contains(p.Hard, m.Name)
	})
}

// Model is one model with the servers that serve it.
type Model struct {
	Name      string
	ServedAs  string
	Window    int
	Thinking  string // a dialect of models[].reasoning; empty for none
	VLLM      bool   // its servers tell their load and cache in vLLM's words
	Input     float64
	Output    float64 // prices in USD per million tokens; 0: not known
	Endpoints []Endpoint
	Comment   string

	embedding bool
	size      float64 // parameters in billions, by its name; 0: not known
}

// Endpoint is one server of a model.
type Endpoint struct {
	Name, URL string
	// Key is a reference such as ${NAME}; empty for none.
	Key string
	// Weight is the share of the load; 0 for the default.
	Weight int
}

// ErrNothing reports servers that serve nothing.
var ErrNothing = errors.New("the servers list no models")

// FromServers plans a configuration of all models of some servers. A model that several of them
// serve under one name is one model with several endpoints.
func FromServers(found []Found) (*Plan, error) {
	p := &Plan{Listen: "127.0.0.1:8080", AdminListen: "127.0.0.1:9090", Attacks: true}
	var names []string
	for _, f := range found {
		names = append(names, fmt.Sprintf("%s at %s", f.Server.Kind, f.Server.Base))
		if f.Server.Kind == modelserver.Signalbox {
			return nil, fmt.Errorf("%s is a signalbox itself, not a model server; "+
				"signalbox simulate --listen 127.0.0.1:8001 --model m is one to try with", f.Server.Base)
		}
		for _, m := range f.Server.Models {
			p.add(f, &m)
		}
	}
	if len(p.Models) == 0 {
		return nil, ErrNothing
	}
	p.From = "Written by `signalbox init` from " + strings.Join(names, ", ") + "."
	p.rank()
	p.avoid(found)
	return p, nil
}

// add puts a model of a server into the plan.
func (p *Plan) add(f Found, m *modelserver.Model) {
	i := slices.IndexFunc(p.Models, func(x Model) bool { return x.ServedAs == m.ID })
	if i < 0 {
		i = len(p.Models)
		p.Models = append(p.Models, Model{
			Name: p.name(m.ID), ServedAs: m.ID, Window: m.Window, Thinking: m.Thinking,
			embedding: m.Embedding, size: billions(m.ID), VLLM: true, Comment: about(f.Server, m),
		})
	}
	at := &p.Models[i]
	at.VLLM = at.VLLM && f.Server.Metrics
	if m.Window > 0 && (at.Window == 0 || m.Window < at.Window) {
		at.Window = m.Window
	}
	e := Endpoint{Name: string(rune('a' + len(at.Endpoints)%26)), URL: f.Server.Base}
	if n := len(at.Endpoints) / 26; n > 0 {
		e.Name += strconv.Itoa(n)
	}
	if f.KeyEnv != "" {
		e.Key = "${" + f.KeyEnv + "}"
	}
	at.Endpoints = append(at.Endpoints, e)
}

// about says what is behind a model, for a comment.
func about(s *modelserver.Server, m *modelserver.Model) string {
	text := strings.TrimSpace(string(s.Kind) + " " + s.Version)
	switch {
	case m.Embedding:
		text += "; makes embeddings"
	case s.Kind == modelserver.Ollama:
		text += "; it cuts prompts that are longer than its num_ctx and does not say so"
	case m.Window == 0:
		text += "; it does not tell its context window"
	}
	return text
}

var badInName = regexp.MustCompile(`[^a-z0-9._:-]+`)

// name makes a name that clients may ask for out of what a server calls a model.
func (p *Plan) name(id string) string {
	id = id[strings.LastIndexAny(strings.TrimRight(id, "/"), "/\\")+1:]
	id = strings.TrimSuffix(strings.ToLower(id), ".gguf")
	id = strings.Trim(badInName.ReplaceAllString(id, "-"), "-")
	if id == "" || id == "auto" {
		id = "model"
	}
	taken := func(name string) bool {
		return slices.ContainsFunc(p.Models, func(m Model) bool { return m.Name == name })
	}
	name := id
	for n := 2; taken(name); n++ {
		name = id + "-" + strconv.Itoa(n)
	}
	return name
}

var parameters = regexp.MustCompile(`(?i)(?:^|[^a-z0-9.])(?:(\d+)x)?(\d+(?:\.\d+)?)(b|m)(?:[^a-z0-9]|$)`)

// billions reads the number of parameters in a model's name, such as 70b or 8x7b; 0 without one.
func billions(id string) float64 {
	m := parameters.FindStringSubmatch(id)
	if m == nil {
		return 0
	}
	n, _ := strconv.ParseFloat(m[2], 64) // the expression lets nothing else through
	if times, err := strconv.ParseFloat(m[1], 64); err == nil {
		n *= times
	}
	if strings.EqualFold(m[3], "m") {
		n /= 1000
	}
	return n
}

// rank picks the models of the default and of the route for hard questions, by their sizes.
func (p *Plan) rank() {
	var chat []Model
	for _, m := range p.Models {
		if !m.embedding {
			chat = append(chat, m)
		}
	}
	if len(chat) == 0 {
		chat = p.Models
	}
	sized := !slices.ContainsFunc(chat, func(m Model) bool { return m.size == 0 })
	if sized {
		slices.SortStableFunc(chat, func(a, b Model) int { return cmp.Compare(a.size, b.size) })
	}
	for _, m := range chat {
		p.Default = append(p.Default, m.Name)
	}
	if last := len(chat) - 1; sized && chat[last].size > chat[0].size {
		p.Hard = []string{chat[last].Name, chat[0].Name}
	}
}

// avoid moves the listeners away from ports that servers on this machine have.
func (p *Plan) avoid(found []Found) {
	used := map[string]bool{}
	for _, f := range found {
		u, err := url.Parse(f.Server.Base)
		if err != nil {
			continue
		}
		if ip := net.ParseIP(u.Hostname()); u.Hostname() == "localhost" || ip.IsLoopback() {
			used[u.Port()] = true
		}
	}
	for _, at := range []*string{&p.Listen, &p.AdminListen} {
		host, port, _ := net.SplitHostPort(*at)
		for n, _ := strconv.Atoi(port); used[port]; port = strconv.Itoa(n) {
			n++
		}
		used[port] = true
		*at = net.JoinHostPort(host, port)
	}
}

//go:embed signalbox.yaml.tmpl
var fileTemplate string

// YAML writes the plan as a configuration file.
func (p *Plan) YAML() ([]byte, error) {
	t, err := template.New("signalbox.yaml").Funcs(template.FuncMap{
		"scalar": scalar, "list": list, "comment": comment,
	}).Parse(fileTemplate)
	if err != nil {
		return nil, fmt.Errorf("template: %w", err)
	}
	var out bytes.Buffer
	if err := t.Execute(&out, p); err != nil {
		return nil, fmt.Errorf("write configuration: %w", err)
	}
	return out.Bytes(), nil
}

// scalar writes a text so that it stays one within a list in brackets.
func scalar(s string) (string, error) {
	if !strings.ContainsAny(s, "{}[],&*#?|<>=!%@\\\"'`$~\n\r\t ") {
		if b, err := yaml.Marshal(s); err == nil && !strings.HasPrefix(string(b), "\"") {
			return strings.TrimSpace(string(b)), nil
		}
	}
	b, err := yaml.Marshal(&yaml.Node{Kind: yaml.ScalarNode, Value: s, Tag: "!!str", Style: yaml.DoubleQuotedStyle})
	return strings.TrimSpace(string(b)), err
}

func list(words []string) (string, error) {
	out := make([]string, len(words))
	for i, w := range words {
		var err error
		if out[i], err = scalar(w); err != nil {
			return "", err
		}
	}
	return "[" + strings.Join(out, ", ") + "]", nil
}

// comment breaks a text into comment lines of at most 100 columns.
func comment(s string) string {
	var out strings.Builder
	width := 0
	for word := range strings.FieldsSeq(s) {
		if width == 0 || width+1+len(word) > 98 {
			if width > 0 {
				out.WriteByte('\n')
			}
			out.WriteByte('#')
			width = 1
		}
		out.WriteByte(' ')
		out.WriteString(word)
		width += 1 + len(word)
	}
	return out.String()
}
