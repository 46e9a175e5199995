package app

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"signalbox/classify"
	"signalbox/internal/signal"
	"signalbox/internal/testkit"
)

// turns is how many turns a conversation of BenchmarkConversation has.
const turns = 200

// agentTurns is the conversation of an agent: a system prompt, and in every turn a question, the
// call of a tool, its result of about 300 tokens and an answer. Its texts are all different.
func agentTurns(tb testing.TB) []signal.Segment {
	tb.Helper()
	text := longPrompt(tb, turns*2200)
	take := func(n int) string {
		part := text[:n]
		text = text[n:]
		return strings.ToValidUTF8(part, "")
	}
	out := []signal.Segment{{
		Role: "system", Origin: signal.OriginInstructions,
		Text: "You are a helpful assistant with tools.",
	}}
	for i := range turns {
		out = append(out,
			signal.Segment{
				Role: "user", Origin: signal.OriginUser,
				Text: fmt.Sprintf("%d: %s", i, take(160)),
			},
			signal.Segment{
				Role: "assistant", Origin: signal.OriginModel,
				Text: fmt.Sprintf(`{"tool":"search","query":%q}`, take(60)),
			},
			signal.Segment{Role: "tool", Origin: signal.OriginData, Text: take(1200)},
			signal.Segment{Role: "assistant", Origin: signal.OriginModel, Text: take(600)})
	}
	return out
}

// BenchmarkConversation measures the processor time of the safety signals of a conversation of 200
// turns: when it is first seen as a whole, and turn by turn, with what was read remembered and
// without. Run it with -cpu 1 and -benchtime 1x.
func BenchmarkConversation(b *testing.B) {
	m := openModels(b)
	all := agentTurns(b)
	need := signal.MaskOf(signal.Jailbreak, signal.Injection, signal.PII) & m.classifier.Signals()
	extract := func(c *classify.Classifier, n int) time.Duration {
		text := &signal.Text{Segments: all[:n]}
		var set signal.Set
		start := testkit.Used(b)
		c.Extract(b.Context(), text, need, &set)
		used := testkit.Used(b) - start
		for _, k := range need.Kinds() {
			if v := set.Value(k); v.State != signal.Known {
				b.Fatalf("%v is unknown: %s", k, v.Reason)
			}
		}
		return used
	}
	for name, memo := range map[string]int{
		"with memo": classify.DefaultOptions().Memo,
		"without":   0,
	} {
		o := classify.DefaultOptions()
		o.Memo = memo
		c, err := classify.New([]classify.Source{{Engine: m.engine}}, o)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(name, func(b *testing.B) {
			var used []time.Duration
			for b.Loop() {
				first := turns - 20
				if memo > 0 {
					first = 1 // a conversation grows turn by turn
				}
				for turn := first; turn <= turns; turn++ {
					d := extract(c, 4*turn-1) // up to the result of the tool
					if turn > turns-20 {
						used = append(used, d)
					}
				}
			}
			b.ReportMetric(float64(median(used).Microseconds())/1000, "cpu-ms/turn")
		})
	}
}

// BenchmarkFirstPrompt measures the processor time of all signals of a first prompt of 11,000
// characters.
func BenchmarkFirstPrompt(b *testing.B) {
	m := openModels(b)
	o := classify.DefaultOptions()
	o.Memo = 0
	c, err := classify.New([]classify.Source{{Engine: m.engine}}, o)
	if err != nil {
		b.Fatal(err)
	}
	text := strings.Repeat("Sales of the northern branch rose in the last quarter, after a slow spring. Costs fell by a tenth. ", 112)[:11_000]
	request := &signal.Text{
		LastUser: text,
		Segments: []signal.Segment{{Role: "user", Origin: signal.OriginUser, Text: text}},
	}
	var used []time.Duration
	var set signal.Set
	for b.Loop() {
		set = signal.Set{}
		start := testkit.Used(b)
		c.Extract(b.Context(), request, c.Signals(), &set)
		used = append(used, testkit.Used(b)-start)
	}
	b.ReportMetric(float64(median(used).Microseconds())/1000, "cpu-ms")
	b.ReportMetric(float64(set.Value(signal.Jailbreak).Read), "windows")
	b.ReportMetric(float64(set.Value(signal.PII).Read), "pii-windows")
}

// BenchmarkTurn compares the processor time of all signals of the 60th turn of a conversation that
// adds 1,500 characters with that of a first prompt of as many, each of several texts: one costs up
// to twice another. No text comes twice, so nothing but the turns before is remembered.
func BenchmarkTurn(b *testing.B) {
	const size, last, texts = 1500, 60, 40
	m := openModels(b)
	text, n := longPrompt(b, 4<<20), 0
	next := func() signal.Segment {
		n++
		at := n * size % (len(text) - size)
		part := strings.ToValidUTF8(text[at:at+size], "")
		return signal.Segment{
			Role: "user", Origin: signal.OriginUser,
			Text: fmt.Sprintf("%d: %s", n, part),
		}
	}
	extract := func(segments []signal.Segment) time.Duration {
		var set signal.Set
		request := &signal.Text{LastUser: segments[len(segments)-1].Text, Segments: segments}
		for _, s := range segments[:len(segments)-1] {
			request.Before = append(request.Before, s.Text)
		}
		start := testkit.Used(b)
		m.classifier.Extract(b.Context(), request, m.classifier.Signals(), &set)
		return testkit.Used(b) - start
	}
	var turn, first []time.Duration
	for b.Loop() {
		var all []signal.Segment
		for len(all) < last-1 {
			all = append(all, next())
			extract(all)
		}
		for range texts {
			turn = append(turn, extract(append(slices.Clip(all), next())))
			first = append(first, extract([]signal.Segment{next()}))
		}
	}
	b.ReportMetric(median(turn).Seconds()*1000, "turn-cpu-ms")
	b.ReportMetric(median(first).Seconds()*1000, "first-cpu-ms")
	b.ReportMetric(median(turn).Seconds()/median(first).Seconds(), "ratio")
}

// BenchmarkForeignTurn measures the processor time of turns of a conversation in another language than
// English: of the first, of the second and of the third, for the domain alone and for all signals. No
// text comes twice.
func BenchmarkForeignTurn(b *testing.B) {
	m := openModels(b)
	texts := [...]string{
		"%d: Welche Nebenwirkungen hat Ibuprofen bei Kindern unter zwölf Jahren, und ab wann soll man zum Arzt?",
		"%d: gibt es die auch als Zäpfchen, meine Tochter mag keinen Saft",
		"%d: und wie oft am Tag darf sie das dann nehmen",
	}
	n := 0
	for _, need := range [...]signal.Mask{signal.MaskOf(signal.Domain), m.classifier.Signals()} {
		b.Run(fmt.Sprintf("signals=%d", need.Len()), func(b *testing.B) {
			var used [len(texts)][]time.Duration
			for b.Loop() {
				n++
				request := new(signal.Text)
				for i, text := range texts {
					if i > 0 {
						request.Before = append(request.Before, request.LastUser)
					}
					request.LastUser = fmt.Sprintf(text, n)
					request.Segments = append(request.Segments, signal.Segment{
						Role: "user", Origin: signal.OriginUser, Text: request.LastUser,
					})
					var set signal.Set
					start := testkit.Used(b)
					m.classifier.Extract(b.Context(), request, need, &set)
					used[i] = append(used[i], testkit.Used(b)-start)
				}
			}
			for i := range used {
				b.ReportMetric(median(used[i]).Seconds()*1000, fmt.Sprintf("turn%d-cpu-ms", i+1))
			}
		})
	}
}
