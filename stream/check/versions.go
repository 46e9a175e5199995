package check

import (
	"slices"
	"strings"

	"signalbox/stream/claims"
	"signalbox/stream/evidence"
	"signalbox/stream/evidence/words"
)

// Shares of the words of a claim, our choice: what stands under another version holds so many of them
// where the claim is contradicted, and what stands under its own fewer than the second.
const (
	ofVersion    = 0.7
	ofOwnVersion = 0.4
)

// version notes the versions of the claim, and finds one that the evidence does not name though it
// names others.
func (s *sight) version(e *evidence.Evidence) (r Result, strange bool) {
	s.versions = evidence.Versions(s.versions[:0], s.claim.states())
	for _, v := range s.versions {
		if !e.HasVersion(v, s.namesLine(v)) {
			reason := "a version that the evidence does not name"
			return Result{
				Verdict: Unsupported, Score: absentNumber, Source: -1, By: Numeric, Reason: reason, Span: s.spanOfVersion(v),
			}, true
		}
	}
	return Result{}, false
}

// spanOfVersion is where a version of the claim stands.
func (s *sight) spanOfVersion(v string) claims.Span {
	at := s.claim.Lead + strings.Index(s.claim.states(), v)
	return s.claim.span(at, at+len(v))
}

// misplaced is the first of the premises that tells what the claim says, where it tells it of another
// version than the claim does, or of none; -1 where there is none.
func (s *sight) misplaced(e *evidence.Evidence, premises []evidence.Premise) int {
	if len(s.versions) != 1 {
		return -1
	}
	for i := range premises {
		at := premises[i].Sentence
		if at < 0 || e.IsHeading(at) {
			continue
		}
		if s.isOf(e.VersionsOf(at)) || evidence.RangesVersions(premises[i].Text) {
			return -1
		}
		return i
	}
	return -1
}

// namesLine reports whether a version of the claim may stand for all that begin so: 2.4, and not 2.4.0.
func (s *sight) namesLine(v string) bool {
	return strings.Contains(v, ".") && !strings.Contains(s.claim.states(), v+".0")
}

// isOf reports whether the only version of the claim is one of some versions, or the beginning of one.
func (s *sight) isOf(list []string) bool {
	return slices.ContainsFunc(list, func(v string) bool {
		rest, begins := strings.CutPrefix(v, s.versions[0])
		return begins && (rest == "" || rest[0] == '.' && s.namesLine(s.versions[0]))
	})
}

// otherVersion reports whether premise i, which misplaced gave, tells all but all of what the claim
// says, and no other one does of the version of the claim.
func (s *sight) otherVersion(e *evidence.Evidence, premises []evidence.Premise, i int) bool {
	if i < 0 || len(e.VersionsOf(premises[i].Sentence)) == 0 || s.covered(premises[i].Text) < ofVersion {
		return false
	}
	for _, p := range premises {
		if p.Sentence >= 0 && !e.IsHeading(p.Sentence) && s.isOf(e.VersionsOf(p.Sentence)) &&
			s.covered(p.Text) >= ofOwnVersion {
			return false
		}
	}
	return true
}

// covered is the share of the words of the claim that stand in a text, numbers and words for what a
// release does apart.
func (s *sight) covered(text string) float64 {
	list := words.Scan(nil, text)
	all, found := 0, 0
	for _, w := range words.Scan(nil, s.claim.states()) {
		if w.Has(words.Stop) || w.Has(words.Number) || released[w.Hash] {
			continue
		}
		all++
		if indexOf(list, w.Hash) >= 0 {
			found++
		}
	}
	return share(found, all)
}

// released are words for what happens in a release, by hash, which may stand in a heading.
//
//nolint:gochecknoglobals // constant table
var released = hashes(`version release released add added adds new introduced introduces fix fixed fixes remove removed
	removes drop dropped drops change changed changes support supported deprecated since hinzugefügt behoben entfernt
	neu`)
