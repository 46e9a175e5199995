package consolecheck

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// TestTheReportIsAPageThatNeedsNothing looks at the page that `signalbox report` writes: from a
// file, without a server.
func TestTheReportIsAPageThatNeedsNothing(t *testing.T) {
	browser(t)
	bin := os.Getenv("SIGNALBOX_BIN")
	if bin == "" {
		bin = "../../bin/signalbox"
	}
	log, err := os.ReadFile("../../internal/report/testdata/decisions.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	name := strings.ReplaceAll(hostile, `/`, `\/`)
	file := filepath.Join(dir, "decisions.jsonl")
	text := strings.ReplaceAll(string(log), `"model":"coder-14b"`, `"model":"`+name+`"`) + "{\"torn\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	page, err := exec.CommandContext(t.Context(), bin, "report", file, "--format", "html").Output()
	if err != nil {
		t.Fatal(err)
	}
	written := filepath.Join(dir, "report.html")
	if err := os.WriteFile(written, page, 0o600); err != nil {
		t.Fatal(err)
	}
	b := open(t, product{admin: "file://" + dir})
	b.do(chromedp.Navigate("file://" + written))
	if got := b.text("main"); !strings.Contains(got, "33 decisions of 1 file") || !strings.Contains(got, hostile) ||
		!strings.Contains(got, "1 line could not be read") {
		t.Errorf("the page: %s", got)
	}
	var faults []string
	b.eval(`[...document.querySelectorAll("svg")].flatMap((s) => {
		const named = s.getAttribute("aria-labelledby").split(" ").every((id) => document.getElementById(id)?.textContent.trim());
		const box = s.getBoundingClientRect();
		const out = [...s.querySelectorAll("text, rect")].filter((x) => {
			const r = x.getBoundingClientRect();
			return r.width > 0 && (r.left < box.left - 1 || r.right > box.right + 1 || r.bottom > box.bottom + 1);
		}).map((x) => "outside of its plot: " + x.outerHTML);
		return named ? out : [...out, "a plot without a name"];
	}).concat([...document.querySelectorAll("table")].filter((x) => !x.querySelector("th[scope=col]") || !x.querySelector("th[scope=row]"))
		.map((x) => "a table without heads: " + x.outerHTML.slice(0, 80)))`, &faults)
	for _, fault := range faults {
		t.Error(fault)
	}
	var plots, broken, wide bool
	b.eval(`document.querySelectorAll("svg").length >= 8`, &plots)
	b.eval(`"broken" in window || !!document.querySelector("img, script")`, &broken)
	b.eval(`document.documentElement.scrollWidth > document.documentElement.clientWidth`, &wide)
	if !plots || broken || wide {
		t.Errorf("plots are there: %v, text became markup: %v, the page is wider than the window: %v", plots, broken, wide)
	}
	b.look("report")
	b.picture("report")
	b.do(chromedp.EmulateViewport(390, 800))
	if b.eval(`document.documentElement.scrollWidth > document.documentElement.clientWidth`, &wide); wide {
		t.Error("on a narrow screen the page is wider than the window")
	}
	b.clean()
}
