package guard_test

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"signalbox/internal/testkit"
	"signalbox/stream/claims"
	"signalbox/stream/guard"
)

// generator makes streams of chat chunks.
type generator struct {
	r     *rand.Rand
	texts []string // of the choices
	tools []string
	calls [][]int // offsets of tool calls in the texts
}

func (g *generator) pick(list ...string) string { return list[g.r.IntN(len(list))] }

// sentence makes a claim, sometimes with "false" or "slow". Each has a unique word, so that a part
// of it can be recognised.
func (g *generator) sentence(n int) string {
	list := []string{fmt.Sprintf("Wörd%d", n)}
	for range g.r.IntN(12) {
		list = append(list, g.pick("tower", "größe", "日本語", "slow", "old", "12.5", "e.g.", "\"so\"", "and", "😀", "U.S."))
	}
	if g.r.IntN(40) == 0 { // an endless one, closed by length
		for i := range 150 {
			list = append(list, fmt.Sprintf("w%dx%d", n, i))
		}
	}
	if g.r.IntN(3) == 0 {
		list = append(list, "false")
	}
	g.r.Shuffle(len(list)-1, func(i, j int) { list[i+1], list[j+1] = list[j+1], list[i+1] })
	return strings.Join(list, " ") + g.pick(
		". ", "! ", "? ", ".\n", ";\n", "。", "\n\n", ".\n- ", " | ", ".\n\n```\nx := 1\n```\n",
		"\n<tool_call>\n{\"a\": \"false. "+
			"It\"}</tool_call>", ".\n\n{\"a\": \"So. It is false. So\"}\n", "\n@@ -1 +1 @@\n-It is false. So\n+x\n",
	)
}

func (g *generator) text() string {
	var b strings.Builder
	for n := range 1 + g.r.IntN(8) {
		b.WriteString(g.sentence(n))
	}
	return strings.TrimSuffix(b.String(), " ")
}

// cut splits a text into pieces of whole characters.
func (g *generator) cut(text string, longest int) []string {
	var out []string
	for runes := []rune(text); len(runes) > 0; {
		n := min(len(runes), 1+g.r.IntN(longest))
		out, runes = append(out, string(runes[:n])), runes[n:]
	}
	return out
}

// stream makes a stream and sets texts and tools to its contents.
func (g *generator) stream() string {
	n := 1 + g.r.IntN(3)
	queues := make([][]string, n)
	g.texts, g.tools, g.calls = make([]string, n), make([]string, n), make([][]int, n)
	for i := range n {
		g.texts[i] = g.text()
		queues[i] = append(queues[i], chunkOf(i, `{"role":"assistant","content":""}`, "null"))
		longest := 1 + g.r.IntN(30)
		at := 0
		for _, piece := range g.cut(g.texts[i], longest) {
			at += len(piece)
			queues[i] = append(queues[i], chunkOf(i, `{"content":`+quote(piece)+`}`, "null"))
			if g.r.IntN(20) == 0 {
				g.tools[i] += "f false. "
				g.calls[i] = append(g.calls[i], at)
				queues[i] = append(queues[i], chunkOf(i, `{"tool_calls":[{"index":0,"function":{"name":"f","arguments":" false. "}}]}`, "null"))
			}
		}
		end := chunkOf(i, `{}`, `"stop"`)
		if g.r.IntN(3) == 0 {
			g.texts[i] += "It is false"
			end = chunkOf(i, `{"content":"It is false"}`, `"stop"`)
		}
		queues[i] = append(queues[i], end)
	}
	return g.weave(queues)
}

// weave interleaves the choices and adds what may be between and after them.
func (g *generator) weave(queues [][]string) string {
	var b strings.Builder
	for left := len(queues); left > 0; {
		i := g.r.IntN(len(queues))
		if len(queues[i]) == 0 {
			continue
		}
		b.WriteString(queues[i][0])
		if queues[i] = queues[i][1:]; len(queues[i]) == 0 {
			left--
		}
		if g.r.IntN(30) == 0 {
			b.WriteString(": keep-alive\n\n")
		}
	}
	if g.r.IntN(2) == 0 {
		b.WriteString(usage)
	}
	b.WriteString(done)
	if g.r.IntN(3) == 0 {
		return strings.ReplaceAll(b.String(), "\n", "\r\n")
	}
	return b.String()
}

// pieces splits a stream anywhere, even inside a character.
func (g *generator) pieces(stream string, longest int) []string {
	var out []string
	for len(stream) > 0 {
		n := min(len(stream), 1+g.r.IntN(longest))
		out, stream = append(out, stream[:n]), stream[n:]
	}
	return out
}

// mended returns the text as hold has to release it, computed from the claims of the whole text:
// characters of failed claims are removed, and each run of failed claims is replaced by one marker.
// A tool call ends a claim. It also returns the words that must not occur.
func mended(t *testing.T, text string, calls []int) (want string, never []string) {
	t.Helper()
	s, err := claims.New(claims.Options{Blocks: true, Values: true})
	if err != nil {
		t.Fatal(err)
	}
	var list []claims.Claim
	from := 0
	for _, to := range append(slices.Clone(calls), len(text)) {
		s.Reset()
		for _, c := range append(slices.Clone(s.Feed(text[from:to])), s.Flush()...) {
			c.Bytes.Start, c.Bytes.End = c.Bytes.Start+from, c.Bytes.End+from
			list = append(list, c)
		}
		from = to
	}
	gone, begins, end := make([]bool, len(text)), make([]bool, len(text)), 0
	for _, c := range list {
		if c.Kind == claims.Code || !strings.Contains(c.Text, "false") {
			continue
		}
		for i := c.Bytes.Start; i < c.Bytes.End; i++ {
			gone[i] = true
		}
		if c.Bytes.Start >= end {
			begins[c.Bytes.Start] = true
		}
		end = max(end, c.Bytes.End)
		for w := range strings.FieldsSeq(c.Text) {
			if strings.HasPrefix(w, "Wörd") || strings.HasPrefix(w, "w") {
				never = append(never, w)
			}
		}
	}
	var b strings.Builder
	for i := range len(text) {
		if begins[i] {
			b.WriteString("[unverified]")
		}
		if !gone[i] {
			b.WriteByte(text[i])
		}
	}
	return b.String(), never
}

func TestHoldNeverLetsAFailedClaimThrough(t *testing.T) {
	g := guardOf(t, &judge{}, guard.Options{Workers: 2, Queue: 1 << 16})
	job := jobOf(t, guard.Hold)
	job.Policy.MaxHold = 60e9 // with a working judge, nothing is late
	failed, cut, seeds := 0, 0, uint64(1000)
	if testkit.Race {
		seeds = 300
	}
	for seed := range seeds {
		gen := generator{r: rand.New(rand.NewPCG(seed, 2))}
		stream := gen.stream()
		got, out, err := pass(t, g, job, gen.pieces(stream, 9+gen.r.IntN(2000))...)
		failed += out.Failed
		heard := listen(t, got)
		for i, text := range gen.texts {
			all, never := mended(t, text, gen.calls[i])
			want := all
			if out.Cut && strings.HasPrefix(all, heard.texts[i]) && heard.finish[i] != "" {
				// JSON would have been broken, because a tool call is in the middle of it.
				want = heard.texts[i]
				gen.tools[i], heard.finish[i] = heard.tools[i], "stop"
			}
			if heard.texts[i] != want {
				t.Fatalf("seed %d, choice %d:\ntext %q\ngot  %q\nwant %q", seed, i, text, heard.texts[i], want)
			}
			for _, w := range never {
				if len(strings.Fields(w)) > 0 && strings.Contains(heard.texts[i]+" ", w+" ") && !strings.Contains(all+" ", w+" ") {
					t.Fatalf("seed %d: %q got out", seed, w)
				}
			}
			if heard.tools[i] != gen.tools[i] || heard.finish[i] != "stop" {
				t.Fatalf("seed %d, choice %d: tool %q, want %q; end %q", seed, i, heard.tools[i], gen.tools[i], heard.finish[i])
			}
		}
		if out.Cut {
			cut++
		} else if heard.usage != strings.Contains(stream, "prompt_tokens") {
			t.Fatalf("seed %d: usage %v", seed, heard.usage)
		}
		if err != nil || !heard.done || heard.after || out.Shed > 0 {
			t.Fatalf("seed %d: error %v, %+v, %+v", seed, err, out, heard)
		}
	}
	if failed < int(seeds) || cut > int(seeds)/10 {
		t.Errorf("only %d claims failed, or %d answers ended: the generator shows nothing", failed, cut)
	}
}

// ownLines matches marks after code, each on its own line.
var ownLines = regexp.MustCompile(`(\}</tool_call>)(?:\n§)+`)

func TestAnnotateKeepsTheTextAndMarksEachFailure(t *testing.T) {
	g := guardOf(t, &judge{}, guard.Options{Workers: 2, Queue: 1 << 16})
	job := jobOf(t, guard.Annotate)
	job.Policy.MaxHold = 60e9
	job.Policy.Marker = "§"
	for seed := range uint64(300) {
		gen := generator{r: rand.New(rand.NewPCG(seed, 3))}
		got, out, err := pass(t, g, job, gen.pieces(gen.stream(), 900)...)
		heard := listen(t, got)
		marks := heard.marks // beside the text, if it ends in code
		for i, text := range gen.texts {
			marks += strings.Count(heard.texts[i], "§")
			got := strings.ReplaceAll(ownLines.ReplaceAllString(heard.texts[i], "$1"), "§", "")
			if got != text || heard.tools[i] != gen.tools[i] {
				t.Fatalf("seed %d: got %q, want %q", seed, heard.texts[i], text)
			}
		}
		if err != nil || marks != out.Failed || heard.after || !heard.done {
			t.Fatalf("seed %d: error %v, %d marks, %+v", seed, err, marks, out)
		}
	}
}
