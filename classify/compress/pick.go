package compress

import (
	"math"
	"slices"
	"strings"
	"unicode/utf8"
)

// Parts of the budget. The ends of a prompt usually contain its question. Pieces with an alarm get
// a fixed part that other text cannot use, and no more. The rest goes to the body.
const (
	endParts   = 8 // each end gets 1/endParts
	firstParts = 3 // the piece at an end may be as large as 1/firstParts
	alarmParts = 4
	// stretchTokens is the budget of one stretch of the body.
	stretchTokens = 36
	// leastAlarm is the minimum alarm, in bits, of a piece that is kept for it: more than the
	// rarest single cue of little weight in a prompt of a thousand pieces.
	leastAlarm = 4
	// leastJoined is the minimum alarm of an adjacent piece that is kept with it.
	leastJoined = 1
)

// tries is the maximum number of attempts to fill the skeleton, because the caller's count differs
// from the estimate.
const tries = 6

// picker fills a budget from the pieces.
type picker struct {
	*funnel

	usable  []int32 // pieces that were not removed, in order
	byAlarm []rank  // pieces with an alarm, greatest first
	byTopic []rank  // all pieces, greatest topic first
	room    int     // tokens left
}

// pick selects the pieces and builds the result. ok is false if the context ended before.
func (f *funnel) pick(budget int, count func(string) int) (r Result, ok bool) {
	s, ok := f.ranked()
	if !ok {
		return r, false
	}
	room := budget - budget/reserve
	r = s.filled(room, count)
	for range tries {
		if r.Tokens <= budget {
			break
		}
		if f.over() {
			return r, false
		}
		room = min(room-1, room*budget/r.Tokens)
		r = s.filled(room, count)
	}
	if r.Tokens > 0 && r.Tokens < budget*9/10 {
		wider := s.filled(room*budget/r.Tokens, count)
		if wider.Tokens > r.Tokens && wider.Tokens <= budget {
			r = wider
		}
	}
	if r.Text == "" || r.Tokens > budget {
		r = s.cutPiece(budget, count)
	}
	r.Sentences, r.Hollow, r.Duplicates = max(len(f.pieces), 1), f.hollow, f.duplicates
	return r, true
}

// ranked sorts the usable pieces. Ties go to the earlier piece. ok is false if the context ended
// before.
func (f *funnel) ranked() (s *picker, ok bool) {
	s = &picker{funnel: f, usable: make([]int32, 0, len(f.pieces))}
	for i := range f.pieces {
		if f.pieces[i].marks&out == 0 {
			s.usable = append(s.usable, int32(i))
		}
	}
	s.byTopic = make([]rank, 0, len(s.usable))
	for _, i := range s.usable {
		p := &f.pieces[i]
		s.byTopic = append(s.byTopic, rankOf(p.topic, i))
		if p.alarm >= leastAlarm {
			s.byAlarm = append(s.byAlarm, rankOf(p.alarm, i))
		}
	}
	return s, f.sort(s.byTopic) && f.sort(s.byAlarm)
}

// sort sorts ranks, part by part and then by merging, so that the context can be checked in
// between. It reports whether it was completed.
func (f *funnel) sort(ranks []rank) bool {
	for part := range slices.Chunk(ranks, piecesPerLook) {
		if f.over() {
			return false
		}
		slices.Sort(part)
	}
	if len(ranks) <= piecesPerLook {
		return true
	}
	from, to := ranks, make([]rank, len(ranks))
	for size := piecesPerLook; size < len(ranks); size *= 2 {
		for at := 0; at < len(ranks); at += 2 * size {
			middle, end := min(at+size, len(ranks)), min(at+2*size, len(ranks))
			merge(to[at:end], from[at:middle], from[middle:end])
		}
		from, to = to, from
		if f.over() {
			return false
		}
	}
	copy(ranks, from)
	return true
}

// merge writes two sorted lists to dst, which is as long as both, in order.
func merge(dst, a, b []rank) {
	for i := range dst {
		if len(b) == 0 || len(a) > 0 && a[0] <= b[0] {
			dst[i], a = a[0], a[1:]
			continue
		}
		dst[i], b = b[0], b[1:]
	}
}

// rank is a piece and its score as one number: a lower number has a greater score, or the same
// score and an earlier position.
type rank uint64

func rankOf(score float32, piece int32) rank {
	b := math.Float32bits(score)
	if b>>31 == 0 {
		b = ^b &^ (1 << 31) // IEEE 754 numbers of one sign have the order of their bits
	}
	return rank(b)<<32 | rank(piece)
}

func (r rank) piece() int { return int(uint32(r)) }

// filled returns the skeleton of about room tokens by estimate.
func (s *picker) filled(room int, count func(string) int) Result {
	for i := range s.pieces {
		s.pieces[i].marks &^= picked
	}
	s.room = room
	if room > 0 {
		s.ends(room)
		s.best(s.byAlarm, room/alarmParts)
		s.joined(room / alarmParts)
		s.stretches()
		s.best(s.byTopic, s.room)
	}
	r := s.render()
	r.Tokens = count(r.Text)
	return r
}

// ends picks the pieces at either end.
func (s *picker) ends(room int) {
	first, last := room/endParts, room/endParts
	for i := range s.pieces {
		if !s.end(i, room, &first) {
			break
		}
	}
	for i := range slices.Backward(s.pieces) {
		if !s.end(i, room, &last) {
			break
		}
	}
}

// end picks piece i at an end of the text with *left tokens left, and reports whether to continue.
func (s *picker) end(i, room int, left *int) bool {
	p := &s.pieces[i]
	outermost := *left == room/endParts
	if p.marks&(encoded|hollow) != 0 || p.marks&repeated != 0 && !outermost {
		return true
	}
	n := int(p.tokens)
	if n > *left && (!outermost || n > room/firstParts) {
		return false
	}
	*left -= n
	s.take(i)
	return *left > 0
}

// take picks piece i if it is not picked yet and there is room, and reports whether it did.
func (s *picker) take(i int) bool {
	p := &s.pieces[i]
	if p.marks&picked != 0 || int(p.tokens) > s.room {
		return false
	}
	p.marks |= picked
	s.room -= int(p.tokens)
	return true
}

// best picks pieces in order while they fit a quota.
func (s *picker) best(order []rank, quota int) {
	quota = min(quota, s.room)
	for _, r := range order {
		if quota <= 0 {
			return
		}
		if n := int(s.pieces[r.piece()].tokens); n <= quota && s.take(r.piece()) {
			quota -= n
		}
	}
}

// joined picks the neighbours of pieces picked for their alarm that belong to the same instruction:
// parts cut off for their size, and pieces on the same line with cues of their own.
func (s *picker) joined(quota int) {
	least := s.room - quota
	for _, r := range s.byAlarm {
		i := r.piece()
		if s.room <= least {
			return
		}
		if s.pieces[i].marks&picked == 0 {
			continue
		}
		if s.continues(i) {
			s.take(i - 1)
		}
		if s.continues(i + 1) {
			s.take(i + 1)
		}
	}
}

// continues reports whether pieces i-1 and i may be one instruction.
func (s *picker) continues(i int) bool {
	if i <= 0 || i >= len(s.pieces) {
		return false
	}
	a, b := &s.pieces[i-1], &s.pieces[i]
	if a.marks&out != 0 || b.marks&out != 0 {
		return false
	}
	return b.marks&goes != 0 || min(a.alarm, b.alarm) >= leastJoined && !strings.Contains(s.text[a.end:b.start], "\n")
}

// stretches divides the usable pieces into stretches of equal size, one for each part of the room,
// and picks the best of each by topic: what makes up most of the prompt makes up most of the
// skeleton.
func (s *picker) stretches() {
	n := s.room / stretchTokens
	if n == 0 || len(s.usable) == 0 {
		return
	}
	total := 0
	for _, i := range s.usable {
		total += int(s.pieces[i].tokens)
	}
	at, read := 0, 0
	for k := range n {
		best := -1
		for ; at < len(s.usable) && read < (k+1)*total/n; at++ {
			i := int(s.usable[at])
			p := &s.pieces[i]
			read += int(p.tokens)
			if p.marks&picked == 0 && int(p.tokens) <= s.room && (best < 0 || p.topic > s.pieces[best].topic) {
				best = i
			}
		}
		if best >= 0 {
			s.take(best)
		}
	}
}

// render returns the result of the picked pieces.
func (s *picker) render() Result {
	var b strings.Builder
	var r Result
	last := -1
	for i := range s.pieces {
		p := &s.pieces[i]
		if p.marks&picked == 0 {
			continue
		}
		if last >= 0 {
			b.WriteString(s.separator(last, i))
		}
		b.WriteString(s.text[p.start:p.end])
		r.Ranges = append(r.Ranges, Range{p.start, p.end})
		last = i
	}
	r.Text, r.Kept = b.String(), len(r.Ranges)
	return r
}

// separator returns the text between pieces i and j of the skeleton.
func (s *picker) separator(i, j int) string {
	gap := s.text[s.pieces[i].end:s.pieces[j].start]
	switch {
	case gap == "":
		return ""
	case j == i+1 && !strings.Contains(gap, "\n"):
		return " "
	default:
		return "\n"
	}
}

// cutPiece returns the skeleton if no whole piece fits: the beginning of the most informative
// piece.
func (s *picker) cutPiece(budget int, count func(string) int) Result {
	from, to := 0, len(s.text)
	switch {
	case len(s.byAlarm) > 0:
		p := &s.pieces[s.byAlarm[0].piece()]
		from, to = p.start, p.end
	case len(s.byTopic) > 0:
		p := &s.pieces[s.byTopic[0].piece()]
		from, to = p.start, p.end
	case len(s.pieces) > 0:
		from, to = s.pieces[0].start, s.pieces[0].end
	}
	_, one := utf8.DecodeRuneInString(s.text[from:to])
	to = min(to, wholeRune(s.text, from, from+budget*longestToken))
	for to > from+one {
		n := count(s.text[from:to])
		if n <= budget {
			break
		}
		size := (to - from) * budget / n
		to = max(min(wholeRune(s.text, from, from+size), to-1), from+one)
		to = max(wholeRune(s.text, from, to), from+one)
		if cut := strings.LastIndexByte(s.text[from:to], ' '); cut > size/2 {
			to = from + cut
		}
	}
	text := s.text[from:to]
	return Result{Text: text, Ranges: []Range{{from, to}}, Tokens: count(text), Kept: 1}
}
