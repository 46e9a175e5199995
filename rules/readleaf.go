package rules

import (
	"math"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"signalbox/internal/signal"
)

// defaultThreshold applies to tasks whose threshold the environment does not give.
const defaultThreshold = 0.5

func (c *compiler) threshold(k signal.Kind) float64 {
	if t, ok := c.env.Thresholds[k]; ok {
		return t
	}
	return defaultThreshold
}

// anyScore is the span that every score lies in.
func anyScore(k signal.Kind) *span {
	s := &span{subject: ofScore, kind: k, lo: math.Inf(-1), hi: math.Inf(1)}
	if k == signal.FactCheck {
		s.label = "needs" // jailbreak and cache report the probability that counts as Score
	}
	return s
}

// readBinary reads jailbreak and factcheck: true, false or bounds of the probability.
func (c *compiler) readBinary(at cursor, k signal.Kind) node {
	s := anyScore(k)
	if at.scalar("!!bool") {
		s.lo = c.threshold(k)
		if b, _ := at.bool(); !b {
			return &not{newLeaf(k, s)}
		}
		return newLeaf(k, s)
	}
	mark := at.mark()
	entries, ok := at.mapping("true, false or {min_score, max_score}", "min_score", "max_score")
	if !ok {
		return nil
	}
	if len(entries) == 0 {
		at.lacking(mark, "found no bound, expected {min_score, max_score}")
	}
	for _, e := range entries {
		x, ok := e.at.share()
		switch {
		case !ok:
			return nil
		case e.key == "min_score":
			s.lo = x
		default:
			s.hi = x
		}
	}
	return bounded(at, s)
}

// bounded makes the leaf of a range that must not be empty.
func bounded(at cursor, s *span) node {
	if s.empty() {
		at.errorf("no value lies between these bounds, so this is never true")
		return nil
	}
	return newLeaf(kindOf(s), s)
}

func kindOf(s *span) signal.Kind {
	if s.subject == ofScore {
		return s.kind
	}
	return signal.NumKinds
}

// readSimilarity reads cache: {similarity: X}.
func readSimilarity(at cursor) node {
	mark := at.mark()
	entries, ok := at.mapping("{similarity: NUMBER}", "similarity")
	if !ok || len(entries) == 0 {
		if ok {
			at.lacking(mark, "found no similarity, expected {similarity: NUMBER}")
		}
		return nil
	}
	s := anyScore(signal.Cache)
	if s.lo, ok = entries[0].at.share(); !ok {
		return nil
	}
	return newLeaf(signal.Cache, s)
}

// readEntities reads pii: true, false, TYPE, [TYPE, ...] or {types, min_score}.
func (c *compiler) readEntities(at cursor) node {
	e := &entities{min: c.threshold(signal.PII)}
	if at.scalar("!!bool") {
		if b, _ := at.bool(); !b {
			return &not{newLeaf(signal.PII, e)}
		}
		return newLeaf(signal.PII, e)
	}
	check := c.checkLabel(signal.PII, "type of personal data")
	if at.n.Kind != yaml.MappingNode {
		e.types = wordsOf(at, "type of personal data", check)
		if len(e.types) == 0 {
			return nil
		}
		e.types = distinct(e.types)
		return newLeaf(signal.PII, e)
	}
	mark := at.mark()
	entries, ok := at.mapping("{types, min_score}", "types", "min_score")
	if ok && len(entries) == 0 {
		at.lacking(mark, "found an empty mapping, expected {types, min_score}")
	}
	for _, x := range entries {
		if x.key == "types" {
			e.types = distinct(wordsOf(x.at, "type of personal data", check))
			ok = ok && len(e.types) > 0
			continue
		}
		var isShare bool
		e.min, isShare = x.at.share()
		ok = ok && isShare
	}
	if !ok {
		return nil
	}
	return newLeaf(signal.PII, e)
}

// readTokens reads tokens or context_tokens: {gt, gte, lt, lte}.
func readTokens(at cursor, of subject) node {
	mark := at.mark()
	entries, ok := at.mapping("a comparison such as {gt: 8000}", "gt", "gte", "lt", "lte")
	if !ok {
		return nil
	}
	if len(entries) == 0 {
		at.lacking(mark, "found no comparison, expected {gt, gte, lt, lte}")
		return nil
	}
	s := &span{subject: of, lo: math.Inf(-1), hi: math.Inf(1)}
	for _, e := range entries {
		n, isInt := e.at.integer(0)
		if !isInt {
			ok = false
			continue
		}
		side := &span{lo: math.Inf(-1), hi: math.Inf(1)}
		x := float64(n)
		switch e.key {
		case "gt":
			side.lo, side.loOpen = x, true
		case "gte":
			side.lo = x
		case "lt":
			side.hi, side.hiOpen = x, true
		case "lte":
			side.hi = x
		}
		s = narrow(s, side)
	}
	if !ok {
		return nil
	}
	// Tokens are whole numbers: nothing lies between two neighbours that are both excluded.
	if s.loOpen && s.hiOpen && s.hi-s.lo == 1 {
		s.hi = s.lo
	}
	return bounded(at, s)
}

func narrow(a, b *span) *span {
	c, _ := joinSpans(a, b, false)
	c.subject = a.subject
	return c
}

// readFeatures reads has: NAME or [NAME, ...], all of which are wanted.
func (c *compiler) readFeatures(at cursor) node {
	words := []string{"tools", "images", "context", "facts"}
	bits := []signal.Features{signal.HasTools, signal.HasImages, signal.HasContext, signal.HasFacts}
	f := &features{}
	f.names = distinct(wordsOf(at, "feature", func(at cursor, name string) {
		switch {
		case slices.Contains(c.env.Absent, name):
			at.errorf("has: %s is not in this version", name)
		case at.known("feature", name, words):
			f.want |= bits[slices.Index(words, name)]
		}
	}))
	if f.want == 0 {
		return nil
	}
	return newLeaf(signal.NumKinds, f)
}

// readHeaderTest reads header: {name, equals|matches}.
func (c *compiler) readHeaderTest(at cursor) node {
	mark := at.mark()
	entries, ok := at.mapping("{name, equals} or {name, matches}", "name", "equals", "matches")
	if !ok {
		return nil
	}
	h := &header{}
	tests := 0
	for _, e := range entries {
		s, isText := e.at.text("a text")
		if !isText {
			ok = false
		}
		switch e.key {
		case "name":
			h.name = canonicalHeader(s)
			if isText && !tokenPattern.MatchString(s) {
				e.at.errorf("found %q, expected the name of a header", shorten(s))
				ok = false
			}
			continue
		case "equals":
			h.equals = s
		case "matches":
			re, err := regexp.Compile(s)
			if err != nil {
				e.at.errorf("found an expression that RE2 cannot read: %s", strings.TrimPrefix(err.Error(), "error parsing regexp: "))
				ok = false
			}
			h.re = re
		}
		tests++
	}
	if h.name == "" && ok || tests != 1 {
		at.lacking(mark, "expected a name and exactly one of equals, matches")
		return nil
	}
	if !ok {
		return nil
	}
	c.headers[h.name] = true
	return newLeaf(signal.NumKinds, h)
}

// readSession reads session: {present: BOOL}.
func (c *compiler) readSession(at cursor) node {
	mark := at.mark()
	entries, ok := at.mapping("{present: true}", "present")
	if !ok {
		return nil
	}
	if len(entries) == 0 {
		at.lacking(mark, "found no test, expected {present: true}")
		return nil
	}
	present, ok := entries[0].at.bool()
	if !ok {
		return nil
	}
	c.session = true
	l := newLeaf(signal.NumKinds, session{})
	if !present {
		return &not{l}
	}
	return l
}

func join(words []string) string { return strings.Join(words, ", ") }
