package report

import (
	"bytes"
	"compress/gzip"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/testkit"
	"signalbox/proxy/decisionlog"
)

// sum reports logs, which are called a, b, ...
func sum(t *testing.T, o Options, logs ...string) *Report {
	t.Helper()
	var sources []Source
	for i, text := range logs {
		sources = append(sources, Source{Name: string(rune('a' + i)), Reader: strings.NewReader(text)})
	}
	if o.Top == 0 {
		o.Top = 20
	}
	r, err := Run(t.Context(), sources, o, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// line is one of a log; more are members that come beside, or in place of, those that every line has.
func line(more string) string {
	members := map[string]any{
		"v": 1, "time": "2026-05-01T12:00:00Z", "request": map[string]string{"model": "auto", "tenant": "t"},
		"route": "r", "outcome": "matched", "action": map[string]string{"verb": "use"}, "status": 200,
	}
	if err := json.Unmarshal([]byte("{"+more+"}"), &members); err != nil {
		panic(err)
	}
	b, err := json.Marshal(members)
	if err != nil {
		panic(err)
	}
	return string(b) + "\n"
}

func zipped(tb testing.TB, text string) string {
	tb.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := io.WriteString(z, text); err != nil {
		tb.Fatal(err)
	}
	if err := z.Close(); err != nil {
		tb.Fatal(err)
	}
	return b.String()
}

func TestEveryMemberThatIsReadIsOneOfTheLog(t *testing.T) {
	t.Parallel()
	var compare func(path string, mine, theirs reflect.Type)
	compare = func(path string, mine, theirs reflect.Type) {
		if mine == theirs {
			return
		}
		if mine.Kind() != reflect.Struct || theirs.Kind() != reflect.Struct {
			t.Errorf("%s is %s here and %s in the log", path, mine, theirs)
			return
		}
		tags := make(map[string]reflect.Type)
		for f := range theirs.Fields() {
			word, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			tags[word] = f.Type
		}
		if theirs == reflect.TypeFor[decisionlog.Entry]() { // another kind of line
			tags["refused"] = reflect.TypeFor[int64]()
		}
		for f := range mine.Fields() {
			if !f.IsExported() {
				continue
			}
			word := f.Tag.Get("json")
			if tags[word] == nil {
				t.Errorf("the log has no member %s%s", path, word)
				continue
			}
			compare(path+word+".", f.Type, tags[word])
		}
	}
	compare("", reflect.TypeFor[entry](), reflect.TypeFor[decisionlog.Entry]())
}

func TestEachRequestEndsInOneWay(t *testing.T) {
	t.Parallel()
	log := strings.Join([]string{
		line(`"model":"m","tokens":{"prompt":5,"cached":2,"completion":7,"reasoning":3},"cost_usd":1,"baseline_usd":4,"took_ms":10,"ttft_ms":2,"finish":"stop"`),
		line(`"model":"m","took_ms":20,"finish":"length"`),
		line(`"model":"m","cache":"exact","took_ms":1`),
		line(`"model":"m","status":502,"error":"upstream_timeout","took_ms":9`),
		line(`"model":"m","status":429`),
		line(`"model":"m","error":"upstream_error","took_ms":9`),
		line(`"model":"m","status":499,"tokens":{"prompt":1,"completion":1},"cost_usd":1,"baseline_usd":1`),
		line(`"status":400,"error":"content_policy_violation","action":{"verb":"block"}`),
		line(`"status":503,"error":"signal_unavailable","outcome":"fail_closed","action":{"verb":"block"}`),
		line(`"status":503,"error":"signal_unavailable","outcome":"unavailable"`),
		line(`"action":{"verb":"answer"}`),
	}, "\n") // with empty lines between them
	r := sum(t, Options{By: []string{ByModel}}, log)
	if r.Broken > 0 {
		t.Fatalf("broken: %v", r.BadLines)
	}
	g := r.Total
	got := []int64{g.Requests, g.Answered, g.Cached, g.Fixed, g.Blocked, g.Declined, g.Gone, g.Failed}
	if want := []int64{11, 2, 1, 1, 1, 2, 1, 3}; !slices.Equal(got, want) {
		t.Errorf("requests by their end %v, want %v", got, want)
	}
	errs := []Count{{"signal_unavailable", 2}, {"status 429", 1}, {"upstream_error", 1}, {"upstream_timeout", 1}}
	if diff := cmp.Diff(errs, g.Errors); diff != "" {
		t.Errorf("errors (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]Count{{"length", 1}, {"stop", 1}}, g.Finish); diff != "" {
		t.Errorf("ends of answers (-want +got):\n%s", diff)
	}
	if g.Untold != 1 || g.Took.Count != 2 || g.TTFT.Count != 1 {
		t.Errorf("untold %d, times of %d answers and %d streams", g.Untold, g.Took.Count, g.TTFT.Count)
	}
	if g.Cost != 2 || g.Baseline != 5 || g.Saved != 3 || g.Tokens != (Tokens{6, 2, 8, 3}) {
		t.Errorf("cost %v of %v, saved %v, tokens %+v", g.Cost, g.Baseline, g.Saved, g.Tokens)
	}
}

func TestAnswersThatWereThrownAwayArePaidByTheirModel(t *testing.T) {
	t.Parallel()
	r := sum(t, Options{By: []string{ByModel, ByRoute}}, line(`"model":"large","tokens":{"prompt":10,"completion":10},"cost_usd":4,"baseline_usd":4,`+
		`"escalation":{"result":"escalated","from":[{"model":"small","reason":"length","tokens":{"prompt":10,"completion":5},"cost_usd":1},`+
		`{"model":"small","reason":"empty","tokens":{"prompt":10,"completion":0},"cost_usd":0.5}]},`+
		`"mirror":{"model":"x","result":"answered","cost_usd":9}`))
	if g := r.Total; g.Cost != 5.5 || g.Saved != -1.5 || g.Thrown != (Thrown{2, 25, 1.5}) || g.Tokens.Prompt != 30 || g.Mirrored != (Mirrored{1, 1, 9}) {
		t.Errorf("all: %+v", g)
	}
	want := map[string][2]float64{"large": {1, 4}, "small": {0, 1.5}}
	got := make(map[string][2]float64)
	for _, g := range r.By[0].Groups {
		got[g.Name] = [2]float64{float64(g.Requests), g.Cost}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("requests and cost by model (-want +got):\n%s", diff)
	}
	if g := r.By[1].Groups[0]; g.Cost != 5.5 {
		t.Errorf("cost of the route %v", g.Cost)
	}
}

func TestTimesAndTenantsAreSelected(t *testing.T) {
	t.Parallel()
	at := func(day int, tenant string) string {
		return strings.Replace(strings.Replace(line(""), "05-01", fmt.Sprintf("05-%02d", day), 1), `"t"`, `"`+tenant+`"`, 1)
	}
	log := at(1, "a") + at(2, "a") + at(2, "b") + at(3, "a")
	day := func(n int) time.Time { return time.Date(2026, 5, n, 12, 0, 0, 0, time.UTC) }
	for _, tt := range []struct {
		o    Options
		want int64
	}{
		{Options{}, 4},
		{Options{Since: day(2)}, 3},
		{Options{Until: day(2)}, 1},
		{Options{Since: day(2), Until: day(3)}, 2},
		{Options{Since: day(2), Until: day(3), Tenant: "b"}, 1},
		{Options{Tenant: "c"}, 0},
	} {
		if r := sum(t, tt.o, log); r.Decisions != tt.want || r.Decisions+r.Left != 4 {
			t.Errorf("%+v: %d counted, %d left out; want %d", tt.o, r.Decisions, r.Left, tt.want)
		}
	}
	r := sum(t, Options{By: []string{ByDay, ByTenant}}, at(3, "a")+at(1, "b")+at(3, "b"))
	if got := []string{r.By[0].Groups[0].Name, r.By[0].Groups[1].Name}; !slices.Equal(got, []string{"2026-05-01", "2026-05-03"}) {
		t.Errorf("days %v", got)
	}
	if g := r.By[1].Groups[0]; g.Name != "b" || g.Requests != 2 {
		t.Errorf("the first tenant is %s with %d", g.Name, g.Requests)
	}
}

func TestBrokenLinesAreCountedAndNamed(t *testing.T) {
	t.Parallel()
	whole := zipped(t, line("")+line("")+line(""))
	r := sum(
		t, Options{},
		line("")+`{"v":1,"torn`+"\n"+line("")+strings.Replace(line(""), `"v":1`, `"v":2`, 1)+line(`"cost_usd":1e300`)+line(`"tokens":{"prompt":-1,"completion":1}`),
		whole, whole[:len(whole)-12], "\x1f\x8bnothing", "{}\n\x00\x00\n",
	)
	if r.Decisions < 2+3 || r.Decisions > 2+3+3 || r.Broken != 4+1+1+2 || r.Files != 5 {
		t.Errorf("%d decisions, %d broken of %d files: %v", r.Decisions, r.Broken, r.Files, r.BadLines)
	}
	all := strings.Join(r.BadLines, "\n")
	for _, want := range []string{
		`(?m)^a:2: not a line of a decision log: `, `(?m)^a:4: .*its version is 2, expected 1$`, `(?m)^a:5: .*cost_usd is out of range$`,
		`(?m)^a:6: .*tokens is out of range$`, `(?m)^c:\d: the compressed file is broken here: unexpected EOF$`, `(?m)^d:1: the compressed file is broken here`,
		`(?m)^e:1: .*its version is 0`, `(?m)^e:2: `,
	} {
		if !regexp.MustCompile(want).MatchString(all) {
			t.Errorf("no line matches %s:\n%s", want, all)
		}
	}
	failing := errors.New("the disk is gone")
	_, err := Run(t.Context(), []Source{{"x", io.MultiReader(strings.NewReader(line("")), iotest.ErrReader(failing))}}, Options{Top: 1}, nil)
	if !errors.Is(err, failing) || !strings.Contains(err.Error(), "read x") {
		t.Errorf("error %v", err)
	}
}

// Memory depends on the names that are tracked, not on the length of the log, nor on how many names
// there are.
func TestNamesBeyondTheFirstAreSummedUp(t *testing.T) {
	t.Parallel()
	const many = 5 * maxTracked
	pr, pw := io.Pipe()
	go func() {
		for i := range many {
			fmt.Fprint(pw, line(fmt.Sprintf(`"key":"k%d","cost_usd":1,"baseline_usd":2,"model":"m","took_ms":%d`, i, 1+i%100)))
			if i%2 == 0 {
				fmt.Fprint(pw, line(`"key":"heavy","cost_usd":1,"baseline_usd":2,"model":"m","took_ms":5`))
			}
		}
		pw.Close()
	}()
	tally := newTally(&Options{By: []string{ByKey}, Top: 3})
	if err := tally.source(t.Context(), &Source{"x", pr}, nil); err != nil {
		t.Fatal(err)
	}
	if n := len(tally.by[0].all); n > 2*maxTracked {
		t.Errorf("%d names are kept", n)
	}
	r := tally.report()
	s := r.By[0]
	if len(s.Groups) != 4 || s.Groups[0].Name != "heavy" || s.Groups[0].Requests != many/2 {
		t.Fatalf("%d groups, the first is %+v", len(s.Groups), s.Groups[0])
	}
	last := s.Groups[3]
	if !strings.HasPrefix(last.Name, Other+" (") || last.Requests != many-2 || last.Cost != many-2 || last.Took.Count != many-2 {
		t.Errorf("the rest is %+v", last)
	}
	few := sum(t, Options{By: []string{ByKey}, Top: 1}, line(`"key":"a"`)+line(`"key":"b"`)+line(`"key":"a"`)+line(`"key":"c"`)).By[0]
	if few.Names != 3 || len(few.Groups) != 2 || few.Groups[1].Name != "other (2 names)" || few.Groups[1].Requests != 2 {
		t.Errorf("of few names: %d, %+v", few.Names, few.Groups[1])
	}
	requests := int64(0)
	for _, g := range s.Groups {
		requests += g.Requests
	}
	if requests != r.Total.Requests || s.Names != 2*maxTracked+1 {
		t.Errorf("%d of %d requests, %d names", requests, r.Total.Requests, s.Names)
	}
}

// endless is a log of n lines that is made while it is read.
type endless struct {
	left int
	rest []byte
}

func (e *endless) Read(b []byte) (int, error) {
	if len(e.rest) == 0 {
		if e.left == 0 {
			return 0, io.EOF
		}
		e.left--
		e.rest = []byte(line(fmt.Sprintf(`"id":"req_%d","model":"m%d","took_ms":%d.5,"ttft_ms":3,"tokens":{"prompt":9,"completion":3},"prompt":{"last_user":"%s"}`,
			e.left, e.left%5, e.left%1000, strings.Repeat("x", 1000))))
	}
	n := copy(b, e.rest)
	e.rest = e.rest[n:]
	return n, nil
}

func TestMemoryDoesNotGrowWithTheLog(t *testing.T) {
	held := func(lines int) uint64 {
		tally := newTally(&Options{By: Dimensions(), Top: 20})
		if err := tally.source(t.Context(), &Source{"x", &endless{left: lines}}, nil); err != nil {
			t.Fatal(err)
		}
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		runtime.KeepAlive(tally)
		return m.HeapAlloc
	}
	const few = 2_000
	many := 40_000
	if testkit.Race {
		many = 12_000
	}
	held(few)
	short := held(few)
	if long, most := held(many), uint64(many-few)*100; long > short+most {
		t.Errorf("%d bytes are held after %d lines, %d after %d", long, many, short, few)
	}
}

func TestPercentilesAreOffByOnePercentAtMost(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	tally := newTally(&Options{Top: 1})
	all := make([]float64, 20_000)
	for i := range all {
		all[i] = math.Exp(r.NormFloat64()*2 + 4)
		tally.count(&entry{Model: "m", Status: 200, TookMs: all[i], Time: time.Unix(1, 0)})
	}
	slices.Sort(all)
	got := tally.report().Total.Took
	for q, x := range map[float64]float64{.5: got.P50, .9: got.P90, .95: got.P95, .99: got.P99} {
		if want := all[int(q*float64(len(all)-1))]; math.Abs(x-want) > quantileError*want+0.0005 {
			t.Errorf("p%v is %v, want %v", 100*q, x, want)
		}
	}
}

func TestNamesAreFitToBeShown(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                       "none",
		"plain-1 Ä":              "plain-1 Ä",
		"a\x1b[31mred\nline":     "a\uFFFD[31mred\uFFFDline",
		strings.Repeat("é", 200): strings.Repeat("é", 79) + "…",
		"bad\xff":                "bad\uFFFD",
	} {
		if got := name(text); got != want {
			t.Errorf("%q is shown as %q, want %q", text, got, want)
		}
	}
}

func TestNoCellIsAFormula(t *testing.T) {
	t.Parallel()
	log := ""
	for _, tenant := range []string{`=cmd|' /C calc'!A0`, "+1", "-1", "@x", `a,\"b\"`} {
		log += strings.Replace(line(""), `"t"`, `"`+tenant+`"`, 1)
	}
	var b bytes.Buffer
	if err := sum(t, Options{By: []string{ByTenant}}, log).WriteCSV(&b); err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(&b).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) != 7 || len(rows[0]) != len(columns)+2 {
		t.Fatalf("%d rows of %d columns", len(rows), len(rows[0]))
	}
	for _, row := range rows {
		if strings.ContainsAny(row[1][:1], "=+-@") {
			t.Errorf("a name is %q", row[1])
		}
	}
}

// A page shows names as text, whatever they are, and asks for nothing.
func TestAPageNeedsNothingAndShowsNamesAsText(t *testing.T) {
	t.Parallel()
	const hostile = `</desc></svg><script>window.broken=1</script><img src=//evil.example/x onerror=alert(1)>`
	quoted, _ := json.Marshal(hostile)
	log := strings.ReplaceAll(line(`"model":"m","key":"NAME","cost_usd":1,"baseline_usd":3,"ttft_ms":5,"took_ms":9,"error":"NAME"`), `"NAME"`, string(quoted)) + "{\"v\":1,\"<script>\n"
	var b bytes.Buffer
	if err := sum(t, Options{By: Dimensions()}, log).WriteHTML(&b, hostile); err != nil {
		t.Fatal(err)
	}
	page := b.String()
	for _, bad := range []string{"<script", "<img", "ZgotmplZ", "http://", "https://", "<no value>", "NaN"} {
		if strings.Contains(page, bad) {
			t.Errorf("the page holds %s", bad)
		}
	}
	for _, want := range []string{"&lt;/desc&gt;", `<svg role="img"`, "66.7 %", "could not be read"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not hold %s", want)
		}
	}
	b.Reset()
	if err := sum(t, Options{By: Dimensions()}).WriteHTML(&b, "v"); err != nil || strings.Contains(b.String(), "<svg") {
		t.Errorf("of nothing: %v", err)
	}
}

func TestMoneyAndCountsAreWrittenForPeople(t *testing.T) {
	t.Parallel()
	for x, want := range map[float64]string{
		0: "$0", 0.0000088: "$0.00000880", 0.00216: "$0.00216", 0.5: "$0.5000", 1234.5: "$1,234.50", -3: "-$3.0000", 99999.999: "$100,000.00", 1e-15: "$0.000000000000",
	} {
		if got := USD(x); got != want {
			t.Errorf("%v is written as %s, want %s", x, got, want)
		}
	}
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", -1234567: "-1,234,567"} {
		if got := Thousands(n); got != want {
			t.Errorf("%d is written as %s, want %s", n, got, want)
		}
	}
}

func TestOptionsThatMeanNothingAreRefused(t *testing.T) {
	t.Parallel()
	now := time.Unix(1, 0)
	for want, o := range map[string]Options{
		`"colour" is not one of`: {By: []string{"colour"}, Top: 1},
		"named twice":            {By: []string{ByKey, ByKey}, Top: 1},
		"names are not 1 to":     {},
		"nothing lies":           {Top: 1, Since: now, Until: now},
	} {
		if _, err := Run(t.Context(), nil, o, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
}

// Whatever a log holds, the report can be written in every form, and every line is counted once.
func FuzzRun(f *testing.F) {
	log, err := os.ReadFile("testdata/decisions.jsonl")
	if err != nil {
		f.Fatal(err)
	}
	for l := range bytes.Lines(log) {
		f.Add(l)
	}
	f.Add([]byte(line(`"guard":{"verdict":"x","claims":-5},"took_ms":1e11,"ttft_ms":1e-300`)))
	f.Add([]byte(zipped(f, line("")+"{")))
	f.Add([]byte("\x1f\x8b\x08\x00"))
	f.Fuzz(func(t *testing.T, log []byte) {
		r, err := Run(t.Context(), []Source{{"f", bytes.NewReader(log)}}, Options{By: Dimensions(), Top: 2}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if len(log) < 2 || log[0] != 0x1f {
			lines := int64(0)
			for l := range bytes.Lines(log) {
				if len(bytes.TrimRight(l, "\r\n")) > 0 {
					lines++
				}
			}
			if r.Decisions+r.Broken != lines {
				t.Errorf("%d decisions and %d broken of %d lines", r.Decisions, r.Broken, lines)
			}
		}
		for _, s := range r.By {
			sum := int64(0)
			for _, g := range s.Groups {
				sum += g.Requests
			}
			if sum != r.Decisions && (s.By != ByArm || sum > r.Decisions) {
				t.Errorf("by %s there are %d of %d requests", s.By, sum, r.Decisions)
			}
		}
		if _, err := json.Marshal(r); err != nil {
			t.Error(err)
		}
		if err := errors.Join(r.WriteCSV(io.Discard), r.WriteHTML(io.Discard, "v")); err != nil {
			t.Error(err)
		}
	})
}

// BenchmarkRun reads lines of the length that the product writes.
func BenchmarkRun(b *testing.B) {
	log, err := os.ReadFile("testdata/decisions.jsonl")
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(log)))
	for b.Loop() {
		if _, err := Run(b.Context(), []Source{{"x", bytes.NewReader(log)}}, Options{By: Dimensions(), Top: 20}, nil); err != nil {
			b.Fatal(err)
		}
	}
}

func TestRequestsThatALimitRefusedAreToldApart(t *testing.T) {
	t.Parallel()
	refused := func(key string, n int) string {
		return line(fmt.Sprintf(`"route":"none","outcome":"refused","action":{"verb":"refuse"},"status":429,`+
			`"error":"rate_limit_exceeded","key":%q,"limit":"requests","refused":%d`, key, n))
	}
	log := line(`"key":"app"`) + refused("app", 1) + refused("app", 40) + refused("web", 1) +
		line(`"key":"app","operation":"tokenize"`) +
		line(`"key":"app","operation":"embeddings"`) + line(`"refused":-1`)
	r := sum(t, Options{By: []string{ByRoute, ByKey}}, log)
	g := r.Total
	if g.Refused != 42 || g.Requests != 3 || r.Decisions != 3 || g.Failed != 0 || r.Broken != 1 {
		t.Errorf("refused %d, requests %d, decisions %d, errors %d, broken %d",
			g.Refused, g.Requests, r.Decisions, g.Failed, r.Broken)
	}
	if g.Untold != 2 {
		t.Errorf("untold %d: embeddings should tell, /tokenize tells no usage", g.Untold)
	}
	if routes := r.By[0].Groups; len(routes) != 1 || routes[0].Refused != 0 {
		t.Errorf("routes: %+v", routes)
	}
	keys := r.By[1].Groups
	if len(keys) != 2 || keys[0].Name != "app" || keys[0].Refused != 41 || keys[1].Refused != 1 || keys[1].Requests != 0 {
		t.Errorf("keys: %+v", keys)
	}
}
