package main

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"go/ast"
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
)

// openapiHead is the part of the description that no type tells: what is OpenAI's own, and the
// headers. The rest is made from the tables and types of the code.
//
//go:embed openapi.head.json
var openapiHead []byte

// operation is one method of one path.
type operation struct {
	method, path, tag, summary string
	// body and result name Go types, such as explain.Explanation, or schemas of openapi.head.json,
	// such as #Chat; empty for none. A result may be in a list or a member: "intents=[proxy.X]".
	body, result string
	status, also int      // 0 means 200; another status with the same body
	kinds        []string // of the result, besides JSON
	query        []string
	admin, open  bool // on the admin listener; without a key
	errors       bool // an operation of the admin listener with the errors of the API
}

// operations are all methods of both listeners; a test compares them with the routers.
func operations() []operation {
	const models, contexts, look, ops = "Models", "Contexts", "Decisions", "Operation"
	events := []string{"text/event-stream"}
	id := "/v1/contexts/{id}"
	return []operation{
		{method: "post", path: "/v1/chat/completions", tag: models, summary: "Answer a conversation; model auto is routed", body: "#Chat", result: "#Any", kinds: events},
		{method: "post", path: "/v1/completions", tag: models, summary: "Complete a text", body: "#Completion", result: "#Any", kinds: events},
		{method: "post", path: "/v1/responses", tag: models, summary: "Answer through the Responses API", body: "#Response", result: "#Any", kinds: events},
		{method: "post", path: "/v1/messages", tag: models, summary: "Answer through Anthropic's Messages API", body: "#Messages", result: "#Message", kinds: events},
		{method: "post", path: "/v1/messages/count_tokens", tag: models, summary: "Count the tokens of a request to the Messages API", body: "#MessagesToCount", result: "#Counted"},
		{method: "post", path: "/v1/embeddings", tag: models, summary: "Embed texts; the model must be named", body: "#Named", result: "#Any"},
		{method: "post", path: "/v1/rerank", tag: models, summary: "Rank documents; the model must be named", body: "#Named", result: "#Any"},
		{method: "post", path: "/v1/tokenize", tag: models, summary: "Count tokens; the model must be named", body: "#Named", result: "#Any"},
		{method: "post", path: "/v1/audio/speech", tag: models, summary: "Speak a text; the model must be named", body: "#Named", result: "#Any", kinds: []string{"audio/*"}},
		{method: "post", path: "/v1/audio/transcriptions", tag: models, summary: "Write down speech; the model must be named", body: "#Form", result: "#Any", kinds: events},
		{method: "post", path: "/v1/audio/translations", tag: models, summary: "Translate speech; the model must be named", body: "#Form", result: "#Any"},
		{
			method: "get", path: "/v1/models", tag: models, result: "openai.ModelList",
			summary: "List the models that the caller may ask for; with anthropic-version in the shape of Anthropic's API",
		},
		{
			method: "get", path: "/v1/models/{model}", tag: models, result: "openai.ModelObject",
			summary: "One model; with anthropic-version in the shape of Anthropic's API",
		},

		{method: "post", path: "/signalbox/v1/classify", tag: look, summary: "Compute the signals of texts, or of one conversation", body: "signals.classifyBody", result: "results=[{signals.Result}]"},
		{
			method: "post", path: "/signalbox/v1/explain", tag: look,
			summary: "Decide a chat completion request and forward nothing",
			body:    "#Chat", result: "explain.Explanation",
		},
		{
			method: "post", path: "/signalbox/v1/verify", tag: look, summary: "Check the claims of a text against facts",
			body: "guardrail.VerifyBody", result: "guardrail.Verdict",
		},
		{
			method: "post", path: "/signalbox/v1/feedback", tag: look, summary: "Say how good an answer was",
			body: "feedback.Body", result: "feedback.Judged",
		},
		{method: "get", path: "/signalbox/v1/intents", tag: look, summary: "List the private intents", result: "intents=[signals.Intent]"},
		{method: "post", path: "/signalbox/v1/intents/{name}/examples", tag: look, summary: "Add examples to an intent, in this process", body: "#Examples", result: "#Taught"},

		{method: "post", path: "/v1/contexts", tag: contexts, summary: "Store a text, which requests name then", body: "contexts.createBody", result: "contexts.object"},
		{method: "get", path: "/v1/contexts", tag: contexts, summary: "List contexts", result: "contexts.listObject", query: []string{"after", "limit"}},
		{method: "get", path: id, tag: contexts, summary: "Tell of a context", result: "contexts.object", query: []string{"lease"}},
		{method: "patch", path: id, tag: contexts, summary: "Change a context, or append to it", body: "contexts.patchBody", result: "contexts.object"},
		{method: "delete", path: id, tag: contexts, summary: "Delete a context", result: "contexts.deleted"},
		{method: "get", path: id + "/content", tag: contexts, summary: "The text of a context", result: "#Any", kinds: []string{"text/plain"}, query: []string{"lease"}},
		{method: "post", path: id + "/wake", tag: contexts, summary: "Bring a context in", result: "contexts.object", status: 202},
		{method: "post", path: id + "/page_out", tag: contexts, summary: "Page a context out", body: "#PageOut", result: "contexts.object"},
		{method: "post", path: id + "/warm", tag: contexts, summary: "Have model servers read a context ahead of need", body: "#Warm", result: "contexts.object", also: 202},
		{method: "post", path: id + "/leases", tag: contexts, summary: "Keep a version from being deleted", body: "#Lease", result: "contexts.leaseObject"},
		{method: "delete", path: id + "/leases/{lease}", tag: contexts, summary: "Give a lease back", result: "contexts.deleted"},
		{method: "put", path: id + "/facts", tag: contexts, summary: "Pin facts to a context", body: "#Facts", result: "contexts.factsObject"},
		{method: "get", path: id + "/facts", tag: contexts, summary: "The facts of a context", result: "contexts.factsObject"},
		{method: "delete", path: id + "/facts", tag: contexts, summary: "Drop the facts of a context", result: "contexts.deleted"},
		{method: "put", path: "/v1/sessions/{id}/facts", tag: contexts, summary: "Pin facts to a session", body: "#Facts", result: "contexts.factsObject"},
		{method: "get", path: "/v1/sessions/{id}/facts", tag: contexts, summary: "The facts of a session", result: "contexts.factsObject"},
		{method: "delete", path: "/v1/sessions/{id}/facts", tag: contexts, summary: "Drop the facts of a session", result: "contexts.deleted"},

		{method: "get", path: "/healthz", tag: ops, summary: "The process lives", result: "#Any", open: true},
		{method: "get", path: "/readyz", tag: ops, summary: "Whether requests can be served, and what is degraded", result: "proxy.Detail", open: true},
		{method: "get", path: "/health", tag: ops, summary: "What /readyz says, where clients of vLLM look", result: "proxy.Detail", open: true},
		{method: "get", path: "/metrics", tag: ops, summary: "Metrics in the text format of Prometheus", kinds: []string{"text/plain"}, admin: true, open: true},
		{method: "post", path: "/-/reload", tag: ops, summary: "Read the configuration again", status: 204, admin: true},
		{method: "get", path: "/-/outcomes", tag: ops, summary: "How good answers were, as JSON lines", kinds: []string{"application/jsonl"}, query: []string{"tenant"}, admin: true},
		{method: "delete", path: "/-/outcomes", tag: ops, summary: "Forget the outcomes of a tenant", status: 204, query: []string{"tenant"}, admin: true},
		{method: "post", path: "/-/keys", tag: ops, summary: "Make a virtual key; the answer alone has its secret", body: "keyring.createBody", result: "keyring.shownKey", status: 201, admin: true, errors: true},
		{method: "get", path: "/-/keys", tag: ops, summary: "List the virtual keys, by name", result: "keys=[keyring.Key]", query: []string{"tenant"}, admin: true, errors: true},
		{method: "get", path: "/-/keys/{id}", tag: ops, summary: "One virtual key, with what is used of its bounds", result: "keyring.usedKey", admin: true, errors: true},
		{method: "patch", path: "/-/keys/{id}", tag: ops, summary: "Change a virtual key: what is left out stays, null is the default", body: "keyring.patchBody", result: "keyring.Key", admin: true, errors: true},
		{method: "delete", path: "/-/keys/{id}", tag: ops, summary: "Revoke a virtual key", result: "keyring.revoked", admin: true, errors: true},
		{method: "post", path: "/-/keys/{id}/rotate", tag: ops, summary: "Make another secret for a virtual key; the answer alone has it", body: "keyring.rotateBody", result: "keyring.shownKey", admin: true, errors: true},
		{method: "get", path: "/debug/pprof/", tag: ops, summary: "Profiles of the process, with server.pprof", kinds: []string{"text/html"}, admin: true},
	}
}

var (
	inPath  = regexp.MustCompile(`\{([a-z]+)\}`)
	notWord = regexp.MustCompile(`[^a-zA-Z]+`)
)

// openapi writes the description of the HTTP API.
func (g *generator) openapi(file string) error {
	var doc object
	if err := json.Unmarshal(openapiHead, &doc); err != nil {
		return fmt.Errorf("openapi.head.json: %w", err)
	}
	schemas := doc["components"].(map[string]any)["schemas"].(map[string]any)
	paths := map[string]object{}
	for _, o := range operations() {
		built, err := g.operation(schemas, &o)
		if err != nil {
			return fmt.Errorf("%s %s: %w", o.method, o.path, err)
		}
		if paths[o.path] == nil {
			paths[o.path] = object{}
		}
		paths[o.path][o.method] = built
		if o.admin {
			paths[o.path]["servers"] = []object{{"url": "http://127.0.0.1:9090", "description": "the admin listener"}}
		}
	}
	doc["paths"] = paths
	b, err := json.MarshalIndent(doc, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(b, '\n'), 0o600)
}

func (g *generator) operation(schemas map[string]any, o *operation) (object, error) {
	id := o.method + strings.ReplaceAll(strings.Title(notWord.ReplaceAllString(o.path, " ")), " ", "") //nolint:staticcheck // ASCII
	out := object{"tags": []string{o.tag}, "summary": o.summary, "operationId": id}
	var params []object
	for _, m := range inPath.FindAllStringSubmatch(o.path, -1) {
		params = append(params, object{"name": m[1], "in": "path", "required": true, "schema": object{"type": "string"}})
	}
	for _, q := range o.query {
		params = append(params, object{"name": q, "in": "query", "schema": object{"type": "string"}})
	}
	if params != nil {
		out["parameters"] = params
	}
	if o.open {
		out["security"] = []object{}
	}
	if o.body != "" {
		s, err := g.named(schemas, o.body, true)
		if err != nil {
			return nil, err
		}
		kind := "application/json"
		if o.body == "#Form" {
			kind = "multipart/form-data"
		}
		out["requestBody"] = object{"required": true, "content": object{kind: object{"schema": s}}}
	}
	status, ok := "200", object{"description": "done"}
	if o.status != 0 {
		status = fmt.Sprint(o.status)
	}
	content := object{}
	if o.result != "" {
		s, err := g.named(schemas, o.result, false)
		if err != nil {
			return nil, err
		}
		content["application/json"] = object{"schema": s}
	}
	for _, k := range o.kinds {
		content[k] = object{"schema": object{"type": "string"}}
	}
	if len(content) > 0 {
		ok["content"] = content
	}
	if o.tag == "Models" && o.method == "post" {
		ok["headers"] = object{}
		for _, h := range []string{"Route", "Model", "Domain", "Reasoning", "Endpoint", "Degraded", "Guard"} {
			ok["headers"].(object)["X-Signalbox-"+h] = object{"$ref": "#/components/headers/" + h}
		}
	}
	responses := object{status: ok, "default": object{"$ref": "#/components/responses/Error"}}
	if strings.HasPrefix(o.body, "#Messages") {
		responses["default"] = object{"$ref": "#/components/responses/MessageError"}
	}
	if o.also != 0 {
		responses[fmt.Sprint(o.also)] = object{"description": "begun", "content": content}
	}
	if o.result == "proxy.Detail" {
		responses["503"] = object{"description": "not ready", "content": content}
	}
	if o.admin {
		if !o.errors {
			delete(responses, "default")
		}
		responses["403"] = object{"description": "from elsewhere, or without server.admin_token"}
		if o.path == "/-/reload" {
			text := object{"text/plain": object{"schema": object{"type": "string"}}}
			responses["200"] = object{
				"description": "done but for settings that take a restart; the text names them", "content": text,
			}
			responses["400"] = object{"description": "the file cannot be used; the text says why", "content": text}
		}
	}
	out["responses"] = responses
	return out, nil
}

// named returns the schema of a type or of a name in the head: in brackets for a list, in braces
// for a mapping, after a member and = for an object with that member.
func (g *generator) named(schemas map[string]any, name string, isBody bool) (object, error) {
	if member, of, ok := strings.Cut(name, "="); ok {
		s, err := g.named(schemas, of, isBody)
		return object{"type": "object", "required": []string{member}, "properties": object{member: s}}, err
	}
	inner := strings.Trim(name, "[]{}")
	switch name[0] {
	case '[':
		s, err := g.named(schemas, name[1:len(name)-1], isBody)
		return object{"type": "array", "items": s}, err
	case '{':
		s, err := g.named(schemas, inner, isBody)
		return object{"type": "object", "additionalProperties": s}, err
	case '#':
		if schemas[name[1:]] == nil {
			return nil, fmt.Errorf("no schema %s", name)
		}
		return object{"$ref": "#/components/schemas/" + name[1:]}, nil
	}
	q, typ, _ := strings.Cut(name, ".")
	return g.component(schemas, q, typ, isBody)
}

// publicName returns the name of a schema. It stays the same when a type moves from package proxy
// to a package below it, because client code is generated from these names.
func publicName(qualifier, name string) string {
	full := join(qualifier, name)
	switch full {
	case "signals.Result":
		return "proxy.signalResult"
	case "signals.Trace":
		return "proxy.SignalTrace"
	case "feedback.Body":
		return "proxy.feedbackBody"
	case "guardrail.VerifyBody":
		return "proxy.verifyBody"
	case "signals.Intent":
		return "proxy.IntentSummary"
	}
	switch qualifier {
	case "guardrail", "signals", "decide", "trial", "explain", "feedback":
		return join("proxy", name)
	}
	return full
}

// component adds a struct by its JSON members, and returns a reference to it.
func (g *generator) component(schemas map[string]any, qualifier, name string, isBody bool) (object, error) {
	full := join(qualifier, name)
	public := publicName(qualifier, name)
	ref := object{"$ref": "#/components/schemas/" + public}
	if schemas[public] != nil {
		return ref, nil
	}
	st, ok := g.types[full]
	if !ok {
		return nil, fmt.Errorf("type %s not found", full)
	}
	properties, required := object{}, []string{}
	out := object{"type": "object", "properties": properties}
	schemas[public] = out
	for _, f := range g.members(st, qualifier) {
		if f.Tag == nil {
			continue
		}
		key, rest, _ := strings.Cut(reflect.StructTag(strings.Trim(f.Tag.Value, "`")).Get("json"), ",")
		if key == "" || key == "-" {
			continue
		}
		s, err := g.member(schemas, f.Type, qualifier, isBody)
		if err != nil {
			return nil, fmt.Errorf("%s.%s: %w", full, key, err)
		}
		if text := meaning(f); text != "" {
			s = maps.Clone(s) // next to a reference, JSON Schema 2020-12 reads other keywords
			s["description"] = text
		}
		properties[key] = s
		if !isBody && !strings.Contains(rest, "omit") {
			required = append(required, key)
		}
	}
	if len(required) > 0 {
		out["required"] = required
	}
	return ref, nil
}

// members returns the fields of a struct, including those of embedded structs of its package.
func (g *generator) members(st *ast.StructType, qualifier string) (out []*ast.Field) {
	for _, f := range st.Fields.List {
		name, ok := f.Type.(*ast.Ident)
		if inner := g.types[join(qualifier, fmt.Sprint(name))]; ok && len(f.Names) == 0 && inner != nil {
			out = append(out, g.members(inner, qualifier)...)
			continue
		}
		out = append(out, f)
	}
	return out
}

// member returns the schema of a field. Go writes empty lists, mappings and pointers as null.
func (g *generator) member(schemas map[string]any, t ast.Expr, qualifier string, isBody bool) (object, error) {
	null := func(s object) object {
		if typ, ok := s["type"].(string); ok {
			s["type"] = []string{typ, "null"}
			return s
		}
		return object{"anyOf": []object{s, {"type": "null"}}}
	}
	switch t := t.(type) {
	case *ast.StarExpr:
		s, err := g.member(schemas, t.X, qualifier, isBody)
		if len(s) == 0 || err != nil {
			return s, err
		}
		return null(s), nil
	case *ast.ArrayType:
		item, err := g.member(schemas, t.Elt, qualifier, isBody)
		return null(object{"type": "array", "items": item}), err
	case *ast.MapType:
		item, err := g.member(schemas, t.Value, qualifier, isBody)
		return null(object{"type": "object", "additionalProperties": item}), err
	case *ast.Ident:
		if types := map[string]string{
			"string": "string", "bool": "boolean", "int": "integer", "int64": "integer", "uint64": "integer",
			"float64": "number", "float32": "number", "span": "string",
		}; types[t.Name] != "" {
			return object{"type": types[t.Name]}, nil
		}
		if slices.Contains([]string{"any", "inputs", "factList"}, t.Name) {
			return object{}, nil // of several forms
		}
		return g.component(schemas, qualifier, t.Name, isBody)
	case *ast.SelectorExpr:
		switch fmt.Sprintf("%s.%s", t.X, t.Sel) {
		case "time.Time":
			return object{"type": "string", "format": "date-time"}, nil
		case "option.Duration":
			return object{"type": "string"}, nil
		}
		if pkg := t.X.(*ast.Ident).Name; pkg != "jsontext" && pkg != "json" {
			return g.component(schemas, pkg, t.Sel.Name, isBody)
		}
	}
	return object{}, nil
}
