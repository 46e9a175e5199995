package pii

import (
	"strings"
	"unicode/utf8"
)

// atext are the characters of an unquoted local part besides letters and digits (RFC 5322, section
// 3.2.3) that mail providers actually use. The rest of the RFC's set is punctuation in prose.
const atext = ".!#$%&'*+-/=?^_`{|}~"

// Limits of an address (RFC 5321, section 4.5.3.1) in octets.
const (
	maxLocal  = 64
	maxDomain = 255
)

// email reads the address around the @ at i. The @ takes size bytes: @, or %40 in URLs. The address
// begins at low or later.
func (s *scanner) email(i, size, low int) int {
	start := i
	for start > low && i-start <= maxLocal && localByte(s.text[start-1]) {
		if s.text[start-1] < utf8.RuneSelf {
			start--
			continue
		}
		// Scripts without spaces run into the address ("我的邮箱是a@b.org"), so they end it.
		r, size := utf8.DecodeLastRuneInString(s.text[:start])
		if !spaced(r) {
			break
		}
		start -= size
	}
	switch {
	case size > 1: // ?user=anna%40posteo.net
		start += strings.LastIndexAny(s.text[start:i], "=&?/%:") + 1
	case i-start > maxLocal: // no local part is that long: the end of an address of a site
		start += strings.LastIndexAny(s.text[start:i], "=&?/") + 1
	default:
		start += behindPath(s.text[start:i], s.byteAt(start-1) == ':')
	}
	start += behindKeys(s.text[start:i])
	local := s.text[start:i]
	if local == "" || len(local) > maxLocal || local[len(local)-1] == '.' ||
		strings.Contains(local, "..") {
		return 0
	}
	end, tld, _ := s.host(i + size)
	if end == 0 || end-i > maxDomain || !isTLD(tld) && !reserved(tld) {
		return 0
	}
	s.mailed(start, i)
	return s.add(EmailAddress, start, end, scoreChecksum)
}

func localByte(b byte) bool {
	return isAlnum(b) || b >= utf8.RuneSelf || strings.IndexByte(atext, b) >= 0
}

// mails adds the addresses in [from, to), the path of a URL. It returns the start of the first one,
// or to if there is none, and the position to continue from.
func (s *scanner) mails(from, to int) (first, next int) {
	first, next = to, to
	for i := from; i < to; i++ {
		size := 1
		switch {
		case s.text[i] == '@':
		case strings.HasPrefix(s.text[i:], "%40"):
			size = len("%40")
		default:
			continue
		}
		if end := s.email(i, size, from); end > 0 {
			first = min(first, s.out[len(s.out)-1].Start)
			next, from = max(next, end), end
		}
	}
	return first, next
}

// behindPath returns the position in run, the characters before an @ that an address may contain,
// where the query of a URL or a path ends; colon reports whether one precedes run. A / inside a
// word is left to the address, as a local part may contain one, and so are attributes of X.400
// (/G=Anna/S=Lind@example.org).
func behindPath(run string, colon bool) int {
	if k := strings.LastIndexAny(run, "?&"); k >= 0 {
		if key, _, found := strings.Cut(run[k+1:], "="); found && isKey(key) {
			return k + 1
		}
	}
	k := strings.LastIndexByte(run, '/')
	switch {
	case k < 0:
		return 0
	case colon && strings.TrimLeft(run, "0123456789")[0] == '/': // http://host:80/anna@example.org
		return k + 1
	case run[len(run)-len(strings.TrimLeft(run, ".~"))] == '/' && !strings.Contains(run[:k], "="):
		return k + 1
	}
	return 0
}

// behindKeys returns where the value begins after the keys and punctuation at the start of run:
// to=, --author=, SMTP_USER='.
func behindKeys(run string) int {
	for at := 0; ; {
		for at < len(run) && run[at] < utf8.RuneSelf && !isAlnum(run[at]) && run[at] != '_' {
			at++
		}
		key, value, found := strings.Cut(run[at:], "=")
		if !found || value == "" || !isKey(key) || bounces(key, value) {
			return at
		}
		at += len(key) + 1
	}
}

// isKey reports a name as programs give to fields.
func isKey(key string) bool {
	for i := range len(key) {
		letter := isLetter(key[i]) || key[i] == '_' || key[i] >= utf8.RuneSelf
		if !letter && (i == 0 || !isDigit(key[i]) && key[i] != '-' && key[i] != '.') {
			return false
		}
	}
	return key != ""
}

// bounces reports whether key=value is not a field but the local part of a bounce address, which
// contains the recipient: list-anna=example.com@lists.example (VERP), SRS and BATV, which begin
// with a tag, and X.400. A key that announces an address, or is written like an environment
// variable, is a field.
func bounces(key, value string) bool {
	key, whole := fold(key), key
	if bounceTags.has(key) {
		return true
	}
	if k := strings.IndexByte(value, '/'); k >= 0 && strings.Contains(value[k:], "=") {
		return true
	}
	if mailKeys.has(key[strings.LastIndexAny(key, "_.")+1:]) || strings.HasSuffix(key, "mail") ||
		strings.Contains(key, "_") && whole == strings.ToUpper(whole) {
		return false
	}
	host, _, _ := strings.Cut(value, "=")
	host, _, _ = strings.Cut(host, "__") // anna=example.com__0-6l3u3x@bnc.salesforce.com
	k := strings.LastIndexByte(host, '.')
	return k > 0 && isTLD(host[k+1:])
}

//nolint:gochecknoglobals // constant tables
var (
	bounceTags = lookup(wordSet("srs srs0 srs1 prvs msprvs1 btv1"))
	mailKeys   = lookup(wordSet("to from cc bcc mailto user username login account owner author " +
		"committer customer client contact recipient sender rcpt reply-to replyto"))
)

// reserved reports the domains of RFC 2606 and RFC 6762, which are not public but still name the
// host of a mailbox or a machine.
func reserved(tld string) bool {
	switch strings.ToLower(tld) {
	case "test", "example", "invalid", "localhost", "local", "internal", "lan", "corp":
		return true
	}
	return false
}
