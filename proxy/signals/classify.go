package signals

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"signalbox/internal/openai"
	"signalbox/internal/signal"
)

// classifyBody is the body of POST /signalbox/v1/classify.
type classifyBody struct {
	Input inputs `json:"input"`
	// instead of input: the messages of a chat completion
	Messages json.RawMessage `json:"messages"`
	Signals  []string        `json:"signals"`
}

// inputs is one text or a list of texts.
type inputs []string

// UnmarshalJSON parses either form.
func (in *inputs) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '"' {
		*in = make(inputs, 1)
		return json.Unmarshal(b, &(*in)[0])
	}
	var list []*string
	if err := json.Unmarshal(b, &list); err != nil {
		return err
	}
	for i, s := range list {
		if s == nil {
			return notTextError(i)
		}
		*in = append(*in, *s)
	}
	return nil
}

// notTextError is the index of a null in a list of texts.
type notTextError int

func (e notTextError) Error() string { return fmt.Sprintf("input[%d] is null", int(e)) }

// Result is one signal of one text.
type Result struct {
	State string `json:"state"` // evaluated or unknown
	Label string `json:"label,omitempty"`
	// probability of label, in [0,1]; for jailbreak and injection always that of an attack
	Score    *float64           `json:"score,omitempty"`
	Scores   map[string]float32 `json:"scores,omitempty"` // of all labels
	Matched  []string           `json:"matched,omitempty"`
	Entities *[]Entity          `json:"entities,omitempty"` // for pii
	// windowed or compressed; absent if everything was read in one piece
	Coverage string `json:"coverage,omitempty"`
	// with windowed: number of windows in the text
	Windows int    `json:"windows,omitempty"`
	Read    int    `json:"read,omitempty"`    // with windowed: number of windows read
	Partial bool   `json:"partial,omitempty"` // some text could not be read
	Reason  string `json:"reason,omitempty"`  // why it is unknown or partial
	// share of it that comes from earlier turns, in [0,1]
	Leans float64 `json:"leans,omitempty"`
	// for jailbreak and injection, by origin
	Verdicts []OriginVerdict `json:"verdicts,omitempty"`
	// for these: origins in the messages that were not read
	NotRead []string `json:"not_read,omitempty"`
}

// Entity is a piece of personal data. Start and End are code points in the text of its segment.
type Entity struct {
	Type string `json:"type"`
	// index of the text in the request; absent if there is only one
	Segment *int    `json:"segment,omitempty"`
	Start   int     `json:"start"`
	End     int     `json:"end"`
	Score   float64 `json:"score"`
}

// entitiesOf converts the spans of a value, which are in text order, to code points. The result is
// never nil.
func entitiesOf(v *signal.Value, text *signal.Text) []Entity {
	out := make([]Entity, 0, len(v.Spans))
	// points is the number of code points in the first at bytes of the segment
	segment, at, points := -1, 0, 0
	for _, s := range v.Spans {
		if s.Segment >= len(text.Segments) || s.End > len(text.Segments[s.Segment].Text) {
			continue // not in this text
		}
		said := text.Segments[s.Segment].Text
		if s.Segment != segment || s.Start < at {
			segment, at, points = s.Segment, 0, 0
		}
		points += utf8.RuneCountInString(said[at:s.Start])
		at = s.Start
		e := Entity{Type: s.Type, Start: points, End: points + utf8.RuneCountInString(said[s.Start:s.End]), Score: s.Score}
		if len(text.Segments) > 1 {
			e.Segment = &s.Segment
		}
		out = append(out, e)
	}
	return out
}

// coverageOf describes how much of the text a value covers.
func coverageOf(v *signal.Value) (coverage string, windows, read int) {
	switch v.Coverage {
	case signal.Windowed:
		return "windowed", v.Windows, v.Read
	case signal.Compressed:
		return "compressed", 0, 0
	case signal.Complete:
	}
	return "", 0, 0
}

// maxInputs is the maximum number of texts in one request.
const maxInputs = 256

// Results computes the signals in need from a text, by name. They are unusable if ctx has ended.
func (r *Reader) Results(ctx context.Context, text *signal.Text, need signal.Mask) map[string]Result {
	var set signal.Set
	r.Extract(ctx, text, need, &set)
	set.Fail(need, signal.ReasonInternal)
	out := make(map[string]Result, need.Len())
	for _, k := range need.Kinds() {
		out[r.Identity.Names.Of(k)] = r.resultOf(k, set.Value(k), text)
	}
	return out
}

// Parse parses the body of a request and returns the texts and the requested signals. l limits
// messages. Errors are API errors.
func (r *Reader) Parse(body []byte, l openai.Limits) ([]signal.Text, signal.Mask, error) {
	var in classifyBody
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&in); err != nil {
		if null, ok := errors.AsType[notTextError](err); ok {
			return nil, 0, openai.Invalid(fmt.Sprintf("input[%d]", int(null)), "input must contain strings, not null")
		}
		return nil, 0,
			openai.Invalid("",
				"the body must be an object with input, a text or a list of texts, or with "+
					"messages, and optionally signals")
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, 0, openai.Invalid("", "unexpected data after the JSON object")
	}
	switch {
	case len(in.Messages) > 0 && in.Input != nil:
		return nil, 0, openai.Invalid("messages", "input and messages are mutually exclusive: send one of them")
	case len(in.Messages) == 0 && (len(in.Input) == 0 || len(in.Input) > maxInputs):
		return nil, 0, openai.Invalid("input", fmt.Sprintf("between 1 and %d texts, or messages, are required", maxInputs))
	}
	texts, err := in.texts(l)
	if err != nil {
		return nil, 0, err
	}
	const hidden = 1<<signal.Embedding | 1<<signal.Cache // no label to show
	able := r.Signals() &^ hidden
	need := able | always
	if len(in.Signals) > 0 {
		need = 0
	}
	for i, name := range in.Signals {
		k, ok := r.Identity.Names.Parse(name)
		if !ok || hidden&signal.MaskOf(k) != 0 {
			return nil, 0, openai.Invalid(fmt.Sprintf("signals[%d]", i),
				fmt.Sprintf("%.200q is not one of %s", name, strings.Join(r.Names(able), ", ")))
		}
		need |= signal.MaskOf(k)
	}
	return texts, need, nil
}

// always are the signals in a classification without a list; they are unknown if no model computes
// them.
const always = 1<<signal.Keyword | 1<<signal.Language | 1<<signal.Domain | 1<<signal.Jailbreak |
	1<<signal.Injection | 1<<signal.PII | 1<<signal.Complexity | 1<<signal.FactCheck

// texts returns the texts to classify. Errors are those of a chat completion.
func (in *classifyBody) texts(l openai.Limits) ([]signal.Text, error) {
	if len(in.Messages) > 0 {
		req, err := openai.ParseChat(slices.Concat([]byte(`{"model":"-","messages":`), in.Messages,
			[]byte("}")), l)
		if err != nil {
			return nil, err
		}
		return []signal.Text{req.Text()}, nil
	}
	out := make([]signal.Text, 0, len(in.Input))
	for _, s := range in.Input {
		out = append(out, signal.Text{LastUser: s, Segments: []signal.Segment{{
			Role: "user",
			Text: s, Origin: signal.OriginAny,
		}}})
	}
	return out, nil
}

func (r *Reader) resultOf(k signal.Kind, v *signal.Value, text *signal.Text) Result {
	if v.State != signal.Known {
		return Result{State: "unknown", Reason: string(v.Reason)}
	}
	out := Result{
		State: "evaluated", Label: r.Label(k, v), Verdicts: originVerdicts(v, text),
		NotRead: r.notRead(k, text, false),
	}
	Quote(out.Verdicts, v, text)
	out.Coverage, out.Windows, out.Read = coverageOf(v)
	out.Partial, out.Reason, out.Leans = v.Partial, string(v.Reason), leaning(v)
	switch k { //nolint:exhaustive // the others have a label and scores
	case signal.Keyword:
		out.Matched = v.Labels
		return out
	case signal.PII:
		found := entitiesOf(v, text)
		out.Entities = &found
		return out
	}
	out.Score = &v.Score
	if len(v.Probs) > 0 {
		out.Scores = make(map[string]float32, len(v.Labels))
		for i, label := range v.Labels {
			if i < len(v.Probs) {
				out.Scores[label] = v.Probs[i]
			}
		}
	}
	return out
}
