package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

//nolint:gochecknoglobals // one pool of connections
var shared = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 32, DisableCompression: true}}

func client() *http.Client { return shared }

func sum(key string) string {
	h := sha256.Sum256([]byte(key))
	return hex.EncodeToString(h[:])
}

// through is a case as a tenant sends it to the product.
func through(c testCase, key string) testCase {
	c.header = [2]string{"Authorization", "Bearer " + key}
	return c
}

// versions asks the installed servers.
func (b *bench) versions(ctx context.Context) string {
	var v struct {
		Version string `json:"version"`
	}
	_, body, err := get(ctx, b.a.url+"/version")
	if err != nil || json.Unmarshal(body, &v) != nil {
		return "vLLM of an unknown version"
	}
	return "vLLM " + v.Version + " on the CPU, a Qwen3 of two layers with random weights"
}

// revision is that of the product, as git names the checkout.
func revision(ctx context.Context) string {
	out, err := exec.CommandContext(ctx, "git", "describe", "--tags", "--always", "--dirty").Output()
	if err != nil {
		return "of an unknown revision"
	}
	return strings.TrimSpace(string(out))
}

// explained says why a difference is meant to be; empty for one that is not.
func explained(c testCase, d difference) string {
	wrong := func(status string) bool { return strings.HasPrefix(status, "4") || strings.HasPrefix(status, "5") }
	refused := wrong(d.direct) && strings.HasPrefix(d.through, "4")
	switch {
	case strings.HasPrefix(c.name, "error/") && (refused || strings.HasPrefix(d.at, "[0].error")):
		return "the proxy refuses it itself, or in the words of the API"
	case c.name == "error/role" && d.at == "status":
		return "roles that the API does not have are refused"
	case (c.name == "error/empty messages" || c.name == "error/model") && d.at == "status" &&
		strings.HasPrefix(d.direct, "200"): // llama.cpp
		return "the server answers what the API refuses: no messages, a model that it does not have"
	}
	return ""
}

// differences sends every case to the server and through the product, each twice: the second time
// both have the prompt in their cache, and only that is compared.
func (b *bench) differences(ctx context.Context) error {
	return b.table(ctx, b.a.url, append(allCases(), otherCases()...))
}

// both sends a case directly and through the product, twice, and returns the second responses.
func (b *bench) both(ctx context.Context, direct string, c testCase) (got [2]*answer, err error) {
	for range 2 {
		for i, base := range []string{direct, b.product.url} {
			asked := through(c, keyOne)
			if base == direct && c.path == tokenizePath {
				asked.path = strings.TrimPrefix(c.path, "/v1")
			}
			if got[i], err = send(ctx, base, asked); err != nil {
				return got, err
			}
		}
	}
	return got, nil
}

// beside sends a case to the server alone, and then through the product.
func (b *bench) beside(ctx context.Context, c testCase) (direct, got *answer, err error) {
	if direct, err = send(ctx, b.a.url, c); err == nil {
		got, err = send(ctx, b.product.url, through(c, keyOne))
	}
	return direct, got, err
}

// table compares the responses to all cases and says in what they differ.
func (b *bench) table(ctx context.Context, direct string, cases []testCase) error {
	same, cut, failed := 0, 0, 0
	why := map[string][]string{}
	for _, c := range cases {
		got, err := b.both(ctx, direct, c)
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		found, pieces, err := compare(got[0], got[1])
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		reason, open := "", false
		said := 0
		for _, d := range found {
			if reason = explained(c, d); reason != "" {
				continue
			}
			open = true
			if said++; said <= 3 {
				b.sayf("- **%s**: `%s`: direct `%s`, through `%s`\n", c.name, d.at, d.direct, d.through)
			}
		}
		switch {
		case open:
			failed++
		case len(found) > 0:
			why[reason] = append(why[reason], c.name)
		case pieces:
			cut++
		default:
			same++
		}
	}
	b.broken += failed
	b.sayf("\n| %d cases | |\n| --- | --- |\n| equal, event by event | %d |\n", len(cases), same)
	b.sayf("| equal, but the server put other numbers of tokens into an event | %d |\n", cut)
	for _, reason := range slices.Sorted(maps.Keys(why)) {
		b.sayf("| %s | %d: %s |\n", reason, len(why[reason]), strings.Join(why[reason], ", "))
	}
	b.sayf("| unexplained | %d |\n", failed)
	return nil
}

// usage is what a response says of its tokens.
type usage struct {
	Prompt     int `json:"prompt_tokens"`
	Completion int `json:"completion_tokens"`
	Details    struct {
		Cached int `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
}

func usageOf(a *answer) (u usage, err error) {
	var v struct {
		Usage usage `json:"usage"`
	}
	if a.status != http.StatusOK {
		return u, fmt.Errorf("status %d: %s", a.status, brief(string(a.body)))
	}
	err = json.Unmarshal(a.body, &v)
	return v.Usage, err
}

// ask sends a chat through the product and returns what it used, and how many cached tokens were
// predicted: -1 where the request belonged to nothing.
func (b *bench) ask(ctx context.Context, key, members string) (u usage, predicted int, err error) {
	a, err := send(ctx, b.product.url, through(testCase{
		path: chatPath, body: `{"max_tokens":2,"temperature":0,` + members + `}`,
	}, key))
	if err != nil {
		return u, 0, err
	}
	predicted = -1
	if n, err := strconv.Atoi(a.header.Get("X-Signalbox-Context-Predicted-Tokens")); err == nil {
		predicted = n
	}
	u, err = usageOf(a)
	return u, predicted, err
}

func (b *bench) store(ctx context.Context, text string) (id string, err error) {
	body, err := json.Marshal(map[string]string{"name": "bench", "content": text})
	if err != nil {
		return "", fmt.Errorf("write: %w", err)
	}
	a, err := send(ctx, b.product.url, through(testCase{path: "/v1/contexts", body: string(body)}, keyOne))
	if err != nil {
		return "", err
	}
	var v struct {
		ID string `json:"id"`
	}
	if err := json.Unmarshal(a.body, &v); err != nil || v.ID == "" {
		return "", fmt.Errorf("status %d: %s", a.status, brief(string(a.body)))
	}
	return v.ID, nil
}

// page is a text that no other has a beginning in common with.
func page(name string, words int) string {
	return "This is " + name + " on harbours. " + strings.Repeat("The harbour opens at nine. ", words/5)
}

// block is how many tokens the CPU build of vLLM caches at once.
const block = 128

// row is a request whose prediction is compared.
type row struct {
	name, members string
}

// cached compares what the product expects of a server's cache with what the server says.
func (b *bench) cached(ctx context.Context) error {
	lease, err := b.store(ctx, page("a lease", 1500))
	if err != nil {
		return err
	}
	talk := func(turns ...string) string {
		var list []string
		for i, t := range turns {
			list = append(list, fmt.Sprintf(`{"role":%q,"content":%q}`, [2]string{"user", "assistant"}[i%2], t))
		}
		return `"model":"tiny-real","messages":[` + strings.Join(list, ",") + `]`
	}
	first, second := page("turn one", 900), page("turn two", 400)
	named := func(question string) string {
		return `"signalbox":{"context":["` + lease + `"]},` + talk(question)
	}
	tools := `"tools":[` + weatherTool + `],` + talk(page("tools", 800))
	rows := []row{
		{"session, first turn", `"signalbox":{"session":"s1"},` + talk(first)},
		{"session, the same again", `"signalbox":{"session":"s1"},` + talk(first)},
		{"session, second turn", `"signalbox":{"session":"s1"},` + talk(first, "Yes.", second)},
		{"session, third turn", `"signalbox":{"session":"s1"},` + talk(first, "Yes.", second, "No.", "Why?")},
		{"prompt without a session", talk(page("alone", 700))},
		{"prompt without a session, again", talk(page("alone", 700))},
		{"context, first", named("When does it end?")},
		{"context, again", named("Who signed?")},
		{"context, third question", named(page("a long question", 300))},
		{"tools, first", tools},
		{"tools, again", tools},
	}
	b.sayf("| request | tokens | predicted | real | |\n| --- | --- | --- | --- | --- |\n")
	for _, r := range rows {
		u, predicted, err := b.ask(ctx, keyOne, r.members)
		if err != nil {
			return fmt.Errorf("%s: %w", r.name, err)
		}
		word := "within a block"
		if predicted < 0 {
			b.sayf("| %s | %d | none | %d | belongs to nothing |\n", r.name, u.Prompt, u.Details.Cached)
			continue
		}
		if off := predicted - u.Details.Cached; off < -block || off > block {
			word = "**off**"
			b.broken++
		}
		b.sayf("| %s | %d | %d | %d | %s |\n", r.name, u.Prompt, predicted, u.Details.Cached, word)
	}
	return nil
}

func (b *bench) salt(ctx context.Context) error {
	members := fmt.Sprintf(`"model":"tiny-real","messages":[{"role":"user","content":%q}]`, page("a secret", 900))
	for _, ask := range []struct {
		key  string
		name string
		hit  bool
	}{
		{keyOne, "tenant one, first", false},
		{keyOne, "tenant one, again", true},
		{keyTwo, "tenant two, the same prompt", false},
		{keyTwo, "tenant two, again", true},
	} {
		u, _, err := b.ask(ctx, ask.key, members)
		if err != nil {
			return err
		}
		b.holds(u.Details.Cached > 0 == ask.hit, "%s: %d of %d tokens cached", ask.name, u.Details.Cached, u.Prompt)
	}
	return nil
}

func (b *bench) warm(ctx context.Context) error {
	id, err := b.store(ctx, page("a book", 2500))
	if err != nil {
		return err
	}
	a, err := send(ctx, b.product.url, through(testCase{
		path: "/v1/contexts/" + id + "/warm", body: `{"models":["tiny-real"],"wait":true}`,
	}, keyOne))
	if err != nil {
		return err
	}
	b.holds(a.status == http.StatusOK, "`POST /v1/contexts/{id}/warm` says %d %s", a.status, brief(string(a.body)))
	u, predicted, err := b.ask(ctx, keyOne, `"model":"tiny-real","signalbox":{"context":["`+id+
		`"]},"messages":[{"role":"user","content":"When?"}]`)
	if err != nil {
		return err
	}
	b.holds(u.Details.Cached >= u.Prompt-2*block, "the first request has %d of %d tokens cached", u.Details.Cached, u.Prompt)
	off := predicted - u.Details.Cached
	b.holds(off >= -block && off <= block, "predicted %d", predicted)

	long, err := b.store(ctx, page("too long a book", 30_000))
	if err != nil {
		return err
	}
	a, err = send(ctx, b.product.url, through(testCase{
		path: "/v1/contexts/" + long + "/warm", body: `{"models":["tiny-real"],"wait":true}`,
	}, keyOne))
	if err != nil {
		return err
	}
	b.holds(a.status == http.StatusBadRequest, "a context that no window holds: %d %s", a.status, brief(string(a.body)))
	for _, c := range []struct {
		id   string
		name string
		held bool
	}{{id, "that was read", true}, {long, "that was refused", false}} {
		a, err := b.look(ctx, "/v1/contexts/"+c.id)
		if err != nil {
			return err
		}
		var says struct {
			Residency []struct {
				Tokens int `json:"tokens"`
			} `json:"residency"`
		}
		if err := json.Unmarshal(a, &says); err != nil {
			return fmt.Errorf("%w: %s", err, brief(string(a)))
		}
		b.holds(len(says.Residency) > 0 == c.held, "the context %s is thought to be at %d servers", c.name, len(says.Residency))
	}
	return nil
}

// look reads what the product says at a path to tenant one.
func (b *bench) look(ctx context.Context, path string) ([]byte, error) {
	_, body, err := get(ctx, b.product.url+path, "Authorization", "Bearer "+keyOne)
	return body, err
}

// window asks with prompts around the context window of the server.
func (b *bench) window(ctx context.Context) error {
	for _, c := range []struct {
		name, text string
		fits       bool
	}{
		{"one word 4,000 times, far more bytes than tokens", strings.Repeat("configuration ", 4000), true},
		{"half of the window", page("half", 3000), true},
		{"twice the window", page("twice", 16_000), false},
	} {
		body := fmt.Sprintf(`{"model":%q,"max_tokens":2,"messages":[{"role":"user","content":%q}]}`, tiny, c.text)
		direct, got, err := b.beside(ctx, testCase{path: chatPath, body: body})
		if err != nil {
			return err
		}
		b.holds(got.status == direct.status, "%s: direct %d, through %d", c.name, direct.status, got.status)
		if direct.status != http.StatusOK {
			b.holds(strings.Contains(string(got.body), `"context_length_exceeded"`), "%s: `%s`", c.name, brief(string(got.body)))
		}
	}
	if err := b.edge(ctx); err != nil {
		return err
	}
	return b.listed(ctx)
}

// edge asks with prompts of ids whose lengths are those of the window and next to it.
func (b *bench) edge(ctx context.Context) error {
	for _, n := range []int{window - 1, window, window + 1, 2 * window} {
		ids := strings.TrimSuffix(strings.Repeat("65,", n), ",")
		c := testCase{path: completionPath, body: fmt.Sprintf(`{"model":%q,"max_tokens":1,"prompt":[%s]}`, tiny, ids)}
		direct, got, err := b.beside(ctx, c)
		if err != nil {
			return err
		}
		ok := got.status == direct.status && (n < window) == (got.status == http.StatusOK)
		switch {
		case n == window: // vLLM blames max_tokens, for the prompt alone would fit
			ok = ok && string(got.body) == string(direct.body)
		case n > window:
			ok = ok && strings.Contains(string(got.body), `"context_length_exceeded"`) &&
				strings.Contains(string(got.body), `"param":"prompt"`)
		}
		b.holds(ok, "%d ids and a token more: direct %d, through %d", n, direct.status, got.status)
	}
	return nil
}

// listed compares the window that the product tells with the server's.
func (b *bench) listed(ctx context.Context) error {
	page, err := b.look(ctx, "/v1/models/"+tiny)
	if err != nil {
		return err
	}
	var says struct {
		Window int `json:"max_model_len"`
	}
	if err := json.Unmarshal(page, &says); err != nil {
		return fmt.Errorf("%w: %s", err, brief(string(page)))
	}
	b.holds(says.Window == window, "`/v1/models` tells `max_model_len` %d, which nobody configured", says.Window)
	return nil
}

// tokens compares what the product counted with what the server did.
func (b *bench) tokens(ctx context.Context) error {
	before, err := metric(ctx, b.product.admin, "signalbox_tokens_total", "kind", "completion")
	if err != nil {
		return err
	}
	told := 0
	for i := range 6 {
		a, err := send(ctx, b.product.url, through(testCase{path: chatPath, body: fmt.Sprintf(
			`{"model":%q,"max_tokens":200,"ignore_eos":true,"stream":true,"stream_options":{"include_usage":true},`+
				`"messages":[{"role":"user","content":"Count %d"}]}`, tiny, i)}, keyOne))
		if err != nil {
			return err
		}
		events, err := a.events()
		if err != nil {
			return err
		}
		_, last, _ := strings.Cut(string(a.body), `"usage":{`)
		_, last, _ = strings.Cut(last, `"completion_tokens":`)
		digits := strings.IndexFunc(last, func(r rune) bool { return r < '0' || r > '9' })
		n, err := strconv.Atoi(last[:max(digits, 0)])
		if err != nil {
			return fmt.Errorf("no usage in %d events", len(events))
		}
		told += n
	}
	after, err := metric(ctx, b.product.admin, "signalbox_tokens_total", "kind", "completion")
	if err != nil {
		return err
	}
	b.holds(int(after-before) == told, "counted %d tokens, the server %d", int(after-before), told)
	return nil
}

// metric is the sum of a metric's samples, of those with a label of this value where it is named.
func metric(ctx context.Context, base, name, label, value string) (total float64, err error) {
	_, body, err := get(ctx, base+"/metrics")
	if err != nil {
		return 0, err
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(string(body)))
	if err != nil {
		return 0, fmt.Errorf("read metrics: %w", err)
	}
	for _, m := range families[name].GetMetric() {
		if label == "" || slices.ContainsFunc(m.GetLabel(), func(l *dto.LabelPair) bool {
			return l.GetName() == label && l.GetValue() == value
		}) {
			total += m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	return total, nil
}

// first compares times until the first byte, one request after the other.
func (b *bench) first(ctx context.Context) error {
	var direct, via, ratio []float64
	for i := range 40 {
		c := testCase{path: chatPath, body: fmt.Sprintf(
			`{"model":%q,"max_tokens":2,"stream":true,"messages":[{"role":"user","content":"Say %d"}]}`, tiny, i)}
		x, y, err := b.beside(ctx, c)
		if err != nil {
			return err
		}
		direct = append(direct, x.first.Seconds()*1000)
		via = append(via, y.first.Seconds()*1000)
		ratio = append(ratio, y.first.Seconds()/x.first.Seconds())
	}
	for _, list := range [][]float64{direct, via, ratio} {
		slices.Sort(list)
	}
	half := len(direct) / 2
	b.sayf("Medians of %d, in turn: direct %.1f ms, through %.1f ms; of the ratios of each pair %.2f.\n",
		len(direct), direct[half], via[half], ratio[half])
	return nil
}

// cancel leaves in the middle of a long stream.
func (b *bench) cancel(ctx context.Context) error {
	leaving, cancel := context.WithCancel(ctx)
	defer cancel()
	var wg sync.WaitGroup
	wg.Go(func() {
		_, _ = send(leaving, b.product.url, through(testCase{path: chatPath, body: fmt.Sprintf(
			`{"model":%q,"max_tokens":4000,"ignore_eos":true,"stream":true,"messages":[{"role":"user","content":"Go on"}]}`, tiny)}, keyOne))
	})
	running := func(want float64) bool {
		return within(ctx, 20*time.Second, func() bool {
			n, err := metric(ctx, b.a.url, "vllm:num_requests_running", "", "")
			return err == nil && n == want
		})
	}
	b.holds(running(1), "the server runs the request")
	cancel()
	wg.Wait()
	b.holds(running(0), "the server stops when the client has left")
	return nil
}

// within waits until ok reports true, for as long as it may take.
func within(ctx context.Context, most time.Duration, ok func() bool) bool {
	ctx, stop := context.WithTimeout(ctx, most)
	defer stop()
	for !ok() {
		select {
		case <-ctx.Done():
			return false
		case <-time.After(200 * time.Millisecond):
		}
	}
	return true
}

// burst sends short requests to the model of both servers, one after the other, and counts those
// that were answered within the limit.
func (b *bench) burst(ctx context.Context, n int, limit time.Duration) (answered int) {
	for i := range n {
		asking, stop := context.WithTimeout(ctx, limit)
		a, err := send(asking, b.product.url, through(testCase{path: chatPath, body: fmt.Sprintf(
			`{"model":"both","max_tokens":3,"messages":[{"role":"user","content":"Short %d"}]}`, i)}, keyOne))
		stop()
		if err == nil && a.status == http.StatusOK {
			answered++
		}
	}
	return answered
}

// asleep is how many endpoints the product takes for asleep.
func (b *bench) asleep(ctx context.Context, want float64) bool {
	return within(ctx, 15*time.Second, func() bool {
		n, err := metric(ctx, b.product.admin, "signalbox_endpoint_asleep", "model", "both")
		return err == nil && n == want
	})
}

func (b *bench) sleep(ctx context.Context) error {
	for _, way := range [][2]string{{"/sleep?level=1", "/wake_up"}, {"/pause", "/resume"}} {
		name, _, _ := strings.Cut(way[0], "?")
		if a, err := send(ctx, b.a.url, testCase{path: way[0]}); err != nil || a.status != http.StatusOK {
			b.sayf("- `%s` is not served: %v\n", name, err)
			continue
		}
		_, page, err := get(ctx, b.a.url+"/metrics")
		if err != nil {
			return err
		}
		for line := range strings.Lines(string(page)) {
			if strings.HasPrefix(line, "vllm:engine_sleep_state{") {
				b.sayf("- after `%s`: `%s`\n", name, strings.TrimSpace(line))
			}
		}
		b.holds(b.asleep(ctx, 1), "`%s`: the product notices", name)
		n := b.burst(ctx, 8, 10*time.Second)
		b.holds(n == 8, "`%s`: %d of 8 requests answered, by the other server", name, n)
		if a, err := send(ctx, b.a.url, testCase{path: way[1]}); err != nil || a.status != http.StatusOK {
			return fmt.Errorf("%s: %w", way[1], err)
		}
		b.holds(b.asleep(ctx, 0), "`%s`: the product notices", way[1])
	}
	n := b.burst(ctx, 8, 10*time.Second)
	b.holds(n == 8, "awake again: %d of 8 answered", n)
	return nil
}

func (b *bench) kill(ctx context.Context) error {
	type result struct {
		a   *answer
		err error
	}
	streams := make(chan result, 4)
	for i := range cap(streams) {
		go func() {
			a, err := send(ctx, b.product.url, through(testCase{path: chatPath, body: fmt.Sprintf(
				`{"model":"tiny-real","max_tokens":3000,"ignore_eos":true,"stream":true,"messages":[{"role":"user","content":"Go on %d"}]}`, i)}, keyOne))
			streams <- result{a, err}
		}()
	}
	if !within(ctx, 30*time.Second, func() bool {
		n, err := metric(ctx, b.a.url, "vllm:num_requests_running", "", "")
		return err == nil && n == float64(cap(streams))
	}) {
		return fmt.Errorf("the server does not run %d requests", cap(streams))
	}
	port := b.a.url[strings.LastIndexByte(b.a.url, ':')+1:]
	b.a.end(syscall.SIGKILL)
	told := 0
	for range cap(streams) {
		r := <-streams
		broken := r.err != nil || strings.Contains(string(r.a.body), `"error"`)
		if broken && (r.a == nil || !strings.Contains(string(r.a.body), "[DONE]")) {
			told++
		}
	}
	b.holds(told == cap(streams), "%d of %d streams break off, and do not end as if they were whole", told, cap(streams))
	n := b.burst(ctx, 8, 10*time.Second)
	b.holds(n == 8, "%d of 8 requests answered by the server that is left", n)
	before, err := metric(ctx, b.product.admin, "signalbox_endpoint_restarts_total", "model", "tiny-real")
	if err != nil {
		return err
	}
	if b.a, err = vllm(ctx, b.cache, b.dir, "a", port, chats()...); err != nil {
		return err
	}
	b.holds(within(ctx, 20*time.Second, func() bool {
		n, err := metric(ctx, b.product.admin, "signalbox_endpoint_restarts_total", "model", "tiny-real")
		return err == nil && n > before
	}), "the product notices the restart")
	members := fmt.Sprintf(`"model":"tiny-real","messages":[{"role":"user","content":%q}]`, page("alone", 700))
	u, predicted, err := b.ask(ctx, keyOne, members)
	if err != nil {
		return err
	}
	b.holds(u.Details.Cached == 0 && predicted <= 0, "nothing is expected of the new process: predicted %d, real %d", predicted, u.Details.Cached)
	return nil
}
