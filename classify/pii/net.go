package pii

import (
	"net/netip"
	"strings"
	"unicode/utf8"
)

// atext are the characters of an unquoted local part besides letters and digits (RFC 5322, section
// 3.2.3) as far as mail providers hand them out. The rest of the RFC's set is punctuation in prose.
const atext = ".!#$%&'*+-/=?^_`{|}~"

// Limits of an address (RFC 5321, section 4.5.3.1) in octets.
const (
	maxLocal  = 64
	maxDomain = 255
)

// email reads the address around the @ at i.
func (s *scanner) email(i int) int {
	start := i
	for start > 0 && i-start <= maxLocal && localByte(s.text[start-1]) {
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
	for start < i && !isAlnum(s.text[start]) && s.text[start] != '_' && s.text[start] < utf8.RuneSelf { // quotes and the like before an address
		start++
	}
	local := s.text[start:i]
	if local == "" || len(local) > maxLocal || local[len(local)-1] == '.' || strings.Contains(local, "..") {
		return 0
	}
	end, tld, _ := s.host(i + 1)
	if end == 0 || end-i > maxDomain || !isTLD(tld) && !reserved(tld) {
		return 0
	}
	return s.add(EmailAddress, start, end, scoreChecksum)
}

func localByte(b byte) bool {
	return isAlnum(b) || b >= utf8.RuneSelf || strings.IndexByte(atext, b) >= 0
}

// reserved reports the domains of RFC 2606 and RFC 6762, which are no public ones and still name the
// host of a mailbox or a machine.
func reserved(tld string) bool {
	switch strings.ToLower(tld) {
	case "test", "example", "invalid", "localhost", "local", "internal", "lan", "corp":
		return true
	}
	return false
}

// host reads a host name of at least two labels that begins at i and returns its end and its last
// label; the end is 0 when there is none. read is how far it looked. Labels are letters, digits and inner hyphens of any script
// (RFC 1123, section 2.1; RFC 5890), 63 octets at most.
func (s *scanner) host(i int) (end int, tld string, read int) {
	labels, start := 0, i
	for i < len(s.text) {
		from := i
		for i < len(s.text) && (isAlnum(s.text[i]) || s.text[i] == '-' || s.text[i] >= utf8.RuneSelf) {
			i++
		}
		if i > from && s.text[i-1] == '-' {
			i--
		}
		label := trimWide(s.text[from:i])
		if label == "" || len(label) > 63 || label[0] == '-' {
			break
		}
		i = from + len(label)
		labels++
		end, tld = i, label
		if i-start > maxDomain || s.byteAt(i) != '.' {
			break
		}
		i++
	}
	if labels < 2 || len(tld) < 2 {
		return 0, "", i
	}
	return end, tld, i
}

// trimWide cuts a label at the first character that belongs to the sentence: ideographic and general
// punctuation, full-width forms, no-break space.
func trimWide(label string) string {
	for i, r := range label {
		if r >= 0x2000 && r < 0x2070 || r >= 0x3000 && r < 0x3040 || r >= 0xFF00 && r < 0xFFF0 || r == 0xA0 || r == 0xAB || r == 0xBB || r == utf8.RuneError {
			return label[:i]
		}
	}
	return label
}

// url reads an address with a scheme; the colon of the scheme is at i.
func (s *scanner) url(i int) int {
	if !strings.HasPrefix(s.text[i:], "://") {
		return 0
	}
	start := i
	for start > 0 && i-start < 12 && isLetter(s.text[start-1]) {
		start--
	}
	switch strings.ToLower(s.text[start:i]) {
	case "http", "https", "ftp", "sftp", "ssh", "ws", "wss":
	default:
		return 0
	}
	from := i + len("://")
	if user := strings.IndexByte(s.text[from:min(len(s.text), from+maxLocal)], '@'); user > 0 && !strings.ContainsAny(s.text[from:from+user], " /\n?#") {
		from += user + 1
	}
	end, tld, _ := s.host(from)
	if end == 0 || !isTLD(tld) {
		return 0
	}
	return s.add(DomainName, start, s.pathEnd(end), scoreSyntax)
}

// pathEnd returns the end of the port, path and query behind a host, without the punctuation of the
// sentence around (RFC 3986, sections 3.2.3 to 3.5).
func (s *scanner) pathEnd(i int) int {
	host := i
	if s.byteAt(i) == ':' && isDigit(s.byteAt(i+1)) {
		i = s.digitsEnd(i + 1)
	}
	if b := s.byteAt(i); b != '/' && b != '?' && b != '#' {
		return i
	}
	slashed := i + 1
	for i < len(s.text) && s.text[i] > ' ' && s.text[i] < utf8.RuneSelf && strings.IndexByte("\"<>\\^`{|}", s.text[i]) < 0 {
		i++
	}
	for i > slashed && strings.IndexByte(".,;:!?'*)]", s.text[i-1]) >= 0 {
		if s.text[i-1] == ')' && strings.IndexByte(s.text[host:i], '(') >= 0 {
			break
		}
		i--
	}
	return i
}

// domain reads the bare host name around the dot at i.
func (s *scanner) domain(i int) int {
	if !isAlnum(s.byteAt(i-1)) && s.byteAt(i-1) < utf8.RuneSelf || !isAlnum(s.byteAt(i+1)) && s.byteAt(i+1) < utf8.RuneSelf {
		return 0
	}
	start := i
	for start > 0 && i-start < 63 && (isAlnum(s.text[start-1]) || s.text[start-1] == '-') {
		start--
	}
	for start < i && s.text[start] == '-' {
		start++
	}
	if start == i {
		return 0
	}
	end, tld, read := s.host(start)
	if end <= i {
		return max(i+1, read)
	}
	skip := max(end, i+1)
	first, prev, next := s.text[start:i], s.byteAt(start-1), s.byteAt(end)
	www := strings.EqualFold(first, "www")
	switch {
	case prev == '@' || prev == '.' || prev == '_' || prev == '$' || prev == '/' || prev == '\\' || prev >= utf8.RuneSelf && spacedBefore(s.text[:start]):
		return skip
	case next == '@' || next == '_' || next == '(' || next == '=' || next == '[' || next == '\\':
		return skip
	case !isTLD(tld), !www && !bareTLD(tld) && (fileLike(tld) || !s.cued(start, cueWidth, siteCues)):
		return skip
	case !www && (!uniform(s.text[start:end]) || len(first) == 1 && !s.cued(start, cueWidth, siteCues)):
		return skip
	}
	return s.add(DomainName, start, s.pathEnd(end), scoreSyntax)
}

func spacedBefore(s string) bool {
	r, _ := utf8.DecodeLastRuneInString(s)
	return spaced(r)
}

// siteCues name what follows as a host.
//
//nolint:gochecknoglobals // constant tables
var (
	siteCues    = cues{"site", "website", "domain", "url", "host", "hostname", "homepage", "visit", "www", "web"}
	versionCues = cues{"version", "v", "ver.", "release", "section", "chapter", "§"}
)

// uniform reports whether the letters of a host are of one case, the first one aside: a sentence that
// lacks its space ("end.The") is not.
func uniform(host string) bool {
	return host == strings.ToLower(host) || host == strings.ToUpper(host) || host[1:] == strings.ToLower(host[1:])
}

// ipv6 reads the address (RFC 4291, section 2.2) with a colon at i.
func (s *scanner) ipv6(i int) int {
	start := i
	for start > 0 && i-start <= 4 && isHex(s.text[start-1]) {
		start--
	}
	if b := s.byteAt(start - 1); isAlnum(b) || b == ':' || b == '_' || b == '.' {
		return 0
	}
	end := i
	for end < len(s.text) && end-start < 46 && (isHex(s.text[end]) || s.text[end] == ':' || s.text[end] == '.') {
		end++
	}
	for end > i && (s.text[end-1] == '.' || s.text[end-1] == ':' && s.byteAt(end-2) != ':') {
		end--
	}
	if isAlnum(s.byteAt(end)) || !isIPv6(s.text[start:end]) {
		return 0
	}
	return s.add(IPAddress, start, end, scoreSyntax)
}

// isIPv6 reports whether addr is an address. Two words joined by :: are a name in C++ and Rust; an
// address that is abbreviated so far has digits.
func isIPv6(addr string) bool {
	colons := strings.Count(addr, ":")
	if colons < 2 || len(addr) < len("::1") {
		return false
	}
	if strings.Contains(addr, "::") {
		if !strings.ContainsAny(addr, "0123456789") {
			return false
		}
	} else if colons != 7 && !strings.Contains(addr, ".") {
		return false
	}
	a, err := netip.ParseAddr(addr)
	return err == nil && a.Is6()
}

// ipv4 reads a dotted address at i, where a digit begins a word. What a version number looks like,
// when a word says version, is one.
func (s *scanner) ipv4(i int) int {
	end := i
	for end < len(s.text) && end-i <= len("255.255.255.255") && (isDigit(s.text[end]) || s.text[end] == '.') {
		end++
	}
	if s.byteAt(end-1) == '.' {
		end--
	}
	if b := s.byteAt(i - 1); b == '.' || s.wordAfter(end) || s.byteAt(end) == '.' && isDigit(s.byteAt(end+1)) {
		return 0
	}
	if strings.Count(s.text[i:end], ".") != 3 {
		return 0
	}
	if a, err := netip.ParseAddr(s.text[i:end]); err != nil || !a.Is4() {
		return 0
	}
	if s.cued(i, 16, versionCues) {
		return 0
	}
	return s.add(IPAddress, i, end, scoreSyntax)
}
