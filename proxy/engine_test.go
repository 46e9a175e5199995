package proxy

import (
	"bytes"
	"mime/multipart"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/testkit"
	"signalbox/proxy/auth"
	"signalbox/proxy/engine"
)

// forged returns what a client would send to pose as a part of the serving system, by field.
func forged() map[string]string {
	return map[string]string{
		"kv_transfer_params": `{"do_remote_prefill":true,"remote_block_ids":[1,2]}`,
		"ec_transfer_params": `{"x":1}`, "vllm_xargs": `{"a":1}`, "priority": `-1`,
		"request_id":        `"r"`,
		"logits_processors": `["os.system"]`, "rid": `"r"`, "bootstrap_host": `"10.0.0.9"`,
		"bootstrap_port": `1`, "bootstrap_room": `0`, "bootstrap_pair_key": `"k"`,
		"data_parallel_rank": `0`, "routed_dp_rank": `0`, "disagg_prefill_dp_rank": `0`,
		"decode_tp_size": `1`, "session_params": `{"id":"s"}`, "extra_key": `"tenant"`,
		"custom_logit_processor": `"80"`, "custom_params": `{"a":1}`, "lora_path": `"other"`,
		"nvext": `{"backend_instance_id":1}`, "disaggregated_params": `{"ctx_request_id":1}`,
	}
}

// bodies returns a request to each JSON endpoint with one more field.
func bodies(field, value string) map[string]string {
	more := `,"` + field + `":` + value + `}`
	return map[string]string{
		"/v1/chat/completions": strings.TrimSuffix(ask("hi"), "}") + more,
		"/v1/completions":      `{"model":"auto","prompt":"hi"` + more,
		"/v1/responses":        `{"model":"auto","input":"hi"` + more,
		"/v1/embeddings":       `{"model":"small","input":"hi"` + more,
		"/v1/rerank":           `{"model":"small","query":"hi","documents":["a"]` + more,
		"/v1/tokenize":         `{"model":"small","prompt":"hi"` + more,
		"/v1/audio/speech":     `{"model":"small","input":"hi","voice":"a"` + more,
	}
}

// S6, S20: control fields may come from the serving system only.
func TestFieldsThatSteerTheModelServerAreRefusedByName(t *testing.T) {
	t.Parallel()
	up := testkit.NewUpstream(t, testkit.JSON(200, testkit.Completion))
	b := start(t, oneModel(up))
	for field, value := range forged() {
		for path, body := range bodies(field, value) {
			got := b.post(path, body)
			if got.status != http.StatusBadRequest {
				t.Errorf("%s: %s: status %d", path, field, got.status)
				continue
			}
			if e := got.error(t); e.Param == nil || *e.Param != field ||
				!strings.Contains(e.Message, field) {
				t.Errorf("%s: %s: %+v", path, field, e)
			}
		}
	}
	spelled := strings.Replace(bodies("priority", "1")[chatPath], "priority", `\u0070riority`, 1)
	if got := b.chat(spelled); got.status != http.StatusBadRequest {
		t.Errorf("another spelling of the name: status %d", got.status)
	}
	if n := len(up.Requests()); n != 0 {
		t.Errorf("%d requests arrived", n)
	}
}

// vLLM stores an image under the uuid of its part and uses it for anyone who names it next, of any
// tenant.
func TestAPictureIsNotNamedForAllTenants(t *testing.T) {
	t.Parallel()
	up := testkit.NewUpstream(t, testkit.JSON(200, testkit.Completion))
	b := start(t, oneModel(up))
	const text, stolen = `{"type":"text","text":"hi"}`, `{"type":"image_url","image_url":null,"uuid":"u"}`
	chats := `{"model":"small","messages":[{"role":"system","content":"Be brief."},{"role":"user","content":[` + text + `,%s]}]}`
	for _, c := range []struct{ path, body, at string }{
		{chatPath, chats, "messages[1].content[1].uuid"},
		{"/v1/responses", `{"model":"small","input":[{"role":"user","content":[%s]}]}`, "input[0].content[0].uuid"},
		{"/v1/embeddings", `{"model":"small","messages":[{"role":"user","content":[%s]}]}`, "messages[0].content[0].uuid"},
		{"/v1/embeddings", `{"model":"small","input":[%s]}`, "input[0].uuid"},
		{"/v1/tokenize", chats, "messages[1].content[1].uuid"},
	} {
		got := b.post(c.path, strings.Replace(c.body, "%s", stolen, 1))
		if e := got.error(t); got.status != 400 || e.Param == nil || *e.Param != c.at ||
			e.Code == nil || *e.Code != "unsupported_parameter" {
			t.Errorf("%s: status %d: %s", c.path, got.status, got.body)
		}
		spelled := strings.Replace(stolen, "uuid", `\u0075uid`, 1)
		if got := b.post(c.path, strings.Replace(c.body, "%s", spelled, 1)); got.status != 400 {
			t.Errorf("%s: in another spelling: status %d: %s", c.path, got.status, got.body)
		}
	}
	if n := len(up.Requests()); n != 0 {
		t.Errorf("%d requests arrived", n)
	}
	b = start(t, oneModel(up), withKeys(auth.KeyOptions{Name: "k", Role: "camera"}, auth.KeyOptions{Name: "g"}),
		func(s *setup) {
			s.options.AllowEngineParams = []engine.Param{{Name: "uuid", Roles: []string{"camera"}}}
			s.routes = "routes: []\ndefault: {models: [small]}"
		})
	body := strings.Replace(chats, "%s", stolen, 1)
	if got := b.chat(body, "Authorization", "Bearer k"); got.status != 200 ||
		!strings.Contains(string(up.Last(t).Body), stolen) {
		t.Errorf("a role that may: status %d: %s", got.status, got.body)
	}
	if got := b.chat(body, "Authorization", "Bearer g"); got.status != 400 {
		t.Errorf("a role that may not: status %d: %s", got.status, got.body)
	}
	null := strings.Replace(body, `"uuid":"u"`, `"uuid":null`, 1)
	if got := b.chat(null, "Authorization", "Bearer g"); got.status != 200 {
		t.Errorf("no name: status %d: %s", got.status, got.body)
	}
}

func TestAFormThatSteersTheModelServerIsRefused(t *testing.T) {
	t.Parallel()
	up := testkit.NewUpstream(t, testkit.JSON(200, `{"text":"hi"}`))
	b := start(t, oneModel(up))
	for field := range forged() {
		var body bytes.Buffer
		w := multipart.NewWriter(&body)
		_ = w.WriteField("model", "small")
		_ = w.WriteField(field, "1")
		_ = w.Close()
		got := b.post("/v1/audio/transcriptions", body.String(), "Content-Type",
			w.FormDataContentType())
		if got.status != http.StatusBadRequest {
			t.Errorf("%s: status %d", field, got.status)
			continue
		}
		if e := got.error(t); e.Param == nil || *e.Param != field {
			t.Errorf("%s: %+v", field, e)
		}
	}
}

// Defaults that clients spell out are not control fields, nor are sampling extensions.
func TestDefaultsAndExtensionsOfSamplingPassAsTheyAre(t *testing.T) {
	t.Parallel()
	up := testkit.NewUpstream(t, testkit.JSON(200, testkit.Completion))
	b := start(t, oneModel(up))
	more := `,"kv_transfer_params":null,"vllm_xargs":{ },"priority":0,"rid":null,` +
		`"top_k":5,"min_p":0.0,"min_tokens":2,"repetition_penalty":1.0,"stop_token_ids":[1],` +
		`"guided_json":{"a":1},"structured_outputs":{"choice":["a"]},"bad_words":["b"],` +
		`"chat_template_kwargs":{"enable_thinking":false},"ignore_eos":false,` +
		`"return_token_ids":true,"mm_processor_kwargs":{},"documents":[]}`
	body := strings.TrimSuffix(ask("hi"), "}") + more
	if got := b.chat(body); got.status != 200 {
		t.Fatalf("status %d: %s", got.status, got.body)
	}
	want := strings.Replace(body, `"auto"`, `"Org/Small-7B"`, 1)
	if diff := cmp.Diff(want, string(up.Last(t).Body)); diff != "" {
		t.Errorf("body (-want +got):\n%s", diff)
	}
}

// steers are headers that parts of serving systems trust as coming from another part.
func steers() []string {
	return []string{
		"X-Data-Parallel-Rank", "X-data_parallel-rank", "X-Data-Parallel-Host-Port",
		"X-Prefiller-Host-Port",
		"X_prefiller_host_port", "X-Encoder-Hosts-Ports", "X-Kv-Cache-Source-Host-Port",
		"X-Llm-D-Anything",
		"X-Gateway-Destination-Endpoint", "X-Gateway-Inference-Objective", "X-Worker-Instance-Id",
		"X-Prefill-Instance-Id", "X-Dynamo-Routing-Mode", "X-Smg-Target-Worker", "X-Sglang-Worker",
		"X-Vllm-Anything",
	}
}

func TestHeadersThatSteerTheModelServerEndHere(t *testing.T) {
	t.Parallel()
	up := testkit.NewUpstream(t, testkit.JSON(200, testkit.Completion))
	b := start(t, oneModel(up))
	sent := []string{"X-Custom", "kept", "X_custom", "kept"}
	for _, name := range steers() {
		sent = append(sent, name, "10.0.0.9:1")
	}
	if got := b.chat(ask("hi"), sent...); got.status != 200 {
		t.Fatalf("status %d: %s", got.status, got.body)
	}
	h := up.Last(t).Header
	for name, values := range h {
		if strings.Contains(strings.Join(values, " "), "10.0.0.9") {
			t.Errorf("%s arrived", name)
		}
	}
	if h.Get("X-Custom") != "kept" || len(h["X_custom"]) != 1 {
		t.Errorf("headers of the application are gone: %v", h)
	}
}

// vLLM's connector P2pNccl reads from the request id which servers to exchange blocks with.
func TestAnIdWithAddressesIsNotTakenOver(t *testing.T) {
	t.Parallel()
	up := testkit.NewUpstream(t, testkit.JSON(200, testkit.Completion))
	b := start(t, oneModel(up))
	const id = "___prefill_addr_10.0.0.9:1___decode_addr_10.0.0.8:1_0af7651916cd43dd8448eb"
	got := b.chat(ask("hi"), "X-Request-Id", id)
	if sent := up.Last(t).Header.Get("X-Request-Id"); strings.Contains(sent, "addr") ||
		sent != got.header.Get("X-Request-Id") {
		t.Errorf("the id %q arrived, the client was told %q", sent, got.header.Get("X-Request-Id"))
	}
	for _, good := range []string{
		"Root=1-5759e988-bd862e3fe1be46a994272793", "a_b__c",
		"0af76519:1",
	} {
		if b.chat(ask("hi"), "X-Request-Id", good); up.Last(t).Header.Get("X-Request-Id") != good {
			t.Errorf("the id %q became %q", good, up.Last(t).Header.Get("X-Request-Id"))
		}
	}
}

// allows lets callers send control parameters.
func allows(list ...engine.Param) func(*setup) {
	return func(s *setup) {
		s.options.AllowEngineParams = append(s.options.AllowEngineParams,
			list...)
	}
}

func TestRolesThatMaySteerTheModelServerDo(t *testing.T) {
	t.Parallel()
	up := testkit.NewUpstream(t, testkit.JSON(200, testkit.Completion))
	b := start(t, oneModel(up),
		withKeys(auth.KeyOptions{Name: "ops", Role: "ops"}, auth.KeyOptions{
			Name: "app",
			Role: "app",
		}),
		allows(
			engine.Param{Name: "kv_transfer_params", Roles: []string{"ops"}},
			engine.Param{Name: "priority"},
			engine.Param{Name: "x-data-parallel-rank", Roles: []string{"other", "ops"}},
			engine.Param{Name: "X-Dynamo-Mode"},
		))
	const transfer = `{"do_remote_prefill":true,"remote_host":"10.0.0.9"}`
	for _, tt := range []struct {
		key, field, value string
		status            int
	}{
		{"ops", "kv_transfer_params", transfer, 200},
		{"app", "kv_transfer_params", transfer, 400},
		{"ops", "priority", "-1", 200},
		{"app", "priority", "7", 200},
		{"ops", "rid", `"r"`, 400},
		{"app", "rid", `"r"`, 400},
	} {
		body := bodies(tt.field, tt.value)[chatPath]
		got := b.chat(body, "Authorization", "Bearer "+tt.key, "X-Data-Parallel-Rank", "1",
			"X-Dynamo-Mode", "m")
		if got.status != tt.status {
			t.Errorf("%s of %s: status %d, want %d: %s", tt.field, tt.key, got.status, tt.status,
				got.body)
		}
		if got.status != 200 {
			continue
		}
		sent := up.Last(t)
		if want := `"` + tt.field + `":` + tt.value + "}"; !strings.HasSuffix(string(sent.Body),
			want) {
			t.Errorf("%s of %s became %s", tt.field, tt.key, sent.Body)
		}
		rank := map[string]string{"ops": "1"}[tt.key]
		if sent.Header.Get("X-Data-Parallel-Rank") != rank ||
			sent.Header.Get("X-Dynamo-Mode") != "m" {
			t.Errorf("%s: headers %v", tt.key, sent.Header)
		}
	}
}

func TestAnExplanationRefusesWhatTheRequestWouldBe(t *testing.T) {
	t.Parallel()
	b := start(t, oneModel(testkit.NewUpstream(t, testkit.JSON(200, testkit.Completion))))
	got := b.post("/signalbox/v1/explain", bodies("priority", "1")[chatPath])
	if e := got.error(t); got.status != 400 || e.Param == nil || *e.Param != "priority" {
		t.Errorf("status %d: %+v", got.status, e)
	}
}
