package proxy

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"signalbox/internal/openai"
	"signalbox/internal/signal"
	"signalbox/rules"
)

// decision is where a request goes and what it was based on.
type decision struct {
	rules.Decision
	set        *signal.Set
	state      *State          // that requests are decided by
	request    *openai.Request // what was decided; nil where only its signals are known
	text       signal.Text     // what signals were read from; empty when none was
	program    *rules.Program  // that made it
	model      string          // the configured model that the client named; empty when it asked for routing
	elapsed    time.Duration   // from the first step to the last, extraction included
	classified time.Duration   // of it, waiting for signals
	decided    time.Time
}

// decide steps through the rules, extracting what they ask for and nothing else. A decision to block
// is returned beside its error.
func (st *State) decide(ctx context.Context, who Principal, req *openai.Request, h http.Header) (*decision, error) {
	d, err := st.start(who, req, h)
	if err != nil {
		return nil, err
	}
	if err := st.settle(ctx, d, req); err != nil {
		return d, err
	}
	switch {
	case d.Outcome == rules.Unavailable:
		return d, errUnavailable
	case d.Action.Verb == rules.Block && d.Outcome == rules.FailClosed && d.late():
		return d, errOverloaded
	case d.Action.Verb == rules.Block:
		return d, &blockedError{d.Action.Text}
	}
	return d, nil
}

// supported refuses what a client may ask of the proxy and this version does not do. Leaving it out
// without a word would let an answer pass for guarded, or for one that knew its context.
func supported(req *openai.Request, h http.Header) error {
	var param string
	x := &req.Extras
	switch {
	case len(x.Contexts) > 0, h.Get("X-Signalbox-Context") != "":
		param = "signalbox.context"
	case len(x.Facts) > 0:
		param = "signalbox.facts"
	case x.Guard != "" && x.Guard != "off":
		param = "signalbox.guard"
	case x.SaveContext != nil:
		param = "signalbox.save_context"
	default:
		return nil
	}
	return &openai.Error{Status: http.StatusBadRequest, Type: openai.TypeInvalidRequest, Param: param, Message: param + " is not in this version of signalbox"}
}

// start collects what is known without looking into the text, and picks the program.
func (st *State) start(who Principal, req *openai.Request, h http.Header) (*decision, error) {
	if err := supported(req, h); err != nil {
		return nil, err
	}
	name, configured := st.resolve(req.Model)
	d := &decision{set: &signal.Set{Facts: st.facts(who, req, h)}, state: st, request: req, program: st.program}
	switch {
	case configured:
		d.model = name
		if !st.opts.RouteNamedModels {
			d.program = st.program.Named()
		}
	case !st.isAuto(name):
		return nil, &unknownModelError{req.Model}
	}
	return d, nil
}

// resolve finds the configured model that a client means. Clients that know tags from elsewhere ask
// for NAME:latest.
func (st *State) resolve(asked string) (name string, configured bool) {
	if _, ok := st.byName[asked]; ok {
		return asked, true
	}
	if base, ok := strings.CutSuffix(asked, ":latest"); ok {
		_, configured = st.byName[base]
		return base, configured
	}
	return asked, false
}

func (st *State) isAuto(name string) bool {
	return slices.Contains(st.opts.AutoModels, name)
}

func (st *State) facts(who Principal, req *openai.Request, h http.Header) signal.Facts {
	f := signal.Facts{Role: who.Role, Tenant: who.Tenant, Model: req.Model, Session: req.Extras.Session, Tokens: estimateTokens(req)}
	if f.Session == "" {
		f.Session = h.Get("X-Signalbox-Session")
	}
	if len(st.readHeaders) > 0 {
		f.Header = func(name string) []string {
			name = http.CanonicalHeaderKey(name)
			if strings.HasPrefix(name, ownPrefix) {
				return nil // a client's word about our own answers counts for nothing
			}
			return h[name]
		}
	}
	if req.HasTools {
		f.Features |= signal.HasTools
	}
	if req.HasImages {
		f.Features |= signal.HasImages
	}
	if len(req.Extras.Contexts) > 0 || h.Get("X-Signalbox-Context") != "" {
		f.Features |= signal.HasContext
	}
	if len(req.Extras.Facts) > 0 {
		f.Features |= signal.HasFacts
	}
	return f
}

// estimateTokens guesses the prompt's length: 4 bytes of text a token, which holds for English under
// byte-pair vocabularies and is near 1 token a character for CJK in UTF-8, and 4 tokens of template a
// message. Rules compare it with round numbers; nothing exact hangs on it.
func estimateTokens(req *openai.Request) int {
	n := 0
	for i := range req.Messages {
		n += len(req.Messages[i].Text)/4 + 4
	}
	return n
}

// thorough is a Classifier that reads a selection of a long prompt unless it is told to read it all.
type thorough interface {
	// ExtractAll is Extract with safety signals that read every part of the text.
	ExtractAll(ctx context.Context, text *signal.Text, need signal.Mask, set *signal.Set)
}

// settle steps until the decision is final. A route that says `windows: all`, or `redact: true`, is
// only taken by what was read whole: what a selection was read of is read again then, and decided again.
func (st *State) settle(ctx context.Context, d *decision, req *openai.Request) error {
	begun := time.Now()
	extract := st.classifier.Extract
	for {
		final, need := d.program.Step(d.set)
		if need == 0 {
			all, able := st.classifier.(thorough)
			if need = unread(&final, d.set); need == 0 || !able {
				d.Decision = final
				break
			}
			extract = all.ExtractAll
			for _, k := range need.Kinds() {
				d.set.Values[k] = signal.Value{}
			}
		}
		if d.text.Segments == nil {
			d.text = req.Text()
		}
		asked := time.Now()
		extract(ctx, &d.text, need, d.set)
		d.set.Fail(need, signal.ReasonInternal) // so that a kind that was left out is not asked for again
		d.classified += time.Since(asked)
		if ctx.Err() != nil {
			return errClientGone
		}
	}
	if d.model != "" && d.Outcome == rules.Defaulted {
		// No route has a say: the client gets the model it named, not the default one.
		d.Route, d.Action = rules.RouteNamed, &rules.Action{}
	}
	d.decided = time.Now()
	d.elapsed = d.decided.Sub(begun)
	return nil
}

// unread returns the signals of which a route that wants everything read has only seen a selection.
// What is to be hidden has to be found first, so a route that redacts wants all personal data.
func unread(final *rules.Decision, set *signal.Set) signal.Mask {
	if final.Outcome == rules.Unavailable {
		return 0
	}
	var wanted, m signal.Mask
	if final.Action.Windows == "all" {
		wanted = signal.MaskOf(signal.Jailbreak, signal.PII)
	}
	if final.Action.Redact {
		wanted |= signal.MaskOf(signal.PII)
	}
	for _, k := range wanted.Kinds() {
		if v := &set.Values[k]; v.State == signal.Known && v.Read < v.Windows {
			m |= signal.MaskOf(k)
		}
	}
	return m
}

// late reports whether a signal is missing only because there was no time for it. The request is
// refused then as well, but not as a breach of policy: a client may send it again.
func (d *decision) late() bool {
	for _, k := range d.Failed.Kinds() {
		if why := d.set.Values[k].Reason; why == signal.ReasonTimeout || why == signal.ReasonOverload {
			return true
		}
	}
	return false
}

// degraded names what the decision had to do without.
func (d *decision) degraded() []string {
	var out []string
	for _, k := range d.Failed.Kinds() {
		out = append(out, k.String())
	}
	return out
}
