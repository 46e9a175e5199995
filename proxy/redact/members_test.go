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

// wholes are requests that hold every member that a parser reads; openai checks that they do. known
// is a text in them that every signal reads.
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

// String names it in errors.
func (p parser) String() string {
	if p.messages {
		return "message"
	}
	return p.api.String()
}

// leftOut is what the page says of what no server gets.
const leftOut = "left out, no server gets it"

// why is the reason for which a mark is not read that was planted at path and is sent.
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

// A string that is planted: short as most names are, and too long for one.
const (
	shortMark = "zoe.q@example.com"
	longMark  = "zoe.with.a.name.longer.than.others.have@example.com"
)

// spot is a string of a body, or where one more member fits into an object.
type spot struct {
	path       string // as messages[].content[].text; of an object, that of the object
	start, end int
	object     bool
}

// spotsIn lists the strings that are values, and the objects, in order.
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
		switch tok.Kind() { //nolint:exhaustive // the others are no strings
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

// parentOf cuts the last member off a path, and leaves that of an object as it is.
func parentOf(path string) string { return path[:max(strings.LastIndexByte(path, '.'), 0)] }

// plant returns the body with texts in some places.
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

// reading is what becomes of a string.
type reading struct {
	how     string          // read, refused, or why not
	origins []signal.Origin // of what is read
	but     string          // why it is not read in some places
	hidden  string          // what redaction does with it
}

// readingOf plants mark in p and looks where it comes out. form is what is written around it.
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
	// What is not read: is it looked through for patterns, or hidden when the value is found elsewhere?
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

// mailFinder knows addresses by their domain, and needs a context that has not ended.
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

// whyNot is the reason for which the member at path, or one around it, is exempt; empty when none
// is.
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

// isIn reports whether the object at path is one in which members of the scope are exempt.
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

// What hiding makes of a translated request is one whose client knows no model's own words, too.
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
// members, and as a member more, and as the name of one, into every object. Each mark has to come
// out among the texts that signals and keywords read and has to be gone after redaction, or the
// request is refused, or the member is exempt for a reason. docs/members.md lists the outcome.
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
					if ok && before.how != got.how { // by the type of what it is in
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

// writeTable writes a line for each member; one line for those around it that fare alike.
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
			how = "no: refused where the API has no such value"
		}
		fmt.Fprintf(page, "| `%s` | %s | %s |\n", strings.TrimSuffix(top, "[]"), how, got.hidden)
	}
}

// under reports whether path is in the member at up, or is it.
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

// membersHead is the top of the page, with apostrophes for backquotes.
const membersHead = `# What is read of a request

<!-- Written by TestEveryMemberOfARequestHasAReader (proxy/redact, -update). Do not edit. -->

Every string of a request, and every name of a member, is read: by 'keyword' and 'pii', and by
'jailbreak' and 'injection' as its origin says ([signals.md](signals.md#origins)). The same holds
for members that are in none of these tables: they have the origin 'any', or in a message that of
its role. Not read are the members that are listed so, each with the reason, and words of the API
and of JSON Schema as names and short strings ('type', 'properties', 'string', 'auto'; the list is
in 'internal/openai/words.go'). Where several origins stand, it is that of the message.

'redact: true' replaces what 'pii' found, and the same value wherever else it stands: a value in a
member that is not read is replaced if it was found elsewhere in the request. What a server keeps or
compares without showing it to a model ('user', 'metadata', 'stop') is looked through for what its
characters tell, such as addresses and numbers of cards, by patterns and without a model. What
*stays* reaches the server as it came, because the server looks something up by it or could do
nothing with another value. Members that are not listed hold numbers or booleans.

Words that the application, the model and the server have agreed on stay as well: names of tools and
functions, in their description, in calls and in results; names of members and the lists 'enum',
'const' and 'required' in tools and schemas; names of 'metadata'. A placeholder in their place would
be refused by the server, or not be known to the application. So a person, a place or a company that
is named there reaches the server: a tool 'ask_claire', a property 'berlin', an 'enum' of customers.
Addresses of mail and numbers of cards, accounts, phones and the like are replaced there too, and
descriptions, titles, defaults and examples as any text. Other names of members that would become
equal, because they differ by case alone, get placeholders of their own.

A request to the Messages API is read as the chat completion that it becomes
([anthropic.md](anthropic.md)); members of its blocks and tools that are not listed are left out.
`
