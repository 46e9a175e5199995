package kv

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"signalbox/internal/option"
	"signalbox/internal/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A shortened page of vLLM 0.10.
const page = `# HELP vllm:num_requests_running Number of requests in model execution batches.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="Qwen/Qwen2.5-7B-Instruct"} 3.0
vllm:num_requests_running{engine="1",model_name="Qwen/Qwen2.5-7B-Instruct"} 2.0
vllm:num_requests_waiting{engine="0",model_name="a}b\"c"} 4.0
vllm:kv_cache_usage_perc{engine="0"} 0.25
vllm:prefix_cache_queries_total{engine="0"} 1.2e+06 1700000000000
vllm:prefix_cache_hits_total{engine="0"} 900000
vllm:cache_config_info{block_size="16",cache_dtype="auto",enable_prefix_caching="True",engine="0",num_gpu_blocks="27000",sliding_window="None"} 1.0
# TYPE process_start_time_seconds gauge
process_start_time_seconds 1.7612345678e+09
http_requests_total{handler="/v1/chat/completions"} 12
`

// sleepState returns vLLM's report about one engine's sleep.
func sleepState(awake, offloaded string) string {
	const name = `vllm:engine_sleep_state{engine="0",model_name="m",sleep_state="`
	return name + `awake"} ` + awake + ".0\n" + name + `weights_offloaded"} ` + offloaded + ".0\n" +
		name + `discard_all"} 0.0` + "\n"
}

func TestAPageIsRead(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, page string
		want       Report
	}{
		{"of vLLM", page, Report{
			VLLM: true, Started: 1.7612345678e+09, Queries: 1.2e6, Running: 5,
			Waiting: 4, Tokens: 27000 * 16, Block: 16, Caching: true,
		}},
		{"of another server", "process_start_time_seconds 12\nfoo{} 3\n", Report{Started: 12}},
		{
			"without prefix caching",
			`vllm:cache_config_info{block_size="16",enable_prefix_caching="False",` +
				`num_gpu_blocks="None"} 1`,
			Report{VLLM: true, Block: 16},
		},
		{"of numbers that are none", "vllm:num_requests_running NaN\nvllm:num_requests_waiting +Inf\nvllm:prefix_cache_queries_total -3\n", Report{VLLM: true}},
		{"of halves", "vllm:num_requests_running{\nvllm:num_requests_waiting\n{} 3\nvllm:num_requests_running{a=\"} 4\n", Report{}},
		{"of a server that is awake", sleepState("1", "0"), Report{VLLM: true}},
		{"of a server that sleeps", sleepState("0", "1"), Report{VLLM: true, Asleep: true}},
		{
			"of two engines, one of which sleeps",
			sleepState("1", "0") + sleepState("0", "1") + sleepState("1", "0"),
			Report{VLLM: true, Asleep: true},
		},
		{"of nothing", "", Report{}},
		{"with Windows lines", "vllm:num_requests_running 7\r\nvllm:num_requests_waiting 1\r\n", Report{VLLM: true, Running: 7, Waiting: 1}},
	} {
		got, err := Read(strings.NewReader(c.page))
		if err != nil || got != c.want {
			t.Errorf("a page %s: %+v, %v, want %+v", c.name, got, err, c.want)
		}
	}
}

func TestAPageIsBounded(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"long page": strings.Repeat("vllm:num_requests_running 1\n", maxPage/28+10),
		"long line": strings.Repeat("x", maxLine+1),
	} {
		if r, err := Read(strings.NewReader(body)); err == nil {
			t.Errorf("a %s was read: %+v", name, r)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add(page)
	f.Add("vllm:cache_config_info{block_size=\"-1\",num_gpu_blocks=\"1e300\"} 1\nvllm:num_requests_running 1e308\nvllm:num_requests_running 1e308\n")
	f.Add(`a{b="\"} 1`)
	f.Fuzz(func(t *testing.T, body string) {
		r, err := Read(strings.NewReader(body))
		if err == nil && (r.Running < 0 || r.Waiting < 0 || r.Tokens < 0 || !(r.Queries >= 0) || r.Running > maxCount || r.Tokens > maxCount) {
			t.Errorf("%+v", r)
		}
	})
}

func TestTargetsAreAskedUntilTheEnd(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch n := asked.Add(1); {
		case r.URL.Path != "/stats" || r.Header.Get("Authorization") != "Bearer k":
			t.Errorf("asked for %s with %q", r.URL, r.Header.Get("Authorization"))
		case n == 1:
			w.WriteHeader(http.StatusNotFound) // the next one may have the path
		case n == 2:
			_, _ = w.Write([]byte(strings.Repeat("x", maxLine+1)))
		default:
			_, _ = w.Write([]byte(page))
		}
	}))
	defer srv.Close()
	base, _ := url.Parse(srv.URL + "/v1/chat/completions")
	got := make(chan Report, 100)
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	done, idle := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		Watch(context.Background(), []Target{{
			URL: Metrics(base, "/stats"), Transport: transport, Bearer: "Bearer k", Options: ScrapeOptions{Interval: option.Duration(5 * time.Millisecond)},
			Told: func(_ time.Time, r Report) {
				select {
				case got <- r:
				default:
				}
			},
		}}, idle)
	}()
	for range 2 {
		select {
		case r := <-got:
			if r.Running != 5 {
				t.Errorf("told %+v", r)
			}
		case <-time.After(testkit.Patience):
			t.Fatal("nothing was told")
		}
	}
	close(idle)
	<-done
}

// A server that is not vLLM is not asked every two seconds for what it does not have.
func TestPause(t *testing.T) {
	t.Parallel()
	const interval = 2 * time.Second
	for name, test := range map[string]struct {
		r    Report
		err  error
		want time.Duration
	}{
		"vLLM":                   {r: Report{VLLM: true}, want: interval},
		"another server":         {r: Report{Started: 1}, want: rareInterval},
		"a server without it":    {err: fmt.Errorf("read: %w 404", errStatus), want: rareInterval},
		"a page of another kind": {err: bufio.ErrTooLong, want: rareInterval},
		"a server that is down":  {err: fmt.Errorf("read: %w: refused", errUnreached), want: interval},
	} {
		if got := pause(interval, &test.r, test.err); got != test.want {
			t.Errorf("%s: asked again after %s, want %s", name, got, test.want)
		}
	}
}

func TestOptionsAreChecked(t *testing.T) {
	t.Parallel()
	var p option.Problems
	(&Options{Level: "apc", P2P: Peer{Host: "10.0.0.5", Port: 5710}}).Check(&p, "kv")
	(&Options{P2P: Peer{Host: "::1", Port: 1}}).Check(&p, "kv")
	(&ModelOptions{Level: "auto", PrefillUsPerToken: 60, Scrape: ScrapeOptions{Path: "/metrics", Interval: option.Duration(time.Second)}}).Check(&p, "kv")
	if err := p.Err(); err != nil {
		t.Errorf("good options: %v", err)
	}
	for want, o := range map[string]Options{
		`kv.level: "vllm" is not one of openai, apc, auto`:            {Level: "vllm"},
		"kv.seats: -1 is negative":                                    {Seats: -1},
		"kv.tokens: -1 is negative":                                   {Tokens: -1},
		"kv.prefill_us_per_token: -2 is not between 0 and 1000000":    {PrefillUsPerToken: -2},
		`kv.p2p.host: "" is not a host name or an address`:            {P2P: Peer{Port: 1}},
		"kv.p2p.port: 0 is not between 1 and 65535":                   {P2P: Peer{Host: "h"}},
		`kv.p2p.host: "h:1" holds a port, which has a key of its own`: {P2P: Peer{Host: "h:1", Port: 1}},
		`kv.p2p.host: "http://h" is not a host name or an address`:    {P2P: Peer{Host: "http://h", Port: 1}},
	} {
		var p option.Problems
		if o.Check(&p, "kv"); p.Err() == nil || p.Err().Error() != want {
			t.Errorf("got %v, want %s", p.Err(), want)
		}
	}
	var bad option.Problems
	(&ModelOptions{Scrape: ScrapeOptions{Path: "metrics", Interval: 1, Timeout: -1}}).Check(&bad, "kv")
	if n := strings.Count(bad.Err().Error(), "\n"); n != 2 {
		t.Errorf("problems of scrape: %v", bad.Err())
	}
	own := Options{Tokens: 5}
	o := own.Over(&ModelOptions{Tokens: 7, Seats: 8, PrefillUsPerToken: 2.5})
	if o.Tokens != 5 || o.Seats != 8 || o.Level != LevelOpenAI || o.Prefill() != 2500*time.Nanosecond {
		t.Errorf("options over those of the model: %+v", o)
	}
}

func TestBlocksCanBeTakenWhereBothCan(t *testing.T) {
	t.Parallel()
	has, lacks := Options{P2P: Peer{Host: "10.0.0.5", Port: 5710}}, Options{}
	member, value, err := P2P{}.Hint(&has, &Options{P2P: Peer{Host: "b", Port: 1}}, "kv_1")
	if want := `{"kv_request_id":"kv_1","remote_host":"10.0.0.5","remote_port":5710}`; err != nil || member != "remote_kv_source" || string(value) != want {
		t.Errorf("hint %s %s, %v", member, value, err)
	}
	for _, pair := range [][2]*Options{{&has, &lacks}, {&lacks, &has}, {&lacks, &lacks}} {
		if member, _, _ := (P2P{}).Hint(pair[0], pair[1], "kv_1"); member != "" {
			t.Errorf("a hint from %+v to %+v", pair[0], pair[1])
		}
	}
}
