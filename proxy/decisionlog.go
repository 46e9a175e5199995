package proxy

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/cespare/xxhash/v2"

	"signalbox/internal/signal"
	"signalbox/internal/telemetry"
	"signalbox/rules"
)

// LogVersion is the form of the lines that this version writes; it reads no other.
const LogVersion = 1

// LoggedDecision is one line of the decision log: what a request was, as far as rules can see it,
// what was decided and on which signals, and how it ended. It holds no text of the request unless
// prompts are recorded.
type LoggedDecision struct {
	Version    int                     `json:"v"`
	Time       time.Time               `json:"time"` // of the decision
	ID         string                  `json:"id"`   // x-request-id
	Generation uint64                  `json:"generation"`
	Config     string                  `json:"config,omitempty"` // fingerprint of the configuration file
	Request    LoggedFacts             `json:"request"`
	Route      string                  `json:"route"`
	Outcome    string                  `json:"outcome"`          // matched, fail_closed, unavailable or default
	Failed     []string                `json:"failed,omitempty"` // signals that the decision had to do without
	Action     LoggedAction            `json:"action"`
	Signals    map[string]LoggedSignal `json:"signals"` // those that were asked for; what is absent was not computed
	DecideMs   float64                 `json:"decide_ms"`

	Chosen    string        `json:"chosen,omitempty"`     // the model that the route chose; empty when nothing was to be forwarded
	Model     string        `json:"model,omitempty"`      // that answered in the end
	Endpoint  string        `json:"endpoint,omitempty"`   // of it
	Reasoning string        `json:"reasoning,omitempty"`  // the effort that was asked for in the end
	MaxTokens int           `json:"max_tokens,omitempty"` // the limit that was sent in place of the client's; 0 when none was
	Status    int           `json:"status"`
	Tokens    *LoggedTokens `json:"tokens,omitempty"` // as the answer told them

	Prompt *LoggedText `json:"prompt,omitempty"` // only with telemetry.record_prompts
}

// LoggedFacts is what rules can read about a request without its text.
type LoggedFacts struct {
	Model    string                  `json:"model"` // that the client asked for
	Role     string                  `json:"role,omitempty"`
	Tenant   string                  `json:"tenant,omitempty"`
	Tokens   int                     `json:"tokens"`                   // estimated length of the prompt
	Context  int                     `json:"context_tokens,omitempty"` // of the contexts that it refers to
	Features []string                `json:"features,omitempty"`       // tools, images, context, facts
	Session  bool                    `json:"session,omitempty"`        // one was named
	Headers  map[string]LoggedHeader `json:"headers,omitempty"`        // those that the rules name; empty where the request had none of the name
}

// LoggedHeader is the values of one request header.
type LoggedHeader struct {
	Literal []string `json:"literal,omitempty"`
	Hashed  []string `json:"sha256,omitempty"` // see hashHeader
}

// LoggedSignal is one signal as it was computed.
type LoggedSignal struct {
	State      string            `json:"state"` // evaluated or unknown
	Label      string            `json:"label,omitempty"`
	Score      float64           `json:"score,omitempty"`  // of the label, in [0,1]; of jailbreak always P(jailbreak)
	Labels     []string          `json:"labels,omitempty"` // of keyword the sets that matched, of pii the types found
	Probs      []float32         `json:"probs,omitempty"`  // of Labels
	Reason     string            `json:"reason,omitempty"` // why it is unknown
	Source     string            `json:"source,omitempty"`
	Definition string            `json:"definition,omitempty"` // fingerprint of the model or examples that it comes from
	Sets       map[string]string `json:"sets,omitempty"`       // of keyword: fingerprint of every set that was looked for
	Windows    int               `json:"windows,omitempty"`
	Read       int               `json:"read,omitempty"`
	Ms         float64           `json:"ms,omitempty"`
}

// LoggedAction is what a route asked for. Texts are fingerprints.
type LoggedAction struct {
	Verb      string         `json:"verb"` // use, block or answer
	Text      string         `json:"text,omitempty"`
	Models    []LoggedChoice `json:"models,omitempty"`
	By        string         `json:"by,omitempty"`
	Margin    float64        `json:"quality_margin,omitempty"`
	Reasoning string         `json:"reasoning,omitempty"`
	Override  bool           `json:"override,omitempty"`
	Prompt    string         `json:"prompt,omitempty"`      // its name
	Mode      string         `json:"prompt_mode,omitempty"` // and how it is put in
	Wording   string         `json:"prompt_text,omitempty"`
	MaxTokens string         `json:"max_tokens,omitempty"` // auto or a number
	Guard     string         `json:"guard,omitempty"`
	Cache     string         `json:"cache,omitempty"`
	Windows   string         `json:"windows,omitempty"`
	Redact    bool           `json:"redact,omitempty"`
	Set       string         `json:"set,omitempty"` // fields and headers
}

// LoggedChoice is a candidate model.
type LoggedChoice struct {
	Name   string `json:"name"`
	Weight int    `json:"weight,omitempty"`
}

// LoggedTokens is what an answer said about its usage.
type LoggedTokens struct {
	Prompt     int64 `json:"prompt"`
	Cached     int64 `json:"cached,omitempty"`
	Completion int64 `json:"completion"`
}

// LoggedText is the text of a request in the views that signals are read from.
type LoggedText struct {
	LastUser string          `json:"last_user"`
	Segments []LoggedSegment `json:"segments"`
}

// LoggedSegment is one run of text and who said it.
type LoggedSegment struct {
	Role string `json:"role"`
	Text string `json:"text"`
}

// Identity tells the definitions of one configuration apart from those of another, for the decision
// log and for replay. It is immutable once given to a State.
type Identity struct {
	Config      string                 // fingerprint of the file
	Definitions map[signal.Kind]string // of the models and examples behind a signal; absent where nothing can change it
	Keywords    map[string]string      // fingerprint of each keyword set
	// Provided are the signals that the configuration's models compute; the others are unknown.
	Provided signal.Mask
	// HeaderWords are the values that rules compare each header with, by canonical name.
	HeaderWords map[string][]string
	// HeaderPatterns are the headers that rules match with expressions, by canonical name.
	HeaderPatterns map[string]bool
}

// Fingerprint is a short hash by which two definitions are told apart. It is no protection of secrets.
func Fingerprint(b []byte) string {
	return fmt.Sprintf("%016x", xxhash.Sum64(b))
}

// Identify says which configuration the state is of. Call it before the state is served from.
func (st *State) Identify(id Identity) { st.identity = id }

// The words of outcomes in the log.
const (
	outcomeMatched     = "matched"
	outcomeFailClosed  = "fail_closed"
	outcomeUnavailable = "unavailable"
	outcomeDefault     = "default"
)

func outcomeWord(o rules.Outcome) string {
	switch o {
	case rules.FailClosed:
		return outcomeFailClosed
	case rules.Unavailable:
		return outcomeUnavailable
	case rules.Defaulted:
		return outcomeDefault
	case rules.Matched:
	}
	return outcomeMatched
}

// decided is what waits to be written. Nothing of it changes once the request has ended.
type decided struct {
	st      *State
	o       outcome
	id      string
	status  int
	headers http.Header // the client's, if rules may read any
	prompts bool
	literal bool
}

// logDecision hands the decision of a request that has ended to the decision log.
func (st *State) logDecision(log *telemetry.Decisions, id string, o *outcome, status int) {
	if o.decision == nil || o.Action == nil || !log.Wanted() {
		return
	}
	l := &decided{st: st, o: *o, id: id, status: status, prompts: log.Prompts(), literal: log.LiteralHeaders()}
	l.detach()
	if len(st.readHeaders) > 0 && o.set.Facts.Header != nil {
		l.headers = make(http.Header, len(st.readHeaders))
		for _, name := range st.readHeaders {
			l.headers[name] = o.set.Facts.Header(name)
		}
	}
	log.Offer(l)
}

// detach lets go of what a line does not tell, so that a waiting line does not keep a request's body.
func (l *decided) detach() {
	d, set := *l.o.decision, *l.o.set
	set.Facts.Header, set.Facts.Model = nil, strings.Clone(set.Facts.Model)
	if set.Facts.Session != "" {
		set.Facts.Session = "named"
	}
	if !l.prompts {
		d.text, l.o.req = signal.Text{}, nil
	}
	d.set, d.request, l.o.decision, l.o.vault = &set, nil, &d, nil
}

// lineSize is about what a line keeps in memory beside the text of its request, in bytes.
const lineSize = 4 << 10

// Held implements telemetry.Line.
func (l *decided) Held() int64 {
	if l.prompts && l.o.req != nil {
		return lineSize + int64(len(l.o.req.Raw))
	}
	return lineSize
}

// AppendLine implements telemetry.Line.
func (l *decided) AppendLine(b []byte) ([]byte, error) {
	line, err := json.Marshal(l.entry())
	return append(b, line...), err
}

func (l *decided) entry() *LoggedDecision {
	o := &l.o
	e := &LoggedDecision{
		Version: LogVersion, Time: o.decided.UTC(), ID: l.id, Generation: l.st.generation, Config: l.st.identity.Config,
		Request: l.facts(), Route: o.Route, Outcome: outcomeWord(o.Outcome), Failed: o.degraded(), Action: l.st.logAction(o.Action),
		Signals: make(map[string]LoggedSignal), DecideMs: milliseconds(o.elapsed), Status: l.status,
	}
	for _, k := range o.set.Have().Kinds() {
		e.Signals[k.String()] = l.st.identity.logSignal(k, &o.set.Values[k])
	}
	if o.wanted != nil {
		e.Chosen = o.wanted.name
	}
	if o.model != nil {
		e.Model, e.Endpoint, e.Reasoning = o.model.name, o.endpoint.name, o.effort
		if o.limit.n > 1 { // 1 stands for a field of the route's set
			e.MaxTokens = o.limit.n
		}
	}
	if t := o.tokens; t != (tokens{}) {
		e.Tokens = &LoggedTokens{t.prompt, t.cached, t.completion}
	}
	if l.prompts {
		text := o.text
		if text.Segments == nil {
			text = o.req.Text()
		}
		e.Prompt = logText(&text)
	}
	return e
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func (l *decided) facts() LoggedFacts {
	f := &l.o.set.Facts
	out := LoggedFacts{
		Model: f.Model, Role: f.Role, Tenant: f.Tenant, Tokens: f.Tokens, Context: f.Context, Features: featureNames(f.Features), Session: f.Session != "",
	}
	if len(l.headers) > 0 {
		out.Headers = make(map[string]LoggedHeader, len(l.headers))
	}
	for name, values := range l.headers {
		var h LoggedHeader
		for _, v := range values {
			if l.literal && !isCredential(name) {
				h.Literal = append(h.Literal, v)
				continue
			}
			h.Hashed = append(h.Hashed, hashHeader(name, v))
		}
		out.Headers[name] = h
	}
	return out
}

// isCredential reports a header whose values are never logged as they are.
func isCredential(name string) bool {
	switch name {
	case "Authorization", "Proxy-Authorization", "Cookie", "X-Api-Key", "Api-Key":
		return true
	}
	return false
}

// hashHeader is what stands for a header's value: the first 64 bits of SHA-256 over name, a zero byte
// and value. It tells values apart and does not show them. A value that can be guessed can be
// checked against it, so it is a pseudonym and not more.
func hashHeader(name, value string) string {
	sum := sha256.Sum256([]byte(name + "\x00" + value))
	return hex.EncodeToString(sum[:8])
}

// featureWords are the names of features, in the order of their bits.
var featureWords = [...]struct { //nolint:gochecknoglobals // constant table
	bit  signal.Features
	name string
}{{signal.HasTools, "tools"}, {signal.HasImages, "images"}, {signal.HasContext, "context"}, {signal.HasFacts, "facts"}}

func featureNames(f signal.Features) []string {
	var out []string
	for _, w := range featureWords {
		if f&w.bit != 0 {
			out = append(out, w.name)
		}
	}
	return out
}

// logSignal leaves out what could give a text away: vectors and the places of personal data.
func (id *Identity) logSignal(k signal.Kind, v *signal.Value) LoggedSignal {
	out := LoggedSignal{
		State: "evaluated", Label: v.Label, Score: v.Score, Labels: v.Labels, Probs: v.Probs, Source: v.Source,
		Definition: id.Definitions[k], Ms: milliseconds(v.Elapsed),
	}
	if v.State == signal.Unknown {
		return LoggedSignal{State: "unknown", Reason: string(v.Reason), Source: v.Source, Definition: out.Definition, Ms: out.Ms}
	}
	if v.Coverage == signal.Windowed {
		out.Windows, out.Read = v.Windows, v.Read
	}
	if k == signal.Keyword {
		out.Sets = id.Keywords
	}
	if !finite(out.Score, out.Probs) { // rules take it for failed; JSON has no number for it
		return LoggedSignal{State: "unknown", Reason: string(signal.ReasonInvalid), Source: v.Source, Definition: out.Definition, Ms: out.Ms}
	}
	return out
}

func finite(x float64, probs []float32) bool {
	const limit = 1e6 // scores are in [0,1]; comparisons with NaN are false
	ok := x > -limit && x < limit
	for _, p := range probs {
		ok = ok && p > -limit && p < limit
	}
	return ok
}

func logText(t *signal.Text) *LoggedText {
	out := &LoggedText{LastUser: t.LastUser, Segments: make([]LoggedSegment, len(t.Segments))}
	for i, s := range t.Segments {
		out.Segments[i] = LoggedSegment{s.Role, s.Text}
	}
	return out
}

// logAction writes an action down. Texts of the configuration become fingerprints: they tell a change
// and do not fill the log, and the values of headers may be secrets.
func (st *State) logAction(a *rules.Action) LoggedAction {
	out := LoggedAction{
		Verb: a.Verb.String(), By: a.By, Margin: a.Margin, Reasoning: a.Reasoning, Override: a.Override, Prompt: a.Prompt.Name, Mode: a.Prompt.Mode,
		Guard: a.Guard, Cache: a.Cache, Windows: a.Windows, Redact: a.Redact,
	}
	if a.Text != "" {
		out.Text = Fingerprint([]byte(a.Text))
	}
	for _, c := range a.Models {
		logged := LoggedChoice{Name: c.Name}
		if a.By == "weight" {
			logged.Weight = c.Weight
		}
		out.Models = append(out.Models, logged)
	}
	if a.Prompt.Name != "" {
		out.Wording = Fingerprint([]byte(st.prompts[a.Prompt.Name]))
	}
	if a.MaxTokens.Auto {
		out.MaxTokens = "auto"
	} else if a.MaxTokens.Limit > 0 {
		out.MaxTokens = strconv.Itoa(a.MaxTokens.Limit)
	}
	if len(a.Body)+len(a.Headers) > 0 {
		var b []byte
		for _, f := range a.Body {
			b = append(append(append(append(b, f.Name...), 0), f.JSON...), 0)
		}
		b = append(b, 1)
		for _, h := range a.Headers {
			b = append(append(append(append(b, h.Name...), 0), h.Value...), 0)
		}
		out.Set = Fingerprint(b)
	}
	return out
}

// ErrNotADecision reports a line that is no entry of a decision log that this version can read.
var ErrNotADecision = errors.New("not a line of a decision log")

// ParseDecision reads one line of a decision log. Members that it does not know are skipped: a later
// version may add some. Its errors wrap ErrNotADecision.
func ParseDecision(line []byte) (*LoggedDecision, error) {
	var l LoggedDecision
	if err := json.Unmarshal(line, &l); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotADecision, err)
	}
	switch {
	case l.Version != LogVersion:
		return nil, fmt.Errorf("%w: its version is %d, expected %d", ErrNotADecision, l.Version, LogVersion)
	case l.Route == "" || l.Outcome == "" || l.Action.Verb == "":
		return nil, fmt.Errorf("%w: route, outcome or action is missing", ErrNotADecision)
	case l.Request.Model == "":
		return nil, fmt.Errorf("%w: request.model is missing", ErrNotADecision)
	}
	for name, s := range l.Signals {
		switch {
		case s.State != "evaluated" && s.State != "unknown":
			return nil, fmt.Errorf("%w: signals.%s.state is %q", ErrNotADecision, name, s.State)
		case !finite(s.Score, s.Probs):
			return nil, fmt.Errorf("%w: signals.%s holds a number out of range", ErrNotADecision, name)
		}
	}
	return &l, nil
}
