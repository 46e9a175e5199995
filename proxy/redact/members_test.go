package redact

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"signalbox/internal/anthropic"
	"signalbox/internal/openai"
	"signalbox/internal/signal"
	"signalbox/internal/testkit"
)

var update = flag.Bool("update", false, "rewrite docs/members.md")

// membersDoc is the page that lists what reads each member of a request.
const membersDoc = "../../docs/members.md"

// wholes are requests that hold every member that a parser reads, which package openai checks. text
// is the path of a string in them that every signal reads.
var wholes = []struct {
	parse             parser
	title, file, text string
}{
	{parser{api: openai.Chat}, "Chat Completions", "chat", "messages[].content"},
	{parser{api: openai.Completion}, "Completions", "completion", "suffix"},
	{parser{api: openai.Response}, "Responses", "response", "instructions"},
	{parser{api: openai.Chat, messages: true}, "Messages (Anthropic)", "messages", "messages[].content"},
	{parser{api: openai.Other}, "Embeddings and other endpoints", "other", "instructions"},
}

// parser reads the bodies of an API.
type parser struct {
	api      openai.API
	messages bool // those of the Messages API, as chats
}

func (p parser) read(body []byte) (*openai.Request, error) {
	if !p.messages {
		return openai.Parse(p.api, body, openai.Limits{})
	}
	r, err := anthropic.ToChat(body, anthropic.Options{})
	if err != nil {
		return nil, err
	}
	return openai.Parse(p.api, r.Chat, openai.Limits{})
}

// String returns the name of the parser for errors.
func (p parser) String() string {
	if p.messages {
		return "message"
	}
	return p.api.String()
}

// leftOut is the page's text for members that are not forwarded to any server.
const leftOut = "is dropped"

// why returns the reason why a mark that was planted at path, and is sent, is not read.
func (p parser) why(t *testing.T, path, mark string, sent []byte) string {
	t.Helper()
	if !p.messages {
		return whyNot(path)
	}
	for _, s := range spotsIn(t, sent) { // under the name that it has in the chat
		if bytes.Contains(sent[s.start:s.end], []byte(mark)) {
			return whyNot(s.path)
		}
	}
	return ""
}

// Planted strings: one as short as most names are, and one too long for a name.
const (
	shortMark = "zoe.q@example.com"
	longMark  = "zoe.with.a.name.longer.than.others.have@example.com"
)

// spot is a string in a body, or a place in an object where a member can be added.
type spot struct {
	path       string // such as messages[].content[].text, or the path of the object
	start, end int
	object     bool
}

// spotsIn lists the string values and the objects of a body, in order.
func spotsIn(t *testing.T, raw []byte) (out []spot) {
	t.Helper()
	d := jsontext.NewDecoder(bytes.NewBuffer(raw))
	var paths []string // by depth
	for d.PeekKind() != 0 {
		depth := d.StackDepth()
		kind, n := d.StackIndex(depth)
		isName := kind == '{' && n%2 == 0
		at := ""
		if depth > 0 {
			at = paths[depth-1]
		}
		tok, err := d.ReadToken()
		if err != nil {
			t.Fatal(err)
		}
		end := int(d.InputOffset())
		switch tok.Kind() { //nolint:exhaustive // other tokens are not strings
		case '"':
			if isName {
				paths[depth-1] = strings.TrimPrefix(parentOf(at)+"."+tok.String(), ".")
				continue
			}
			out = append(out, spot{path: at, start: end - len(tok.String()) - 2, end: end})
		case '{':
			out = append(out, spot{path: at, start: end, end: end, object: true})
			paths = append(paths[:depth], at+".")
		case '[':
			paths = append(paths[:depth], at+"[]")
		}
	}
	return out
}

// parentOf removes the last member from a path. The path of an object stays as it is.
func parentOf(path string) string { return path[:max(strings.LastIndexByte(path, '.'), 0)] }

// plant returns the body with the given texts in the given places.
func plant(raw []byte, what map[spot]string) []byte {
	at := make([]spot, 0, len(what))
	for p := range what {
		at = append(at, p)
	}
	slices.SortFunc(at, func(a, b spot) int { return a.start - b.start })
	var out []byte
	from := 0
	for _, p := range at {
		out = append(append(out, raw[from:p.start]...), what[p]...)
		from = p.end
	}
	return append(out, raw[from:]...)
}

// reading describes how a string is handled.
type reading struct {
	how     string          // read, refused, or the reason why it is not read
	origins []signal.Origin // of the strings that are read
	but     string          // the reason why it is not read in some places
	hidden  string          // the effect of redaction
}

// readingOf plants mark at p and reports where it appears. form is the format that the mark is
// written in.
func readingOf(t *testing.T, api parser, raw []byte, p, known spot, mark, form string) reading {
	t.Helper()
	body := plant(raw, map[spot]string{p: fmt.Sprintf(form, mark)})
	req, err := api.read(body)
	if wire, ok := errors.AsType[*openai.Error](err); ok {
		at := withoutIndexes(wire.Param) + "."
		if wire.Status != 400 || !strings.HasPrefix(at, strings.TrimSuffix(p.path, ".")) {
			t.Errorf("%s of a %s is refused with %d for %q", p.path, api, wire.Status, wire.Param)
		}
		return reading{how: "refused", hidden: "-"}
	}
	var out reading
	if spans := spansOfMark(req, mark); spans != nil {
		for _, s := range spans {
			out.origins = append(out.origins, req.Text().Segments[s.Segment].Origin)
		}
		out.how, out.hidden = "read", "replaced"
		hiddenReq, _, err := Hide(t.Context(), req, spans, nil, nil)
		if err != nil || bytes.Contains(hiddenReq.Raw, []byte(mark)) {
			t.Errorf("%s of a %s is not redacted: %v", p.path, api, err)
		}
		return out
	}
	sent := openai.NewPatch(req).Bytes()
	switch {
	case bytes.Contains(sent, []byte(mark)):
	case api.messages && !bytes.Contains(req.Raw, []byte(mark)):
		return reading{how: leftOut, hidden: "not sent"}
	default:
		return reading{how: api.why(t, p.path, mark, req.Raw), hidden: "not sent"}
	}
	out.how = api.why(t, p.path, mark, sent)
	// Not read: do patterns search it, or is it hidden when the value is found elsewhere?
	hiddenReq, _, err := Hide(t.Context(), req, nil, mailFinder{}, nil)
	if err != nil {
		t.Errorf("%s of a %s: %v", p.path, api, err)
	} else if !bytes.Contains(hiddenReq.Raw, []byte(mark)) {
		out.hidden = "if a pattern finds it"
		return out
	}
	body = plant(raw, map[spot]string{p: fmt.Sprintf(form, mark), known: fmt.Sprintf("%q", mark)})
	req, err = api.read(body)
	if err != nil {
		t.Fatal(err)
	}
	hiddenReq, _, err = Hide(t.Context(), req, spansOfMark(req, mark), nil, nil)
	switch {
	case err != nil:
		t.Errorf("%s of a %s: %v", p.path, api, err)
	case bytes.Contains(hiddenReq.Raw, []byte(mark)):
		out.hidden = "stays"
	default:
		out.hidden = "if found elsewhere"
	}
	return out
}

// mailFinder finds addresses by their domain. It fails if its context has ended.
type mailFinder struct{}

func (mailFinder) FindPersonal(ctx context.Context, text string) (out []signal.Span, err error) {
	const domain = "@example.com"
	if end := strings.Index(text, domain) + len(domain); end >= len(domain) {
		start := strings.LastIndexByte(text[:end], ' ') + 1
		out = append(out, signal.Span{Type: "EMAIL_ADDRESS", Start: start, End: end, Score: 1})
	}
	return out, ctx.Err()
}

func spansOfMark(req *openai.Request, mark string) (out []signal.Span) {
	for i, s := range req.Text().Segments {
		if at := strings.Index(s.Text, mark); at >= 0 {
			out = append(out, signal.Span{
				Type: "EMAIL_ADDRESS", Segment: i, Start: at, End: at + len(mark), Score: 1,
			})
		}
	}
	return out
}

// withoutIndexes turns messages[0].role into messages[].role.
func withoutIndexes(param string) string {
	var b strings.Builder
	inside := false
	for _, r := range param {
		if inside = inside && r != ']'; !inside {
			b.WriteRune(r)
		}
		inside = inside || r == '['
	}
	return b.String()
}

// whyNot returns the reason why the member at path, or one around it, is exempt, and an empty string
// if none is.
func whyNot(path string) string {
	for ; ; path = strings.TrimSuffix(parentOf(path), "[]") {
		in, name := "body", strings.TrimSuffix(path, "[]")
		if i := strings.LastIndexByte(name, '.'); i >= 0 {
			in, name = name[:i], name[i+1:]
		}
		for _, e := range openai.Exemptions() {
			if e.Name == name && isIn(e.In, in) {
				return e.Why
			}
		}
		if path == "" {
			return ""
		}
	}
}

// isIn reports whether members of the object at path are in the scope of an exemption.
func isIn(scope, path string) bool {
	part := strings.HasSuffix(path, "].content[]") || strings.HasSuffix(path, "].output[]")
	switch scope {
	case "body", "prompt":
		return path == scope
	case "part":
		return part
	case "medium":
		i := strings.LastIndexByte(path, '.')
		return i > 0 && isIn("part", path[:i])
	case "item":
		return path == "input[]"
	}
	return false
}

// A translated request stays marked as translated after its values are hidden.
func TestAHiddenRequestStaysTranslated(t *testing.T) {
	t.Parallel()
	req, err := openai.ParseChat([]byte(`{"model":"m","messages":[{"role":"user","content":"`+shortMark+`"}]}`), openai.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	req.Translated, req.ThinkingBudget, req.Places = true, 1024, []openai.Place{{Message: 3}}
	hidden, _, err := Hide(t.Context(), req, spansOfMark(req, shortMark), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if !hidden.Translated || hidden.ThinkingBudget != 1024 || !slices.Equal(hidden.Places, req.Places) ||
		bytes.Contains(hidden.Raw, []byte(shortMark)) {
		t.Errorf("%+v", hidden)
	}
}

// TestEveryMemberOfARequestHasAReader plants a mark into every string of a body that has all
// members, and into every object as an additional member and as the name of one. Each mark must
// appear among the texts that signals and keywords read and must be gone after redaction, or the
// request must be refused, or the member must be exempt for a reason. docs/members.md lists the
// results.
func TestEveryMemberOfARequestHasAReader(t *testing.T) {
	t.Parallel()
	marks := []string{shortMark, longMark}
	if testkit.Race {
		marks = marks[:1]
	}
	var page strings.Builder
	page.WriteString(strings.ReplaceAll(membersHead, "'", "`"))
	for _, w := range wholes {
		raw, err := os.ReadFile("../../internal/openai/testdata/whole/" + w.file + ".json")
		if err != nil {
			t.Fatal(err)
		}
		places := spotsIn(t, raw)
		known := places[slices.IndexFunc(places, func(p spot) bool { return p.path == w.text })]
		table := map[string]reading{}
		var order []string
		for _, p := range places {
			forms := []string{"%q"}
			if p.object {
				forms = []string{`"zz":%q,`, `%q:1,`}
			}
			for _, form := range forms {
				for _, mark := range marks {
					got := readingOf(t, w.parse, raw, p, known, mark, form)
					if got.how == "" {
						t.Errorf("%s: nobody reads %s (%s)", w.title, p.path, form)
					}
					if p.object || mark == longMark {
						continue
					}
					before, ok := table[p.path]
					if !ok {
						order = append(order, p.path)
					}
					got.origins = append(before.origins, got.origins...)
					if ok && before.how != got.how { // depends on the type of the enclosing object
						if got.how != "read" {
							before, got = got, before
						}
						got.but = before.how
					}
					table[p.path] = got
				}
			}
		}
		writeTable(&page, w.title, order, table)
	}
	if *update {
		if err := os.WriteFile(membersDoc, []byte(page.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(membersDoc)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), page.String()); d != "" {
		t.Errorf("docs/members.md is old; go test ./proxy/redact -update (-doc +now):\n%s", d)
	}
}

// writeTable writes a row for each member, or one row for an enclosing member whose strings are all
// handled alike.
func writeTable(page *strings.Builder, title string, order []string, table map[string]reading) {
	fmt.Fprintf(page, "\n## %s\n\n| member | read | redacted |\n| --- | --- | --- |\n", title)
	done := map[string]bool{}
	for _, path := range order {
		top := path
		for up := path; up != ""; up = strings.TrimSuffix(parentOf(up), "[]") {
			if alike(up, path, table) && up != "messages" && up != "input" {
				top = up
			}
		}
		if name := strings.TrimSuffix(top, "[]"); !done[name] {
			done[name] = true
		} else {
			continue
		}
		got := table[path]
		how := "no: " + got.how
		switch got.how {
		case "read":
			how = "as " + originsUnder(top, table)
			if got.but != "" {
				how += "; no: " + got.but
			}
		case "refused":
			how = "no: other values than those of the API are refused"
		}
		fmt.Fprintf(page, "| `%s` | %s | %s |\n", strings.TrimSuffix(top, "[]"), how, got.hidden)
	}
}

// under reports whether path is the member at up or inside it.
func under(up, path string) bool {
	rest, ok := strings.CutPrefix(path, up)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[' || strings.HasSuffix(up, "[]"))
}

func alike(up, path string, table map[string]reading) bool {
	for other, r := range table {
		if under(up, other) && (r.how != table[path].how || r.hidden != table[path].hidden) {
			return false
		}
	}
	return true
}

func originsUnder(up string, table map[string]reading) string {
	var has [signal.NumOrigins]bool
	for path, r := range table {
		for _, o := range r.origins {
			has[o] = has[o] || under(up, path)
		}
	}
	var names []string
	for o := range signal.NumOrigins {
		if has[o] {
			names = append(names, o.String())
		}
	}
	return strings.Join(names, ", ")
}

// membersHead is the beginning of the page, with apostrophes instead of backquotes.
const membersHead = `# Members of a request: what is read and redacted

<!-- Written by TestEveryMemberOfARequestHasAReader (proxy/redact, -update). Do not edit. -->

The tables below list, for each member of a request, whether signals read its strings and what
redaction does with them.

## How to read the tables

| column | value | meaning |
| --- | --- | --- |
| read | as ORIGIN | the string is read as text of this origin; of several origins, that of the message applies |
| read | no: REASON | the string is not read |
| redacted | replaced | personal data that 'pii' finds is replaced |
| redacted | if found elsewhere | a value is replaced if 'pii' found the same value in another part of the request |
| redacted | if a pattern finds it | patterns search the string, without a model, for values such as mail addresses and card numbers |
| redacted | stays | the string is forwarded unchanged: the server looks something up by it, or could not use another value |
| redacted | not sent | the string is not forwarded |

## What is read

All strings of a request and all names of its members are read, by 'keyword' and 'pii', and
depending on their origin by 'jailbreak' and 'injection' ([signals.md](signals.md#origins)). This
includes members unknown to the API: their origin is 'any', or inside a message that of its role.
Members of the API that are missing from the tables hold numbers or booleans.

Two kinds of strings are not read:

- members listed below with 'no' and a reason
- words of the API and of JSON Schema, as names and as short strings ('type', 'properties',
  'string', 'auto'); 'internal/openai/words.go' lists them

A request to the Messages API is read as the chat completion that it is translated to
([anthropic.md](anthropic.md)). Members of its blocks and tools that are not listed are dropped.

## What is redacted

'redact: true' replaces the values that 'pii' found, and every other occurrence of the same value in
the request, also in members that are not read. In members that a server stores or compares without
showing them to a model ('user', 'metadata', 'stop'), only patterns search for personal data.

Identifiers that the application, the model and the server share are not replaced, because the
server would reject a placeholder or the application would not recognise it:

- names of tools and functions, in their descriptions, in calls and in results
- names of members, and the lists 'enum', 'const' and 'required', in tools and schemas
- names in 'metadata'

A person, a place or a company named in such an identifier therefore reaches the server: a tool
'ask_claire', a property 'berlin', an 'enum' of customers. Mail addresses and the numbers of cards,
accounts and phones are replaced there too. Descriptions, titles, defaults and examples are redacted
like any other text. Other member names that would become equal because they differ only by case get
separate placeholders.
`
