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

// Options is the section `guard`: responses are checked, claim by claim, against the evidence of
// their request.
type Options struct {
	// Mode is what happens to responses of routes that set no `guard` of their own. off does
	// nothing; observe records verdicts in metrics and the log; annotate inserts a marker after
	// each claim that failed; terminate ends the response at such a claim; hold releases the text
	// claim by claim, each after its verdict. A request may ask for a stricter mode, but not for a
	// looser one. Default observe; off if the section is absent. Reloadable.
	Mode string `yaml:"mode" words:"off observe annotate terminate hold"`
	// ActOn lists the verdicts that annotate, terminate and hold act on: contradicted, unsupported,
	// or both. Default [contradicted, unsupported]. Reloadable.
	ActOn []string `yaml:"act_on" words:"contradicted unsupported"`
	// Marker is the text that follows a claim that failed, or replaces it in mode hold. 1 to 200
	// bytes. Default " [unverified]". Reloadable.
	Marker string `yaml:"marker"`
	// MarkerAs selects how annotate marks a claim: text inserts the marker into the response text;
	// field adds an `x_signalbox` member in a chunk without text. Default text. Reloadable.
	MarkerAs string `yaml:"marker_as" words:"text field"`
	// MaxHold is how long text may wait for its verdict, and the end of a stream for the last
	// verdicts. 1ms to 1m. Default 400ms. Reloadable.
	MaxHold option.Duration `yaml:"max_hold"`
	// OnUnchecked is what happens to a claim whose check was late or found the queue full: pass, or
	// block, which ends the response. Default pass. Reloadable.
	OnUnchecked string `yaml:"on_unchecked" words:"pass block"`
	// Structured is what annotate does with a response in a prescribed format (`response_format`,
	// guided decoding), which a marker would break. report leaves the text unchanged and reports
	// each failed claim in an `x_signalbox` member, of a chunk without text or of the body;
	// terminate and hold handle the response in that mode. Default report. Reloadable.
	Structured string `yaml:"structured" words:"report terminate hold"`
	// Failures is the number of failed claims at which terminate ends the response, and at which
	// hold ends it instead of replacing further claims. With 0, terminate ends at the first failed
	// claim and hold replaces every one. 0 to 1000. Default: 1 for terminate, never for hold.
	// Reloadable.
	Failures int `yaml:"failures"`
	// Strict also flags claims that the claim model finds neither entailed nor contradicted by a
	// text of more than 150 words, even if they name nothing that is missing from the text and the
	// model is not certain. This finds more false claims; if few sentences are false, most of the
	// additional flags are false positives. Default false. Reloadable.
	Strict bool `yaml:"strict"`
	// ToolResults uses the results of tools in the conversation as evidence. Default true.
	// Reloadable.
	ToolResults bool `yaml:"tool_results"`
	// Documents uses documents in the prompt as evidence: the field documents of the request, and
	// system, developer and user messages with at least 20 words, except questions. A prompt of
	// instructions counts as a document too, so leave this off if prompts contain no documents.
	// Default false. Reloadable.
	Documents bool `yaml:"documents"`
	// Reasoning also checks the model's reasoning. Default false. Reloadable.
	Reasoning bool `yaml:"reasoning"`
	// Outputs lists signals that are computed on every response while it streams, with or without
	// evidence: your own classifiers, personal data and others. Default none. Reloadable.
	Outputs []Output `yaml:"outputs"`
	// Workers is the number of checks that run in parallel, for all responses together. 0 selects
	// half of the cores, but at least one, which leaves the others to streams. 1 to 256, or 0.
	// Default 0. Reloadable.
	Workers int `yaml:"workers"`
	// Queue is the maximum number of claims that wait for a check. A claim that finds the queue
	// full gets the verdict unchecked and is counted. 1 to 65536. Default 256. Reloadable.
	Queue int `yaml:"queue"`
}

// The values in the section, sorted by strictness where that applies.
const (
	guardOff      = "off"
	guardUnknown  = "unchecked" // header value: a mode is on, but there is nothing to check against
	markAsText    = "text"
	markAsField   = "field"
	uncheckedPass = "pass"
	uncheckedStop = "block"
	formReport    = "report"
)

// Modes returns the modes, from the least to the most strict.
func Modes() []string { return []string{guardOff, "observe", "annotate", "terminate", "hold"} }

// Words returns the values allowed for a key of the section; nil for other keys.
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

// DefaultOptions returns the defaults, those of an empty section. Mode is empty, which means
// observe if the section is present and off if it is absent.
func DefaultOptions() Options {
	return Options{
		ActOn: Words("act_on"), Marker: " [unverified]", MarkerAs: markAsText, MaxHold: option.Duration(400 * time.Millisecond),
		OnUnchecked: uncheckedPass, Structured: formReport, ToolResults: true, Queue: 256,
	}
}

// Limits of the section.
const (
	maxMarker   = 200 // bytes
	maxFailures = 1000
	maxWorkers  = 256
	maxQueue    = 65536
)

// Validate reports every bad option, one "field: problem" per line. An empty mode means off.
func (o Options) Validate() error {
	var p option.Problems
	word := func(field, key, s string) {
		if known := Words(key); !slices.Contains(known, s) {
			p.Addf(field, "%q is not one of %s", s, strings.Join(known, ", "))
		}
	}
	if o.Mode != "" {
		word("mode", "mode", o.Mode)
	}
	if len(o.ActOn) == 0 {
		p.Addf("act_on", "the list is empty; to act on nothing, set mode: observe")
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
