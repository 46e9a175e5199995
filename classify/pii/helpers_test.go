package pii

import "context"

// Types returns the 17 types in alphabetical order, which is also the order of a model's labels.
func Types() []string {
	return []string{
		Age, CreditCard, DateTime, DomainName, EmailAddress, Place, IBAN, IPAddress, Group,
		Organization, Person, PhoneNumber, StreetAddress, Title, DriverLicense, SSN, ZipCode,
	}
}

// Patterns is PatternsContext for a text that is waited for.
func Patterns(text string, dst []Span) []Span {
	dst, _ = PatternsContext(context.Background(), text, dst)
	return dst
}

// Fuse is FuseContext for a text that is waited for.
func (d *Decoder) Fuse(text string, patterns []Span, tokens []Token, dst []Span) []Span {
	dst, _ = d.FuseContext(context.Background(), text, patterns, tokens, dst)
	return dst
}
