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

// inherited are the signals that say of a turn what the conversation is about. The embedding is
// that of the last turn alone: cached answers are found by it.
const inherited = 1<<signal.Domain | 1<<signal.Complexity | 1<<signal.FactCheck | 1<<signal.Intent

// turnVector is what the model for other languages says of a turn. It is no signal and in no set: it is
// for the history alone, and the pass that gives the other kinds gives it.
const turnVector = signal.NumKinds + 1

// blended are those of them that are probabilities of labels.
const blended = inherited &^ (1 << signal.Intent)

const (
	// maxTurns is how many turns before the last are read at most where what they say is not
	// remembered, as in a process that has just started.
	maxTurns = 4
	// nearTurns is with how many turns before it a turn is compared word by word.
	nearTurns = 3
	// maxRoot bounds the text of a turn that is kept for the turns that follow it, in bytes.
	maxRoot = 2 << 10
	// alikeProbability is from which probability a turn behind one in another language counts as one
	// too: short ones have few letters to tell by. Of 6,900 such turns 98 % do, 93 % by
	// foreignProbability.
	alikeProbability = .3
	// wordsShare is how much of the log-odds by words alone, of at most mostByWords, is added to those
	// of the head for other languages, which learnt turns that have few of these words. Chosen on
	// MT-bench in German and Spanish (ADR 31).
	wordsShare, mostByWords = .3, 6
	// wholeWeight is how close to all turns of a subject a turn may be instead of to the last one
	// alone; chosen with the weights of package lean.
	wholeWeight = .8
	// memosPerSubject is how many verdicts take the room of one subject.
	memosPerSubject = 32
)

// subject is what a conversation is about after one of its turns. It is not changed once it is
// kept.
type subject struct {
	kinds signal.Mask // of blended that were told
	probs [signal.NumKinds][]float32
	last  []float32 // the embedding of the turn; nil where there was none
	all   []float32 // the sum of the embeddings of its turns, older ones fading
	other []float32 // turnVector; nil where it was not asked for
	// The turn that says its intent, else the one that began it, and its embedding.
	root       string
	rootVector []float32
	language   string
	sure       float64 // of language
}

// history is what the last turn of a conversation takes over from the turns before. It is for one
// goroutine at a time: a gather guards it.
type history struct {
	c       *Classifier
	req     *request
	key     digest   // of the turns, the last one included
	before  *subject // nil where nothing is known, and for a first turn
	near    []string // the turns before the last, at most nearTurns of them
	english bool
	asks    bool      // for the turnVector, that of
	past    []float32 // the turn before; nil where there is none

	settled bool // weight holds
	weight  float64
	held    map[signal.Kind]signal.Value // until it does
	after   subject
}

// subjects is a bounded memo of subjects by the digest of the turns that led to them. It is nil
// where nothing is to be remembered.
type subjects = bounded.Cache[*subject]

func newSubjects(memo int) *subjects {
	n := memo / memosPerSubject
	if n == 0 {
		return nil
	}
	return bounded.New[*subject](n)
}

// digestsOf returns the digest of the turns up to each of them. Its error is that of ctx.
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

// open begins the history of a request whose topic signals are asked for; nil where nothing can be
// taken over or kept.
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
	// No server is asked about the past.
	before := c.subjectAfter(ctx, turns[:n], keys[:n], kinds&blended&^c.opts.given())
	t := c.begin(req, before, turns[:n], keys[n])
	if kinds != 0 {
		t.askAbroad(ctx)
	}
	return t
}

// begin returns the history of a turn behind others.
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

// subjectAfter returns what the conversation is about after the turns, with the given kinds as far
// as they can be told: what is remembered, or else what the last maxTurns of the turns say.
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

// isAbroad reports whether the model for other languages tells what the turn follows.
func (t *history) isAbroad() bool { return !t.english && t.c.abroad != nil }

// askAbroad makes the pass of a turn in another language give its turnVector, unless it is known, and
// asks for that of the turn before where it is not.
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

// settle finds out how far the turn follows the one before. The embedding is that of the turn, and
// unknown where it is not to be had.
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

// logOdds are those of the turn following the ones before it: near are the nearest of them, v is its
// embedding, nil where there is none.
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

// take returns what a value becomes beside what the conversation was about, and remembers it. The
// history is settled, or nothing was before.
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

// noSubject is the label of domain that says only what a text is not about.
const noSubject = "other"

// share is how much the turns before count in a value. A turn that follows them and has no subject of
// its own takes over theirs.
func (t *history) share(k signal.Kind, v *signal.Value) float64 {
	if i := slices.Index(v.Labels, noSubject); k == signal.Domain && t.weight >= .5 && i >= 0 {
		return t.weight + (1-t.weight)*float64(v.Probs[i])
	}
	return t.weight
}

// mixed returns v with the probabilities before to the power of weight times its own to the power
// of the rest.
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

// begins reports whether a turn that leans on those before says an intent all the same, and more
// clearly than they: then it is the one that later turns follow.
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

// intent returns that of the turn which the subject has it from, where this one follows it and says
// less. Where neither has one, that is taken over as well.
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

// remember notes what the conversation is about now.
func (t *history) remember() {
	if t.c.subjects == nil || len(t.after.last) == 0 && // nothing is known, or it was not waited for
		(t.after.kinds == 0 || t.c.Signals().Has(signal.Embedding)) ||
		t.before != nil && t.isAbroad() && (t.after.other == nil || t.past == nil) { // by words alone: another time otherwise
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

// head is the front of s, at most n bytes of it.
func head(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.Clone(strings.ToValidUTF8(s[:n], ""))
}

// cosine of two vectors of one length; 0 where one has no direction.
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
