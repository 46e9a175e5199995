package pii

import (
	_ "embed" // of the domains
	"strings"
)

//go:embed tld.txt
var domains string

// tlds holds, for each top-level domain, whether a bare host name may end in it.
var tlds = func() map[string]tldKind { //nolint:gochecknoglobals // constant table
	m, kinds := make(map[string]tldKind), map[string]tldKind{"= known": tldKnown, "= word": tldWord, "= file": tldFile}
	var kind tldKind
	for line := range strings.Lines(domains) {
		line = strings.TrimSpace(line)
		if k, ok := kinds[line]; ok {
			kind = k
		}
		if strings.ContainsAny(line, "#=") {
			continue
		}
		for w := range strings.FieldsSeq(line) {
			if kind == tldKnown || m[w] != 0 { // also a word or a file extension
				m[w] |= kind
			}
		}
	}
	return m
}()

type tldKind uint8

const (
	tldKnown tldKind = 1 << iota
	tldWord
	tldFile
)

func tldOf(tld string) tldKind {
	if k, ok := tlds[tld]; ok {
		return k
	}
	if strings.HasPrefix(tld, "xn--") { // an internationalised domain (RFC 5891, section 2.3.1)
		return tldKnown
	}
	return tlds[strings.ToLower(tld)]
}

func isTLD(tld string) bool    { return tldOf(tld) != 0 }
func bareTLD(tld string) bool  { return tldOf(tld) == tldKnown }
func fileLike(tld string) bool { return tldOf(tld)&tldFile != 0 }
