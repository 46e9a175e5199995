package classify

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"signalbox/classify/language"
	"signalbox/classify/pii"
	"signalbox/classify/scan"
	"signalbox/classify/tokenize"
	"signalbox/internal/signal"
)

// maxBytesPerToken is roughly the number of bytes per token of WordPiece or byte-pair vocabularies
// in English. The windows of the scan have at most this many bytes for every token of a row.
const maxBytesPerToken = 4

// Samples of a text that are tokenised to estimate the length of its tokens.
const (
	samples     = 12
	sampleBytes = 256
)

// wholeBytesPerToken is a number of bytes per token that prose does not reach. Texts with more than
// this for every token that may be read completely go to the scan without counting tokens.
const wholeBytesPerToken = 16

const (
	// wholeWindows is the maximum number of windows of a text that is read completely.
	wholeWindows = 3
	// mostWindows is the maximum number of windows that the scan selects from one text, however
	// long. From its twin the scan selects wholeWindows, among those that do not occur in the text.
	mostWindows = 10
	// personalWindows is the number of additional windows read for personal data.
	personalWindows = 2
)

// worthReading returns how many of the n windows of a text are read, those that the scan ranks
// first. It is 3 up to 32 windows, which are some 12,000 characters, and grows by two with every
// doubling: 5 of 64, 9 of 256, and 10 of any more.
func worthReading(n int) int {
	if n <= wholeWindows {
		return n
	}
	return min(max(wholeWindows, wholeWindows+int(2*(math.Log2(float64(n))-5))), mostWindows)
}

// foreignTimes is the factor for the number of windows that a source for other languages reads: it
// takes a fifth of the time, and the scan, which works best for English, ranks its windows less
// well.
const foreignTimes = 4

// most returns how many of the n windows of a text the pass reads.
func (p *pass) most(n int) int {
	if p.foreign {
		return min(foreignTimes*worthReading(n), n)
	}
	return worthReading(n)
}

// safetyPlan is the text that the safety signals of a pass read; they share it.
type safetyPlan struct {
	laid     bool
	all      bool // every window is read
	size     int  // length of a window in tokens
	stride   int
	portions []portion
	hits     []hit
	picks    []pick

	windows    []scan.Window
	candidates []candidate
	order      []int32
}

// portion is a unit and the parts of it that are read.
type portion struct {
	unit      *unit
	kinds     signal.Mask // the signals of the pass that read it
	missing   signal.Mask // those of them without a remembered verdict
	hits      span        // in safetyPlan.hits
	picks     span        // in safetyPlan.picks
	raw, twin reach
	// The limit per request left windows out; the verdict is not remembered.
	cut   bool
	score float32 // the highest score of its windows in the scan, if that was used
}

// reach is how much of a text is read.
type reach struct {
	selected bool
	windows  int // if selected: number of windows that cover the text
}

// hit is a remembered verdict of a signal.
type hit struct {
	kind signal.Kind
	memory
}

// pick is a reading of a portion: a window or the whole text.
type pick struct {
	reading int32
	twin    bool
	attack  bool // for every signal, else for personal data alone
}

// share is the part of one portion that one task reads.
type share struct {
	portion  int32
	reads    span // in pass.reads
	close    span // in pass.reads: the second look at one of its windows
	windows  int  // number of windows that cover the text and its twin
	covering int  // those of them that cover the text
	read     int  // number of windows read
	hit      int32
}

// noHit is the hit of a share without a remembered verdict.
const noHit = -1

// candidate is a window that the graph may read.
type candidate struct {
	start, end int // bytes in the text
	score      float32
	nominated  int // number of bytes that may be personal data
	attack     bool
}

// planSafety makes task i read its units: the text as written, and for attacks also its normalised
// twin.
func (p *pass) planSafety(ctx context.Context, i int, need signal.Mask) error {
	if !p.safe.laid {
		if err := p.laySafety(ctx, need); err != nil {
			return err
		}
		p.safe.laid = true
	}
	t := &p.e.tasks[i]
	plan := taskPlan{task: i, reads: span{from: len(p.reads)}, shares: span{from: len(p.shares)}}
	for k := range p.safe.portions {
		q := &p.safe.portions[k]
		if !q.kinds.Has(t.kind) {
			continue
		}
		s, err := p.share(ctx, i, int32(k))
		if err != nil {
			return err
		}
		plan.windows, plan.read = plan.windows+s.windows, plan.read+s.read
		p.shares = append(p.shares, s)
	}
	plan.reads.to, plan.shares.to = len(p.reads), len(p.shares)
	if plan.windows == 0 {
		plan.failed = signal.ReasonNoText
	}
	p.plans = append(p.plans, plan)
	return nil
}

// share makes task i read portion k, unless its verdict is remembered. Its error is that of ctx.
func (p *pass) share(ctx context.Context, i int, k int32) (share, error) {
	t, q := &p.e.tasks[i], &p.safe.portions[k]
	for h := q.hits.from; h < q.hits.to; h++ {
		if m := &p.safe.hits[h]; m.kind == t.kind {
			return share{
				portion: k, windows: m.windows, covering: m.covering, read: m.read,
				hit: int32(h),
			}, nil
		}
	}
	s := share{portion: k, reads: span{from: len(p.reads)}, hit: noHit}
	attack := attackKinds.Has(t.kind)
	for _, w := range p.safe.picks[q.picks.from:q.picks.to] {
		if attack && !w.attack || !attack && w.twin {
			continue
		}
		n, err := p.cover(ctx, i, w.reading, q)
		if err != nil {
			return s, err
		}
		s.read += n
		if w.twin && !q.twin.selected {
			s.windows += n
		} else if !w.twin && !q.raw.selected {
			s.covering += n
		}
	}
	if q.raw.selected {
		s.covering = q.raw.windows
	}
	if s.windows += s.covering; attack && q.twin.selected {
		s.windows += q.twin.windows
	}
	s.reads.to = len(p.reads)
	return s, nil
}

// cover makes task i read every window of a reading of a portion, and returns their number. In a
// long text a task that finds personal data skips the windows that have no letters outside of the
// matches of patterns. Its error is that of ctx.
func (p *pass) cover(ctx context.Context, i int, reading int32, q *portion) (int, error) {
	r := &p.readings[reading]
	if len(r.enc.IDs) == 0 {
		return 0, nil
	}
	t := &p.e.tasks[i]
	cut := p.e.tokens.Windows(len(r.enc.IDs), t.Window.Tokens, t.Window.Stride)
	var found []pii.Span
	spared := t.decoder != nil && cut.Len() > wholeWindows
	if spared {
		var err error
		if found, err = pii.PatternsContext(ctx, q.unit.text, nil); err != nil {
			return 0, err
		}
	}
	for k := range cut.Len() {
		from, to := cut.At(k)
		if spared {
			start, end := r.key.base+int(r.enc.Start[from]), r.key.base+int(r.enc.End[to-1])
			for len(found) > 0 && found[0].End <= start {
				found = found[1:]
			}
			if !speaks(q.unit.text, start, end, found) {
				continue
			}
		}
		p.addPart(i, reading, from, to)
	}
	return cut.Len(), nil
}

// speaks reports whether bytes [start,end) of a text contain a letter outside of the given spans,
// which are in the order of the text and do not overlap.
func speaks(text string, start, end int, spans []pii.Span) bool {
	letter := func(s string) bool { return strings.IndexFunc(s, unicode.IsLetter) >= 0 }
	for _, s := range spans {
		if s.Start >= end {
			break
		}
		if s.Start > start && letter(text[start:s.Start]) {
			return true
		}
		start = max(start, s.End)
	}
	return start < end && letter(text[start:end])
}

// laySafety makes the readings of the safety signals in need. For every unit without a remembered
// verdict these are the whole text and its twin, or a selection of windows if there are many and a
// scan can rank them. The selection depends on the text of the unit alone, unless the units
// together exceed the limit per request: then the newest is read first, followed by those that the
// scan ranks highest.
func (p *pass) laySafety(ctx context.Context, need signal.Mask) error {
	s := &p.safe
	s.size, s.stride = p.safetyWindow(need)
	s.all = p.req.extent == everyWindow || p.scanner() == nil
	cost, err := p.layPortions(ctx, need)
	if err != nil {
		return err
	}
	left := math.MaxInt
	if !s.all && len(s.order) > 1 {
		most := p.opts.Windows * s.size
		if p.foreign {
			most *= foreignTimes
		}
		if cost > most {
			left = most
			if err := p.rank(ctx); err != nil {
				return err
			}
		}
	}
	newest := s.newest()
	for _, k := range s.order {
		room := left
		if s.portions[k].unit.segment == newest {
			room = math.MaxInt
		}
		used, err := p.lay(ctx, &s.portions[k], room)
		if err != nil {
			return err
		}
		left -= used
	}
	return nil
}

// layPortions makes the portions, orders those that have to be read, and returns an estimate of
// their number of tokens, rather too high.
func (p *pass) layPortions(ctx context.Context, need signal.Mask) (cost int, err error) {
	s := &p.safe
	for i := range p.req.units {
		u := &p.req.units[i]
		kinds := u.kinds & need
		if kinds == 0 || p.foreign && u.tongue < tongueMixed {
			continue
		}
		s.portions = append(s.portions, portion{unit: u, kinds: kinds, missing: kinds})
		q := &s.portions[len(s.portions)-1]
		if err := p.recall(ctx, q); err != nil {
			return 0, err
		}
		if q.missing != 0 {
			s.order = append(s.order, int32(len(s.portions)-1))
			cost += p.guess(len(u.text))
		}
	}
	return cost, nil
}

// guess estimates the number of tokens that are read of a text of n bytes, rather too high.
func (p *pass) guess(n int) int {
	tokens := n/2 + 2
	if windows := tokens / p.safe.stride; windows > wholeWindows {
		return p.most(windows) * p.safe.size
	}
	return tokens
}

// rank orders the portions that have to be read: the newest first, then by their score in the scan.
func (p *pass) rank(ctx context.Context) error {
	s := &p.safe
	size, stride := s.size*maxBytesPerToken, s.stride*maxBytesPerToken
	for _, k := range s.order {
		q := &s.portions[k]
		texts := [2]string{q.unit.text}
		var err error
		if q.kinds&attackKinds != 0 {
			if texts[1], err = q.unit.normalised(ctx); err != nil {
				return err
			}
		}
		for _, text := range texts {
			s.windows, err = p.scanner().Windows(ctx, text, size, stride, s.windows[:0])
			if err != nil {
				return err
			}
			for _, w := range s.windows {
				q.score = max(q.score, w.Score)
			}
		}
	}
	newest := s.newest()
	slices.SortStableFunc(s.order, func(a, b int32) int {
		x, y := &s.portions[a], &s.portions[b]
		return cmp.Or(
			first(x.unit.segment == newest, y.unit.segment == newest),
			first(x.kinds&attackKinds != 0, y.kinds&attackKinds != 0),
			cmp.Compare(y.score, x.score),
		)
	})
	return nil
}

// first orders true before false.
func first(x, y bool) int {
	switch {
	case x && !y:
		return -1
	case y && !x:
		return 1
	}
	return 0
}

// newest returns the segment that is read first regardless of its cost: the last one of the user
// that signals about attacks read, else the last one that they read, else the last; -1 if there is
// none.
func (s *safetyPlan) newest() int {
	last, attacked := -1, -1
	for _, k := range s.order {
		q := &s.portions[k]
		last = max(last, q.unit.segment)
		if q.kinds&attackKinds == 0 {
			continue
		}
		attacked = max(attacked, q.unit.segment)
	}
	said := -1
	for _, k := range s.order {
		u := s.portions[k].unit
		if s.portions[k].kinds&attackKinds != 0 && u.origin == signal.OriginUser {
			said = max(said, u.segment)
		}
	}
	switch {
	case said >= 0:
		return said
	case attacked >= 0:
		return attacked
	}
	return last
}

// lay makes the readings of a portion, of at most room tokens in total, and returns their number of
// tokens.
func (p *pass) lay(ctx context.Context, q *portion, room int) (used int, err error) {
	q.picks.from = len(p.safe.picks)
	defer func() { q.picks.to = len(p.safe.picks) }()
	used, err = p.layText(ctx, q, q.unit.text, &q.raw, room)
	if err != nil || q.kinds&attackKinds == 0 {
		return used, err
	}
	text, err := q.unit.normalised(ctx)
	if err != nil || text == "" {
		return used, err
	}
	more, err := p.layText(ctx, q, text, &q.twin, room-used)
	return used + more, err
}

// layText makes the readings of the text of a portion, or of its twin, as selected by r.
func (p *pass) layText(
	ctx context.Context, q *portion, text string, r *reach, room int,
) (used int, err error) {
	s := &p.safe
	of := safety
	if r == &q.twin {
		of = twin
	}
	if !s.all && len(text) > wholeWindows*s.size*wholeBytesPerToken {
		return p.layWindows(ctx, q, text, r, of, room)
	}
	reading, at := p.reading(readingKey{source: of})
	if err := p.encode(ctx, text, &reading.enc); err != nil {
		return 0, err
	}
	n := p.e.tokens.Windows(len(reading.enc.IDs), s.size, s.stride).Len()
	if !s.all && n > wholeWindows {
		p.read-- // its slices are reused
		return p.layWindows(ctx, q, text, r, of, room)
	}
	if used = len(reading.enc.IDs) + n*p.e.specials; used > room {
		p.read--
		r.selected, r.windows, q.cut = true, n, true
		return 0, nil
	}
	s.picks = append(s.picks, pick{reading: at, twin: of == twin, attack: true})
	return used, nil
}

// layWindows makes readings of the windows of a text that are worth reading.
func (p *pass) layWindows(
	ctx context.Context, q *portion, text string, r *reach, of source, room int,
) (used int, err error) {
	s := &p.safe
	same, from := 0, len(text)
	kinds := q.kinds
	if of == twin {
		kinds &= attackKinds
		same, from = shared(q.unit.text, text)
	}
	if err := p.rankWindows(ctx, text, same, from); err != nil {
		return 0, err
	}
	if p.foreign && q.unit.tongue == tongueMixed {
		s.keepOtherScripts(text)
	}
	r.selected, r.windows = true, len(s.candidates)
	if kinds.Has(signal.PII) {
		if err := nominate(ctx, s.candidates, text); err != nil {
			return 0, err
		}
	}
	most := p.most(len(s.candidates))
	if of == twin {
		most = min(most, wholeWindows)
	}
	for _, at := range choose(s.candidates, kinds, most) {
		if used+s.size > room {
			q.cut = true
			break
		}
		c := &s.candidates[at]
		reading, index := p.reading(readingKey{source: of, base: c.start})
		if err := p.encode(ctx, text[c.start:c.end], &reading.enc); err != nil {
			return 0, err
		}
		fitRow(&reading.enc, s.size-p.e.specials, s.size-s.stride, c.start == 0, c.end == len(text))
		s.picks = append(s.picks, pick{reading: index, twin: of == twin, attack: c.attack})
		used += s.size
	}
	return used, nil
}

// rankWindows makes candidates of the windows of a text that overlap bytes [from,to).
func (p *pass) rankWindows(ctx context.Context, text string, from, to int) (err error) {
	s := &p.safe
	unit := p.bytesPerToken(text)
	size, stride := int(unit*float64(s.size)), int(unit*float64(s.stride))
	s.windows, err = p.scanner().Windows(ctx, text, size, stride, s.windows[:0])
	s.candidates = s.candidates[:0]
	for _, w := range s.windows {
		if w.End > from && w.Start < to {
			s.candidates = append(s.candidates, candidate{
				start: w.Start, end: w.End,
				score: w.Score,
			})
		}
	}
	return err
}

// keepOtherScripts keeps only the candidates with words in another script than Latin, if there are
// any: a source for other languages has nothing to say about the rest.
func (s *safetyPlan) keepOtherScripts(text string) {
	n := 0
	for _, c := range s.candidates {
		if language.HoldsOtherScript(text[c.start:c.end]) {
			s.candidates[n] = c
			n++
		}
	}
	if n > 0 {
		s.candidates = s.candidates[:n]
	}
}

// shared returns the length in bytes of the common beginning of a text and its twin, and the
// position in the twin where their common end begins.
func shared(text, twin string) (head, tail int) {
	n := min(len(text), len(twin))
	for head < n && text[head] == twin[head] {
		head++
	}
	end := 0
	for end < n-head && text[len(text)-1-end] == twin[len(twin)-1-end] {
		end++
	}
	return head, len(twin) - end
}

// choose returns the windows of a text that signals of kinds read, most important first: up to most
// windows that the scan ranks highest, then, for personal data, those with the most text that may
// be personal data.
func choose(candidates []candidate, kinds signal.Mask, most int) []int {
	var out []int
	if kinds&attackKinds != 0 {
		out = take(out, candidates, most, func(c *candidate) float64 {
			return 1 + float64(c.score) // a score of 0 still counts
		})
		for _, i := range out {
			candidates[i].attack = true
		}
		most = personalWindows
	}
	if kinds.Has(signal.PII) {
		out = take(out, candidates, most,
			func(c *candidate) float64 { return float64(c.nominated) })
	}
	if len(out) == 0 && len(candidates) > 0 {
		out = append(out, 0)
	}
	return out
}

// take appends to picked up to n further candidates with the highest worth. Ties go to the earlier
// candidate; candidates without worth are skipped.
func take(picked []int, candidates []candidate, n int, worth func(c *candidate) float64) []int {
	best := make([]int, 0, n+1) // indices, highest worth first
	for i := range candidates {
		w := worth(&candidates[i])
		late := len(best) == n && (n == 0 || w <= worth(&candidates[best[n-1]]))
		if w <= 0 || late || slices.Contains(picked, i) {
			continue
		}
		at := len(best)
		for at > 0 && w > worth(&candidates[best[at-1]]) {
			at--
		}
		best = slices.Insert(best, at, i)
		best = best[:min(len(best), n)]
	}
	return append(picked, best...)
}

// nominate counts the bytes of each window that may be personal data. Its error is that of ctx.
func nominate(ctx context.Context, windows []candidate, text string) error {
	ranges, err := pii.Nominate(ctx, text, nil)
	if err != nil {
		return err
	}
	first := 0
	for i := range windows {
		w := &windows[i]
		for first < len(ranges) && ranges[first].End <= w.start {
			first++
		}
		for k := first; k < len(ranges) && ranges[k].Start < w.end; k++ {
			w.nominated += max(0, min(ranges[k].End, w.end)-max(ranges[k].Start, w.start))
		}
	}
	return nil
}

// scanner returns the scanner that ranks windows: that of the bundle, else that of another one.
func (p *pass) scanner() scanner {
	if p.e.scanner != nil {
		return p.e.scanner
	}
	return p.req.scanner
}

// safetyWindow returns the shortest window of the safety tasks of need, in tokens.
func (p *pass) safetyWindow(need signal.Mask) (size, stride int) {
	for i := range p.e.tasks {
		t := &p.e.tasks[i]
		if t.safety() && need.Has(t.kind) && (size == 0 || t.Window.Tokens < size) {
			size, stride = t.Window.Tokens, t.Window.Stride
		}
	}
	return size, stride
}

// bytesPerToken estimates the bytes per token of text from samples, so that a window of a dense
// text, such as code or Chinese, fits into one row as one of English does.
func (p *pass) bytesPerToken(text string) float64 {
	bytes, tokens := 0, 0
	for i := range samples {
		from := i * len(text) / samples
		to := min(from+sampleBytes, len(text))
		for from < to && !utf8.RuneStart(text[from]) {
			from++
		}
		for to > from && to < len(text) && !utf8.RuneStart(text[to]) {
			to--
		}
		p.e.tokens.Encode(text[from:to], &p.sample)
		bytes, tokens = bytes+to-from, tokens+len(p.sample.IDs)
	}
	return min(max(float64(bytes)/float64(max(tokens, 1)), 1), maxBytesPerToken)
}

// fitRow shortens a window that is up to spare tokens too long for a row: half of the excess is
// removed at either end, where neighbouring windows overlap with it, but none at the start or end
// of the text.
func fitRow(enc *tokenize.Encoding, room, spare int, first, last bool) {
	over := len(enc.IDs) - room
	if over <= 0 || over > spare {
		return
	}
	from := over / 2
	switch {
	case first:
		from = 0
	case last:
		from = over
	}
	to := from + room
	enc.IDs, enc.Start, enc.End = enc.IDs[from:to], enc.Start[from:to], enc.End[from:to]
}
