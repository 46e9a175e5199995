package check

import (
	"slices"
	"strings"

	"signalbox/stream/claims"
	"signalbox/stream/evidence"
	"signalbox/stream/evidence/words"
)

// Shares of the words of a claim; our choice. The claim is contradicted if the text under another
// version has at least ofVersion of them and no text under its own version has ofOwnVersion.
const (
	ofVersion    = 0.7
	ofOwnVersion = 0.4
)

// version records the versions of the claim. It returns a result if the evidence names versions,
// but not one of these.
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

// spanOfVersion returns the position of a version in the claim.
func (s *sight) spanOfVersion(v string) claims.Span {
	at := s.claim.Lead + strings.Index(s.claim.states(), v)
	return s.claim.span(at, at+len(v))
}

// misplaced returns the index of the first premise that is not a heading, if it belongs to another
// version than the claim, or to none. Otherwise it returns -1.
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

// namesLine reports whether a version of the claim may stand for all versions that begin with it:
// 2.4, but not 2.4.0.
func (s *sight) namesLine(v string) bool {
	return strings.Contains(v, ".") && !strings.Contains(s.claim.states(), v+".0")
}

// isOf reports whether the only version of the claim is in the list, or is the beginning of one
// that is.
func (s *sight) isOf(list []string) bool {
	return slices.ContainsFunc(list, func(v string) bool {
		rest, begins := strings.CutPrefix(v, s.versions[0])
		return begins && (rest == "" || rest[0] == '.' && s.namesLine(s.versions[0]))
	})
}

// otherVersion reports whether premise i, the result of misplaced, contains nearly everything the
// claim says, while no premise of the claim's version does.
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

// covered returns the share of the claim's content words that a text contains, without numbers and
// release words.
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

// released are words, by hash, for changes in a release; they may be in a heading instead.
//
//nolint:gochecknoglobals // constant table
var released = hashes(`version release released add added adds new introduced introduces fix fixed fixes remove removed
	removes drop dropped drops change changed changes support supported deprecated since hinzugefügt behoben entfernt
	neu`)
