package tools

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/openai"
	"signalbox/internal/signal"
	"signalbox/internal/testkit"
	"signalbox/rules"
)

func list(tb testing.TB, entries ...string) *List {
	tb.Helper()
	l, err := Parse([]byte("[" + strings.Join(entries, ",") + "]"))
	if err != nil {
		tb.Fatal(err)
	}
	return l
}

func tool(name, about string, arguments ...string) string {
	var p []string
	for _, a := range arguments {
		p = append(p, fmt.Sprintf(`%q: {"type": "string"}`, a))
	}
	return fmt.Sprintf(`{"type": "function", "function": {"name": %q, "description": %q, "parameters": {"type": "object", "properties": {%s}}}}`,
		name, about, strings.Join(p, ","))
}

func office(tb testing.TB) *List {
	tb.Helper()
	return list(
		tb,
		tool("getWeather", "The weather at a place", "city"),
		tool("send_mail", "Sends a mail", "recipient", "subject"),
		`{"type": "function", "name": "book_flight", "description": "Books a flight", "parameters": {}}`,
		`{"name": "create_ticket", "description": "Opens a ticket at the help desk", "input_schema": {"properties": {"priority": {"enum": ["urgent"]}}}}`,
		`{"type": "web_search"}`,
	)
}

func picked(l *List, forms []Form) []string {
	var out []string
	for i, f := range forms {
		if f != Away {
			out = append(out, l.Name(i))
		}
	}
	return out
}

func never(string) bool { return false }

func TestPick(t *testing.T) {
	for name, tc := range map[string]struct {
		turns []string
		n     int
		must  []string
		want  []string
	}{
		"a word of the name":               {[]string{"Will the weather be fine?"}, 1, nil, []string{"getWeather", ""}},
		"another form of it":               {[]string{"Is any FLIGHTS booking left"}, 1, nil, []string{"book_flight", ""}},
		"a word of an argument":            {[]string{"It is urgent"}, 1, nil, []string{"create_ticket", ""}},
		"a turn before stays":              {[]string{"the weather", "now mail it"}, 1, nil, []string{"getWeather", "send_mail", ""}},
		"a turn without a word of a tool":  {[]string{"the weather", "yes"}, 1, nil, []string{"getWeather", ""}},
		"what must be kept":                {[]string{"the weather"}, 1, []string{"create_ticket"}, []string{"getWeather", "create_ticket", ""}},
		"no turn has a word of any tool":   {[]string{"yes", "go on"}, 1, nil, nil},
		"more than there are":              {[]string{"mail"}, 9, nil, []string{"getWeather", "send_mail", "book_flight", "create_ticket", ""}},
		"a turn that says nothing, at all": {[]string{""}, 1, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			l := office(t)
			var turns []Turn
			for _, s := range tc.turns {
				turns = append(turns, Turn{Text: s})
			}
			got := l.Pick(turns, make([][]float32, l.Len()), tc.n, func(name string) bool { return slices.Contains(tc.must, name) })
			if d := cmp.Diff(tc.want, picked(l, got)); d != "" {
				t.Errorf("-want +got:\n%s", d)
			}
		})
	}
}

func TestPickByEmbeddings(t *testing.T) {
	l := office(t)
	vectors := [][]float32{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}, {0, .6, .8}, {}}
	got := l.Pick([]Turn{{Text: "regnet es?", Vector: []float32{1, 0, 0}}}, vectors, 1, never)
	if d := cmp.Diff([]string{"getWeather", ""}, picked(l, got)); d != "" {
		t.Errorf("by meaning alone (-want +got):\n%s", d)
	}
	got = l.Pick([]Turn{{Text: "zzz", Vector: []float32{0, 0, 1}}}, vectors, 2, never)
	if d := cmp.Diff([]string{"book_flight", "create_ticket", ""}, picked(l, got)); d != "" {
		t.Errorf("what is near comes along (-want +got):\n%s", d)
	}
}

func TestJSONIsAsItWasSpelled(t *testing.T) {
	l := list(t, ` {"name":"a", "x": 1.0}`, `{"name":"b"}`, `{"name":"c"} `)
	if got := string(l.JSON([]Form{Whole, Away, Whole})); got != `[{"name":"a", "x": 1.0},{"name":"c"}]` {
		t.Error(got)
	}
}

func TestCalled(t *testing.T) {
	for in, want := range map[string][]string{
		`[{"role":"assistant","tool_calls":[{"function":{"name":"a"}},{"function":{"name":"b"}}]}]`: {"a", "b"},
		`[{"role":"assistant","function_call":{"name":"a"}}]`:                                       {"a"},
		`[{"type":"function_call","name":"a"},{"type":"message","name":"b"}]`:                       {"a"},
		`[{"tool_calls":7},{"tool_calls":[{"function":{"name":"b"}}]},3]`:                           {"b"},
		`"hello"`: nil, ``: nil, `[`: nil,
	} {
		got, _ := Called([]byte(in))
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", in, d)
		}
	}
	if m := Mentions([]byte(`{"type":"function","function":{"name":"a"}}`)); !m["a"] || m["b"] {
		t.Error(m)
	}
}

// The client controls the tools, the calls and the turns.
func TestChoosingTakesTimeInProportionToTheRequest(t *testing.T) {
	t.Parallel()
	const limit = 5 * time.Second // a search for each takes twice as long
	many := 100_000
	if testkit.Race {
		many = 20_000
	}
	tools := `"tools":[` + strings.Repeat(`{"function":{"name":"a"}},`, many) + `{"function":{"name":"found"}}]`
	calls := strings.Repeat(`{"function":{"name":"b","arguments":"{}"}},`, many/5)
	for name, body := range map[string]string{
		"calls": `{"role":"user","content":"a found"},{"role":"assistant","tool_calls":[` + calls +
			`{"function":{"name":"found","arguments":"{}"}}]},{"role":"user","content":"a"}`,
		"turns": strings.Repeat(`{"role":"user","content":"a"},`, many/7) + `{"role":"user","content":"found"}`,
	} {
		req, err := openai.ParseChat([]byte(`{"model":"m","messages":[`+body+`],`+tools+`}`), openai.Limits{})
		if err != nil {
			t.Fatal(name, err)
		}
		for _, want := range []rules.Tools{{Keep: 3}, {Keep: 3, Share: .5}} {
			var got *Choice
			took := testkit.CPUTime(t, func() { got = NewMemo().Choose(t.Context(), alike{}, req, &want) })
			if took > limit {
				t.Errorf("%s, %+v: %d bytes took %v, want at most %v", name, want, len(req.Raw), took, limit)
			}
			if got == nil || !strings.Contains(string(got.JSON), `"found"`) {
				t.Errorf("%s, %+v: %v is kept", name, want, got)
			}
		}
	}
}

// alike returns the same embedding for every text.
type alike struct{}

func (alike) Signals() signal.Mask { return signal.MaskOf(signal.Embedding) }

func (alike) Extract(_ context.Context, _ *signal.Text, _ signal.Mask, set *signal.Set) {
	set.Put(signal.Embedding, signal.Value{State: signal.Known, Vector: []float32{1}})
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`[{"type":"function","function":{"name":"getX","description":"d"}},{"name":3},7,null,[]]`), "get x")
	f.Fuzz(func(t *testing.T, raw []byte, said string) {
		l, err := Parse(raw)
		if err != nil {
			return
		}
		kept := l.Pick([]Turn{{Text: said}}, make([][]float32, l.Len()), 1, never)
		if kept == nil {
			return
		}
		again, err := Parse(l.JSON(kept))
		if err != nil {
			t.Fatalf("%s: %v", l.JSON(kept), err)
		}
		if n := len(picked(l, kept)); again.Len() != n {
			t.Errorf("%d tools are kept and %d sent", n, again.Len())
		}
	})
}

func BenchmarkPick(b *testing.B) {
	var entries []string
	for i := range 100 {
		entries = append(entries, tool(fmt.Sprintf("do_thing_%d", i), fmt.Sprintf("Does thing number %d to a file, a mail or a flight", i), "city", "file"))
	}
	l := list(b, entries...)
	turns := []Turn{{Text: "Send the file about thing 7 by mail"}, {Text: "and book the flight 12"}}
	for b.Loop() {
		l.Pick(turns, make([][]float32, 100), 8, never)
	}
}
