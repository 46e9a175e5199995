package redact

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"strconv"
	"strings"
	"unicode"

	"github.com/go-json-experiment/json/jsontext"

	"signalbox/internal/openai"
)

// Vault holds the placeholders of one request and what they stand for.
type Vault struct {
	secrets  map[string]*secret  // by placeholder
	prefixes map[string]struct{} // the fronts of placeholders, each at least the bracket, none whole
	longest  int                 // bytes of the longest placeholder
	mentions mentions
	json     bool // the answer's content is JSON itself
	api      openai.API
}

// secret is a value and its placeholder.
type secret struct {
	placeholder string
	kind        string // of data
	value       string // as first written, on one line if it is anywhere
	quoted      []byte // value inside a JSON string
	nested      []byte // value inside a JSON string inside a JSON string
}

// names are the words of placeholders by type of data; other types give their own name.
//
//nolint:gochecknoglobals // constant table
var names = map[string]string{
	"CREDIT_CARD":       "CARD",
	"DATE_TIME":         "DATE",
	"DOMAIN_NAME":       "DOMAIN",
	"EMAIL_ADDRESS":     "EMAIL",
	"GPE":               "PLACE",
	"IBAN_CODE":         "IBAN",
	"IP_ADDRESS":        "IP",
	"NRP":               "GROUP",
	"PHONE_NUMBER":      "PHONE",
	"STREET_ADDRESS":    "ADDRESS",
	"US_DRIVER_LICENSE": "LICENSE",
	"US_SSN":            "SSN",
	"ZIP_CODE":          "ZIP",
}

// nameOf returns the word of a type's placeholders: capitals and underscores.
func nameOf(kind string) string {
	if n, ok := names[kind]; ok {
		return n
	}
	n := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z':
			return r - 'a' + 'A'
		case r >= 'A' && r <= 'Z', r == '_':
			return r
		}
		return -1
	}, kind)
	if n = strings.Trim(n, "_"); n == "" || len(n) > 32 {
		return "DATA"
	}
	return n
}

// keeper hands out the placeholders of one request.
type keeper struct {
	vault *Vault
	byKey map[string]*secret
	next  map[string]int
	taken map[string]struct{} // placeholders that the request holds literally
	tag   string              // in front of the numbers
}

// newKeeper returns the keeper of a request. One that goes on with turns which only the server
// remembers has placeholders that no other request has: the server knows those of the earlier
// turns, where the same numbers stood for other values.
func newKeeper(req *openai.Request) *keeper {
	tag := ""
	if req.Continues() {
		tag = rand.Text()[:tagSize] + "_"
	}
	return &keeper{
		tag:   tag,
		vault: &Vault{secrets: make(map[string]*secret), prefixes: make(map[string]struct{})},
		byKey: make(map[string]*secret), next: make(map[string]int), taken: make(map[string]struct{}),
	}
}

// tagSize is how many letters and digits tell the placeholders of one request from those of others:
// 32^5, so that two turns of a conversation share them once in 33 million.
const tagSize = 5

// reserve keeps the placeholders that text holds already from being handed out.
func (k *keeper) reserve(text []byte) {
	for {
		at := bytes.IndexByte(text, '[')
		if at < 0 {
			return
		}
		text = text[at:]
		end := bytes.IndexByte(text[:min(len(text), maxLiteral)], ']')
		if end > 0 && bytes.IndexByte(text[:end], '_') > 0 {
			k.taken[strings.ReplaceAll(string(text[:end+1]), `\`, "")] = struct{}{}
		}
		text = text[1:]
	}
}

// maxLiteral is longer than any placeholder, in bytes, with a backslash in front of each character
// that Markdown escapes.
const maxLiteral = 128

// intern returns the placeholder of a value. Spellings that differ in case, in spacing or, in a
// number, in what separates its digits are one value.
func (k *keeper) intern(kind, value string) *secret {
	name := nameOf(kind)
	key := name + "\x00" + canonical(kind, value)
	if s, ok := k.byKey[key]; ok {
		s.respell(value)
		return s
	}
	return k.make(key, name, kind, value)
}

// internAs returns a placeholder that no other spelling of a value has, of a word of its own where
// suffix is not empty: such ones have numbers of their own, too, and take none from values that
// later turns bring.
func (k *keeper) internAs(kind, suffix, value string) *secret {
	name := nameOf(kind) + suffix
	key := name + "\x00\x00" + value
	if s, ok := k.byKey[key]; ok {
		return s
	}
	return k.make(key, name, kind, value)
}

// make makes the placeholder of a value that has none.
func (k *keeper) make(key, name, kind, value string) *secret {
	s := &secret{kind: kind}
	for s.placeholder == "" {
		k.next[name]++
		p := "[" + name + "_" + k.tag + strconv.Itoa(k.next[name]) + "]"
		if _, literal := k.taken[p]; !literal {
			s.placeholder = p
		}
	}
	s.spell(value)
	k.byKey[key] = s
	v := k.vault
	v.secrets[s.placeholder] = s
	v.longest = max(v.longest, len(s.placeholder))
	for n := 1; n < len(s.placeholder); n++ {
		v.prefixes[s.placeholder[:n]] = struct{}{}
	}
	return s
}

// spell sets what stands in the place of the placeholder.
func (s *secret) spell(value string) {
	s.value = value
	s.quoted = quote(value)
	s.nested = quote(string(s.quoted))
}

// respell takes another spelling of a value that is written over several lines, unless that one is
// too. An answer names a value within a line, where a break would tear it apart. It is for the time
// before the vault is handed out.
func (s *secret) respell(value string) {
	if strings.ContainsAny(s.value, lineBreaks) && !strings.ContainsAny(value, lineBreaks+`\`) {
		s.spell(value)
	}
}

// lineBreaks are the characters that end a line. A backslash may spell one in the arguments of a
// call.
const lineBreaks = "\n\v\f\r\u0085\u2028\u2029"

// quote returns s as the inside of a JSON string.
func quote(s string) []byte {
	b, _ := jsontext.AppendQuote(nil, s) // the error reports only the replacement of invalid UTF-8
	return b[1 : len(b)-1]
}

// unquote returns the text of the inside of a JSON string, or false when it is none.
func unquote(s string) (string, bool) {
	var out string
	err := json.Unmarshal([]byte(`"`+s+`"`), &out)
	return out, err == nil
}

// canonical folds the spellings of a value.
func canonical(kind, value string) string {
	value = strings.ToLower(value)
	switch kind {
	case "CREDIT_CARD", "IBAN_CODE", "NATIONAL_ID", "PHONE_NUMBER", "US_SSN", "US_DRIVER_LICENSE":
		return strings.Map(func(r rune) rune {
			if unicode.IsLetter(r) || unicode.IsDigit(r) || r == '+' {
				return r
			}
			return -1
		}, value)
	}
	return strings.Join(strings.Fields(value), " ")
}

// Mentions reports whether text holds one of the values, the words of placeholders aside, or may
// hold one, since ctx ended first.
func (v *Vault) Mentions(ctx context.Context, text string) bool {
	for from := 0; ; {
		start, end, s := v.mentions.find(ctx, text, from)
		if s == nil {
			return ctx.Err() != nil
		}
		open := strings.LastIndexByte(text[:start], '[')
		if open < 0 {
			return true
		}
		shut := strings.IndexByte(text[open:], ']')
		if shut < 0 || open+shut < end || v.secrets[text[open:open+shut+1]] == nil {
			return true
		}
		from = open + shut + 1
	}
}

// Len returns how many values are kept.
func (v *Vault) Len() int { return len(v.secrets) }
