package response_test

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/openai"
	"signalbox/stream/response"
)

// chunk returns a chat chunk with one content, given as the inside of a JSON string.
func chunk(inside string) []byte {
	return []byte(`{"id":"c-1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":"` +
		inside + `"},"finish_reason":null}]}`)
}

func TestWhatCannotBeReadIsOpaque(t *testing.T) {
	deep := strings.Repeat("[", 100) + strings.Repeat("]", 100)
	for name, c := range map[string]struct{ data, why string }{
		"nothing":                       {``, "not JSON"},
		"the end mark":                  {`[DONE]`, "not JSON"},
		"broken JSON":                   {`{not json`, "not JSON"},
		"a list":                        {`[1]`, "not an object"},
		"a string":                      {`"x"`, "not an object"},
		"something behind the object":   {`{"choices":[]} x`, "not JSON"},
		"two objects":                   {`{"choices":[]}{}`, "not JSON"},
		"NUL behind the object":         {"{\"choices\":[]}\x00", "not JSON"},
		"a comma too many":              {`{"choices":[],}`, "not JSON"},
		"a comma too many in a list":    {`{"choices":[{},]}`, "not JSON"},
		"no colon":                      {`{"choices" []}`, "not JSON"},
		"a number with a zero in front": {`{"choices":[],"x":01}`, "not JSON"},
		"a number without digits":       {`{"choices":[],"x":-}`, "not JSON"},
		"not a number":                  {`{"choices":[],"x":NaN}`, "not JSON"},
		"an unknown escape":             {`{"choices":[],"x":"\x"}`, "not JSON"},
		"half an escape":                {`{"choices":[],"x":"\u12"}`, "not JSON"},
		"a line break in a string":      {"{\"choices\":[],\"x\":\"a\nb\"}", "not JSON"},
		"a string without end":          {`{"choices":[],"x":"`, "not JSON"},
		"an object without end":         {`{"choices":[`, "not JSON"},
		"deep nesting":                  {`{"choices":[],"x":` + deep + `}`, "nested too deep"},
		"two lists of choices":          {`{"choices":[{"index":0,"delta":{"content":"a"}}],"choices":[]}`, "a member is named twice"},
		"two contents":                  {`{"choices":[{"delta":{"content":"a","content":"b"}}]}`, "a member is named twice"},
		"two contents, one escaped":     {`{"choices":[{"delta":{"content":"a","cont\u0065nt":"b"}}]}`, "a member is named twice"},
		"a chat and a completion":       {`{"choices":[{"delta":{"content":"a"},"text":"b"}]}`, "two shapes at once"},
		"a chat and a response":         {`{"type":"response.output_text.delta","delta":"a","choices":[]}`, "two shapes at once"},
		"an object of another kind":     {`{"object":"list","data":[]}`, "unknown shape"},
		"an event of another API":       {`{"type":"content_block_delta","delta":{"text":"a"}}`, "unknown shape"},
		"an unknown response event":     {`{"type":"response.haiku.delta","delta":"a"}`, "unknown type of event with a text"},
		"choices that are no list":      {`{"choices":{"delta":{"content":"a"}}}`, "unknown shape"},
	} {
		t.Run(name, func(t *testing.T) {
			var r response.Reader
			r.Read(chunk("before"))
			e := r.Read([]byte(c.data))
			if e.Shape != response.Opaque || e.Why != c.why {
				t.Errorf("%v, %q; want %q", e.Shape, e.Why, c.why)
			}
			if len(e.Deltas)+len(e.Finishes) > 0 || e.HasUsage || e.Failed || e.Bare() {
				t.Errorf("something was read: %+v", e)
			}
			change := response.Rewrite{Finish: "x", Extension: []byte("1")}
			if got := string(e.Append(nil, change)); got != c.data {
				t.Errorf("became %q", got)
			}
			if r.Shape() != response.Chat {
				t.Errorf("the stream became %v", r.Shape())
			}
		})
	}
}

func TestTolerance(t *testing.T) {
	for name, data := range map[string]string{
		"a member unknown to us twice": `{"x":1,"x":2,"choices":[{"index":0,"delta":{"content":"a"}}]}`,
		"ids twice":                    `{"id":"1","id":"2","choices":[{"index":0,"delta":{"content":"a"}}]}`,
		"both spellings of a usage":    `{"choices":[{"index":0,"delta":{"content":"a"}}],"usage":{"prompt_tokens":1,"input_tokens":1}}`,
		"no index":                     `{"choices":[{"delta":{"content":"a"}}]}`,
		"an empty text beside a chat":  `{"choices":[{"index":0,"text":"","delta":{"content":"a"}}]}`,
		"an escaped name":              `{"choice\u0073":[{"index":0,"\u0064elta":{"content":"a"}}]}`,
		"white space":                  " \r\n\t{ \"choices\" : [ { \"index\" : 0 , \"delta\" : { \"content\" : \"a\" } } ] } \n",
		"an empty finish reason":       `{"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":""}]}`,
		"numbers in every spelling":    `{"choices":[{"index":0,"delta":{"content":"a"}}],"x":[0,-0.5,1e9,1E+2,12.5e-3]}`,
		"a type that says nothing":     `{"type":"chunk","choices":[{"index":0,"delta":{"content":"a"}}]}`,
		"an error that is null":        `{"error":null,"choices":[{"index":0,"delta":{"content":"a"}}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			var r response.Reader
			e := r.Read([]byte(data))
			if len(e.Deltas) != 1 || string(e.Deltas[0].Text) != "a" || e.Shape != response.Chat || e.Failed || len(e.Finishes) > 0 {
				t.Errorf("read %s", dump(e))
			}
		})
	}
}

func TestTheTextOfAString(t *testing.T) {
	for name, c := range map[string]struct{ inside, want string }{
		"plain":                     {`a b`, "a b"},
		"all escapes":               {`\"\\\/\b\f\n\r\t\u0000\u00e9\u00E9`, "\"\\/\b\f\n\r\t\x00\u00e9\u00e9"},
		"a pair of surrogates":      {`\ud83d\uDE42!`, "\U0001f642!"},
		"half a pair":               {`\ud83d`, "\ufffd"},
		"the other half":            {`\ude42x`, "\ufffdx"},
		"two first halves":          {`\ud83d\ud83d\ude42`, "\ufffd\U0001f642"},
		"half a pair and an escape": {`\ud83d\n`, "\ufffd\n"},
		"beyond ASCII":              {"h\u00e9\u6f22\U0001f642", "h\u00e9\u6f22\U0001f642"},
		"no UTF-8":                  {"a\xff\xfe\xc3b", "a\ufffd\ufffd\ufffdb"},
		"no UTF-8 and an escape":    {"\xc3\\n", "\ufffd\n"},
		"DEL":                       {"\x7f", "\x7f"},
	} {
		t.Run(name, func(t *testing.T) {
			var r response.Reader
			e := r.Read(chunk(c.inside))
			if len(e.Deltas) != 1 {
				t.Fatalf("read %s", dump(e))
			}
			if diff := cmp.Diff(c.want, string(e.Deltas[0].Text)); diff != "" {
				t.Errorf("text (-want +got):\n%s", diff)
			}
			if at := e.Deltas[0].At; string(e.Data()[at.Start:at.End]) != c.inside {
				t.Errorf("at %v", at)
			}
		})
	}
}

func TestATextIsCutByItsOwnOffsets(t *testing.T) {
	for name, c := range map[string]struct {
		inside   string
		from, to int
		text     string
		want     string
	}{
		"the front goes":                     {`One. Two`, 0, 5, "", `Two`},
		"the end goes":                       {`One. Two`, 5, 8, "", `One. `},
		"all goes":                           {`One. Two`, 0, 8, "", ``},
		"a range beyond the end":             {`One`, 1, 100, "", `O`},
		"the middle is replaced":             {`a 5 b`, 2, 3, `"6"`, `a \"6\" b`},
		"something is put in":                {`ab`, 1, 1, "\n", `a\nb`},
		"something is put at the end":        {`ab`, 2, 2, "c", `abc`},
		"something is put in front":          {`ab`, 0, 0, "c", `cab`},
		"other escapes stay as they are":     {`\u0041\/B\n`, 1, 2, "", `\u0041B\n`},
		"a pair of surrogates is one":        {`x\ud83d\ude42y`, 1, 5, "", `xy`},
		"half a character takes it whole":    {`x\ud83d\ude42y`, 2, 3, "", `xy`},
		"bytes that are no text stay":        {"a\xffb\xfec", 4, 5, "", "a\xff\xfec"},
		"a lone surrogate stays":             {`\ud83dab`, 3, 4, "", `\ud83db`},
		"plain text beyond ASCII":            {"h\u00e9h\u00e9", 3, 6, "", "h\u00e9"},
		"half a plain character":             {"h\u00e9h\u00e9", 2, 3, "", "hh\u00e9"},
		"half a plain character at the end":  {"h\u00e9", 0, 2, "", ""},
		"put in inside of a plain character": {"h\u00e9", 2, 2, "x", "hx\u00e9"},
		"put in inside of an escape":         {`h\u00e9`, 2, 2, "x", `hx\u00e9`},
		"what is put in is valid":            {`ab`, 1, 1, "\xff\x01", "a\ufffd\\u0001b"},
	} {
		t.Run(name, func(t *testing.T) {
			var r response.Reader
			e := r.Read(chunk(c.inside))
			got := e.Append([]byte("> "), response.Rewrite{Changes: []response.Change{{From: c.from, To: c.to, Text: []byte(c.text)}}})
			if diff := cmp.Diff("> "+string(chunk(c.want)), string(got)); diff != "" {
				t.Errorf("event (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSeveralChangesAtOnce(t *testing.T) {
	data := `{"choices":[{"index":1,"delta":{"content":"One. Two. Three"},"logprobs":{"content":[]},"token_ids":[1],"finish_reason":"stop"},` +
		`{"index":0,"delta":{"content":"A","reasoning":"B"},"logprobs":null,"finish_reason":null}],"created":1.50}`
	var r response.Reader
	e := r.Read([]byte(data))
	got := e.Append(nil, response.Rewrite{
		Changes: []response.Change{
			{Delta: 2, From: 0, To: 1, Text: []byte("C")},
			{Delta: 0, From: 10, To: 15},
			{Delta: 0, From: 0, To: 5},
			{Delta: 0, From: 5, To: 5, Text: []byte("Zwei. ")},
		},
		Finish: "content_filter", Extension: []byte(`{"claims":3}`),
	})
	want := `{"choices":[{"index":1,"delta":{"content":"Zwei. Two. "},"logprobs":null,"token_ids":null,"finish_reason":"content_filter"},` +
		`{"index":0,"delta":{"content":"A","reasoning":"C"},"logprobs":null,"finish_reason":null}],"created":1.50,"x_signalbox":{"claims":3}}`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("event (-want +got):\n%s", diff)
	}
	if again := e.Append(nil, response.Rewrite{}); string(again) != data {
		t.Errorf("the event itself changed: %s", again)
	}
}

func TestTheLogprobsOfOtherTextsStay(t *testing.T) {
	data := `{"choices":[{"index":0,"delta":{"content":"a"},"logprobs":{"content":[1]}},{"index":1,"delta":{"content":"b"},"logprobs":{"content":[2]}}]}`
	var r response.Reader
	got := r.Read([]byte(data)).Append(nil, response.Rewrite{Changes: []response.Change{{Delta: 1, To: 1}}})
	want := `{"choices":[{"index":0,"delta":{"content":"a"},"logprobs":{"content":[1]}},{"index":1,"delta":{"content":""},"logprobs":null}]}`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("event (-want +got):\n%s", diff)
	}
}

func TestAnExtensionOfTheServerIsReplaced(t *testing.T) {
	var r response.Reader
	e := r.Read([]byte(`{"x_signalbox":{"verdict":"forged"},"choices":[{"delta":{},"finish_reason":"stop"}]}`))
	if at := e.Extension; at == (openai.Span{}) || string(e.Data()[at.Start:at.End]) != `{"verdict":"forged"}` {
		t.Errorf("extension at %v", e.Extension)
	}
	got := string(e.Append(nil, response.Rewrite{Extension: []byte(`{}`)}))
	if want := `{"x_signalbox":{},"choices":[{"delta":{},"finish_reason":"stop"}]}`; got != want {
		t.Errorf("event %s", got)
	}
}

func TestAResponseIsChangedAndEnded(t *testing.T) {
	stream := events(t, fixture(t, "openai_responses.sse"))
	var r response.Reader
	for _, data := range stream {
		e := r.Read(data)
		var changes []response.Change
		for i := range e.Deltas {
			if d := &e.Deltas[i]; d.Kind == response.Text {
				changes = append(changes, response.Change{Delta: i, From: 6, To: 9, Text: []byte("300")})
			}
		}
		if len(changes) == 0 {
			continue
		}
		got := e.Append(nil, response.Rewrite{Changes: changes, Finish: "content_filter"})
		var v any
		if err := json.Unmarshal(got, &v); err != nil {
			t.Fatalf("%v: %s", err, got)
		}
		if bytes.Contains(got, []byte("330")) || bytes.Count(got, []byte(" 300 m")) != len(changes) {
			t.Errorf("event %s", got)
		}
		if string(e.Type) != "response.completed" {
			continue
		}
		for _, part := range []string{`"type":"response.incomplete"`, `"status":"incomplete","error":null,"incomplete_details":{"reason":"content_filter"}`} {
			if !bytes.Contains(got, []byte(part)) {
				t.Errorf("no %s in %s", part, got)
			}
		}
	}
	var body response.Reader
	got := string(body.ReadBody(fixture(t, "openai_responses.json")).Append(nil, response.Rewrite{Finish: "content_filter"}))
	if want := strings.Replace(string(fixture(t, "openai_responses.json")), "max_output_tokens", "content_filter", 1); strings.ReplaceAll(got, " ", "") != strings.ReplaceAll(want, " ", "") {
		t.Errorf("body %s", got)
	}
	bare := body.ReadBody([]byte(`{"output":[],"status":"completed"}`))
	if got, want := string(bare.Append(nil, response.Rewrite{Finish: "x"})), `{"output":[],"status":"incomplete","incomplete_details":{"reason":"x"}}`; got != want {
		t.Errorf("body %s", got)
	}
}

// TestBuiltEventsFitTheStream checks that built events are read again as intended, with the members
// of their stream.
func TestBuiltEventsFitTheStream(t *testing.T) {
	for _, c := range []struct {
		name, delta, finish string
		deltaName           string
	}{
		{
			name:   "openai_chat.sse",
			delta:  `{"id":"chatcmpl-A1","object":"chat.completion.chunk","created":1760000000,"model":"gpt-4o-mini","service_tier":"default","system_fingerprint":"fp_1","choices":[{"index":0,"delta":{"content":"[\"x\"]"},"logprobs":null,"finish_reason":null}]}`,
			finish: `{"id":"chatcmpl-A1","object":"chat.completion.chunk","created":1760000000,"model":"gpt-4o-mini","service_tier":"default","system_fingerprint":"fp_1","choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":"content_filter"}]}`,
		},
		{
			name:   "vllm_completion.sse",
			delta:  `{"id":"cmpl-D4","object":"text_completion","created":1760000005,"model":"qwen-32b","choices":[{"index":0,"text":"[\"x\"]","logprobs":null,"finish_reason":null}]}`,
			finish: `{"id":"cmpl-D4","object":"text_completion","created":1760000005,"model":"qwen-32b","choices":[{"index":0,"text":"","logprobs":null,"finish_reason":"content_filter"}]}`,
		},
		{
			name: "openai_responses.sse",
			delta: `{"type":"response.output_text.delta","item_id":"msg_1","output_index":1,` +
				`"content_index":0,"delta":"[\"x\"]","logprobs":[],"sequence_number":15}`,
			finish:    `{"type":"response.incomplete","sequence_number":15,"response":{"id":"resp_1","object":"response","created_at":1760000002,"status":"incomplete","error":null,"incomplete_details":{"reason":"content_filter"},"instructions":"Be brief.","model":"gpt-5","output":[],"parallel_tool_calls":true,"text":{"format":{"type":"text"}},"tool_choice":"auto","tools":[],"usage":null,"metadata":{}}}`,
			deltaName: "response.output_text.delta",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			var r response.Reader
			for _, data := range events(t, fixture(t, c.name)) {
				r.Read(data)
			}
			delta := r.AppendDelta(nil, response.Delta{}, []byte(`["x"]`))
			finish := r.AppendFinish(nil, 0, "content_filter", nil)
			if diff := cmp.Diff(c.delta, string(delta)); diff != "" {
				t.Errorf("delta (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.finish, string(finish)); diff != "" {
				t.Errorf("finish (-want +got):\n%s", diff)
			}
			if r.DeltaName() != c.deltaName || (r.FinishName() == "") != (c.deltaName == "") {
				t.Errorf("names %q and %q", r.DeltaName(), r.FinishName())
			}
			shape := r.Shape()
			e := r.Read(delta)
			if e.Shape != shape || len(e.Deltas) != 1 || string(e.Deltas[0].Text) != `["x"]` || e.Deltas[0].Kind != response.Text || !e.Bare() {
				t.Errorf("the delta is read as %s", dump(e))
			}
			e = r.Read(finish)
			if e.Shape != shape || len(e.Deltas) != 0 || len(e.Finishes) != 1 || string(e.Finishes[0].Reason) != "content_filter" {
				t.Errorf("the finish is read as %s", dump(e))
			}
		})
	}
}

// TestADeltaIsBuiltLikeTheOneThatWasRead checks that a built event can add to a text that was read,
// in the same field.
func TestADeltaIsBuiltLikeTheOneThatWasRead(t *testing.T) {
	type key struct {
		Choice, Part int
		Kind         response.Kind
		Text, Before string
	}
	keys := func(e *response.Event) []key {
		var out []key
		for i := range e.Deltas {
			d := &e.Deltas[i]
			before := string(e.Data()[:d.At.Start-1])
			out = append(out, key{d.Choice, d.Part, d.Kind, string(d.Text), before[strings.LastIndexAny(before, "{,")+1:]})
		}
		return out
	}
	for _, name := range []string{"openai_chat.sse", "openai_tools.sse", "vllm_chat.sse", "vllm_completion.sse", "ollama_chat.sse"} {
		for _, data := range events(t, fixture(t, name)) {
			var r, again response.Reader
			e := r.Read(data)
			for i, k := range keys(e) {
				built := r.AppendDelta(nil, e.Deltas[i], e.Deltas[i].Text)
				if diff := cmp.Diff([]key{k}, keys(again.Read(built))); diff != "" {
					t.Errorf("%s (-read +built):\n%s", built, diff)
				}
			}
		}
	}
}

// TestATextOfACallIsBuiltForThatCall checks that a built event names its call if several calls
// share an index.
func TestATextOfACallIsBuiltForThatCall(t *testing.T) {
	piece := func(call string) []byte {
		return []byte(chunkHead + `{"index":0,"delta":{"tool_calls":[{` + call + `}]}}]}`)
	}
	var r response.Reader
	first := r.Read(piece(`"index":0,"id":"c1","function":{"name":"f","arguments":"{"}`)).Deltas[1].Like()
	if got := string(r.AppendDelta(nil, first, []byte("x"))); !strings.Contains(got, `[{"index":0,"function"`) {
		t.Errorf("built %s", got)
	}
	second := r.Read(piece(`"index":0,"id":"c2","function":{"name":"f","arguments":"{"}`)).Deltas[1].Like()
	if first.Same(&second) {
		t.Error("two calls are one text")
	}
	for _, like := range []response.Delta{first, second} {
		d := r.Read(r.AppendDelta(nil, like, []byte("x"))).Deltas[0].Like()
		if !d.Same(&like) {
			t.Errorf("what is built for call %d is read as of call %d", like.Part, d.Part)
		}
	}
	if got := r.Read(piece(`"index":0,"function":{"arguments":"}"}`)).Deltas[0].Part; got != second.Part {
		t.Errorf("a piece without an id belongs to call %d", got)
	}
}

func TestBuiltEventsWithoutAStream(t *testing.T) {
	var r response.Reader
	e := r.Read(r.AppendDelta(nil, response.Delta{Choice: 2}, []byte("x")))
	if e.Shape != response.Chat || len(e.Deltas) != 1 || e.Deltas[0].Choice != 2 {
		t.Errorf("read %s", dump(e))
	}
	r = response.Reader{}
	r.Read([]byte(`{"type":"response.output_text.delta","delta":"a"}`))
	got := string(r.AppendFinish(nil, 0, "content_filter", nil))
	want := `{"type":"response.incomplete","response":{"id":"","object":"response","status":"incomplete","output":[],"incomplete_details":{"reason":"content_filter"}}}`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("finish (-want +got):\n%s", diff)
	}
	failure, _ := (&openai.Error{Message: "sorry", Type: "server_error"}).MarshalJSON()
	e = r.Read(failure)
	if e.Shape != response.Failure || !e.Failed {
		t.Errorf("read %s", dump(e))
	}
}

func TestWhenAnAnswerIsComplete(t *testing.T) {
	text := func(i int) string {
		return `{"choices":[{"index":` + strconv.Itoa(i) + `,"delta":{"content":"x"}}]}`
	}
	end := func(i int) string {
		return `{"choices":[{"index":` + strconv.Itoa(i) + `,"delta":{},"finish_reason":"stop"}]}`
	}
	usage := `{"choices":[],"usage":{"prompt_tokens":1}}`
	for _, c := range []struct {
		name   string
		events []string
		want   bool
	}{
		{"nothing was read", nil, false},
		{"a usage alone", []string{usage}, false},
		{"one choice goes on", []string{text(0)}, false},
		{"one choice has ended", []string{text(0), end(0), usage}, true},
		{"one of two goes on", []string{text(0), text(1), end(1)}, false},
		{"both have ended", []string{text(0), text(1), end(1), end(0)}, true},
		{"an index is left out", []string{text(3), end(3)}, true},
		{"a choice goes on behind its end", []string{end(0), text(0)}, true},
		{"more choices than are kept apart", []string{end(0), text(1 << 20), end(1 << 20)}, false},
		{"a response goes on", []string{`{"type":"response.created","response":{"status":"in_progress"}}`}, false},
		{"a response has ended", []string{`{"type":"response.incomplete","response":{"status":"incomplete"}}`}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			var r response.Reader
			for _, data := range c.events {
				r.Read([]byte(data))
			}
			if r.Complete() != c.want {
				t.Errorf("complete %v", r.Complete())
			}
		})
	}
}

func TestChoicesThatWereBegun(t *testing.T) {
	var r response.Reader
	if got := r.Begun(nil); len(got) > 0 {
		t.Errorf("%v before anything was read", got)
	}
	// a role is a beginning, too
	r.Read([]byte(`{"choices":[{"index":2,"delta":{"role":"assistant","content":""}}]}`))
	r.Read([]byte(`{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`))
	if diff := cmp.Diff([]int{0, 2}, r.Begun(nil)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWhatIsBare(t *testing.T) {
	var first response.Reader
	if role := `{"choices":[{"index":0,"delta":{"role":"assistant","content":"x"}}]}`; first.Read([]byte(role)).Bare() {
		t.Error("the first role would be lost")
	} else if !first.Read([]byte(role)).Bare() {
		t.Error("the role is repeated")
	}
	for data, want := range map[string]bool{
		`{"id":"1","choices":[{"index":0,"delta":{"content":"x"},"logprobs":{"content":[]},"finish_reason":null}],"usage":null,"obfuscation":"y"}`: true,
		`{"choices":[{"index":0,"delta":{"reasoning_content":"x"},"matched_stop":null}],"timings":null}`:                                           true,
		`{"choices":[{"index":0,"delta":{"content":""}}]}`:                                                                                         false,
		`{"choices":[{"index":0,"delta":{"content":"x"},"finish_reason":"stop"}]}`:                                                                 false,
		`{"choices":[{"index":0,"delta":{"content":"x"}}],"usage":{}}`:                                                                             false,
		`{"choices":[{"index":0,"delta":{"content":"x","audio":{"id":"a"}}}]}`:                                                                     false,
		`{"choices":[{"index":0,"delta":{"content":"x","tool_calls":[{"index":0}]}}]}`:                                                             false,
		`{"choices":[{"index":0,"delta":{"content":"x"},"stop_reason":3}]}`:                                                                        false,
		`{"choices":[{"index":0,"delta":{"content":"x"}}],"t":3}`:                                                                                  false,
		`{"choices":[{"index":0,"message":{"content":"x"}}]}`:                                                                                      false,
		`{"type":"response.output_text.delta","delta":"x","item_id":"i","output_index":0,"content_index":0,"sequence_number":1}`:                   true,
		`{"type":"response.output_text.done","text":"x"}`:                                                                                          false,
	} {
		var r response.Reader
		if e := r.Read([]byte(data)); e.Bare() != want {
			t.Errorf("bare %v: %s", e.Bare(), data)
		}
	}
}

func TestReadingAndCuttingCostNoAllocation(t *testing.T) {
	var r response.Reader
	var out []byte
	changes := []response.Change{{From: 1, To: 3, Text: []byte("x")}}
	for _, name := range fixtures(t, "*.sse") {
		stream := events(t, fixture(t, name))
		read := func() {
			for _, data := range stream {
				e := r.Read(data)
				out = e.Append(out[:0], response.Rewrite{})
				if len(e.Deltas) > 0 {
					out = e.Append(out[:0], response.Rewrite{Changes: changes, Finish: "content_filter"})
				}
			}
		}
		read() // let the buffers grow
		if n := testing.AllocsPerRun(20, read); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}
