package guard_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"signalbox/stream/check"
	"signalbox/stream/guard"
)

const call = `"tool_calls":[{"id":"x","type":"function","function":{"name":"f","arguments":"This is false."}}]`

func body(texts ...string) string {
	var choices []string
	for i, text := range texts {
		choices = append(choices, fmt.Sprintf(`{"index":%d,"message":{"role":"assistant","content":%s,%s},"finish_reason":"stop"}`, i, quote(text), call))
	}
	return `{"id":"c1","object":"chat.completion","created":1,"model":"m","choices":[` + strings.Join(choices, ",") + `],"usage":{"total_tokens":3}}`
}

// said is what a client reads in a body.
type said struct {
	Choices []struct {
		Message struct{ Content string }
		Finish  string `json:"finish_reason"`
	}
	Summary struct {
		Guard struct {
			Mode, Verdict string
			Claims        int
			Failed        []struct {
				Text               string
				Choice, Start, End int
				Verdict            string
				Score              float64
				Fact               any
			}
		}
	} `json:"x_signalbox"`
}

func TestBody(t *testing.T) {
	g := guardOf(t, &judge{}, guard.Options{})
	const bad = "Älles is well. This is slow and false. It is old."
	for _, c := range []struct {
		name   string
		policy guard.Policy
		form   bool // a format to keep
		texts  []string
		want   []string
		finish string // of the first choice; the others end normally
		summed bool
	}{
		{name: "observe", policy: guard.Policy{Mode: guard.Observe}, texts: []string{bad}, want: []string{bad}, finish: "stop"},
		{name: "observe with a summary", policy: guard.Policy{Mode: guard.Observe, Summary: true}, texts: []string{bad}, want: []string{bad}, finish: "stop", summed: true},
		{
			name: "annotate marks behind the claim", policy: guard.Policy{Mode: guard.Annotate},
			texts: []string{bad, "Well.\n- This is false.\n- It is old."},
			want: []string{
				"Älles is well. This is slow and false. [unverified] It is old.",
				"Well.\n- This is false. [unverified]\n- It is old.",
			},
			finish: "stop", summed: true,
		},
		{
			name: "annotate marks at the end", policy: guard.Policy{Mode: guard.Annotate},
			texts:  []string{"Well. This is false."},
			want:   []string{"Well. This is false. [unverified]"},
			finish: "stop", summed: true,
		},
		{
			name:   "annotate tells beside the text",
			policy: guard.Policy{Mode: guard.Annotate, MarkerAs: guard.Field},
			texts:  []string{bad}, want: []string{bad}, finish: "stop", summed: true,
		},
		{
			name:   "annotate leaves what must keep its form",
			policy: guard.Policy{Mode: guard.Annotate},
			form:   true, texts: []string{bad}, want: []string{bad}, finish: "stop", summed: true,
		},
		{
			name: "hold replaces", policy: guard.Policy{Mode: guard.Hold}, texts: []string{bad, "Well."},
			want: []string{"Älles is well. [unverified] It is old.", "Well."}, finish: "stop", summed: true,
		},
		{
			name: "hold ends after so many", policy: guard.Policy{Mode: guard.Hold, Failures: 2}, texts: []string{"This is false. So. That is false. More."},
			want: []string{"[unverified] So. "}, finish: "content_filter", summed: true,
		},
		{
			name: "hold ends what must keep its form", policy: guard.Policy{Mode: guard.Hold}, form: true, texts: []string{bad},
			want: []string{"Älles is well. "}, finish: "content_filter", summed: true,
		},
		{
			name: "terminate cuts", policy: guard.Policy{Mode: guard.Terminate}, texts: []string{bad, "Well."},
			want: []string{"Älles is well. ", "Well."}, finish: "content_filter", summed: true,
		},
		{
			name: "terminate cuts at the second", policy: guard.Policy{Mode: guard.Terminate, Failures: 2}, texts: []string{"This is false. So. That is false. More."},
			want: []string{"This is false. So. "}, finish: "content_filter", summed: true,
		},
		{name: "nothing fails", policy: guard.Policy{Mode: guard.Terminate}, texts: []string{"Well."}, want: []string{"Well."}, finish: "stop", summed: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			job := jobOf(t, guard.Off)
			job.Policy, job.MayAnnotate = c.policy, !c.form
			in := body(c.texts...)
			got, out, err := g.Body(t.Context(), []byte(in), job)
			var s said
			if jerr := json.Unmarshal(got, &s); err != nil || jerr != nil {
				t.Fatal(err, jerr)
			}
			for i, want := range c.want {
				finish := "stop"
				if i == 0 {
					finish = c.finish
				}
				if ch := s.Choices[i]; ch.Message.Content != want || ch.Finish != finish {
					t.Errorf("choice %d: %q, want %q; %s", i, ch.Message.Content, want, ch.Finish)
				}
			}
			calls := len(c.texts)
			// A call after the cut must not be run.
			if c.finish == "content_filter" {
				calls--
			}
			if bytes.Count(got, []byte(call)) != calls || bytes.Count(got, []byte(`"tool_calls"`)) != len(c.texts) {
				t.Errorf("a tool call was changed: %s", got)
			}
			if !c.summed && string(got) != in {
				t.Error("the body was changed")
			}
			if summed := s.Summary.Guard.Mode == c.policy.Mode.String(); summed != c.summed {
				t.Errorf("summary %+v", s.Summary)
			}
			if len(s.Summary.Guard.Failed) != out.Failed && c.summed {
				t.Errorf("%d failed, summary %+v", out.Failed, s.Summary)
			}
			for _, f := range s.Summary.Guard.Failed {
				text := string([]rune(c.texts[f.Choice])[f.Start:f.End])
				stands := strings.Contains(s.Choices[f.Choice].Message.Content, text)
				if (f.Text == text) != stands || !stands && f.Text != "" ||
					f.Verdict != "contradicted" || f.Fact != "fact-1" {
					t.Errorf("%+v for %q", f, text)
				}
			}
		})
	}
}

func TestABodyWaitsAsLongAsTheCheckerGetsOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := &judge{gate: make(chan struct{})}
		g := guard.New(j, guard.Options{Workers: 1})
		defer g.Close()
		go func() {
			for range 3 { // 40 claims, 16 at a time
				time.Sleep(guard.DefaultMaxHold * 3 / 4) // the bubble's clock
				j.gate <- struct{}{}
			}
		}()
		_, out, err := g.Body(t.Context(), []byte(body(strings.Repeat("One is slow. ", 40))), jobOf(t, guard.Hold))
		if err != nil || out.Shed != 0 || out.Claims != 40 || out.Verdict != check.Supported {
			t.Errorf("error %v, %+v", err, out)
		}
	})
}

func TestAStalledCheckerDelaysABodyByNoMoreThanMaxHold(t *testing.T) {
	for block, finish := range map[guard.OnUnchecked]string{guard.Pass: "stop", guard.Block: "content_filter"} {
		synctest.Test(t, func(t *testing.T) {
			g := guard.New(&judge{gate: make(chan struct{})}, guard.Options{Workers: 1})
			defer g.Close()
			from := time.Now()
			job := jobOf(t, guard.Hold)
			job.Policy.OnUnchecked = block
			got, out, err := g.Body(t.Context(), []byte(body("Well. "+strings.Repeat("One is slow. ", 40))), job)
			var s said
			if took := time.Since(from); err != nil || took > guard.DefaultMaxHold || out.Shed != 40 {
				t.Errorf("error %v after %v, %+v", err, took, out)
			}
			if jerr := json.Unmarshal(got, &s); jerr != nil || s.Choices[0].Finish != finish || out.Cut != (block == guard.Block) {
				t.Errorf("%v %+v", jerr, s)
			}
		})
	}
}

func TestBodiesThatAreLeftAlone(t *testing.T) {
	g := guardOf(t, &judge{}, guard.Options{})
	for _, in := range []string{``, `[]`, `not JSON`, `{"error":{"message":"x"}}`, `{"choices":[{"message":{"content":"a","content":"This is false."}}]}`} {
		job := jobOf(t, guard.Hold)
		got, out, err := g.Body(t.Context(), []byte(in), job)
		if unread := !strings.Contains(in, "error"); err != nil || string(got) != in || out.Verdict != check.Unchecked || out.Claims != 0 && !unread {
			t.Errorf("%q became %q, error %v, %+v", in, got, err, out)
		}
	}
	job := jobOf(t, guard.Hold)
	job.Policy.OnUnchecked = guard.Block
	if _, _, err := g.Body(t.Context(), []byte(`not JSON`), job); !errors.Is(err, guard.ErrOpaque) {
		t.Errorf("error %v", err)
	}
	job.Evidence = nil
	if got, _, err := g.Body(t.Context(), []byte(`not JSON`), job); err != nil || string(got) != `not JSON` {
		t.Errorf("error %v without evidence", err)
	}
}

func TestABodyWhoseClientIsGone(t *testing.T) {
	g := guardOf(t, &judge{gate: make(chan struct{})}, guard.Options{Workers: 1})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := g.Body(ctx, []byte(body("One is slow.")), jobOf(t, guard.Hold)); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}
