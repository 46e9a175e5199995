package pii

import (
	"slices"
	"strings"
)

// Programmers point at documents and programs with addresses of sites all day. reference reports
// whether the address in [start, end), whose host is given, is such a pointer and not someone's
// site: one that a program completes, one on a host that serves documents by its name, one behind
// the key of a commit or of a header, one in a comment of code, and what a link of Markdown or HTML
// leads to inside of a site. Whoever says my of an address, and the pages of people, are someone's
// anyway.
func (s *scanner) reference(start, end int, host string) bool {
	if b := s.byteAt(end); b == '{' || b == '$' && s.byteAt(end+1) == '{' {
		return true
	}
	if s.cued(start, cueWidth, ownCues) {
		return false
	}
	if serves(host) {
		return true
	}
	path := s.text[start+strings.Index(s.text[start:end], host)+len(host) : end]
	if peoples(path) {
		return false
	}
	line := s.lineBefore(start)
	return trailer(line) || comment(line) || len(path) > len("/") && linked(line)
}

// ownCues say whose an address is.
//
//nolint:gochecknoglobals // constant table
var ownCues = cues{
	"my", "our", "his", "her", "their", "mein", "meine", "unsere", "mi", "mis", "mon", "ma", "mes",
	"minha", "meu", "mio", "mia", "mijn", "min", "moja", "мой", "моя", "我的", "私の",
}

// serves reports a host of which the first name says that it serves documents or programs.
func serves(host string) bool {
	first, rest, _ := strings.Cut(fold(host), ".")
	if strings.IndexByte(rest, '.') < 0 {
		return false
	}
	switch first {
	case "docs", "doc", "developer", "developers", "api", "learn", "platform", "console",
		"registry", "packages", "cdn", "static", "download", "downloads", "status", "wiki", "help",
		"forum", "forums", "git", "ci":
		return true
	}
	return false
}

// peoples reports the path of what a service has of one of its users.
func peoples(path string) bool {
	return slices.ContainsFunc([]string{
		"/@", "/~", "/in/", "/u/", "/user/", "/users/", "/profile", "/people/", "/members/",
	}, func(mark string) bool { return strings.Contains(path, mark) })
}

// lineReachBack is how far before a place its line is looked at, in bytes.
const lineReachBack = 160

// lineBefore returns what stands before i in its line, without the mark of a diff, or nothing where
// that is too long.
func (s *scanner) lineBefore(i int) string {
	from := max(0, i-lineReachBack)
	k := strings.LastIndexByte(s.text[from:i], '\n')
	if k < 0 && from > 0 {
		return ""
	}
	return undiffed(s.text[from+k+1 : i])
}

// undiffed cuts the mark of a diff off a line: a + or - with something else than a number, another
// mark or a space behind it. The options of a command and the modes of a file begin with a - as
// well.
func undiffed(line string) string {
	if len(line) < 2 || line[0] != '+' && line[0] != '-' {
		return line
	}
	if b := line[1]; b == line[0] || b == ' ' || b == '>' || isDigit(b) {
		return line
	}
	word, _ := nextToken(line)
	if modes(word) || options(word) && !statements.has(word[1:]) {
		return line
	}
	return line[1:]
}

// trailer reports the key of a commit's last lines, or of a header, and nothing else: names with
// hyphens between them and a colon. Keys that speak of a site announce one.
func trailer(line string) bool {
	key, rest, found := strings.Cut(strings.TrimLeft(line, " \t+-"), ":")
	if !found || strings.Trim(rest, " \t<\"'") != "" || key == "" || !isUpper(key[0]) {
		return false
	}
	hyphens := strings.Count(key, "-")
	for i := range len(key) {
		if !isLetter(key[i]) && (key[i] != '-' || i == 0 || key[i-1] == '-') {
			return false
		}
	}
	key = fold(key)
	return hyphens > 0 && !strings.Contains(key, "site") && !strings.Contains(key, "page") &&
		!strings.Contains(key, "web") && !strings.Contains(key, "blog")
}

// comment reports the beginning of a comment in code.
func comment(line string) bool {
	line = strings.TrimLeft(line, " \t+-")
	return strings.HasPrefix(line, "//") || strings.HasPrefix(line, "/*") ||
		strings.HasPrefix(line, "<!--")
}

// linked reports what stands before the address of a link in Markdown or HTML, or before the
// definition of one.
func linked(line string) bool {
	line = strings.TrimRight(line, "<\"'")
	if strings.HasSuffix(line, "](") || strings.HasSuffix(line, "href=") {
		return true
	}
	line = strings.TrimLeft(line, " \t+-")
	return strings.HasPrefix(line, "[") && strings.HasSuffix(strings.TrimRight(line, " \t"), "]:")
}
