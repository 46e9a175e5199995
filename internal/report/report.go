// Package report summarises a decision log: the cost of requests, their number by route and model,
// their results and their durations, in total and by route, model, tenant, key or day. The output
// is values, CSV, or a self-contained page.
//
// It reads line by line and keeps sums: memory does not grow with the log. At most twice maxTracked
// names of a dimension are kept; the others are summed under Other. Percentiles have a relative
// error of at most quantileError. The package is independent of files; package cli formats the
// output for a terminal.
//
// Everything runs on the caller's goroutine.
package report

import (
	"bufio"
	"compress/flate"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json"

	"signalbox/proxy/decisionlog"
)

// The dimensions that requests are grouped by.
const (
	ByRoute  = "route"
	ByModel  = "model" // the model that responded, or whose response was discarded
	ByTenant = "tenant"
	ByKey    = "key"
	ByDay    = "day" // in UTC
	ByArm    = "arm" // route and arm, for routes with a canary
)

// Dimensions lists the dimensions.
func Dimensions() []string { return []string{ByRoute, ByModel, ByTenant, ByKey, ByDay, ByArm} }

// None is the group of requests without a value, for example without a key or a responding model.
const None = "none"

// Other is the group of all names that are not listed separately.
const Other = "other"

// Options define which requests are counted and how they are grouped.
type Options struct {
	Since  time.Time // the first time that counts; zero for all
	Until  time.Time // the first time that no longer counts; zero for no limit
	Tenant string    // the tenant whose requests count; empty for all
	By     []string  // dimensions, in the order of the report
	Top    int       // names listed per dimension, 1 to 200; all days are listed
	// Ratings are scores of responses; nil if unknown.
	Ratings Ratings
}

// MaxTop is the maximum of Options.Top.
const MaxTop = 200

const (
	// maxTracked is the number of names of a dimension that are kept if there are too many, those
	// with the most requests so far.
	maxTracked = 1024
	// maxDays is the same for days, of which there are fewer unless clocks are wrong.
	maxDays = 3700
	// maxLine is the longest line in bytes that is read: a line with a recorded prompt of the
	// largest size that is accepted by default, with six bytes in JSON for each byte.
	maxLine = 64 << 20
	// maxName is the number of characters of a name that are shown.
	maxName = 80
	// maxBad is the number of broken lines that are listed.
	maxBad = 20
	// quantileError is the relative error of a percentile.
	quantileError = 0.01
)

// Source is one file of a log, optionally compressed with gzip.
type Source struct {
	Name   string // for messages
	Reader io.Reader
}

// Validate reports invalid options.
func (o *Options) Validate() error {
	for i, by := range o.By {
		if !slices.Contains(Dimensions(), by) {
			return fmt.Errorf("%q is not one of %s", by, strings.Join(Dimensions(), ", "))
		}
		if slices.Contains(o.By[:i], by) {
			return fmt.Errorf("%s is named twice", by)
		}
	}
	if o.Top < 1 || o.Top > MaxTop {
		return fmt.Errorf("%d names are not 1 to %d", o.Top, MaxTop)
	}
	if !o.Since.IsZero() && !o.Until.IsZero() && !o.Since.Before(o.Until) {
		return errors.New("nothing lies between since and until")
	}
	return nil
}

// Run reads the sources in order and summarises them. A line that cannot be read is counted and
// listed, and so is a source whose compressed data is truncated; a source that cannot be read is an
// error. progress, if not nil, is called from time to time.
func Run(ctx context.Context, sources []Source, o Options, progress func()) (*Report, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	t := newTally(&o)
	for i := range sources {
		if err := t.source(ctx, &sources[i], progress); err != nil {
			return nil, fmt.Errorf("read %s: %w", sources[i].Name, err)
		}
	}
	return t.report(), nil
}

// source reads one file.
func (t *tally) source(ctx context.Context, s *Source, progress func()) error {
	t.out.Files++
	r, err := plain(s.Reader)
	if err != nil {
		return t.damaged(s.Name+":1", err)
	}
	lines := decisionlog.NewLines(r, maxLine)
	for {
		text, err := lines.Next()
		place := func() string { return fmt.Sprintf("%s:%d", s.Name, lines.Number()) }
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case errors.Is(err, decisionlog.ErrLongLine):
			t.bad(place(), err)
		case err != nil:
			return t.damaged(fmt.Sprintf("%s:%d", s.Name, lines.Number()+1), err)
		default:
			t.line(place, text)
		}
		if lines.Number()%1024 != 0 {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err //nolint:wrapcheck // of the context
		}
		if progress != nil {
			progress()
		}
	}
}

// damaged counts the rest of a damaged compressed file as one broken line; any other error is a
// read error.
func (t *tally) damaged(place string, err error) error {
	var corrupt flate.CorruptInputError
	if errors.As(err, &corrupt) || errors.Is(err, gzip.ErrHeader) || errors.Is(err, gzip.ErrChecksum) ||
		errors.Is(err, io.ErrUnexpectedEOF) {
		t.bad(place, fmt.Errorf("the compressed file is broken here: %w", err))
		return nil
	}
	return err
}

// plain returns the decompressed content of a file that may be compressed.
func plain(r io.Reader) (io.Reader, error) {
	b := bufio.NewReaderSize(r, 64<<10)
	if magic, _ := b.Peek(2); string(magic) != "\x1f\x8b" {
		return b, nil
	}
	return gzip.NewReader(b) //nolint:wrapcheck // damaged looks at it
}

// bad counts a broken line and lists it, up to a maximum.
func (t *tally) bad(place string, why error) {
	t.out.Broken++
	if len(t.out.BadLines) < maxBad {
		t.out.BadLines = append(t.out.BadLines, fmt.Sprintf("%s: %v", place, why))
	}
}

// line counts one line; empty lines are ignored.
func (t *tally) line(place func() string, text []byte) {
	if len(text) == 0 {
		return
	}
	e, err := parse(text)
	if err != nil {
		t.bad(place(), err)
		return
	}
	if t.o.Tenant != "" && e.Request.Tenant != t.o.Tenant ||
		!t.o.Since.IsZero() && e.Time.Before(t.o.Since) || !t.o.Until.IsZero() && !e.Time.Before(t.o.Until) {
		t.out.Left++
		return
	}
	if score, ok := t.o.Ratings[rated{e.Request.Tenant, e.ID}]; ok {
		e.rating, e.isRated = score, true
	}
	t.count(e)
}

// entry holds the fields of a line that are used. Its members are those of decisionlog.Entry.
type entry struct {
	ID      string    `json:"id"`
	Version int       `json:"v"`
	Time    time.Time `json:"time"`
	Request struct {
		Model  string `json:"model"`
		Tenant string `json:"tenant"`
	} `json:"request"`
	Route   string `json:"route"`
	Outcome string `json:"outcome"`
	Action  struct {
		Verb   string `json:"verb"`
		Canary string `json:"canary"`
	} `json:"action"`
	Chosen       string                    `json:"chosen"`
	Arm          string                    `json:"arm"`
	Model        string                    `json:"model"`
	Status       int                       `json:"status"`
	Error        string                    `json:"error"`
	Operation    string                    `json:"operation"`
	Refused      int64                     `json:"refused"`
	Key          string                    `json:"key"`
	Finish       string                    `json:"finish"`
	TookMs       float64                   `json:"took_ms"`
	TTFTMs       float64                   `json:"ttft_ms"`
	Cost         float64                   `json:"cost_usd"`
	Baseline     float64                   `json:"baseline_usd"`
	Tokens       *decisionlog.Tokens       `json:"tokens"`
	Cache        string                    `json:"cache"`
	Conversation *decisionlog.Conversation `json:"conversation"`
	Escalation   *decisionlog.Escalation   `json:"escalation"`
	Mirror       *decisionlog.Mirror       `json:"mirror"`
	Guard        *decisionlog.Guard        `json:"guard"`

	// not from the log: the score of the response, if it was rated
	rating  float64
	isRated bool
}

// The largest numbers in one line that are accepted. They keep sums finite and sufficiently exact,
// however long a log is.
const (
	mostTokens = 1e12
	mostUSD    = 1e9
	mostMs     = 1e11

	mostRefused = 1e12
)

// parse reads a line.
func parse(text []byte) (*entry, error) {
	var e entry
	if err := json.Unmarshal(text, &e); err != nil {
		return nil, decisionlog.Misread(err) //nolint:wrapcheck // it says what is wrong
	}
	wrong := func(format string, args ...any) (*entry, error) {
		return nil, fmt.Errorf("%w: %s", decisionlog.ErrNotADecision, fmt.Sprintf(format, args...))
	}
	switch {
	case e.Version != decisionlog.Version:
		return wrong("its version is %d, expected %d", e.Version, decisionlog.Version)
	case e.Route == "" || e.Outcome == "" || e.Action.Verb == "":
		return wrong("route, outcome or action is missing")
	case e.Time.IsZero():
		return wrong("time is missing")
	case e.Refused < 0 || e.Refused > mostRefused:
		return wrong("refused is out of range")
	}
	if field := e.beyond(); field != "" {
		return wrong("%s is out of range", field)
	}
	return &e, nil
}

// beyond names a number that cannot be right.
func (e *entry) beyond() string {
	tokens := func(t *decisionlog.Tokens) bool {
		if t == nil {
			return true
		}
		return within(float64(t.Prompt), mostTokens) && within(float64(t.Cached), mostTokens) &&
			within(float64(t.Completion), mostTokens) && within(float64(t.Reasoning), mostTokens)
	}
	switch {
	case !tokens(e.Tokens):
		return "tokens"
	case !within(e.Cost, mostUSD):
		return "cost_usd"
	case !within(e.Baseline, mostUSD):
		return "baseline_usd"
	case !within(e.TookMs, mostMs):
		return "took_ms"
	case !within(e.TTFTMs, mostMs):
		return "ttft_ms"
	case e.Mirror != nil && !within(e.Mirror.Cost, mostUSD):
		return "mirror.cost_usd"
	}
	if e.Escalation != nil {
		for i := range e.Escalation.From {
			if x := &e.Escalation.From[i]; !tokens(&x.Tokens) || !within(x.Cost, mostUSD) {
				return fmt.Sprintf("escalation.from[%d]", i)
			}
		}
	}
	return ""
}

func within(x, most float64) bool { return x >= 0 && x <= most }

// name makes a name displayable: of limited length, on one line, without control characters.
func name(s string) string {
	if s == "" {
		return None
	}
	ok := len(s) <= maxName && utf8.ValidString(s)
	for _, r := range s {
		ok = ok && unicode.IsPrint(r)
	}
	if ok {
		return s
	}
	out := []rune(strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '\uFFFD'
	}, strings.ToValidUTF8(s, "\uFFFD")))
	if len(out) > maxName {
		out = append(out[:maxName-1], '…')
	}
	return string(out)
}
