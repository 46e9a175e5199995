package guardrail

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"signalbox/internal/option"
)

// Options is the section `guard`: answers are checked, claim by claim, against the evidence of
// their request.
type Options struct {
	// Mode is what happens to answers of routes that do not say `guard` themselves: off, observe
	// (verdicts in metrics and log), annotate (a marker behind each claim that failed), terminate
	// (the answer ends there) or hold (text is released claim by claim, after its verdict). Default
	// observe; without the section off. A request may ask for a stricter mode, never for a looser
	// one. Reloadable.
	Mode string `yaml:"mode" words:"off observe annotate terminate hold"`
	// ActOn are the verdicts that annotate, terminate and hold act on: contradicted, unsupported,
	// or both. Default [contradicted, unsupported]. Reloadable.
	ActOn []string `yaml:"act_on" words:"contradicted unsupported"`
	// Marker is the text that stands behind, or in hold in place of, a claim that failed. 1 to 200
	// bytes. Default " [unverified]". Reloadable.
	Marker string `yaml:"marker"`
	// MarkerAs is how annotate marks: text, a piece of the answer itself, or field, an
	// `x_signalbox` member of a chunk without text. Default text. Reloadable.
	MarkerAs string `yaml:"marker_as" words:"text field"`
	// MaxHold is how long text may wait for its verdict, and the end of a stream for the last ones.
	// 1ms to 1m. Default 400ms. Reloadable.
	MaxHold option.Duration `yaml:"max_hold"`
	// OnUnchecked is what becomes of a claim whose check was late or had no place in the queue:
	// pass or block, which ends the answer. Default pass. Reloadable.
	OnUnchecked string `yaml:"on_unchecked" words:"pass block"`
	// Structured is what annotate does with an answer that has a form to keep (`response_format`,
	// guided decoding), in which a marker would break the form: report leaves the text alone and
	// tells each failed claim in an `x_signalbox` member, of a chunk without text or of the body;
	// terminate and hold treat such an answer in that mode. Default report. Reloadable.
	Structured string `yaml:"structured" words:"report terminate hold"`
	// Failures is how many claims must fail before terminate ends the answer, and before hold does
	// instead of replacing them; 0: hold replaces each and terminate ends at the first. 0 to 1000.
	// Default 1 for terminate, never for hold. Reloadable.
	Failures int `yaml:"failures"`
	// Strict flags all that the model of claims finds neither entailed nor contradicted beside a text
	// of more than 150 words, though it names nothing that the text lacks and the model is not sure. It
	// finds more of what is false, and of what it flags besides most is true where few sentences are
	// false. Default false. Reloadable.
	Strict bool `yaml:"strict"`
	// ToolResults makes the results of tools in the conversation evidence. Default true.
	// Reloadable.
	ToolResults bool `yaml:"tool_results"`
	// Documents makes documents in the prompt evidence: the field documents of the request, and
	// messages of system, developer and user with at least 20 words, questions aside. A prompt that
	// only instructs counts as a document too, so leave it off where prompts hold none. Default
	// false. Reloadable.
	Documents bool `yaml:"documents"`
	// Reasoning checks the model's reasoning as well. Default false. Reloadable.
	Reasoning bool `yaml:"reasoning"`
	// Outputs are signals that read every answer while it streams, with or without evidence:
	// classifiers of one's own, personal data and others. Default none. Reloadable.
	Outputs []Output `yaml:"outputs"`
	// Workers is how many checks run beside each other, for all answers together. 1 to 256; 0 is
	// half of the cores, at least one, so that streams keep the others. Default 0. Reloadable.
	Workers int `yaml:"workers"`
	// Queue is how many claims may wait for a check; what finds it full is unchecked, and counted.
	// 1 to 65536. Default 256. Reloadable.
	Queue int `yaml:"queue"`
}

// The words of the section, in the order of strictness where they have one.
const (
	guardOff      = "off"
	guardUnknown  = "unchecked" // in the header: a mode is on, and there is nothing to check against
	markAsText    = "text"
	markAsField   = "field"
	uncheckedPass = "pass"
	uncheckedStop = "block"
	formReport    = "report"
)

// Modes are the modes, from the loosest to the strictest.
func Modes() []string { return []string{guardOff, "observe", "annotate", "terminate", "hold"} }

// Words returns the words that a key of the section may hold, nil for keys that hold no words.
func Words(key string) []string {
	switch key {
	case "mode":
		return Modes()
	case "act_on":
		return []string{"contradicted", "unsupported"}
	case "marker_as":
		return []string{markAsText, markAsField}
	case "on_unchecked":
		return []string{uncheckedPass, uncheckedStop}
	case "structured":
		return []string{formReport, "terminate", "hold"}
	}
	return nil
}

// DefaultOptions returns the options of an empty section. Mode is empty: the section being
// there makes it observe, and its absence off.
func DefaultOptions() Options {
	return Options{
		ActOn: Words("act_on"), Marker: " [unverified]", MarkerAs: markAsText, MaxHold: option.Duration(400 * time.Millisecond),
		OnUnchecked: uncheckedPass, Structured: formReport, ToolResults: true, Queue: 256,
	}
}

// The bounds of the section.
const (
	maxMarker   = 200 // bytes
	maxFailures = 1000
	maxWorkers  = 256
	maxQueue    = 65536
)

// Validate reports every bad option, one "field: problem" a line. An empty mode stands for off.
func (o Options) Validate() error {
	var p option.Problems
	word := func(field, key, s string) {
		if known := Words(key); !slices.Contains(known, s) {
			p.Addf(field, "%q is none of %s", s, strings.Join(known, ", "))
		}
	}
	if o.Mode != "" {
		word("mode", "mode", o.Mode)
	}
	if len(o.ActOn) == 0 {
		p.Addf("act_on", "the list is empty; mode: observe acts on nothing")
	}
	seen := option.Unique{}
	for i, v := range o.ActOn {
		at := fmt.Sprintf("act_on[%d]", i)
		word(at, "act_on", v)
		seen.Check(&p, at, v)
	}
	for i := range o.Outputs {
		o.Outputs[i].validate(&p, fmt.Sprintf("outputs[%d]", i))
	}
	word("marker_as", "marker_as", o.MarkerAs)
	word("on_unchecked", "on_unchecked", o.OnUnchecked)
	word("structured", "structured", o.Structured)
	switch {
	case o.Marker == "" || len(o.Marker) > maxMarker:
		p.Addf("marker", "%d bytes are not between 1 and %d", len(o.Marker), maxMarker)
	case !utf8.ValidString(o.Marker) || strings.ContainsFunc(o.Marker, func(r rune) bool { return unicode.IsControl(r) && r != '\n' }):
		p.Addf("marker", "%q holds control characters", o.Marker)
	}
	if d := time.Duration(o.MaxHold); d < time.Millisecond || d > time.Minute {
		p.Addf("max_hold", "%s is not between 1ms and 1m", o.MaxHold)
	}
	for _, n := range []struct {
		field          string
		n, least, most int
	}{{"failures", o.Failures, 0, maxFailures}, {"workers", o.Workers, 0, maxWorkers}, {"queue", o.Queue, 1, maxQueue}} {
		option.Between(&p, n.field, n.n, n.least, n.most)
	}
	return p.Err()
}
