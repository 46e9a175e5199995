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

// Vault holds the placeholders of one request and the values that they replace.
type Vault struct {
	secrets  map[string]*secret  // by placeholder
	prefixes map[string]struct{} // proper prefixes of placeholders, each at least the bracket
	longest  int                 // bytes of the longest placeholder
	mentions mentions
	json     bool // the content of the response is JSON
	api      openai.API
}

// secret is a value and its placeholder.
type secret struct {
	placeholder string
	kind        string // type of data
	value       string // as first written, preferably on one line
	quoted      []byte // value inside a JSON string
	nested      []byte // value inside a JSON string inside a JSON string
}

// names maps types of data to the words in their placeholders. Other types use their own name.
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

// nameOf returns the word in placeholders for a type: capitals and underscores.
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

// keeper assigns the placeholders of one request.
type keeper struct {
	vault *Vault
	byKey map[string]*secret
	next  map[string]int
	taken map[string]struct{} // placeholders that occur literally in the request
	tag   string              // precedes the numbers
}

// newKeeper returns the keeper of a request. A request that continues turns stored by the server
// gets placeholders that no other request has: the server knows those of earlier turns, where the
// same numbers stood for other values.
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

// tagSize is the number of characters that distinguish the placeholders of one request from those
// of others: 32^5, so that two turns of a conversation share a tag once in 33 million.
const tagSize = 5

// reserve excludes the placeholders that text already contains.
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

// maxLiteral exceeds the length of any placeholder, in bytes, with a backslash before each
// character that Markdown escapes.
const maxLiteral = 128

// intern returns the placeholder of a value. Spellings that differ in case, in spacing or, for
// numbers, in separators are the same value.
func (k *keeper) intern(kind, value string) *secret {
	name := nameOf(kind)
	key := name + "\x00" + canonical(kind, value)
	if s, ok := k.byKey[key]; ok {
		s.respell(value)
		return s
	}
	return k.make(key, name, kind, value)
}

// internAs returns a placeholder for this exact spelling of a value. A non-empty suffix is added to
// its word. Such placeholders are numbered separately, so that they take no numbers from values in
// later turns.
func (k *keeper) internAs(kind, suffix, value string) *secret {
	name := nameOf(kind) + suffix
	key := name + "\x00\x00" + value
	if s, ok := k.byKey[key]; ok {
		return s
	}
	return k.make(key, name, kind, value)
}

// make creates the placeholder of a new value.
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

// spell sets the text that replaces the placeholder in a response.
func (s *secret) spell(value string) {
	s.value = value
	s.quoted = quote(value)
	s.nested = quote(string(s.quoted))
}

// respell replaces a spelling over several lines by one on a single line, since a response names a
// value within a line, which a break would split. It must not be called after the vault is
// returned.
func (s *secret) respell(value string) {
	if strings.ContainsAny(s.value, lineBreaks) && !strings.ContainsAny(value, lineBreaks+`\`) {
		s.spell(value)
	}
}

// lineBreaks are the characters that end a line. In call arguments a backslash may spell one.
const lineBreaks = "\n\v\f\r\u0085\u2028\u2029"

// quote returns s as the contents of a JSON string.
func quote(s string) []byte {
	b, _ := jsontext.AppendQuote(nil, s) // the error reports only the replacement of invalid UTF-8
	return b[1 : len(b)-1]
}

// unquote decodes the contents of a JSON string; it returns false if they are invalid.
func unquote(s string) (string, bool) {
	var out string
	err := json.Unmarshal([]byte(`"`+s+`"`), &out)
	return out, err == nil
}

// canonical returns a form that is equal for all spellings of a value.
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

// Mentions reports whether text contains one of the values outside of placeholders, or may contain
// one because ctx ended first.
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

// Len returns the number of values.
func (v *Vault) Len() int { return len(v.secrets) }
