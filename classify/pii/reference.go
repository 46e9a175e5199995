package pii

import (
	"slices"
	"strings"
)

// Programmers refer to documents and programs with URLs. reference reports whether the URL in
// [start, end), with the given host, is such a reference and not a personal site: one completed by
// a program, one on a host that serves documents according to its name, one after the key of a
// commit message or header, one in a comment of code, and the target of a Markdown or HTML link
// inside a site. URLs preceded by "my", and pages of people, are personal in any case.
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

// serves reports whether the first label of a host says that it serves documents or programs.
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

// peoples reports whether a path is that of a user's page on a service.
func peoples(path string) bool {
	return slices.ContainsFunc([]string{
		"/@", "/~", "/in/", "/u/", "/user/", "/users/", "/profile", "/people/", "/members/",
	}, func(mark string) bool { return strings.Contains(path, mark) })
}

// lineReachBack is the maximum part of a line examined before a position, in bytes.
const lineReachBack = 160

// lineBefore returns the text before i in its line, without the mark of a diff, or nothing if that
// is too long.
func (s *scanner) lineBefore(i int) string {
	from := max(0, i-lineReachBack)
	k := strings.LastIndexByte(s.text[from:i], '\n')
	if k < 0 && from > 0 {
		return ""
	}
	return undiffed(s.text[from+k+1 : i])
}

// undiffed removes the mark of a diff from a line: a + or - that is not followed by a number,
// another mark or a space. Command options and file modes begin with a - as well.
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

// trailer reports whether a line consists of a key as in the last lines of a commit message, or of
// a header: names joined by hyphens, and a colon. Keys about a site announce one.
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

// comment reports whether a line begins with a comment mark of code.
func comment(line string) bool {
	line = strings.TrimLeft(line, " \t+-")
	return strings.HasPrefix(line, "//") || strings.HasPrefix(line, "/*") ||
		strings.HasPrefix(line, "<!--")
}

// linked reports whether a line ends as before the URL of a Markdown or HTML link, or of a link
// definition.
func linked(line string) bool {
	line = strings.TrimRight(line, "<\"'")
	if strings.HasSuffix(line, "](") || strings.HasSuffix(line, "href=") {
		return true
	}
	line = strings.TrimLeft(line, " \t+-")
	return strings.HasPrefix(line, "[") && strings.HasSuffix(strings.TrimRight(line, " \t"), "]:")
}
