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

// maxBytesPerToken is about how much text a token of WordPiece or byte-pair vocabularies stands for
// in English; the windows of the scan are at most so many bytes long for every token of a row.
const maxBytesPerToken = 4

// Pieces of a text that are tokenised to learn how long its tokens are.
const (
	samples     = 12
	sampleBytes = 256
)

// wholeBytesPerToken is a length that prose does not have: texts of more bytes for every token that
// may be read whole go to the scan without being counted.
const wholeBytesPerToken = 16

const (
	// wholeWindows is how many windows a text may have and is read whole.
	wholeWindows = 3
	// mostWindows is the most windows that the scan chooses of one text, however long it is; of its
	// twin it is wholeWindows, among those that are not in the text.
	mostWindows = 10
	// personalWindows is how many more are read for personal data.
	personalWindows = 2
)

// worthReading is how many of n windows of a text are read: those that the scan puts first. It is 3
// up to 32 windows, which are some 12,000 characters, and grows by two with every doubling: 5 of
// 64, 9 of 256, and 10 of any more.
func worthReading(n int) int {
	if n <= wholeWindows {
		return n
	}
	return min(max(wholeWindows, wholeWindows+int(2*(math.Log2(float64(n))-5))), mostWindows)
}

// foreignTimes is how many times as many windows a source for other languages reads: it takes a fifth
// of the time, and the scan, which knows English best, puts its windows into a worse order.
const foreignTimes = 4

// most is how many of n windows of a text the pass reads.
func (p *pass) most(n int) int {
	if p.foreign {
		return min(foreignTimes*worthReading(n), n)
	}
	return worthReading(n)
}

// safetyPlan is what the safety signals of a pass read. They share it.
type safetyPlan struct {
	laid     bool
	all      bool // every window is read
	size     int  // tokens of a window
	stride   int
	portions []portion
	hits     []hit
	picks    []pick

	windows    []scan.Window
	candidates []candidate
	order      []int32
}

// portion is a unit and what is read of it.
type portion struct {
	unit      *unit
	kinds     signal.Mask // of the signals of the pass that read it
	missing   signal.Mask // those of them that nothing is remembered of
	hits      span        // in safetyPlan.hits
	picks     span        // in safetyPlan.picks
	raw, twin reach
	// the bound of a request left windows out: what is said of it is not remembered
	cut   bool
	score float32 // the best of its windows in the eyes of the scan, where that was asked
}

// reach says how much of a text is read.
type reach struct {
	selected bool
	windows  int // with selected: windows that cover the text
}

// hit is what is remembered for a signal.
type hit struct {
	kind signal.Kind
	memory
}

// pick is a reading of a portion: a window, or a text as a whole.
type pick struct {
	reading int32
	twin    bool
	attack  bool // it is for every signal, else for personal data alone
}

// share is what one task reads of one portion.
type share struct {
	portion  int32
	reads    span // in pass.reads
	close    span // in pass.reads: the second look at one of its windows
	windows  int  // that cover the text and its twin
	covering int  // of them, those of the text
	read     int  // of windows
	hit      int32
}

// noHit is the hit of a share of which nothing is remembered.
const noHit = -1

// candidate is a window that the trunk may read.
type candidate struct {
	start, end int // bytes of the text
	score      float32
	nominated  int // bytes that may be personal data
	attack     bool
}

// planSafety lets task i read its units: personal data in the text as written, attacks in its
// normalised twin as well.
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

// share lets task i read portion k, unless what it says of it is remembered. Its error is that of
// ctx.
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

// cover lets task i read every window of a reading of a portion, and returns how many these are. Of
// a long text a task that finds personal data is spared those in which there is none for it: that
// hold no letter but in what patterns find. Its error is that of ctx.
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

// speaks reports whether bytes [start,end) of a text hold a letter outside of the given spans,
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

// laySafety makes the readings of the safety signals of need: of every unit that nothing is
// remembered of the whole and its twin, or, where that is many windows and a scan can tell them
// apart, a selection. What it selects of a unit depends on its text alone, unless the units
// together are more than a request may cost: then the newest is read first, and of the others what
// the scan puts first.
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

// layPortions makes the portions, puts those of which something is to be read into order, and
// returns how many tokens that is, or rather too many.
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

// guess is about how many tokens are read of a text of n bytes, rather too many.
func (p *pass) guess(n int) int {
	tokens := n/2 + 2
	if windows := tokens / p.safe.stride; windows > wholeWindows {
		return p.most(windows) * p.safe.size
	}
	return tokens
}

// rank orders the portions that are to be read: the newest, then those in which the scan finds
// most.
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

// first orders what is so before what is not.
func first(x, y bool) int {
	switch {
	case x && !y:
		return -1
	case y && !x:
		return 1
	}
	return 0
}

// newest returns the segment that is read first and whatever it costs: the last one of the user
// that signals about attacks read, else the last one that they read, else the last; -1 without any.
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

// lay makes the readings of a portion, of at most room tokens, and returns how many tokens they
// have.
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

// layText makes the readings of the text of a portion, or of its twin: r tells which.
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
		p.read-- // its slices are used again
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

// layWindows makes readings of the windows of a text that are worth the trunk's time.
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

// rankWindows makes candidates of the windows of a text that hold some of what is between two of
// its bytes.
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

// keepOtherScripts leaves the candidates that hold words in another script than Latin, if there are
// any: of the others a source for other languages has nothing to say.
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

// shared returns how many bytes a text and its twin begin with alike, and where in the twin the end
// begins that they have alike behind that.
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

// choose returns the windows of a text that signals of kinds read, the most important first and
// that many but for personal data: those that the scan finds most like an attack, then those
// with the most text that may be personal data.
func choose(candidates []candidate, kinds signal.Mask, most int) []int {
	var out []int
	if kinds&attackKinds != 0 {
		out = take(out, candidates, most, func(c *candidate) float64 {
			return 1 + float64(c.score) // a score of 0 is still a rank
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

// take appends to picked up to n further candidates, those that are worth most. Of equal ones it
// takes the first, and none that is worth nothing.
func take(picked []int, candidates []candidate, n int, worth func(c *candidate) float64) []int {
	best := make([]int, 0, n+1) // indices, the greatest worth first
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

// nominate counts for each window the bytes that may be personal data. Its error is that of ctx.
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

// scanner returns what ranks windows: the table of the bundle, else that of another one.
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

// bytesPerToken estimates how many bytes of text a token stands for, from samples: a window of a
// dense text, such as code or Chinese, is to fit into one row as one of English does.
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

// fitRow makes a window that is up to spare tokens too long for a row fit: half of what is too much
// goes from either end, where the windows beside it overlap with it; none from the end of the text
// that the window holds.
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
