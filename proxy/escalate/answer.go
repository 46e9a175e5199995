package escalate

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"signalbox/internal/openai"
	"signalbox/rules"
	"signalbox/stream/response"
)

// SignFailed is the sign of a response that contains an error or is unusable. It is always looked
// for.
const SignFailed rules.Sign = "failed"

// Answer is a response to be judged. New makes one; events of a stream are put into it, a whole
// body is passed to Body.
type Answer struct {
	response.Tally

	// Bounded means that the response limit is the client's own, so that being cut off there says
	// nothing about the model. Set it before Judge.
	Bounded bool

	expected *Expected
	choices  []*choice
	size     int // bytes kept of the choices
	opaque   bool
	failed   bool
	filtered bool
	cut      bool

	tokens  int // tokens with a log-probability
	logprob float64
}

// maxKept limits what is kept of a response, in bytes: as much as is read of one that is not a
// stream.
const maxKept = 8 << 20

// rowSize is the approximate size of a choice or call without its text.
const rowSize = 128

// choice is one choice of a completion, or one item of a Responses API response.
type choice struct {
	index   int
	text    strings.Builder
	refusal strings.Builder
	calls   []*call
}

type call struct {
	part            int
	name, arguments strings.Builder
	free            bool // the arguments are not JSON
}

// New returns an empty Answer for a request with the given expectations.
func New(api openai.API, expected *Expected) *Answer {
	return &Answer{Tally: response.Tally{API: api}, expected: expected}
}

// Put implements response.Sink.
func (a *Answer) Put(c *response.Chunk) {
	if !c.IsMessage() {
		return
	}
	e := c.Content()
	a.Note(e)
	if e.HasUsage {
		a.Usage = e.Usage
	}
	a.take(e)
}

// Mark implements upstream.Observer.
func (*Answer) Mark(time.Time) {}

// Body processes a response that is not a stream.
func (a *Answer) Body(body []byte) {
	a.Tally.Body(nil, body)
	a.take(new(response.Reader).ReadBody(body))
	if response.Useless(body) {
		a.failed, a.Failed = true, true
	}
}

func (a *Answer) take(e *response.Event) {
	a.failed = a.failed || e.Failed
	a.opaque = a.opaque || e.Unread || e.Shape == response.Opaque && !e.Foreign()
	// In the Responses API the final event repeats everything, so earlier events do not count.
	if e.Shape == response.Response && len(e.Finishes) == 0 {
		return
	}
	for i := range e.Deltas {
		a.add(&e.Deltas[i])
	}
	for i := range e.Finishes {
		switch string(e.Finishes[i].Reason) {
		case response.FinishLength, "max_output_tokens":
			a.cut = true
		case "content_filter":
			a.filtered = true
		}
	}
	for b := range e.Logprobs {
		a.weigh(b)
	}
}

func (a *Answer) add(d *response.Delta) {
	if a.size += len(d.Text); a.Long() {
		a.choices, a.opaque = nil, true
		return
	}
	c := a.choice(d.Choice)
	switch d.Kind {
	case response.Text:
		_, _ = c.text.Write(d.Text)
	case response.Refusal:
		_, _ = c.refusal.Write(d.Text)
	case response.Tool:
		k := a.call(c, d.Part)
		k.free = k.free || !d.JSON()
		_, _ = k.arguments.Write(d.Text)
	case response.ToolName:
		_, _ = a.call(c, d.Part).name.Write(d.Text)
	case response.Reasoning:
	}
}

func (a *Answer) choice(index int) *choice {
	at, found := slices.BinarySearchFunc(a.choices, index, func(c *choice, i int) int { return c.index - i })
	if !found {
		a.size += rowSize
		a.choices = slices.Insert(a.choices, at, &choice{index: index})
	}
	return a.choices[at]
}

func (a *Answer) call(c *choice, part int) *call {
	if n := len(c.calls); n > 0 && c.calls[n-1].part == part {
		return c.calls[n-1]
	}
	for _, k := range c.calls {
		if k.part == part {
			return k
		}
	}
	a.size += rowSize
	c.calls = append(c.calls, &call{part: part})
	return c.calls[len(c.calls)-1]
}

// weigh processes log-probabilities in the JSON of a chat, a completion or a response.
func (a *Answer) weigh(b []byte) {
	type token struct {
		Logprob *float64 `json:"logprob"`
	}
	var of struct {
		Content []token    `json:"content"`
		Tokens  []*float64 `json:"token_logprobs"`
	}
	if len(b) > 0 && b[0] == '[' {
		if json.Unmarshal(b, &of.Content) != nil {
			return
		}
	} else if json.Unmarshal(b, &of) != nil {
		return
	}
	for _, t := range of.Content {
		of.Tokens = append(of.Tokens, t.Logprob)
	}
	for _, x := range of.Tokens {
		if x != nil { // the first token of an echoed prompt has none
			a.logprob += *x
			a.tokens++
		}
	}
}

// Logprob returns the mean log-probability of a token; ok is false if none was reported.
func (a *Answer) Logprob() (mean float64, ok bool) {
	if a.tokens == 0 {
		return 0, false
	}
	return a.logprob / float64(a.tokens), true
}

// Long reports whether the response exceeds maxKept. Then nothing is kept, and it cannot be judged.
func (a *Answer) Long() bool { return a.size > maxKept }

// Readable reports whether the whole response could be read, so that the absence of signs is
// meaningful.
func (a *Answer) Readable() bool { return !a.opaque }

// Judge returns the first of the requested signs that the response is not good enough; empty if
// there is none. The guard's sign is not looked for here. In a response cut off at the client's own
// limit, signs that the cut itself may cause are not looked for either, since any other model's
// response would be cut as well.
func (a *Answer) Judge(look *rules.Escalate) rules.Sign {
	for _, s := range [...]struct {
		sign rules.Sign
		bad  func() bool
	}{
		{rules.SignRefusal, a.declines},
		{rules.SignLength, func() bool { return a.cut }},
		{rules.SignEmpty, a.empty},
		{rules.SignToolCall, a.miscalls},
		{rules.SignJSON, a.misshapen},
	} {
		excused := a.cut && a.Bounded && s.sign != rules.SignRefusal
		switch {
		case a.failed:
			return SignFailed
		case a.opaque:
			return ""
		case slices.Contains(look.When, s.sign) && !excused && s.bad():
			return s.sign
		}
	}
	if mean, ok := a.Logprob(); look.Logprobs && ok && mean < look.MinLogprob {
		return rules.SignLogprob
	}
	return ""
}

// declines reports whether a choice declines to answer, or was ended by a filter.
func (a *Answer) declines() bool {
	return a.filtered || slices.ContainsFunc(a.choices, func(c *choice) bool {
		return c.refusal.Len() > 0 || len(c.calls) == 0 && Refuses(c.text.String())
	})
}

// empty reports whether a choice has neither text nor calls. In the Responses API all items count
// together.
func (a *Answer) empty() bool {
	silent := func(c *choice) bool {
		return len(c.calls) == 0 && c.refusal.Len() == 0 && strings.TrimSpace(c.text.String()) == ""
	}
	if a.API == openai.Response || len(a.choices) == 0 {
		return !slices.ContainsFunc(a.choices, func(c *choice) bool { return !silent(c) })
	}
	return slices.ContainsFunc(a.choices, silent)
}

// miscalls reports whether a tool call cannot be made.
func (a *Answer) miscalls() bool {
	return slices.ContainsFunc(a.choices, func(c *choice) bool {
		return slices.ContainsFunc(c.calls, func(k *call) bool {
			return !k.free && !a.expected.call(k.name.String(), k.arguments.String())
		})
	})
}

// misshapen reports whether a text does not have the requested format.
func (a *Answer) misshapen() bool {
	return a.expected.json && slices.ContainsFunc(a.choices, func(c *choice) bool {
		return c.text.Len() > 0 && !fits(c.text.String(), a.expected.form)
	})
}

// Text returns the text of all choices, concatenated.
func (a *Answer) Text() string {
	var all strings.Builder
	for i := range a.choices {
		_, _ = all.WriteString(a.choices[i].text.String())
	}
	return all.String()
}

// longest limits the number of words that are compared.
const longest = 4096

// Similarity returns the share of words that two texts have in common (Dice's coefficient of their
// word multisets), in [0,1]. For long texts it compares their beginnings.
func Similarity(a, b string) float64 {
	x, y := strings.Fields(strings.ToLower(a)), strings.Fields(strings.ToLower(b))
	x, y = x[:min(len(x), longest)], y[:min(len(y), longest)]
	if len(x)+len(y) == 0 {
		return 1
	}
	left := make(map[string]int, len(x))
	for _, w := range x {
		left[w]++
	}
	both := 0
	for _, w := range y {
		if left[w] > 0 {
			left[w]--
			both++
		}
	}
	return 2 * float64(both) / float64(len(x)+len(y))
}
