package guard_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"signalbox/stream/check"
	"signalbox/stream/guard"
)

// agents are answers for programs, each with a part that the judge finds false.
var agents = map[string]string{
	"a file of Cline": "<write_to_file>\n<path>README.md</path>\n<content>\n# Port\n\nThis is false. So it " +
		"is.\n\n```sh\nfalse\n```\n- It is false.\n</content>\n</write_to_file>\n",
	"an edit of Cline": "<replace_in_file>\n<path>a.py</path>\n<diff>\n------- SEARCH\nx = false. So\n=======\nx " +
		"= true\n+++++++ REPLACE\n</diff>\n</replace_in_file>\n",
	"a diff of Roo": "<apply_diff>\n<path>a.py</path>\n<diff>\n<<<<<<< SEARCH\n:start_line:5\n-------\nIt is " +
		"false. So\n=======\nOld\n>>>>>>> REPLACE\n</diff>\n</apply_diff>\n",
	"a command": "<execute_command>\n<command>echo It is false. >x; false</command>\n</execute_command>\n",
	"calls of Hermes": "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"text\": \"It is false. So it " +
		"is.\"}}\n</tool_call>\n<tool_call>\n{\"name\": \"false\"}\n</tool_call>\n",
	"a call of Qwen": "<tool_call>\n<function=edit>\n<parameter=text>\nIt is false.\n\n1. It is " +
		"false.\n</parameter>\n</function>\n</tool_call>\n",
	"an invocation": "<function_calls>\n<invoke name=\"edit\">\n<parameter name=\"text\">It is false. So it " +
		"is.</parameter>\n</invoke>\n</function_calls>\n",
	"a project of Bolt": "<boltArtifact id=\"a\" title=\"b\">\n<boltAction type=\"file\" " +
		"filePath=\"x.html\">\n<p>It is false. So it is.</p>\n</boltAction>\n</boltArtifact>\n",
	"an artifact": "<antArtifact identifier=\"a\" type=\"text/html\" title=\"b\">\n<p>It is false. So it " +
		"is.</p>\n</antArtifact>\n",
	"an edit of aider": "a/b.py\n<<<<<<< SEARCH\n# It is false. So it is.\n=======\n# It is false.\n\n# " +
		"So.\n>>>>>>> REPLACE\n",
	"a patch of OpenAI": "*** Begin Patch\n*** Update File: a.py\n@@ def f():\n # It is false. So.\n-false\n+It " +
		"is false. So.\n*** End Patch\n",
	"a diff of git": "diff --git a/x b/x\nindex 1..2 100644\n--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@ false\n It is " +
		"false. So.\n-It is false. So.\n+It is false. So.\n",
	"a diff without git":  "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-It is false. So.\n+It is false. So.\n",
	"code of smolagents":  "<code>\nx = f(city=\"It is false. So\")\nprint(x, false)\n</code>\n",
	"a fence":             "```go\nx := false // It is false. So.\n```\n",
	"a command in a line": "<execute_command><command>false. So</command></execute_command>\n",
}

func TestAnAnswerOfAnAgentHasNoMarkInItsCode(t *testing.T) {
	t.Parallel()
	g := guardOf(t, &judge{}, guard.Options{})
	const before, after, mark = "All is well. This is false.", "\nThat is false.", " [unverified]"
	for name, code := range agents {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := before + "\n\n" + code + after
			marked := before + mark + "\n\n" + code + after + mark
			for _, n := range []int{1, 2, 3, 7, 1 << 10} {
				got, out, err := pass(t, g, jobOf(t, guard.Annotate), pieces(text, n)...)
				if heard := listen(t, got); err != nil || out.Failed != 2 || heard.texts[0] != marked {
					t.Errorf("in pieces of %d: error %v, %+v, text %q", n, err, out, heard.texts[0])
				}
				got, out, err = pass(t, g, jobOf(t, guard.Hold), pieces(text, n)...)
				want := "All is well. [unverified]\n\n" + code + "\n[unverified]"
				if heard := listen(t, got); err != nil || out.Failed != 2 || heard.texts[0] != want {
					t.Errorf("hold in pieces of %d: error %v, %+v, text %q", n, err, out, heard.texts[0])
				}
				job := jobOf(t, guard.Terminate)
				got, out, err = pass(t, g, job, pieces(text, n)...)
				if heard := listen(t, got); err != nil || !out.Cut || len(heard.texts[0]) > len(before)+2 {
					t.Errorf("terminate at once in pieces of %d: error %v, %+v, text %q", n, err, out, heard.texts[0])
				}
				job.Policy.Failures = 2
				got, out, err = pass(t, g, job, pieces(text, n)...)
				if heard := listen(t, got); err != nil || !out.Cut ||
					!strings.HasPrefix(heard.texts[0], before+"\n\n"+code) && n < 100 {
					t.Errorf("terminate in pieces of %d: error %v, %+v, text %q", n, err, out, heard.texts[0])
				}
			}
			var parts []string
			for rest := text; rest != ""; rest = rest[min(7, len(rest)):] {
				parts = append(parts, rest[:min(7, len(rest))])
			}
			got, _, err := pass(t, g, jobOf(t, guard.Annotate), responseOf(parts...))
			deltas, wholes, _ := answerOf(t, got)
			if err != nil || deltas != marked || slices.ContainsFunc(wholes, func(w string) bool { return w != marked }) {
				t.Errorf("response: error %v, deltas %q, wholes %q", err, deltas, wholes)
			}
			for i, want := range []string{marked, "All is well. ", "All is well. [unverified]\n\n" + code + "\n[unverified]"} {
				m := guard.Annotate + guard.Mode(i)
				var s said
				b, _, err := g.Body(t.Context(), []byte(body(text)), jobOf(t, m))
				if jerr := json.Unmarshal(b, &s); err != nil || jerr != nil || s.Choices[0].Message.Content != want {
					t.Errorf("%v of a body: errors %v, %v, text %q", m, err, jerr, s.Choices[0].Message.Content)
				}
			}
		})
	}
}

// TestAMarkDoesNotStandInJSONWithinAText checks that JSON within a text is checked, and that its
// marks are placed beside it.
func TestAMarkDoesNotStandInJSONWithinAText(t *testing.T) {
	t.Parallel()
	g := guardOf(t, &judge{}, guard.Options{})
	const first, marked, last = "All is well. This is false.", "All is well. This is false. " +
		"[unverified]", "\nThat is false."
	for name, object := range map[string]string{
		"an input":          "\nAction: search\nAction Input: {\"q\": \"It is false. So\", \"n\": [5]}",
		"over lines":        "\n{\n  \"q\": \"It is false.\",\n  \"n\": {}\n}\n",
		"in a line of text": " It is {\"a\": \"}\\\"false. So\"}",
		"indented":          "\n\n    run --fast\n    It is false. So\n\nSo.",
		"in a list":         "\n[{\"a\": \"It is false. So\"}, {\"b\": 5}]",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, n := range []int{1, 3, 1 << 10} {
				got, out, err := pass(t, g, jobOf(t, guard.Annotate), pieces(first+object+last, n)...)
				heard := listen(t, got)
				if want := marked + object + last + " [unverified]"; err != nil || heard.texts[0] != want ||
					out.Failed != 3 || heard.marks != 1 {
					t.Errorf("in pieces of %d: error %v, %+v, %d marks beside %q", n, err, out, heard.marks, heard.texts[0])
				}
			}
			var s said
			b, out, err := g.Body(t.Context(), []byte(body(first+object)), jobOf(t, guard.Annotate))
			if jerr := json.Unmarshal(b, &s); err != nil || jerr != nil ||
				s.Choices[0].Message.Content != marked+object || out.Failed != 2 {
				t.Errorf("body: errors %v, %v, %+v, text %q", err, jerr, out, s.Choices[0].Message.Content)
			}
			got, _, err := pass(t, g, jobOf(t, guard.Annotate), responseOf(first, object[:9], object[9:]))
			deltas, wholes, _ := answerOf(t, got)
			if err != nil || deltas != marked+object || slices.ContainsFunc(wholes, func(w string) bool { return w != deltas }) {
				t.Errorf("response: error %v, deltas %q, wholes %q", err, deltas, wholes)
			}
		})
	}
}

// TestAMarkDoesNotStandInTheBeginningOfCode checks that a sentence without a full stop ends where
// code begins, even if part of the code has been sent.
func TestAMarkDoesNotStandInTheBeginningOfCode(t *testing.T) {
	t.Parallel()
	g := guardOf(t, &judge{}, guard.Options{})
	for name, code := range agents {
		if strings.HasPrefix(code, "a/b") {
			continue // the file name is text
		}
		for n := 1; n < 12; n++ {
			text := "This is false\n" + code + "\nAll is well"
			got, out, err := pass(t, g, jobOf(t, guard.Annotate), pieces(text, n)...)
			heard := listen(t, got)
			whole := true
			for part := range strings.SplitAfterSeq(code, "</tool_call>\n") {
				whole = whole && strings.Contains(heard.texts[0], part)
			}
			if err != nil || out.Failed != 1 || strings.Count(heard.texts[0], "[unverified]") != 1 || !whole {
				t.Errorf("%s in pieces of %d: error %v, %+v, text %q", name, n, err, out, heard.texts[0])
			}
		}
	}
}

// watcher signals when a claim has been marked.
type watcher struct{ marked chan struct{} }

func (watcher) Claim(check.Verdict, time.Duration) {}

func (w watcher) Action(a guard.Action) {
	if a == guard.Marked {
		w.marked <- struct{}{}
	}
}

func TestAVerdictThatComesWithinCodeMarksBehindIt(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before, behind []string // pieces before and after the verdict
		want           string
		aside          bool
	}{
		"a call": {
			[]string{"This is slow and false.\n", "<tool_call>\n{\"a\""},
			[]string{": 1}\n", "</tool_call>", "\nAll", " is well."},
			"</tool_call>\nAll [unverified] is well.", false,
		},
		"a call at the end": {
			[]string{"This is slow and false.\n", "<tool_call>\n{\"a\""},
			[]string{": 1}\n", "</tool_call>"},
			"</tool_call>\n[unverified]", false,
		},
		"a fence": {
			[]string{"This is slow and false.\n", "```\nx"},
			[]string{"\n", "``", "`\n", "All", " is well."},
			"```\n[unverified]\nAll is well.", false,
		},
		"a fence at the end": {
			[]string{"This is slow and false.\n", "```\nx"},
			[]string{"\n", "```"},
			"```\n[unverified]",
			false,
		},
		"no end": {[]string{"This is slow and false.\n", "```\nx"}, []string{"\ny"}, "```\nx\ny", true},
		"a diff": {[]string{"This is slow and false.\n", "@@ -1 +1 @@\n-x"}, []string{"\n+y"}, "-x\n+y", true},
		"an edit": {
			[]string{"This is slow and false.\n", "<<<<<<< SEARCH\nx\n"},
			[]string{"=======\ny\n", ">>>>>>> REPLACE"},
			">>>>>>> REPLACE\n[unverified]", false,
		},
		"a patch": {
			[]string{"This is slow and false.\n", "*** Begin Patch\n+x\n"},
			[]string{"+y\n", "*** End Patch\n", "All"},
			"*** End Patch\n[unverified]\nAll", false,
		},
		"JSON": {
			[]string{"This is slow and false.\n", "Input: {\"a\""},
			[]string{": 1}", "\n"},
			"{\"a\": 1}\n",
			true,
		},
		"text behind JSON": {
			[]string{"This is slow and false.\n", "Input: {\"a\""},
			[]string{": 1}", "\n", "All"},
			"{\"a\": 1}\nAll [unverified]", false,
		},
		"inline code": {
			[]string{"This is slow and false. Call `x"},
			[]string{" y", " z`", " then", "."},
			"Call `x y z` then. [unverified]", false,
		},
		"a word": {
			[]string{"This is slow and false. Un"}, []string{"veri", "fied is", " it."}, "Unverified [unverified] is it.", false,
		},
		"a word in front of code": {
			[]string{"This is slow and false. Un"}, []string{"do`x y`", " now"}, "Undo`x y` now [unverified]", false,
		},
		"a word at the end":     {[]string{"This is slow and false. Un"}, []string{"do"}, "Undo [unverified]", false},
		"a word of Hangul":      {[]string{"This is slow and false. 한"}, []string{"국어 는"}, "한국어 [unverified] 는", false},
		"a word of Vietnamese":  {[]string{"This is slow and false. Việ"}, []string{"t đẹp"}, "Việt [unverified] đẹp", false},
		"a number":              {[]string{"This is slow and false. Pay 3."}, []string{"5 in all"}, "3.5 [unverified] in all", false},
		"a time, a rune each":   {[]string{"This is slow and false. At 1", "0", ":"}, []string{"3", "0 now"}, "10:30 [unverified] now", false},
		"an apostrophe":         {[]string{"This is slow and false. I don’"}, []string{"t know"}, "don’t [unverified] know", false},
		"a sentence that ends":  {[]string{"This is slow and false. So."}, []string{" Then"}, "So. [unverified] Then", false},
		"a colon of its own":    {[]string{"This is slow and false. So :"}, []string{"x y"}, "So : [unverified]x y", false},
		"a word without blanks": {[]string{"This is slow and false. 天"}, []string{"気"}, "天 [unverified]気", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var list []string
			for _, p := range slices.Concat(c.before, c.behind) {
				list = append(list, chunk(p))
			}
			heard := listen(t, lateVerdict(t, append(list, stop(), done), len(c.before)))
			if !strings.HasSuffix(heard.texts[0], c.want) || (heard.marks == 1) != c.aside ||
				strings.Count(heard.texts[0], "[unverified]") == heard.marks {
				t.Errorf("%d marks beside the text %q", heard.marks, heard.texts[0])
			}
		})
	}
}

// lateVerdict copies a stream whose first claim is false in annotate mode, and returns what the
// client receives if the verdict arrives after the first parts.
func lateVerdict(t *testing.T, parts []string, first int) string {
	t.Helper()
	gate, w := make(chan struct{}), watcher{make(chan struct{})}
	g := guardOf(t, &judge{gate: gate}, guard.Options{Observer: w})
	job := jobOf(t, guard.Annotate)
	job.Policy.MaxHold = 60e9
	src, dst := newScript(parts...), &record{wrote: make(chan struct{}, 100)}
	src.gate = make(chan struct{})
	ended := make(chan error, 1)
	go func() {
		_, err := g.Copy(t.Context(), source(src), sink(dst), job)
		ended <- err
	}()
	for range first {
		src.gate <- struct{}{}
		<-dst.wrote
	}
	gate <- struct{}{}
	<-w.marked
	close(src.gate)
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	return dst.String()
}
