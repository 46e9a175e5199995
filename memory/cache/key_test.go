package cache_test

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"signalbox/internal/openai"
	"signalbox/memory/cache"
)

// parse reads the body of a chat.
func parse(tb testing.TB, body string) *openai.Request {
	tb.Helper()
	req, err := openai.ParseChat([]byte(body), openai.Limits{})
	if err != nil {
		tb.Fatalf("%s: %v", body, err)
	}
	return req
}

func identify(tb testing.TB, body string, s cache.Scope) cache.Identity {
	tb.Helper()
	return cache.DefaultIdentifier().Identify(parse(tb, body), &s)
}

const plain = `{"model":"auto","messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"What is Go?"}]}`

func TestBodiesThatMeanTheSameHaveOneKey(t *testing.T) {
	t.Parallel()
	want := identify(t, plain, cache.Scope{})
	for name, body := range map[string]string{
		"order of members": `{"messages":[{"content":"Be brief.","role":"system"},{"content":"What is Go?","role":"user"}],"model":"auto"}`,
		"spaces":           " {\n \"model\" : \"auto\", \"messages\":[ {\"role\":\"system\",\"content\":\"Be brief.\"},{\"role\":\"user\",\"content\":\"What is Go?\"}]} ",
		"escapes":          strings.Replace(plain, "What", `\u0057hat`, 1),
		"stream":           strings.Replace(plain, `{"model"`, `{"stream":true,"stream_options":{"include_usage":true},"model"`, 1),
		"null":             strings.Replace(plain, `{"model"`, `{"stop":null,"model"`, 1),
		"who pays":         strings.Replace(plain, `{"model"`, `{"user":"u1","metadata":{"a":"b"},"prompt_cache_key":"k","model"`, 1),
		"session":          strings.Replace(plain, `{"model"`, `{"signalbox":{"session":"s"},"model"`, 1),
	} {
		if got := identify(t, body, cache.Scope{}); got.Key != want.Key || got.Partition != want.Partition {
			t.Errorf("%s: another key or partition", name)
		}
	}
}

// S3: whatever an answer depends on is in its key, whole, and each field apart from the next.
func TestWhatMattersMakesAnotherKey(t *testing.T) {
	t.Parallel()
	seen := map[cache.Key]string{identify(t, plain, cache.Scope{}).Key: "plain"}
	add := func(name string, k cache.Key) {
		if was, ok := seen[k]; ok {
			t.Errorf("%s has the key of %s", name, was)
		}
		seen[k] = name
	}
	for name, body := range map[string]string{
		"model":       strings.Replace(plain, "auto", "qwen", 1),
		"question":    strings.Replace(plain, "Go?", "Go", 1),
		"system":      strings.Replace(plain, "brief", "long", 1),
		"order":       `{"model":"auto","messages":[{"role":"user","content":"What is Go?"},{"role":"system","content":"Be brief."}]}`,
		"temperature": strings.Replace(plain, `{"model"`, `{"temperature":0.1,"model"`, 1),
		"another one": strings.Replace(plain, `{"model"`, `{"temperature":0.2,"model"`, 1),
		"top_p":       strings.Replace(plain, `{"model"`, `{"top_p":0.1,"model"`, 1),
		"max_tokens":  strings.Replace(plain, `{"model"`, `{"max_tokens":10,"model"`, 1),
		"seed":        strings.Replace(plain, `{"model"`, `{"seed":9007199254740993,"model"`, 1),
		"next seed":   strings.Replace(plain, `{"model"`, `{"seed":9007199254740992,"model"`, 1),
		"tools":       strings.Replace(plain, `{"model"`, `{"tools":[{"type":"function","function":{"name":"f"}}],"model"`, 1),
		"unknown":     strings.Replace(plain, `{"model"`, `{"vendor":1,"model"`, 1),
		"facts":       strings.Replace(plain, `{"model"`, `{"signalbox":{"facts":["x"]},"model"`, 1),
		"guard":       strings.Replace(plain, `{"model"`, `{"signalbox":{"guard":"hold"},"model"`, 1),
	} {
		add(name, identify(t, body, cache.Scope{}).Key)
	}
	for name, s := range map[string]cache.Scope{
		"tenant":        {Tenant: "a"},
		"role":          {Role: "a"},
		"path":          {Path: "a"},
		"session":       {Session: "a"},
		"generation":    {Generation: "a"},
		"header":        {Headers: []cache.Header{{Name: "a", Value: "b"}}},
		"header, moved": {Headers: []cache.Header{{Name: "ab", Value: ""}}},
		"two headers":   {Headers: []cache.Header{{Name: "a"}, {Name: "b"}}},
		"context":       {Contexts: []cache.Context{{ID: "c", Version: 1}}},
		"version":       {Contexts: []cache.Context{{ID: "c", Version: 2}}},
	} {
		add(name, identify(t, plain, s).Key)
	}
}

// The id of a response can be gone on with where a server keeps it.
func TestAResponseThatIsNotKeptAnswersNoneThatIs(t *testing.T) {
	t.Parallel()
	of := func(api openai.API, body, more string) cache.Identity {
		req, err := openai.Parse(api, []byte(strings.Replace(body, "{", "{"+more, 1)), openai.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		return cache.DefaultIdentifier().Identify(req, &cache.Scope{})
	}
	const response = `{"model":"auto","input":"What is Go?"}`
	kept, not := of(openai.Response, response, ""), of(openai.Response, response, `"store":false,`)
	if kept.Key == not.Key || kept.Partition == not.Partition {
		t.Errorf("keys equal %t, partitions equal %t", kept.Key == not.Key, kept.Partition == not.Partition)
	}
	for _, same := range []string{`"store":true,`, `"store":null,`} {
		if of(openai.Response, response, same) != kept {
			t.Errorf("%s is not as if it was absent", same)
		}
	}
	for _, store := range []string{`"store":true,`, `"store":false,`} {
		if of(openai.Chat, plain, store) != of(openai.Chat, plain, "") {
			t.Errorf("%s changes what a chat is known by", store)
		}
	}
}

// Of a request that was translated, the body has the effort alone.
func TestABudgetForReasoningMakesAnotherKey(t *testing.T) {
	t.Parallel()
	of := func(tokens int64) cache.Identity {
		req := parse(t, plain)
		req.Translated, req.ThinkingBudget = true, tokens
		return cache.DefaultIdentifier().Identify(req, &cache.Scope{})
	}
	if a, b := of(3000), of(16000); a.Key == b.Key || a.Partition == b.Partition {
		t.Errorf("keys equal %t, partitions equal %t", a.Key == b.Key, a.Partition == b.Partition)
	}
}

func TestAPartitionLeavesOutTheLastQuestionAlone(t *testing.T) {
	t.Parallel()
	want := identify(t, plain, cache.Scope{Tenant: "t"})
	same := identify(t, strings.Replace(plain, "What is Go?", "Define Go.", 1), cache.Scope{Tenant: "t"})
	if same.Partition != want.Partition || same.Key == want.Key || same.Question != "Define Go." {
		t.Errorf("another wording: partition equal %v, key equal %v, question %q", same.Partition == want.Partition, same.Key == want.Key, same.Question)
	}
	for name, body := range map[string]string{
		"system":  strings.Replace(plain, "brief", "long", 1),
		"history": strings.Replace(plain, `{"role":"user"`, `{"role":"user","content":"Hi"},{"role":"user"`, 1),
		"tokens":  strings.Replace(plain, `{"model"`, `{"max_tokens":10,"model"`, 1),
		"model":   strings.Replace(plain, "auto", "qwen", 1),
	} {
		if identify(t, body, cache.Scope{Tenant: "t"}).Partition == want.Partition {
			t.Errorf("%s does not change the partition", name)
		}
	}
	if identify(t, plain, cache.Scope{Tenant: "u"}).Partition == want.Partition {
		t.Error("two tenants share a partition")
	}
	if want.Partition == want.Key {
		t.Error("the partition is the key")
	}
}

// shuffled encodes a value with the members of its objects in random order.
func shuffled(v any, r *rand.Rand) []byte {
	switch v := v.(type) {
	case map[string]any:
		names := make([]string, 0, len(v))
		for n := range v {
			names = append(names, n)
		}
		slices.Sort(names)
		r.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
		parts := make([][]byte, len(names))
		for i, n := range names {
			name, _ := json.Marshal(n)
			parts[i] = append(append(name, " : "...), shuffled(v[n], r)...)
		}
		return append(append([]byte("{ "), bytes.Join(parts, []byte(" ,\n"))...), '}')
	case []any:
		parts := make([][]byte, len(v))
		for i := range v {
			parts[i] = shuffled(v[i], r)
		}
		return append(append([]byte("["), bytes.Join(parts, []byte(", "))...), ']')
	}
	out, _ := json.Marshal(v)
	return out
}

func FuzzKey(f *testing.F) {
	f.Add([]byte(plain), uint64(1))
	f.Add([]byte(`{"messages":[{"role":"user","content":"\"}\\"}],"model":"m","x":{"a":[1,{"b":"]"}],"z":"\u00e9,:{"},"stop":null,"n":1e0}`), uint64(2))
	f.Add([]byte(`{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"a"}]}],"stop":["x"]}`), uint64(3))
	f.Fuzz(func(t *testing.T, body []byte, seed uint64) {
		req, err := openai.ParseChat(body, openai.Limits{})
		if err != nil {
			return
		}
		d := json.NewDecoder(bytes.NewReader(body))
		d.UseNumber()
		var v any
		if err := d.Decode(&v); err != nil {
			return
		}
		again, err := openai.ParseChat(shuffled(v, rand.New(rand.NewPCG(seed, 0))), openai.Limits{})
		if err != nil {
			return // encoding/json is more lenient with what it reads than we are
		}
		raw := bytes.Clone(body)
		n := cache.DefaultIdentifier()
		p, q := n.Identify(req, &cache.Scope{}), n.Identify(again, &cache.Scope{})
		if p != q {
			t.Fatalf("%s\nin another order: %+v, was %+v", body, q, p)
		}
		if !bytes.Equal(raw, body) {
			t.Fatal("the body was changed")
		}
		if (p.Similar == cache.Eligible) != (p.Partition != cache.Key{}) || p.Similar == cache.Eligible && p.Exact != cache.Eligible {
			t.Fatalf("%s: %+v", body, p)
		}
	})
}

func BenchmarkIdentify(b *testing.B) {
	req := parse(b, `{"model":"auto","messages":[{"role":"system","content":"`+strings.Repeat("Be brief. ", 200)+`"},{"role":"user","content":"What is Go?"}],"temperature":0}`)
	s := cache.Scope{Tenant: "t", Role: "r", Path: "/v1/chat/completions", Generation: "1"}
	n := cache.DefaultIdentifier()
	b.ReportAllocs()
	for b.Loop() {
		n.Identify(req, &s)
	}
}
