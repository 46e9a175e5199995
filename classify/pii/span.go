package pii

import (
	"cmp"
	"context"
	"slices"
)

// The types of personal data.
const (
	Age           = "AGE"
	CreditCard    = "CREDIT_CARD"
	DateTime      = "DATE_TIME"
	DomainName    = "DOMAIN_NAME"
	EmailAddress  = "EMAIL_ADDRESS"
	Place         = "GPE" // geopolitical entity: country, state, city
	IBAN          = "IBAN_CODE"
	IPAddress     = "IP_ADDRESS"
	NationalID    = "NATIONAL_ID"
	Group         = "NRP" // nationality, religious or political group
	Organization  = "ORGANIZATION"
	Person        = "PERSON"
	PhoneNumber   = "PHONE_NUMBER"
	StreetAddress = "STREET_ADDRESS"
	Title         = "TITLE"
	DriverLicense = "US_DRIVER_LICENSE"
	SSN           = "US_SSN"
	ZipCode       = "ZIP_CODE"
)

// Span is one piece of personal data.
type Span struct {
	Type       string
	Start, End int     // byte offsets in the text; End is after the last byte
	Score      float64 // probability that it is of Type, in [0,1]; 1 for a checksum
	Pattern    bool    // found by a pattern, as opposed to the model
}

// Range is a part of a text that a model should read.
type Range struct {
	Start, End int // byte offsets in the text, on the boundaries of code points
	Weight     int // sum of the signs in it; at least 1
}

// The scores of patterns. Set by hand, below the precision of the weakest pattern of each class on
// a synthetic set in 13 languages on which the patterns were developed: .986 for URLs, .922 for
// titles, where most of the rest are titles missing from the set.
const (
	scoreChecksum  = 1.0
	scoreSyntax    = 0.95 // a syntax that hardly anything else has, such as a mail address
	scoreCue       = 0.85 // a shape, and a context word that names it
	scoreShape     = 0.70 // a shape alone
	scoreSuspected = 0.60 // the shape of a number with a wrong checksum
)

// rank returns the precedence of s among claims on the same bytes.
func (s *Span) rank() int {
	switch {
	case s.Pattern && (s.Score >= scoreSyntax || checkable(s.Type)):
		return 3
	case !s.Pattern:
		return 2
	default:
		return 1
	}
}

// resolve sorts spans by their start and drops those that overlap a better one. It works in place.
// Each span is kept, and dropped, at most once. The error is that of ctx.
func resolve(ctx context.Context, spans []Span) ([]Span, error) {
	slices.SortFunc(spans, func(a, b Span) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(b.End, a.End))
	})
	kept := spans[:0]
next:
	for i, s := range spans {
		if err := errAt(ctx, i); err != nil {
			return nil, err
		}
		for len(kept) > 0 {
			last := &kept[len(kept)-1]
			if last.End <= s.Start {
				break
			}
			if !s.beats(last) {
				if s.tornBy(last) {
					last.End = max(last.End, s.End)
				}
				continue next
			}
			if last.tornBy(&s) {
				s.Start, s.End = last.Start, max(s.End, last.End)
			}
			kept = kept[:len(kept)-1]
		}
		kept = append(kept, s)
	}
	return kept, nil
}

// within reports whether s, found by the model, is a part of the longer span of a pattern.
func (s *Span) within(o *Span) bool {
	return !s.Pattern && o.Pattern && o.Start <= s.Start && s.End <= o.End &&
		s.End-s.Start < o.End-o.Start
}

// tornBy reports whether s is a telephone number, or an announced name, of which a span of the
// model takes a part; the rest must then be covered with it.
func (s *Span) tornBy(o *Span) bool {
	return s.Pattern && !o.Pattern && (s.Type == PhoneNumber || s.Type == Person && o.Type == Person) &&
		s.Start < o.End && o.Start < s.End && (s.Start < o.Start || o.End < s.End)
}

// beats reports whether s is the better of two overlapping spans. Of two findings of the same kind
// the longer one is: a part must not replace the whole, because the rest would be left uncovered.
func (s *Span) beats(o *Span) bool {
	switch {
	case s.within(o):
		return false
	case o.within(s):
		return true
	}
	if s.Type == o.Type && s.rank() < 3 && o.rank() < 3 && s.End-s.Start != o.End-o.Start {
		return s.End-s.Start > o.End-o.Start
	}
	return cmp.Or(
		cmp.Compare(s.rank(), o.rank()),
		cmp.Compare(s.End-s.Start, o.End-o.Start),
		cmp.Compare(s.Score, o.Score),
	) > 0
}
