package pii

import (
	"strings"
	"unicode/utf8"
)

// Code, logs, configuration and program output are full of numbers, capitals and dotted names that
// are not personal. judge distinguishes their lines from prose by the share of words that a
// sentence would not contain: operators, calls, paths, options, names in camelCase or with
// underscores.
type judge struct {
	text     string
	from, to int  // the range judged: a line, or a part of a long one
	machine  bool // the verdict on it: machine text

	headAt int  // 1 + the start of the line that head is about
	head   bool // see logged
}

// If a line is longer than lineReach, only that much around a position is examined, from multiples
// of lineStep on, so that neighbouring positions share a verdict.
const (
	lineReach = 256
	lineStep  = 128
)

// lineOf returns the line around i, or the part of it that is looked at.
func lineOf(text string, i int) (from, to int) {
	base := i - i%lineStep
	from, to = max(0, base-lineReach+lineStep), min(len(text), base+lineReach)
	if k := strings.LastIndexByte(text[from:i], '\n'); k >= 0 {
		from += k + 1
	}
	if k := strings.IndexByte(text[i:to], '\n'); k >= 0 {
		to = i + k
	}
	return from, to
}

// at reports whether the line around i is a machine's.
func (j *judge) at(i int) bool {
	from, to := lineOf(j.text, i)
	if from != j.from || to != j.to {
		j.from, j.to = from, to
		j.machine = machineLine(j.text[from:to])
	}
	return j.machine
}

// machineLine reports whether at least a third of a line cannot be part of a sentence. A time stamp
// at its start counts as evidence, and so does a word that opens a statement if the line has little
// other text.
func machineLine(line string) bool {
	odd, words, before := 0, 0, ""
	rest := strings.TrimLeft(undiffed(line), " \t")
	if n := stampLen(rest); n > 0 {
		odd, rest = weightStamp, rest[n:]
	} else if opensStatement(rest) {
		odd = weightStatement
	}
	for rest != "" {
		var token string
		if token, rest = nextToken(rest); token == "" {
			break
		}
		o, w := weigh(token)
		if before == "@" || o > 0 && isHandle(token) && rest != "" { // as tweets are cut into words
			o, w = 0, 1
		}
		odd, words, before = odd+o, words+w, token
	}
	return odd > 0 && 2*odd >= words
}

// isHandle reports a handle or a hashtag: such a name may have any capitals and underscores.
func isHandle(token string) bool {
	return len(token) > 1 && (token[0] == '@' || token[0] == '#') &&
		!strings.ContainsAny(token[1:len(token)-1], "./()=<>{}")
}

// The weights of what only machines begin a line with, in tokens.
const (
	weightStamp     = 2
	weightStatement = 3
	weightLevel     = 2
)

// nextToken cuts the first word between spaces off text.
func nextToken(text string) (token, rest string) {
	text = strings.TrimLeft(text, " \t\r\n")
	if k := strings.IndexAny(text, " \t\r\n"); k >= 0 {
		return text[:k], text[k:]
	}
	return text, ""
}

// weigh returns how much a token counts as machine text and as prose. Numbers, web addresses and
// mail addresses occur in both.
func weigh(token string) (odd, words int) {
	bare := strings.Trim(token, ".,;:!?\"'“”‘’()*")
	switch {
	case levels.has(bare), modes(token), stampLen(token) > 0 && token[0] == '[':
		return weightLevel, 0
	case versioned(bare):
		return 1, 0
	case strings.Contains(token, "://") || isMailLike(bare):
		return 0, 0
	case oddToken(token):
		return 1, 0
	case bare == "":
		return 0, 0
	case !strings.ContainsFunc(bare, isWide) && !hasLetter(bare):
		return 0, 0
	default:
		return 0, max(1, wideWords(bare))
	}
}

// modes reports the permissions of a file as ls prints them.
func modes(token string) bool {
	return len(token) >= len("drwxr-xr-x") && strings.IndexByte("-dlbcps", token[0]) >= 0 &&
		strings.Trim(token[1:], "rwxsStT-.+@") == "" &&
		strings.IndexByte(token, 'r') > 0
}

// versioned reports a version of three numbers. Dates have four digits in their last part, or two
// in all.
func versioned(token string) bool {
	rest, marked := strings.CutPrefix(token, "v")
	s := scanner{text: rest}
	i := 0
	for part := range 3 {
		end := s.digitsEnd(i)
		if end == i || part == 2 && end-i == 4 && !marked || part < 2 && s.byteAt(end) != '.' {
			return false
		}
		i = end + 1
	}
	return marked || s.byteAt(i-1) != '.'
}

// wideWords is how many words a token of a script without spaces stands for, roughly.
func wideWords(token string) int {
	n := 0
	for _, r := range token {
		if r >= utf8.RuneSelf && !spaced(r) {
			n++
		}
	}
	return n / 2
}

func isWide(r rune) bool { return r >= utf8.RuneSelf }

func isMailLike(token string) bool {
	k := strings.IndexByte(token, '@')
	return k > 0 && strings.IndexByte(token[k:], '.') > 1
}

func hasLetter(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool { return r < utf8.RuneSelf && isLetter(byte(r)) })
}

// oddToken reports whether a token is one of code that no sentence contains.
func oddToken(token string) bool {
	if token == "" {
		return false
	}
	switch token {
	case "+", "-", "*", "/", "%", "&", "|", "#", "//", "--", "/*", "*/", "...", "$", ">", "<", "@@",
		"+++", "---":
		return len(token) > 1 && token != "--" && token != "..." || token == "|" || token == "$"
	}
	return strings.ContainsAny(token, "{}<>=|\\`^~;$") && !closesSentence(token) ||
		opensKey(token) ||
		strings.Count(token, ",") > 1 && hasLetter(token) || calls(token) || paths(token) ||
		options(token) || hexes(token) || named(token) || suffixed(token)
}

// closesSentence reports whether the only odd byte of a token is a semicolon, a backtick or a
// currency sign, which prose has as well.
func closesSentence(token string) bool {
	return !strings.ContainsAny(token, "{}<>=|\\^~") &&
		(strings.IndexByte(token, ';') < 0 || strings.HasSuffix(token, ";") &&
			!strings.ContainsAny(token, "()\"")) &&
		strings.IndexByte(token, '$') <= 0 &&
		(token[0] != '$' || len(token) > 1 && isDigit(token[1]))
}

// opensKey reports a quoted key of JSON, or a name in brackets.
func opensKey(token string) bool {
	if k := len(token) - 1; token[k] == ':' && strings.ContainsAny(token[:k], "-_.") &&
		isLetter(token[0]) && fold(token) == token {
		return true
	}
	return strings.Contains(token, "\":") || strings.Contains(token, "':") ||
		strings.Contains(token, "::") ||
		len(token) > 2 && token[0] == '[' && isLetter(token[1]) && strings.HasSuffix(token, "]") ||
		strings.Contains(token, "](") && strings.Contains(token, "/")
}

// calls reports an empty or a tight pair of parentheses, or an index, behind a name.
func calls(token string) bool {
	k := strings.IndexAny(token, "([")
	if k <= 0 || !isAlnum(token[k-1]) {
		return false
	}
	inner := token[k+1:]
	return inner == "" || !strings.HasPrefix(inner, "s)") &&
		strings.HasPrefix(token[:1], strings.ToLower(token[:1]))
}

// paths reports two slashes between names, or one behind a dot, a tilde or nothing.
func paths(token string) bool {
	token = strings.Trim(token, "\"'(),:")
	k := strings.IndexByte(token, '/')
	if k < 0 || k+1 >= len(token) || !hasLetter(token) {
		return false
	}
	return k == 0 && isAlnum(token[1]) || strings.HasPrefix(token, "./") ||
		strings.HasPrefix(token, "../") ||
		strings.HasPrefix(token, "~/") || strings.Count(token, "/") > 1
}

// options reports a flag of a command line.
func options(token string) bool {
	name := strings.TrimLeft(token, "-")
	n := len(token) - len(name)
	return (n == 1 || n == 2) && name != "" && isLetter(name[0]) && name == strings.ToLower(name)
}

// hexes reports a hash, an id or a UUID: letters and digits in turns, all of them hex.
func hexes(token string) bool {
	token = strings.Trim(token, "\"'(),:;.[]")
	if color(token) {
		return true
	}
	n, turns := 0, 0
	for i := range len(token) {
		b := token[i]
		if !isHex(b) {
			if b != '-' && b != '.' && b != 'x' {
				return false
			}
			continue
		}
		if n++; i > 0 && isHex(token[i-1]) && isDigit(b) != isDigit(token[i-1]) {
			turns++
		}
	}
	return n >= 7 && turns > 1
}

// color reports # and six hex digits of both kinds, as style sheets have them.
func color(token string) bool {
	if len(token) != len("#c0ffee") || token[0] != '#' {
		return false
	}
	for i := 1; i < len(token); i++ {
		if !isHex(token[i]) {
			return false
		}
	}
	return strings.ContainsAny(token, "0123456789") && hasLetter(token)
}

// named reports a name in camelCase, with underscores, or with dots between its parts.
func named(token string) bool {
	token = strings.Trim(token, "\"'(),:;.!?*_-")
	dots := 0
	for i := 1; i+1 < len(token); i++ {
		switch b := token[i]; {
		case b == '_' && isAlnum(token[i-1]) && isAlnum(token[i+1]):
			return true
		case isUpper(b) && isLetter(token[i-1]) && !isUpper(token[i-1]) && !particle(token[:i]):
			return true
		case b == '.' && i > 1 && i+2 < len(token) && isLetter(token[i-1]) &&
			isLetter(token[i-2]) && isLetter(token[i+1]) && isLetter(token[i+2]):
			if dots++; dots > 1 && strings.IndexByte(token, '@') <= 0 &&
				!strings.HasPrefix(token, "www.") {
				return true
			}
		}
	}
	return false
}

// particle reports the beginnings of names that have a capital behind them: McCormick, DeVito.
func particle(front string) bool {
	k := strings.LastIndexByte(front, '-') + 1
	switch front[k:] {
	case "Mc", "Mac", "De", "Di", "La", "Le", "Fitz", "Van", "Du", "Da", "Del", "Von", "San", "i",
		"e":
		return true
	}
	return false
}

// suffixed reports the name of a file.
func suffixed(token string) bool {
	token = strings.TrimRight(strings.Trim(token, "\"'(),;!?*"), ".:0123456789")
	k := strings.LastIndexByte(token, '.')
	if k <= 0 || !isAlnum(token[k-1]) && token[k-1] != '_' {
		return false
	}
	return fileSuffixes.has(token[k+1:])
}

// opensStatement reports the first word of a statement where a second thing says so as well.
func opensStatement(line string) bool {
	for _, mark := range [...]string{"@@ -", "#include", "#!/", "//", "/*", "- \"", "- '"} {
		if strings.HasPrefix(line, mark) {
			return true
		}
	}
	if copyrighted(line) {
		return true
	}
	word, rest := nextToken(line)
	if !statements.has(strings.Trim(word, "(:")) {
		return false
	}
	second, rest := nextToken(rest)
	return loneMember(word, second, rest) || oddToken(strings.TrimRight(second, ",")) ||
		strings.HasSuffix(strings.TrimRight(line, " \t\r"), ":") ||
		strings.HasSuffix(strings.TrimRight(line, " \t\r"), "{") ||
		strings.ContainsAny(line, ";()=*")
}

// loneMember reports a statement that is only about a part of something: return data.size.
func loneMember(word, second, rest string) bool {
	switch word {
	case "return", "import", "yield", "await", "throw", "raise":
		return strings.IndexByte(strings.TrimRight(second, ".;,"), '.') > 0 &&
			strings.Trim(rest, " \t\r") == ""
	}
	return false
}

// copyrighted reports the notice that code begins with.
func copyrighted(line string) bool {
	k := strings.Index(line, "opyright ")
	if k < 0 || k > len(" * SPDX-FileCopyrightText: C") {
		return false
	}
	rest := line[k+len("opyright "):]
	return rest != "" &&
		(isDigit(rest[0]) || strings.HasPrefix(fold(rest), "(c)") || strings.HasPrefix(rest, "©"))
}

// stampLen returns the length of a time stamp at the start of a line, brackets and what follows it
// up to the next space included, or 0.
func stampLen(line string) int {
	if end := epochDate(line); end > 0 {
		return end
	}
	s := scanner{text: line}
	i := 0
	for i < len(line) && strings.IndexByte("[<(\"'", line[i]) >= 0 {
		i++
	}
	if end := s.stamp(i); end > 0 {
		for end < len(line) && line[end] > ' ' {
			end++
		}
		return end
	}
	return 0
}

// stamp returns the end of a machine's time stamp at i: date and clock with seconds (ISO 8601 and
// its relatives), a clock alone with seconds, the month first (RFC 3164, section 4.1.2), or the day
// first as in the logs of web servers and of Redis, the two last digits of the year as Spark and
// HDFS write them, or no year, as Android does. Else 0.
func (s *scanner) stamp(i int) int {
	first := s.digitsEnd(i)
	switch n := first - i; {
	case n == 4 && (s.byteAt(first) == '-' || s.byteAt(first) == '/' || s.byteAt(first) == '.'):
		at := first + 1
		for at < len(s.text) && (isDigit(s.text[at]) || s.text[at] == s.text[first]) &&
			at-i < len("2006-01-02") {
			at++
		}
		if b := s.byteAt(at); b == 'T' || b == ' ' || b == '-' || b == ',' {
			return s.secondsEnd(at + 1)
		}
	case n == 2 && s.byteAt(first) == ':':
		return s.secondsEnd(i)
	case n == 1 || n == 2:
		return s.shortStamp(first)
	case n == 6 && s.byteAt(first) == ' ':
		return s.digitsStamp(i)
	case n == 0 && isUpper(s.byteAt(i)):
		return s.syslog(i)
	}
	return 0
}

// shortStamp returns the end of a stamp whose first number ends at first and has one or two digits:
// 10/Oct/2000:13:55:36, 17/06/09 20:10:52 or 25 Apr 2024 05:32:35. Else 0.
func (s *scanner) shortStamp(first int) int {
	word := s.wordEnd(first + 1)
	switch b := s.byteAt(first); {
	case b == '/' && isLetter(s.byteAt(first+1)):
		if at := first + len("/Oct/2000:"); at < len(s.text) && s.text[at-1] == ':' {
			return s.secondsEnd(at)
		}
	case b == '/':
		at := first + len("/06/09")
		if s.digitsEnd(first+1) == first+3 && s.byteAt(first+3) == '/' && s.digitsEnd(first+4) == at &&
			s.byteAt(at) == ' ' {
			return s.secondsEnd(at + 1)
		}
	case b == '-' || b == '.': // 03-17 16:13:38.811
		at := first + len("-17")
		if first >= 2 && isDigit(s.text[first-2]) && s.digitsEnd(first+1) == at && s.byteAt(at) == ' ' &&
			validDay(s.text[first+1:at], s.text[first-2:first]) {
			return s.secondsEnd(at + 1)
		}
	case b == ' ' && word > first+1 && isMonth(s.text[first+1:word]):
		if at := word + len(" 2024"); s.digitsEnd(word+1) == at && s.byteAt(at) == ' ' {
			return s.secondsEnd(at + 1)
		}
	}
	return 0
}

// digitsStamp returns the end of a stamp of six digits and six digits at i: 081109 203615. Else 0.
func (s *scanner) digitsStamp(i int) int {
	const day, whole = len("081109"), len("081109 203615")
	if s.digitsEnd(i+day+1) != i+whole || s.byteAt(i+whole) != ' ' {
		return 0
	}
	date, clock := s.text[i:i+day], s.text[i+day+1:i+whole]
	if !validDay(date[4:], date[2:4]) || clock[:2] > "23" || clock[2:4] > "59" || clock[4:] > "60" {
		return 0
	}
	return i + whole
}

// syslog returns the end of "Mar 11 16:32:01" or "Mon Mar 11 16:32:01" at i, or 0.
func (s *scanner) syslog(i int) int {
	for range 2 {
		end := s.wordEnd(i)
		if end-i != 3 {
			return 0
		}
		month := isMonth(s.text[i:end])
		for s.byteAt(end) == ' ' || s.byteAt(end) == ',' {
			end++
		}
		if i = end; month {
			day := s.digitsEnd(i)
			if day == i || day-i > 2 || s.byteAt(day) != ' ' {
				return 0
			}
			return s.secondsEnd(day + 1)
		}
	}
	return 0
}

// secondsEnd returns the end of a clock with seconds at i, or 0.
func (s *scanner) secondsEnd(i int) int {
	if end := s.clock(i); end-i >= len("15:04:05") {
		return end
	}
	return 0
}

//nolint:gochecknoglobals // constant tables
var (
	// levels are the words that loggers say how bad it is with, and the verbs of HTTP and of SQL.
	levels = lookup(wordSet("TRACE DEBUG INFO NOTICE WARN WARNING ERROR FATAL CRITICAL SEVERE " +
		"PANIC VERBOSE DETAIL " +
		"STATEMENT LOG SELECT INSERT VALUES ALTER GET POST PUT DELETE PATCH HEAD OPTIONS"))
	// statements open a line of a programming language, a shell or a query; some open a sentence as
	// well.
	statements = newWordIndex("import from package func def class public private protected " +
		"static const let var return if else for " +
		"while switch case try catch except raise throw new struct enum interface impl fn mut " +
		"pub use using namespace include require " +
		"extends implements void int string bool select insert update delete create alter drop " +
		"grant where join " +
		"docker kubectl git npm pip go cargo curl sudo apt yarn make export echo cd ls cat grep " +
		"ssh " +
		"run copy env arg cmd entrypoint workdir expose at file module type print printf await " +
		"async yield end begin local set then do fi " +
		"traceback commit diff index merge author-date match data val object trait with")
	// fileSuffixes end the names of files that programmers handle.
	fileSuffixes = newWordIndex("go py js ts jsx tsx java kt rs rb php cs cpp cc hpp swift scala " +
		"sh bash ps1 sql html htm css scss json jsonl yaml yml " +
		"toml ini cfg conf xml md mdx rst txt log csv tsv lock mod sum proto gradle jar war whl " +
		"gz tgz tar zip deb rpm exe dll so " +
		"pem crt env vue svelte ipynb onnx bin png jpg svg ico tf dockerfile gitignore")
)

// lookup is a set of words.
type lookup map[string]struct{}

func (l lookup) has(w string) bool { _, ok := l[w]; return ok }
