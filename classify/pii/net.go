package pii

import (
	"net/netip"
	"slices"
	"strings"
	"unicode/utf8"

	"signalbox/internal/script"
)

// host reads a host name of at least two labels that begins at i and returns its end and its last
// label; the end is 0 when there is none. read is how far it looked. Labels are letters, digits and
// inner hyphens of any script (RFC 1123, section 2.1; RFC 5890), 63 octets at most.
func (s *scanner) host(i int) (end int, tld string, read int) {
	labels, start := 0, i
	for i < len(s.text) {
		from := i
		for i < len(s.text) &&
			(isAlnum(s.text[i]) || s.text[i] == '-' || s.text[i] >= utf8.RuneSelf) {
			i++
		}
		if i > from && s.text[i-1] == '-' {
			i--
		}
		label := trimWide(s.text[from:i])
		if label != "" && labels > 0 { // text may go on right behind
			label = label[:s.tldEnd(from, from+len(label))-from]
		}
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

// trimWide cuts a label at the first character that belongs to the sentence: ideographic and
// general punctuation, full-width forms, no-break space.
func trimWide(label string) string {
	for i, r := range label {
		if r >= 0x2000 && r < 0x2070 || r >= 0x3000 && r < 0x3040 || r >= 0xFF00 && r < 0xFFF0 ||
			r == 0xA0 || r == 0xAB || r == 0xBB || r == utf8.RuneError {
			return label[:i]
		}
	}
	return label
}

// tldEnd is where the top-level domain ends that the label [from, to) begins with, where a script
// whose words run on behind it follows and no other label ("a@b.jpです", "a@b.com으로"); else to.
func (s *scanner) tldEnd(from, to int) int {
	end := from
	for end < to && isAlnum(s.text[end]) {
		end++
	}
	if end == to || s.byteAt(to) == '.' && isAlnum(s.byteAt(to+1)) || !isTLD(s.text[from:end]) {
		return to
	}
	if r, _ := utf8.DecodeRuneInString(s.text[end:]); script.IsUnspaced(r) || script.IsHangul(r) {
		return end
	}
	return to
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
	user := strings.IndexByte(s.text[from:min(len(s.text), from+maxLocal)], '@')
	if user > 0 && !strings.ContainsAny(s.text[from:from+user], " /\n?#") {
		from += user + 1
	}
	end, tld, _ := s.host(from)
	if end == 0 || !isTLD(tld) || nobodys(s.text[from:end]) {
		return 0
	}
	last := s.pathEnd(end)
	mail, next := s.mails(end, last)
	if !s.reference(start, last, s.text[from:end]) {
		s.add(DomainName, start, mail, scoreSyntax)
	}
	return next
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
	for i < len(s.text) && s.text[i] > ' ' && s.text[i] < utf8.RuneSelf &&
		strings.IndexByte("\"<>\\^`{|}", s.text[i]) < 0 {
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
	if !isAlnum(s.byteAt(i-1)) && s.byteAt(i-1) < utf8.RuneSelf ||
		!isAlnum(s.byteAt(i+1)) && s.byteAt(i+1) < utf8.RuneSelf {
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
	case prev == '@' || prev == '.' || prev == '_' || prev == '$' || prev == '/' || prev == '\\' ||
		prev >= utf8.RuneSelf && spacedBefore(s.text[:start]):
		return skip
	case next == '@' || next == '_' || next == '(' || next == '=' || next == '[' || next == '\\':
		return skip
	case !isTLD(tld),
		!www && !bareTLD(tld) && (fileLike(tld) || !s.cued(start, cueWidth, siteCues)):
		return skip
	case nobodys(s.text[start:end]):
		return skip
	case !www && (!uniform(s.text[start:end]) ||
		len(first) == 1 && !s.cued(start, cueWidth, siteCues)):
		return skip
	}
	mail, behind := s.mails(end, s.pathEnd(end))
	s.add(DomainName, start, mail, scoreSyntax)
	return behind
}

func spacedBefore(s string) bool {
	r, _ := utf8.DecodeLastRuneInString(s)
	return spaced(r)
}

// siteCues name what follows as a host.
//
//nolint:gochecknoglobals // constant tables
var (
	siteCues = cues{
		"site", "website", "domain", "url", "host", "hostname", "homepage", "visit", "www", "web",
	}
	versionCues = cues{"version", "v", "ver.", "release", "section", "chapter", "§"}
)

// uniform reports whether the letters of a host are of one case, the first one aside: a sentence
// that lacks its space ("end.The") is not.
func uniform(host string) bool {
	return host == strings.ToLower(host) || host == strings.ToUpper(host) ||
		host[1:] == strings.ToLower(host[1:])
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
	for end < len(s.text) && end-start < 46 &&
		(isHex(s.text[end]) || s.text[end] == ':' || s.text[end] == '.') {
		end++
	}
	for end > i && (s.text[end-1] == '.' || s.text[end-1] == ':' && s.byteAt(end-2) != ':') {
		end--
	}
	if isAlnum(s.byteAt(end)) || !isIPv6(s.text[start:end]) {
		return 0
	}
	if a, _ := netip.ParseAddr(s.text[start:end]); !personal(a) {
		return end
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
	for end < len(s.text) && end-i <= len("255.255.255.255") &&
		(isDigit(s.text[end]) || s.text[end] == '.') {
		end++
	}
	if s.byteAt(end-1) == '.' {
		end--
	}
	if s.byteAt(i-1) == '.' || s.wordAfter(end) ||
		s.byteAt(end) == '.' && isDigit(s.byteAt(end+1)) {
		return 0
	}
	if strings.Count(s.text[i:end], ".") != 3 {
		return 0
	}
	a, err := netip.ParseAddr(s.text[i:end])
	if err != nil || !a.Is4() || s.cued(i, 16, versionCues) || s.versionLike(a, i, end) ||
		s.released(a, i, end) {
		return 0
	}
	if !personal(a) {
		return end
	}
	return s.add(IPAddress, i, end, scoreSyntax)
}

// versionLike reports whether four numbers are rather a version: of a product (RFC 9110, section
// 10.1.5) or a package, by what is glued to them; and in a machine's line small numbers that no
// word calls an address.
func (s *scanner) versionLike(a netip.Addr, i, end int) bool {
	b := s.byteAt(i - 1)
	if (b == '/' || b == '-' || b == '~' || b == '^') && isLetter(s.byteAt(i-2)) || b == '~' && s.byteAt(i-2) == '~' {
		return true
	}
	b = s.byteAt(end)
	if (b == '-' || b == '+' || b == '.' || b == '_') && isLetter(s.byteAt(end+1)) {
		return true
	}
	const small = 32 // versions seldom have larger first numbers
	ip := a.As4()
	return ip[0] < small && ip[1] < small && ip[2] < small && b != ':' && b != '/' &&
		s.lines.at(i) && !s.cued(i, cueWidth, addressCues)
}

// released reports whether four small numbers are the version that a release has, or that one of
// three numbers before them is changed to.
func (s *scanner) released(a netip.Addr, i, end int) bool {
	const small, reach = 32, 24
	if ip := a.As4(); ip[0] >= small || ip[1] >= small || ip[2] >= small {
		return false
	}
	for _, word := range [...]string{" release", " version", " update", " patch"} {
		if strings.HasPrefix(s.text[end:], word) {
			return true
		}
	}
	for word := range strings.FieldsSeq(s.text[max(0, i-reach):i]) {
		if versioned(strings.Trim(word, ".,:;()'\"`")) {
			return true
		}
	}
	return false
}

// addressCues name what follows as the address of a machine.
//
//nolint:gochecknoglobals // constant table
var addressCues = cues{
	"ip", "addr", "address", "client", "peer", "remote", "from", "to", "src", "dst", "host",
	"server", "forwarded", "for", "ping", "via",
}

// personal reports whether an address may lead to a person or a household. Excluded are the private
// ranges (RFC 1918, 4193, 6598), loopback, link-local and multicast addresses, those reserved for
// documentation and tests (RFC 5737, 3849, 2544), and well-known public resolvers.
func personal(a netip.Addr) bool {
	a = a.Unmap()
	if !a.IsGlobalUnicast() || a.IsPrivate() {
		return false
	}
	return !slices.ContainsFunc(setAside, func(p netip.Prefix) bool { return p.Contains(a) })
}

//nolint:gochecknoglobals // constant table
var setAside = func() (out []netip.Prefix) {
	for p := range strings.FieldsSeq("0.0.0.0/8 100.64.0.0/10 192.0.0.0/24 192.0.2.0/24 " +
		"198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 240.0.0.0/4 2001:db8::/32 ::/96 " +
		"1.1.1.1/32 1.0.0.1/32 8.8.8.8/32 8.8.4.4/32 9.9.9.9/32") {
		out = append(out, netip.MustParsePrefix(p))
	}
	return out
}()

// nobodys reports hosts that are not personal sites: those of documentation (RFC 2606), and of
// public services for code, packages, standards and short links.
func nobodys(host string) bool {
	host = fold(host)
	for {
		if _, ok := commonHosts[host]; ok {
			return true
		}
		k := strings.IndexByte(host, '.')
		if k < 0 {
			return false
		}
		host = host[k+1:]
	}
}

//nolint:gochecknoglobals // constant table
var commonHosts = wordSet("example.com example.org example.net example test invalid localhost " +
	"local internal lan corp " +
	"github.com githubusercontent.com gitlab.com bitbucket.org gopkg.in golang.org go.dev " +
	"pypi.org pythonhosted.org npmjs.com npmjs.org crates.io docs.rs " +
	"rubygems.org nuget.org packagist.org docker.io docker.com quay.io gcr.io ghcr.io k8s.io " +
	"kubernetes.io maven.org apache.org w3.org ietf.org rfc-editor.org iana.org " +
	"rust-lang.org ruby-lang.org php.net perl.org swift.org kotlinlang.org haskell.org " +
	"r-project.org typescriptlang.org googlesource.com " +
	"react.dev vuejs.org djangoproject.com pytorch.org tensorflow.org numpy.org scipy.org " +
	"semver.org caniuse.com crontab.guru " +
	"microsoft.com aka.ms visualstudio.com azure.com amazonaws.com openai.com anthropic.com " +
	"modelcontextprotocol.io containers.dev " +
	"python.org nodejs.org mozilla.org readthedocs.io shields.io json-schema.org schema.org " +
	"opensource.org creativecommons.org gnu.org wikipedia.org stackoverflow.com " +
	"googleapis.com cloudflare.com jsdelivr.net unpkg.com huggingface.co arxiv.org doi.org " +
	"t.co bit.ly goo.gl ow.ly tinyurl.com youtu.be fb.me lnkd.in dlvr.it buff.ly is.gd amzn.to " +
	"wp.me")
