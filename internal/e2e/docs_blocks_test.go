package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"signalbox/internal/app"
	"signalbox/internal/config"
)

// block is a fenced block of a page. What stands behind the language says what becomes of it; it is
// not shown to readers:
//
//	console          each command is run, and prints what the page says
//	console sample   each command is run; what it prints depends on what was recorded
//	sh               the script is run, and ends with 0
//	yaml             check takes it, once models, endpoints and a default are there
//	yaml FILE        and the commands of the page find it under that name
//	yaml after       and what the commands of the page made, such as a classifier
//	yaml serve       and the commands of the page talk to a proxy that serves it
//	yaml kubernetes  deploycheck decodes it into the types of Kubernetes
//	json, json FILE  it is JSON, or members of an object
//	python           it is Python; make examples runs it with the official SDKs
//	text, mermaid    nothing in it can be run
//
// and any of them may say (not run: WHY), as what needs a cluster, a GPU or another program; its
// form is looked at all the same.
type block struct {
	page     string
	line     int
	language string
	class    string // what becomes of it, empty for the language's own
	why      string // not empty: it is not run
	text     string
}

func (b *block) String() string { return fmt.Sprintf("%s:%d", b.page, b.line) }

// pages are all that have documentation for users and contributors.
func pages(t *testing.T) (out []string) {
	t.Helper()
	for _, pattern := range []string{"*.md", "docs/*.md", "*/README.md", "*/*/README.md"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, files...)
	}
	if len(out) < 40 {
		t.Fatalf("only %d pages are here", len(out))
	}
	return out
}

var (
	fence  = regexp.MustCompile("^( *)```([a-z]*) *(.*)$")
	notRun = regexp.MustCompile(`^\(not run: (\S+ \S+.*)\)$`)
)

// blocksOf reads the fenced blocks of a page. Those in lists are indented.
func blocksOf(page string, text []byte) (out []block, err error) {
	var b *block
	indent := ""
	n := 0
	for line := range strings.Lines(string(text)) {
		n++
		line = strings.TrimSuffix(line, "\n")
		m := fence.FindStringSubmatch(line)
		switch {
		case m == nil && b != nil:
			b.text += strings.TrimPrefix(line, indent) + "\n"
		case m == nil:
		case b != nil:
			out, b = append(out, *b), nil
		default:
			b = &block{page: page, line: n, language: m[2], class: m[3]}
			indent = m[1]
			if why := notRun.FindStringSubmatch(m[3]); why != nil {
				b.class, b.why = "", why[1]
			}
		}
	}
	if b != nil {
		err = fmt.Errorf("%s: a block has no end", b)
	}
	return out, err
}

// Every block of the documentation belongs to a class, and is what its class wants it to be.
func TestBlocksOfTheDocumentation(t *testing.T) {
	t.Parallel()
	counts := map[string]int{}
	for _, page := range pages(t) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		all, err := blocksOf(filepath.ToSlash(page), text)
		if err != nil {
			t.Error(err)
		}
		for i := range all {
			counts[all[i].language]++
			if err := all[i].check(t); err != nil {
				t.Errorf("%s: %v", &all[i], err)
			}
		}
	}
	for language, least := range map[string]int{"console": 15, "sh": 15, "yaml": 40, "json": 6, "python": 3} {
		if counts[language] < least {
			t.Errorf("only %d blocks of %s were found", counts[language], language)
		}
	}
}

var fileName = regexp.MustCompile(`^[a-z][a-z0-9-]*\.(yaml|jsonl?)$`)

// check looks at the form of a block.
func (b *block) check(t *testing.T) error {
	t.Helper()
	named := b.class == "" || fileName.MatchString(b.class)
	switch {
	case b.language == "console" && (b.class == "" || b.class == "sample"):
		if len(commands(b.text)) == 0 {
			return errors.New("it has no command: a command stands behind a dollar sign")
		}
		return nil
	case b.language == "sh" && b.class == "":
		return parses(t, b.text, "bash", "-n")
	case b.language == "python" && b.class == "":
		return parses(t, b.text, "python3", "-c", "import ast, sys; ast.parse(sys.stdin.read())")
	case b.language == "json" && named:
		return members(b.text)
	case b.language == "yaml" && (b.why != "" || b.class == "kubernetes" || b.class == "after"):
		var node yaml.Node
		return yaml.Unmarshal([]byte(b.text), &node)
	case b.language == "yaml" && (named || b.class == "serve"):
		return taken(b.page, b.text)
	case (b.language == "text" || b.language == "mermaid") && b.class == "" && b.why == "":
		return nil
	}
	return fmt.Errorf("```%s %s is of no class that is known: see type block", b.language, b.class)
}

// members reports whether a text is JSON: values, or members of an object.
func members(text string) error {
	d := json.NewDecoder(strings.NewReader(text))
	for {
		var v any
		err := d.Decode(&v)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil || d.InputOffset() == 0 {
			break
		}
		if _, word := v.(string); word { // the name of a member
			break
		}
	}
	var object map[string]any
	if err := json.Unmarshal([]byte("{"+text+"}"), &object); err != nil {
		return fmt.Errorf("it is no JSON: %w", err)
	}
	return nil
}

// taken reports why check would not take a configuration, once what it leaves out is there.
func taken(page, text string) error {
	whole, err := complete(text, nil)
	if err != nil {
		return err
	}
	// Where a secret is needed, any will do.
	set := func(string) (string, bool) { return "redis://127.0.0.1:6379", true }
	_, warnings, err := config.Parse(filepath.Base(page), whole, set, app.Catalog)
	if err != nil {
		return fmt.Errorf("%w\n%s", err, whole)
	}
	for i := range warnings {
		if strings.Contains(text, "endpoints:") && strings.Contains(warnings[i].Msg, "changes nothing") {
			return fmt.Errorf("check warns: %s", warnings[i].Msg) // who copies it gets to see that first
		}
	}
	return nil
}

// complete adds to a part of a configuration what it leaves out: the models that it names, their
// endpoints, prompts, a default. at says where a model is served; nil is a constant.
func complete(text string, at func(served string) string) ([]byte, error) {
	if at == nil {
		at = func(string) string { return "http://127.0.0.1:8000/v1" }
	}
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
		return nil, err
	}
	if len(doc.Content) != 1 || doc.Content[0].Kind != yaml.MappingNode {
		return nil, errors.New("it is no mapping")
	}
	top := doc.Content[0]
	models := section(top, "models", yaml.SequenceNode)
	var names, prompts []string
	referenced(top, models, &names, &prompts)
	if member(top, "default") == nil {
		if len(models.Content) > 0 {
			names = append(names, member(models.Content[0], "name").Value)
		}
		if names == nil {
			names = []string{"m"}
		}
		set(top, "default", "{models: ["+names[0]+"]}")
	}
	for _, name := range names {
		if named(models, name) == nil {
			models.Content = append(models.Content, value("{name: "+name+"}"))
		}
	}
	for _, m := range models.Content {
		served := member(m, "served_as")
		if served == nil {
			served = member(m, "name")
		}
		if e := member(m, "endpoints"); e == nil {
			set(m, "endpoints", "[{name: e, url: "+at(served.Value)+"}]")
		}
		if member(m, "price") == nil {
			set(m, "price", "{input: 1, output: 2}")
		}
	}
	if len(prompts) > 0 {
		texts := section(top, "prompts", yaml.SequenceNode)
		for _, name := range prompts {
			if named(texts, name) == nil {
				texts.Content = append(texts.Content, value("{name: "+name+", text: Be brief.}"))
			}
		}
	}
	var out bytes.Buffer
	err := yaml.NewEncoder(&out).Encode(&doc)
	return out.Bytes(), err
}

// referenced finds the models and prompts that rules name.
func referenced(n, models *yaml.Node, names, prompts *[]string) {
	if n == models {
		return
	}
	for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
		key, v := n.Content[i].Value, n.Content[i+1]
		switch {
		case key == "models" && v.Kind == yaml.SequenceNode:
			for _, m := range v.Content {
				if m.Kind == yaml.ScalarNode {
					*names = append(*names, m.Value)
				}
			}
		case (key == "canary" || key == "mirror") && member(v, "model") != nil:
			*names = append(*names, member(v, "model").Value)
		case key == "prompt" && v.Kind == yaml.ScalarNode:
			*prompts = append(*prompts, v.Value)
		}
	}
	for _, c := range n.Content {
		referenced(c, models, names, prompts)
	}
}

func member(n *yaml.Node, key string) *yaml.Node {
	for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i+1]
		}
	}
	return nil
}

func named(list *yaml.Node, name string) *yaml.Node {
	at := slices.IndexFunc(list.Content, func(n *yaml.Node) bool {
		v := member(n, "name")
		return v != nil && v.Value == name
	})
	if at < 0 {
		return nil
	}
	return list.Content[at]
}

func section(n *yaml.Node, key string, kind yaml.Kind) *yaml.Node {
	if v := member(n, key); v != nil {
		return v
	}
	v := &yaml.Node{Kind: kind}
	n.Content = append(n.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: key}, v)
	return v
}

func set(n *yaml.Node, key, text string) {
	n.Content = append(n.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: key}, value(text))
}

// value is that of a text in YAML.
func value(text string) *yaml.Node {
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
		panic(err) // the texts are constant but for names
	}
	return doc.Content[0]
}
