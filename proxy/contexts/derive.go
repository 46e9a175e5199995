package contexts

import (
	"context"
	"crypto/sha256"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"signalbox/internal/signal"
	"signalbox/memory"
)

// DeriverOptions configures a Deriver. Functions must be safe for concurrent use and are required
// unless noted otherwise.
type DeriverOptions struct {
	// Read sets every kind in need, from the whole text; see the proxy's Classifier.
	Read func(ctx context.Context, text *signal.Text, need signal.Mask, set *signal.Set)
	// Needs returns the signals that texts are read for, among jailbreak, injection and pii.
	// jailbreak is pointless if it does not read data. nil means all of them.
	Needs func() signal.Mask
	// Able returns the signals that have a model. If Read lacks one of them, the model is
	// temporarily unavailable and a later attempt may succeed. nil means none.
	Able func() signal.Mask
	// Selected reports whether a value read from a selection of windows counts, as for prompts. nil
	// means never, so that a text is known only after every window was read.
	Selected func() bool
	// Skeleton returns a shortened form of the text.
	Skeleton func(ctx context.Context, text string) (string, error)
	// Count asks servers of the models, or of every model when none is named, for the number of
	// tokens in a text, and returns the counts that arrived in time.
	Count func(ctx context.Context, text string, models []string) map[string]int
	// Timeout limits one derivation.
	Timeout time.Duration
	// Revision identifies what Read is based on.
	Revision string
}

// Deriver computes the derived data of texts.
type Deriver struct {
	o        DeriverOptions
	revision atomic.Pointer[string]
	seats    chan struct{} // one element per derivation in progress; when full, the next one waits
	known    recent
}

// NewDeriver returns a Deriver. It uses half of the cores, so that the others remain for requests.
func NewDeriver(o DeriverOptions) *Deriver {
	d := &Deriver{o: o, seats: make(chan struct{}, max(1, runtime.GOMAXPROCS(0)/2))}
	d.revision.Store(&o.Revision)
	return d
}

// Revise announces that Read has changed.
func (d *Deriver) Revise(revision string) { d.revision.Store(&revision) }

// Derive computes the derived data of a text. What could not be read, or not in time, is unknown
// and makes the result partial. The only error is that of ctx.
func (d *Deriver) Derive(ctx context.Context, t memory.Text) (memory.Derived, error) {
	var counted map[string]int
	var counting sync.WaitGroup
	counting.Go(func() { counted = d.o.Count(ctx, t.Text, t.Models) })
	verdicts, whole := d.verdicts(ctx, t)
	skeleton, err := d.o.Skeleton(ctx, t.Text)
	counting.Wait()
	if ctx.Err() != nil {
		return memory.Derived{}, fmt.Errorf("read context: %w", ctx.Err())
	}
	if err != nil {
		return memory.Derived{}, fmt.Errorf("shorten context: %w", err)
	}
	raw, err := verdicts.Encode()
	if err != nil {
		return memory.Derived{}, err
	}
	return memory.Derived{Tokens: counted, Verdicts: raw, Skeleton: skeleton, Partial: !whole}, nil
}

// The pieces in which a text is read. They overlap by more than the window of any model, so text at
// a cut is whole in one of them. A cut depends only on the text before it: when a text has grown,
// only its end is read again.
const (
	pieceBytes   = 16 << 10
	overlapBytes = 2 << 10
)

// cut returns the end of the piece that begins at from and the beginning of the next one, which is
// the length of the text when there is none.
func cut(text string, from int) (end, next int) {
	if len(text)-from <= pieceBytes {
		return len(text), len(text)
	}
	end = wordAt(text, from+pieceBytes)
	return end, wordAt(text, end-overlapBytes)
}

// wordAt moves a position back to just after white space, or at least to the start of a character.
func wordAt(text string, at int) int {
	const far = 256
	if i := strings.LastIndexAny(text[at-far:at], " \t\n"); i >= 0 {
		return at - far + i + 1
	}
	for at > 0 && !utf8.RuneStart(text[at]) {
		at--
	}
	return at
}

// verdicts reads a text piece by piece. whole is false when something is unknown that a later
// attempt may find.
func (d *Deriver) verdicts(ctx context.Context, t memory.Text) (all Verdicts, whole bool) {
	ctx, cancel := context.WithTimeout(ctx, d.o.Timeout)
	defer cancel()
	select {
	case d.seats <- struct{}{}:
		defer func() { <-d.seats }()
	case <-ctx.Done():
		return Verdicts{}, false
	}
	whole = true
	for from, first := 0, true; first || from < len(t.Text); first = false {
		end, next := cut(t.Text, from)
		v, lasting := d.piece(ctx, t.Tenant, t.Text[from:end])
		whole = whole && lasting
		if from = next; first {
			all = v
		} else {
			all = all.Merge(v)
		}
		if !lasting && all.Jailbreak == nil && all.Injection == nil && all.PII == nil {
			return all, false // no later piece can change the result
		}
	}
	return all, whole
}

const safety = 1<<signal.Jailbreak | 1<<signal.Injection | 1<<signal.PII

// needs returns the signals that texts are read for.
func (d *Deriver) needs() signal.Mask {
	if d.o.Needs == nil {
		return safety
	}
	return d.o.Needs() & safety
}

// piece reads one piece unless it was read before. lasting is false when another attempt may find
// more.
func (d *Deriver) piece(ctx context.Context, tenant, text string) (v Verdicts, lasting bool) {
	k := pieceKey{text: sha256.Sum256([]byte(text)), tenant: tenant, revision: *d.revision.Load()}
	if v, ok := d.known.find(k); ok {
		return v, true
	}
	var set signal.Set
	need, read := d.needs(), signal.Segment{Role: "user", Text: text, Origin: signal.OriginData}
	d.o.Read(ctx, &signal.Text{LastUser: text, Segments: []signal.Segment{read}}, need, &set)
	v, lasting = d.of(&set), true
	for _, kind := range need.Kinds() {
		lasting = lasting && d.settled(kind, set.Value(kind))
	}
	if lasting {
		d.known.add(k, v)
	}
	return v, lasting
}

// of returns the verdicts in a set.
func (d *Deriver) of(set *signal.Set) Verdicts {
	if d.o.Selected != nil && d.o.Selected() {
		return VerdictsOfSelection(set)
	}
	return VerdictsOf(set)
}

// settled reports whether another reading would give the same: there is a value, no model for one,
// or nothing to read.
func (d *Deriver) settled(kind signal.Kind, v *signal.Value) bool {
	switch v.State {
	case signal.Known:
		return true
	case signal.Unknown:
		away := d.o.Able != nil && d.o.Able().Has(kind)
		return v.Reason == signal.ReasonNoModel && !away || v.Reason == signal.ReasonNoText
	case signal.NotExtracted:
	}
	return false
}

// pieceKey identifies a piece that was read. Tenants share none, since response times would reveal
// what others have stored.
type pieceKey struct {
	text             [sha256.Size]byte
	tenant, revision string
}

// mostPieces is the maximum number of pieces remembered; half of them are dropped at once.
const mostPieces = 1 << 14

// recent remembers the verdicts of at least the last mostPieces/2 pieces.
type recent struct {
	mu         sync.Mutex // guards the fields below
	young, old map[pieceKey]Verdicts
}

func (r *recent) find(k pieceKey) (Verdicts, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	v, ok := r.young[k]
	if !ok {
		if v, ok = r.old[k]; ok {
			r.put(k, v)
		}
	}
	return v, ok
}

func (r *recent) add(k pieceKey, v Verdicts) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.put(k, v)
}

// put adds an entry. The caller holds mu.
func (r *recent) put(k pieceKey, v Verdicts) {
	if r.young == nil || len(r.young) >= mostPieces/2 {
		r.old, r.young = r.young, map[pieceKey]Verdicts{}
	}
	r.young[k] = v
}
