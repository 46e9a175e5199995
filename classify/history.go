package classify

import (
	"context"
	"crypto/sha256"
	"math"
	"slices"
	"strings"
	"time"

	"signalbox/classify/lean"
	"signalbox/internal/bounded"
	"signalbox/internal/signal"
)

// inherited are the signals of a turn that depend on the subject of the conversation. The embedding
// always describes the last turn alone, because cached answers are looked up by it.
const inherited = 1<<signal.Domain | 1<<signal.Complexity | 1<<signal.FactCheck | 1<<signal.Intent

// turnVector is the vector of a turn by the model for other languages. It is not a signal and is
// never stored in a set: only the history uses it. It is computed in the pass of the other kinds.
const turnVector = signal.NumKinds + 1

// blended are those of inherited that are probabilities of labels.
const blended = inherited &^ (1 << signal.Intent)

const (
	// maxTurns is the maximum number of turns before the last that are read if their subjects are
	// not remembered, for example in a process that has just started.
	maxTurns = 4
	// nearTurns is the number of preceding turns with which a turn is compared word by word.
	nearTurns = 3
	// maxRoot limits the text of a turn that is kept for later turns, in bytes.
	maxRoot = 2 << 10
	// alikeProbability is the probability from which a turn after one in another language counts as
	// one too: short turns have few letters to decide by. Of 6,900 such turns 98 % reach it; 93 %
	// reach foreignProbability.
	alikeProbability = .3
	// wordsShare is the part of the log-odds by words alone, limited to mostByWords, that is added
	// to those of the head for other languages, which was trained on turns with few of these words.
	// Chosen on MT-bench in German and Spanish (ADR 31).
	wordsShare, mostByWords = .3, 6
	// wholeWeight is the factor for the similarity of a turn to all turns of a subject; the product
	// counts if it exceeds the similarity to the last turn. Chosen with the weights of package
	// lean.
	wholeWeight = .8
	// memosPerSubject is the number of verdicts that take as much memory as one subject.
	memosPerSubject = 32
)

// subject is the subject of a conversation after one of its turns. It is immutable once it is kept.
type subject struct {
	kinds signal.Mask // members of blended that are known
	probs [signal.NumKinds][]float32
	last  []float32 // the embedding of the turn; nil if there was none
	all   []float32 // the sum of the embeddings of its turns, with decreasing weight for older ones
	other []float32 // turnVector; nil if it was not computed
	// The turn that determines the intent, else the first turn of the subject, and its embedding.
	root       string
	rootVector []float32
	language   string
	sure       float64 // probability of language
}

// history is what the last turn of a conversation takes over from the turns before. One goroutine
// may use it at a time; a gather guards it.
type history struct {
	c       *Classifier
	req     *request
	key     digest   // of all turns including the last
	before  *subject // nil if nothing is known, and for a first turn
	near    []string // the preceding turns, at most nearTurns of them
	english bool
	asks    bool      // whether turnVector is needed
	past    []float32 // the turnVector of the preceding turn; nil if there is none

	settled bool // weight is final
	weight  float64
	held    map[signal.Kind]signal.Value // values that wait until it is
	after   subject
}

// subjects is a bounded memo of subjects, keyed by the digest of the turns that led to them. It is
// nil if nothing is to be remembered.
type subjects = bounded.Cache[*subject]

func newSubjects(memo int) *subjects {
	n := memo / memosPerSubject
	if n == 0 {
		return nil
	}
	return bounded.New[*subject](n)
}

// digestsOf returns, for each turn, the digest of all turns up to it. Its error is that of ctx.
func digestsOf(ctx context.Context, turns []string) ([]digest, error) {
	out := make([]digest, len(turns))
	var before digest
	for i, t := range turns {
		d, err := digestOf(ctx, t)
		if err != nil {
			return nil, err
		}
		both := [2 * sha256.Size]byte(append(before[:], d[:]...))
		before = sha256.Sum256(both[:])
		out[i] = before
	}
	return out, nil
}

// open begins the history of a request that needs topic signals; nil if there is nothing to take
// over or keep.
func (c *Classifier) open(ctx context.Context, req *request, need signal.Mask) *history {
	kinds := need & inherited & c.Signals()
	if kinds == 0 && !need.Has(signal.Language) || strings.TrimSpace(req.text.LastUser) == "" {
		return nil
	}
	turns := append(append(make([]string, 0, len(req.text.Before)+1), req.text.Before...), req.text.LastUser)
	keys, err := digestsOf(ctx, turns)
	if err != nil {
		return nil
	}
	n := len(turns) - 1
	// Remote models are not asked about earlier turns.
	before := c.subjectAfter(ctx, turns[:n], keys[:n], kinds&blended&^c.opts.given())
	t := c.begin(req, before, turns[:n], keys[n])
	if kinds != 0 {
		t.askAbroad(ctx)
	}
	return t
}

// begin returns the history of a turn that follows others.
func (c *Classifier) begin(req *request, before *subject, turns []string, key digest) *history {
	t := &history{
		c: c, req: req, key: key, before: before, held: make(map[signal.Kind]signal.Value),
		near: turns[max(0, len(turns)-nearTurns):],
	}
	told := req.language()
	t.english = tongueOf(told) != tongueForeign && (before == nil || before.language == "" ||
		before.language == "en" || told.Foreign < alikeProbability)
	t.after.language, t.after.sure = told.Code, told.Probability
	if told.Code == "" && before != nil {
		t.after.language, t.after.sure = before.language, before.sure
	}
	return t
}

// subjectAfter returns the subject of the conversation after the given turns, with the given kinds
// if they can be determined. It uses the remembered subject, or else reads the last maxTurns turns.
func (c *Classifier) subjectAfter(ctx context.Context, turns []string, keys []digest, kinds signal.Mask) *subject {
	first := max(0, len(turns)-maxTurns)
	var s *subject
	for i := len(turns) - 1; i >= first && c.subjects != nil; i-- {
		if known, ok := c.subjects.Get(bounded.Key(keys[i])); ok && kinds&^known.kinds == 0 {
			s, first = known, i+1
			break
		}
	}
	for i := first; i < len(turns); i++ {
		if strings.TrimSpace(turns[i]) == "" {
			continue
		}
		req := newRequest(&signal.Text{LastUser: turns[i]}, bestWindows, &c.opts)
		t := c.begin(req, s, turns[:i], keys[i])
		t.askAbroad(ctx)
		var set signal.Set
		c.extractTurn(ctx, req, kinds|signal.MaskOf(signal.Embedding), &set, nil, t)
		if ctx.Err() != nil {
			return nil
		}
		s = &t.after
	}
	return s
}

// isAbroad reports whether the model for other languages determines how far the turn follows the
// one before.
func (t *history) isAbroad() bool { return !t.english && t.c.abroad != nil }

// askAbroad makes the pass of a turn in another language compute its turnVector, unless it is
// known, and requests that of the preceding turn if it is missing.
func (t *history) askAbroad(ctx context.Context) {
	if !t.isAbroad() {
		return
	}
	if s := t.c.subjects; s != nil {
		if have, ok := s.Get(bounded.Key(t.key)); ok {
			t.after.other = have.other
		}
	}
	t.asks = t.after.other == nil
	if t.before == nil {
		return
	}
	if t.past = t.before.other; t.past == nil {
		if vectors, err := t.c.abroad.Embed(ctx, t.near[len(t.near)-1:]); err == nil {
			t.past = vectors[0]
		}
	}
}

// settle determines how far the turn follows the one before. embedding is that of the turn; it is
// unknown if it is not available.
func (t *history) settle(embedding *signal.Value) {
	if t.settled {
		return
	}
	t.settled = true
	if embedding != nil && embedding.State == signal.Known {
		t.after.last = embedding.Vector
	}
	v := t.after.last
	t.after.root, t.after.rootVector, t.after.all = head(t.req.text.LastUser, maxRoot), v, v
	b := t.before
	if b == nil {
		return
	}
	near := make([]*lean.Turn, len(t.near))
	for i, text := range t.near {
		near[i] = lean.Read(text)
	}
	t.weight = lean.Weight(t.logOdds(near, v))
	if t.weight < .5 {
		return
	}
	if !t.begins() {
		t.after.root, t.after.rootVector = b.root, b.rootVector
	}
	if len(v) == 0 || len(v) != len(b.all) {
		t.after.all = b.all
		return
	}
	t.after.all = make([]float32, len(v))
	for i := range v {
		t.after.all[i] = v[i] + float32(t.weight)*b.all[i]
	}
}

// logOdds returns the log-odds that the turn follows the preceding ones. near are the closest of
// these; v is the embedding of the turn, nil if there is none.
func (t *history) logOdds(near []*lean.Turn, v []float32) float64 {
	turn, b := lean.Read(t.req.text.LastUser), t.before
	switch {
	case t.after.other != nil && t.past != nil:
		words := max(-mostByWords, min(turn.LogOdds(near, lean.NoCosine), mostByWords))
		return t.c.abroad.turns.LogOdds(turn, near, lean.NoCosine, t.after.other, t.past) + wordsShare*words
	case !t.english || len(v) == 0 || len(v) != len(b.last):
		return turn.LogOdds(near, lean.NoCosine)
	}
	nearest := max(cosine(v, b.last), wholeWeight*cosine(v, b.all))
	if h := t.c.turns; h != nil && h.Dims() == len(v) {
		return h.LogOdds(turn, near, nearest, v, b.last)
	}
	return turn.LogOdds(near, nearest)
}

// take combines a value with the subject of the conversation, and remembers the result. The history
// must be settled, or have nothing before it.
func (t *history) take(k signal.Kind, v signal.Value) signal.Value {
	switch {
	case v.State != signal.Known || inherited&signal.MaskOf(k) == 0:
		return v
	case k == signal.Intent:
		return t.intent(v)
	}
	if b := t.before; b != nil && len(b.probs[k]) == len(v.Probs) && t.weight > 0 {
		v = mixed(&v, b.probs[k], t.share(k, &v))
	}
	t.after.probs[k] = v.Probs
	t.after.kinds |= signal.MaskOf(k)
	return v
}

// noSubject is the label of domain that only means that no other label applies.
const noSubject = "other"

// share returns the weight of the preceding turns in a value. A turn that follows them and has no
// subject of its own takes over theirs.
func (t *history) share(k signal.Kind, v *signal.Value) float64 {
	if i := slices.Index(v.Labels, noSubject); k == signal.Domain && t.weight >= .5 && i >= 0 {
		return t.weight + (1-t.weight)*float64(v.Probs[i])
	}
	return t.weight
}

// mixed returns v with its probabilities combined geometrically: before to the power of weight
// times its own to the power of 1-weight, normalised.
func mixed(v *signal.Value, before []float32, weight float64) signal.Value {
	out := *v
	logs, sum, best := make([]float64, len(before)), 0.0, 0
	for i := range logs {
		p, q := max(float64(before[i]), leastProbability), max(float64(v.Probs[i]), leastProbability)
		logs[i] = math.Exp(weight*math.Log(p) + (1-weight)*math.Log(q))
		if sum += logs[i]; logs[i] > logs[best] {
			best = i
		}
	}
	out.Probs = make([]float32, len(logs))
	for i, p := range logs {
		out.Probs[i] = float32(p / sum)
	}
	out.Label, out.Score, out.Leans = v.Labels[best], min(logs[best]/sum, 1), float32(weight)
	return out
}

// begins reports whether a turn that follows the preceding ones nevertheless has an intent that is
// clearer than theirs. Later turns then follow this one.
func (t *history) begins() bool {
	x, v := t.c.opts.Intents, t.after.rootVector
	if x == nil || len(v) == 0 {
		return false
	}
	own, err := x.Lookup(t.after.root, v)
	if err != nil || own.Intent == "" || len(t.before.rootVector) == 0 {
		return err == nil && own.Intent != ""
	}
	r, err := x.Lookup(t.before.root, t.before.rootVector)
	return err != nil || r.Intent == "" || own.Score >= r.Score
}

// intent returns the intent of the turn that determined the subject, if this turn follows it and
// has a less certain intent. If neither has an intent, that is taken over as well.
func (t *history) intent(v signal.Value) signal.Value {
	if t.before == nil || t.weight < .5 {
		return v
	}
	out := v
	if v.Label == "" {
		out.Leans = float32(t.weight)
	}
	if len(t.before.rootVector) == 0 {
		return out
	}
	start := time.Now()
	r, err := t.c.opts.Intents.Lookup(t.before.root, t.before.rootVector)
	if err != nil || r.Intent == "" || v.Label != "" && v.Score >= r.Score {
		return out
	}
	out.Label, out.Score, out.Probs, out.Leans = r.Intent, r.Score, r.Scores, float32(t.weight)
	out.Elapsed += time.Since(start)
	return out
}

// remember stores the subject of the conversation after this turn.
func (t *history) remember() {
	// nothing is known, or nothing was waited for
	if t.c.subjects == nil || len(t.after.last) == 0 &&
		(t.after.kinds == 0 || t.c.Signals().Has(signal.Embedding)) ||
		// by words alone; would differ with the vectors
		t.before != nil && t.isAbroad() && (t.after.other == nil || t.past == nil) {
		return
	}
	s := t.after
	if have, ok := t.c.subjects.Get(bounded.Key(t.key)); ok {
		more := have.kinds &^ s.kinds
		if s.kinds&^have.kinds == 0 && (have.other != nil || s.other == nil) {
			return
		}
		if s.other == nil {
			s.other = have.other
		}
		for _, k := range more.Kinds() {
			s.probs[k] = have.probs[k]
		}
		s.kinds |= more
	}
	t.c.subjects.Set(bounded.Key(t.key), &s)
}

// head returns the first n bytes of s, or s if it is shorter.
func head(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.Clone(strings.ToValidUTF8(s[:n], ""))
}

// cosine returns the cosine of two vectors of equal length, or 0 if one has no direction.
func cosine(a, b []float32) float64 {
	var dot, aa, bb float64
	for i := range a {
		x, y := float64(a[i]), float64(b[i])
		dot, aa, bb = dot+x*y, aa+x*x, bb+y*y
	}
	if aa == 0 || bb == 0 {
		return 0
	}
	return dot / math.Sqrt(aa*bb)
}
