package consolecheck

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

var shots = flag.String("shots", "", "folder for screenshots of every page in both schemes")

// patience is how long anything may take before the test fails.
const patience = 20 * time.Second

// browser finds Chromium. Without one the test is skipped, in CI it fails.
func browser(t *testing.T) string {
	t.Helper()
	for _, name := range []string{os.Getenv("CHROMIUM"), "chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); name != "" && err == nil {
			return path
		}
	}
	const missing = "no Chromium: install the package chromium (apt-get install chromium), or name one in CHROMIUM"
	if os.Getenv("CI") != "" {
		t.Fatal(missing)
	}
	t.Skip(missing)
	return ""
}

// product is a running signalbox.
type product struct{ api, admin string }

var addresses = regexp.MustCompile(`http://[0-9.]+:[0-9]+`)

// run starts bin/signalbox, and waits until it serves.
func run(t *testing.T, env []string, args ...string) product {
	t.Helper()
	bin := os.Getenv("SIGNALBOX_BIN")
	if bin == "" {
		bin = "../../bin/signalbox"
	}
	ctx, stop := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, bin, args...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = patience
	out, in := io.Pipe()
	cmd.Stdout, cmd.Stderr = in, in
	if err := cmd.Start(); err != nil {
		stop()
		t.Fatalf("start %s: %v; run make build", bin, err)
	}
	var read sync.WaitGroup
	found := make(chan product, 1)
	read.Go(func() {
		var p product
		for lines := bufio.NewScanner(out); lines.Scan(); {
			text := lines.Text()
			t.Log(text)
			if m := addresses.FindString(text); m != "" && p.api == "" && strings.Contains(text, "ready on") {
				p.api = m
			}
			if m := addresses.FindString(text); m != "" && p.admin == "" && strings.Contains(text, "Console") {
				p.admin = m
				found <- p
			}
			if m := listening.FindStringSubmatch(text); m != nil {
				found <- product{"http://" + m[1], "http://" + m[2]}
			}
		}
	})
	t.Cleanup(func() {
		stop()
		_ = cmd.Wait() // ended by the signal
		_ = in.Close()
		read.Wait()
	})
	select {
	case p := <-found:
		return p
	case <-time.After(patience):
		t.Fatal("it is not ready")
		return product{}
	}
}

var listening = regexp.MustCompile(`msg=listening address=(\S+) admin=(\S+)`)

// tab is a browser with a page open, and what went wrong in it.
type tab struct {
	*testing.T

	ctx    context.Context //nolint:containedctx // how chromedp names a browser
	mu     sync.Mutex
	faults []string
	mine   []string // origins that it may talk to
}

func open(t *testing.T, p product) *tab {
	t.Helper()
	path := browser(t)
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path),
		chromedp.NoSandbox, // the tests of CI run as root in a container
		chromedp.Flag("disable-dev-shm-usage", true), chromedp.WindowSize(1400, 900))
	ctx, stop := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(stop)
	ctx, end := chromedp.NewContext(ctx)
	t.Cleanup(end)
	b := &tab{T: t, ctx: ctx, mine: []string{p.admin}}
	chromedp.ListenTarget(ctx, b.listen)
	if err := chromedp.Run(
		ctx,
		network.Enable(),
		log.Enable(),
		runtime.Enable(),
	); err != nil { // without an end: it starts the browser
		t.Fatal(err)
	}
	return b
}

// listen collects everything that a console of a browser shows as an error, and requests elsewhere.
func (b *tab) listen(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		b.faults = append(b.faults, "exception: "+e.ExceptionDetails.Error())
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.APITypeError || e.Type == runtime.APITypeWarning || e.Type == runtime.APITypeAssert {
			b.faults = append(b.faults, fmt.Sprintf("console.%s: %s", e.Type, e.Args[0].Value))
		}
	case *log.EventEntryAdded:
		if e.Entry.Level == log.LevelError || e.Entry.Level == log.LevelWarning {
			b.faults = append(b.faults, fmt.Sprintf("%s: %s %s", e.Entry.Level, e.Entry.Text, e.Entry.URL))
		}
	case *network.EventRequestWillBeSent:
		for _, origin := range b.mine {
			if strings.HasPrefix(e.Request.URL, origin+"/") {
				return
			}
		}
		if !strings.HasPrefix(e.Request.URL, "about:") {
			b.faults = append(b.faults, "a request elsewhere: "+e.Request.URL)
		}
	}
}

// clean fails for what went wrong, apart from what is expected.
func (b *tab) clean(expected ...string) {
	b.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, fault := range b.faults {
		known := false
		for _, e := range expected {
			known = known || strings.Contains(fault, e)
		}
		if !known {
			b.Errorf("in the browser: %s", fault)
		}
	}
}

func (b *tab) do(actions ...chromedp.Action) {
	b.Helper()
	ctx, stop := context.WithTimeout(b.ctx, patience)
	defer stop()
	if err := chromedp.Run(ctx, actions...); err != nil {
		b.Fatal(err)
	}
}

// until waits for a condition in the page.
func (b *tab) until(js string) {
	b.Helper()
	ctx, stop := context.WithTimeout(b.ctx, patience)
	defer stop()
	if err := chromedp.Run(ctx, chromedp.Poll(js, nil, chromedp.WithPollingTimeout(0))); err != nil {
		var text string
		_ = chromedp.Run(b.ctx, chromedp.Text("body", &text))
		b.Fatalf("%s does not come true: %v\n%s", js, err, text)
	}
}

func (b *tab) text(selector string) string {
	b.Helper()
	var out string
	b.do(chromedp.Text(selector, &out, chromedp.ByQuery))
	return out
}

func (b *tab) eval(js string, into any) {
	b.Helper()
	b.do(chromedp.Evaluate(js, into))
}

// turn goes to a page by its link, and waits until it is drawn.
func (b *tab) turn(page string) {
	b.Helper()
	b.do(chromedp.Click(`nav a[href="#`+page+`"]`, chromedp.ByQuery))
	b.until(
		`document.querySelector("nav a[aria-current]").hash === "#` + page + `" && document.querySelector("main h1") && ` +
			`!document.body.textContent.includes("Reading…")`,
	)
}

// ask sends a request as a client.
func (p product) ask(t *testing.T, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(
		t.Context(),
		http.MethodPost,
		p.api+"/v1/chat/completions",
		strings.NewReader(body),
	)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		t.Fatal(err)
	}
}

func prompt(text string) string {
	b, err := json.Marshal(map[string]any{
		"model": "auto", "stream": true, "stream_options": map[string]bool{"include_usage": true},
		"messages": []map[string]string{{"role": "user", "content": text}},
	})
	if err != nil {
		panic(err)
	}
	return string(b)
}

var pages = []string{"decisions", "playground", "endpoints", "memory", "cost", "configuration"}

// TestTheConsoleShowsWhatTheProxyDoes walks through every page of the demo's console.
func TestTheConsoleShowsWhatTheProxyDoes(t *testing.T) {
	browser(t)
	p := run(t, nil, "demo", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0")
	b := open(t, p)
	b.do(chromedp.Navigate(p.admin + "/console"))
	b.until(`document.querySelector("#state").textContent === "ready"`)
	for _, text := range []string{"What is the derivative of x^3 * sin(x)?", "What must a plaintiff prove to win a negligence claim?", "What is the budget of Project Titan?", "How long do I simmer risotto for four people?"} {
		p.ask(t, prompt(text))
	}
	b.until(`document.querySelectorAll("tbody tr").length === 4`)
	if rows := b.text(
		"tbody",
	); !strings.Contains(rows, "math-70b") || !strings.Contains(rows, "titan-block") ||
		!strings.Contains(rows, "declined") {
		t.Errorf("decisions: %s", rows)
	}

	// A conversation of which the last turn changes the subject, and a long prompt of a session.
	talk := func(session string, texts ...string) {
		var messages []map[string]string
		for i, text := range texts {
			messages = append(messages, map[string]string{"role": [...]string{"user", "assistant"}[i%2], "content": text})
		}
		body, err := json.Marshal(map[string]any{"model": "auto", "messages": messages, "signalbox": map[string]string{"session": session}})
		if err != nil {
			t.Fatal(err)
		}
		p.ask(t, string(body))
	}
	talk("one", "What is the derivative of x^3 * sin(x)?")
	talk("one", "What is the derivative of x^3 * sin(x)?", "It is 3x^2 sin(x) + x^3 cos(x).", "How long do I simmer risotto for four people?")
	talk("two", "How long do I simmer risotto for four people? "+strings.Repeat("The rice of Vercelli takes a little longer. ", 200))
	b.until(`document.querySelectorAll("tbody tr").length === 7`)

	// One is opened by keyboard.
	b.do(chromedp.Focus(`tbody tr:last-child button`, chromedp.ByQuery), chromedp.KeyEvent("\r"))
	b.until(`document.querySelector("aside .route.taken")`)
	if got := b.text(
		"aside .route.taken",
	); !strings.Contains(got, "math") || !strings.Contains(got, "score") ||
		!strings.Contains(got, "threshold 0.5") {
		t.Errorf("the route taken: %s", got)
	}
	aside := b.text("aside")
	for _, want := range []string{"titan-block", "not reached", "mathematician", "domain", "high", "most expensive model"} {
		if !strings.Contains(aside, want) {
			t.Errorf("the decision does not tell of %s", want)
		}
	}
	b.picture("decision")
	b.do(chromedp.KeyEvent("\x1b"))
	b.until(`!document.querySelector("aside")`)

	t.Run("playground", func(t *testing.T) { b.T = t; b.playground() })
	b.T = t
	t.Run("state", func(t *testing.T) { b.T = t; b.state() })
	b.T = t
	t.Run("configuration", func(t *testing.T) { b.T = t; b.configuration() })
	b.T = t
	for _, name := range pages {
		b.turn(name)
		b.look(name)
		if name != "playground" {
			b.picture(name)
		}
	}
	var broken bool
	if b.eval(`"broken" in window`, &broken); broken {
		t.Error("text became markup")
	}
	b.clean()
}

// hostile is a name that a page which makes markup of strings would run. It has no spaces, so that
// models and routes may have it.
const hostile = `<img/src=x/onerror=window.broken=1>`

// said is an answer with markup, and a claim that the facts contradict.
const said = "Risotto is a dish of rice. It simmers for 45 minutes, stirred all the time. Said " +
	"by " + hostile + "<script>window.broken=1</script>"

// TestTheConsoleWantsTheTokenAndShowsTextAsText runs a configuration whose names, and requests
// whose prompts, are markup.
func TestTheConsoleWantsTheTokenAndShowsTextAsText(t *testing.T) {
	browser(t)
	model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		text, _ := json.Marshal(said)
		fmt.Fprintf(
			w,
			`data: {"choices":[{"index":0,"delta":{"content":%s},"finish_reason":"stop"}],`+
				`"usage":{"prompt_tokens":9,"completion_tokens":9}}`+"\n\ndata: [DONE]\n\n",
			text,
		)
	}))
	t.Cleanup(model.Close)
	name, _ := json.Marshal(hostile)
	file := filepath.Join(t.TempDir(), "signalbox.yaml")
	config := fmt.Sprintf("server: {admin_token: '${CONSOLE_TOKEN}'}\n"+
		"telemetry: {record_prompts: true}\n"+
		"models: [{name: %[1]s, endpoints: [{name: %[1]s, url: '%[2]s/v1'}], price: {input: 1, "+
		"output: 1}, health: {path: 'off'}}]\n"+
		"signals: {keywords: [{name: bad, any: ['<b>']}]}\n"+
		"routes: [{name: markup, when: {all: [{keyword: bad}, {any: [{has: tools}, {tokens: "+
		"{lt: 1000}}]}]}, use: {models: [%[1]s]}}]\n"+
		"default: {models: [%[1]s]}\n", name, model.URL)
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	p := run(
		t,
		[]string{"CONSOLE_TOKEN=the-token"},
		"serve",
		file,
		"--listen",
		"127.0.0.1:0",
		"--admin-listen",
		"127.0.0.1:0",
	)
	b := open(t, p)
	b.do(chromedp.Navigate(p.admin+"/console/"), chromedp.WaitVisible("#token-value", chromedp.ByQuery))
	b.look("token")
	b.picture("token")
	b.do(chromedp.SendKeys("#token-value", "wrong\r", chromedp.ByQuery))
	b.until(`document.querySelector("#token-problem").textContent.includes("rejected")`)
	b.do(chromedp.SendKeys("#token-value", "the-token\r", chromedp.ByQuery))
	b.until(`document.querySelector("#state").textContent.startsWith("ready")`)

	b.do(
		chromedp.Click(`nav a[href="#playground"]`, chromedp.ByQuery),
		chromedp.WaitVisible("#prompt", chromedp.ByQuery),
		chromedp.SendKeys(
			"#facts",
			"Risotto simmers for 18 minutes.",
			chromedp.ByQuery,
		),
		chromedp.SetValue("#guard", "annotate", chromedp.ByQuery),
		chromedp.SendKeys(
			"#prompt",
			"<b>bold</b> "+hostile,
			chromedp.ByQuery,
		),
		chromedp.KeyEvent("\r", chromedp.KeyModifiers(input.ModifierCtrl)),
	)
	b.until(`document.querySelector(".split section .route.taken")`)
	b.until(`document.querySelector(".answer mark")`)
	if got := b.text(".answer mark"); !strings.HasPrefix(got, "It simmers for 45 minutes") {
		t.Errorf("the guard marks %q", got)
	}
	if got := b.text(".answer"); got != said {
		t.Errorf("the answer is shown as %q", got)
	}
	if got := b.text("main"); !strings.Contains(got, "<b>bold</b> "+hostile) {
		t.Errorf("the prompt, which may be shown, is not: %s", got)
	}
	if got := b.text(".route.taken"); !strings.Contains(got, "all of") || !strings.Contains(got, "any of") {
		t.Errorf("the rule tree: %s", got)
	}
	b.picture("tree")
	for _, page := range pages {
		b.turn(page)
		switch page {
		case "playground", "memory":
		case "configuration":
			b.until(`document.querySelector("#text")?.value.includes("onerror")`)
		default:
			b.until(`document.querySelector("tbody")?.textContent.includes("onerror")`)
		}
		b.look(page)
	}
	var broken, made bool
	b.eval(`"broken" in window`, &broken)
	b.eval(`!!document.querySelector("img:not(.brand img), b:not(.tile b)")`, &made)
	if broken || made {
		t.Error("text became markup")
	}
	var stored string
	if b.eval(`JSON.stringify([Object.keys(localStorage), document.cookie])`, &stored); stored != `[[],""]` {
		t.Errorf("kept beyond the tab: %s", stored)
	}
	b.clean("status of 403") // before the token was there
}

// playground sends a prompt with facts, and looks for the guard's mark on the words.
func (b *tab) playground() {
	b.do(
		chromedp.Click(`nav a[href="#playground"]`, chromedp.ByQuery),
		chromedp.WaitVisible("#prompt", chromedp.ByQuery),
	)
	b.do(chromedp.SendKeys("#prompt", "How long do I simmer risotto for four people?", chromedp.ByQuery),
		chromedp.SendKeys("#facts", "Risotto simmers for 18 minutes.", chromedp.ByQuery),
		chromedp.SetValue("#guard", "annotate", chromedp.ByQuery), chromedp.Click("button.primary", chromedp.ByQuery))
	b.until(`document.querySelector(".split section .route.taken")`)
	if got := b.text("main"); !strings.Contains(got, "general-7b") {
		b.Errorf("the playground: %s", got)
	}
	b.picture("playground")
}

// state looks at the pages that are drawn from the overview.
func (b *tab) state() {
	for page, wants := range map[string][]string{
		"endpoints": {"math-a", "general-b", "up", "tokens"},
		"memory":    {"hot", "l2", "Conversations"},
		"cost":      {"Most expensive model only", "math-70b", "titan-block", "Saved", "Unreported usage"},
	} {
		b.turn(page)
		got := b.text("main")
		for _, want := range wants {
			if !strings.Contains(got, want) {
				b.Errorf("%s does not tell of %s: %s", page, want, got)
			}
		}
	}
	b.turn("endpoints")
	// Which of the two endpoints has the session's prompt differs from one start to the next.
	home := "general-a"
	b.do(chromedp.Click(`a[href="#endpoints/general-7b/general-a"]`, chromedp.ByQuery))
	b.until(`!!document.querySelector("#prefixes")?.textContent.match(/a session|No tracked prompt/)`)
	if strings.Contains(b.text("#prefixes"), "No tracked prompt") {
		home = "general-b"
		b.do(chromedp.Click(`a[href="#endpoints/general-7b/general-b"]`, chromedp.ByQuery))
	}
	b.until(`document.querySelector("#prefixes tbody")?.textContent.includes("a session")`)
	if got := b.text("#prefixes"); !strings.Contains(got, home) || !strings.Contains(got, "expected") {
		b.Errorf("the prefixes of an endpoint: %s", got)
	}
	b.picture("prefixes")
	b.look("prefixes")
	b.turn("memory")
	b.until(`document.querySelector("#conversations tbody")?.textContent.includes("the subject changed")`)
	if got := b.text("#conversations"); !strings.Contains(got, "math-70b → general-7b") {
		b.Errorf("conversations: %s", got)
	}
}

// configuration tries a change that is wrong, and one that is right.
func (b *tab) configuration() {
	b.do(chromedp.Click(`nav a[href="#configuration"]`, chromedp.ByQuery))
	b.until(`document.querySelector("#text")?.value.includes("titan-block")`)
	change := func(js, want string) {
		b.Helper()
		b.eval(`(() => { const t = document.querySelector("#text"); t.value = `+js+`; })()`, nil)
		b.do(chromedp.Click("main .primary", chromedp.ByQuery))
		b.until(`document.querySelector("[aria-live]").textContent.includes(` + "`" + want + "`" + `)`)
	}
	change(`t.value.replace("routes:", "rutes:")`, "routes")
	change(`t.value.replace("rutes:", "routes:").replace("min_score: 0.5", "min_score: 0.7")`, "It is valid.")
	if got := b.text(".diff .add"); !strings.Contains(got, "min_score: 0.7") {
		b.Errorf("the difference: %s", got)
	}
	b.picture("configuration-change")
}

// look checks what a page must have for everybody: labels, and contrast in both schemes.
func (b *tab) look(name string) {
	b.Helper()
	b.do(emulation.SetDeviceMetricsOverride(narrow, 844, 1, false))
	var wide int
	if b.eval(`document.documentElement.scrollWidth`, &wide); wide > narrow {
		b.Errorf("%s is %d pixels wide on a screen of %d", name, wide, narrow)
	}
	b.do(emulation.ClearDeviceMetricsOverride())
	for _, scheme := range []string{"light", "dark"} {
		b.do(
			emulation.SetEmulatedMedia().
				WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}),
		)
		var faults []string
		b.eval(audit, &faults)
		for _, fault := range faults {
			b.Errorf("%s, %s: %s", name, scheme, fault)
		}
	}
}

// picture takes screenshots in both schemes, wide and narrow, where they are wanted.
func (b *tab) picture(name string) {
	b.Helper()
	if *shots == "" {
		return
	}
	b.do(emulation.SetDeviceMetricsOverride(narrow, 844, 1, false))
	b.schemes(name + "-narrow")
	b.do(emulation.ClearDeviceMetricsOverride())
	b.schemes(name)
}

// narrow is how many CSS pixels a telephone is wide.
const narrow = 390

func (b *tab) schemes(name string) {
	b.Helper()
	for _, scheme := range []string{"light", "dark"} {
		var png []byte
		b.do(
			emulation.SetEmulatedMedia().
				WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}),
			chromedp.ActionFunc(func(ctx context.Context) (err error) {
				png, err = page.CaptureScreenshot().Do(ctx)
				return err
			}),
		)
		if err := errors.Join(
			os.MkdirAll(*shots, 0o755),
			os.WriteFile(filepath.Join(*shots, name+"-"+scheme+".png"), png, 0o600),
		); err != nil {
			b.Fatal(err)
		}
	}
}

// audit lists form fields and buttons without a name, and texts whose contrast is below 4.5 (WCAG
// 2.2, 1.4.3, by its formula of relative luminance).
const audit = `(() => {
  const faults = [];
  const visible = (el) => el.getClientRects().length > 0;
  for (const el of document.querySelectorAll("input, textarea, select, button, a")) {
    if (!visible(el)) continue;
    const name = el.getAttribute("aria-label") || el.labels?.[0]?.textContent || el.textContent;
    if (!name?.trim()) faults.push("without a name: " + el.outerHTML.slice(0, 120));
  }
  const colour = (text) => { const m = text.match(/[\d.]+/g).map(Number); return { rgb: m.slice(0, 3), a: m[3] ?? 1 }; };
  const luminance = (rgb) => { const [r, g, b] = rgb.map((c) => (c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const behind = (el) => { for (; el; el = el.parentElement) { const c = colour(getComputedStyle(el).backgroundColor); if (c.a > 0) return c.rgb; } return [255, 255, 255]; };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const seen = new Set();
  while (walker.nextNode()) {
    const el = walker.currentNode.parentElement;
    if (seen.has(el) || !walker.currentNode.data.trim() || !visible(el) || el.closest(":disabled, option, noscript")) continue;
    seen.add(el);
    const [a, b] = [luminance(colour(getComputedStyle(el).color).rgb), luminance(behind(el))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) faults.push("contrast " + ratio.toFixed(2) + ": " + el.tagName + "." + el.className + " " + walker.currentNode.data.slice(0, 40));
  }
  return faults;
})()`
