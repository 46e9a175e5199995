package pii

import "strings"

// A log line is recognised by its head: a time stamp, followed by a severity, the process with its
// number, or the file of a program. The rest of such a line may be a sentence, but it rarely
// contains a name or a date that the model reports correctly.

// headReach is how far back from a position the head of its line is searched for; headTokens is the
// maximum number of words after a time stamp that may belong to it.
const (
	headReach  = 1 << 10
	headTokens = 5
)

// logged reports whether the line around i begins as loggers begin one.
func (j *judge) logged(i int) bool {
	base := i - i%lineStep
	from := max(0, base-headReach)
	if k := strings.LastIndexByte(j.text[from:i], '\n'); k >= 0 {
		from += k + 1
	} else if from > 0 {
		return false
	}
	if from+1 != j.headAt {
		j.headAt = from + 1
		to := min(len(j.text), from+lineReach)
		if k := strings.IndexByte(j.text[from:to], '\n'); k >= 0 {
			to = from + k
		}
		j.head = logHead(j.text[from:to])
	}
	return j.head
}

// logHead reports whether a line begins with a time stamp and more that only loggers write behind
// one.
func logHead(line string) bool {
	line = strings.TrimLeft(line, " \t")
	n := stampLen(line)
	if n == 0 {
		return false
	}
	if epochDate(line) > 0 {
		return true
	}
	months := isUpper(line[0]) // RFC 3164: host and tag follow
	rest := line[n:]
	for k := range headTokens {
		var token string
		if token, rest = nextToken(rest); token == "" {
			return false
		}
		bare := strings.Trim(token, "[]()<>|:,-*")
		switch {
		case levels.has(bare), k < 2 && writtenLevels.has(bare):
			return true
		case numbered(token), suffixed(token):
			return true
		case months && k == 1 && strings.HasSuffix(token, ":"):
			return true
		case k == 2 && len(token) == 1 && strings.IndexByte("VDIWEF", token[0]) >= 0: // logcat: pid, tid, level
			return true
		}
	}
	return false
}

// numbered reports the name of a process with its number, as syslog writes it, sshd[20713]:.
func numbered(token string) bool {
	front, ok := strings.CutSuffix(token, "]:")
	k := strings.LastIndexByte(front, '[')
	return ok && k > 0 && k+1 < len(front) && strings.Trim(front[k+1:], "0123456789") == ""
}

// epochDate returns the end of a date in digits behind the seconds since 1970, before which a mark
// may stand, as the logs of clusters begin: "- 1131566461 2005.11.09". Else 0.
func epochDate(line string) int {
	const seconds = len("1131566461")
	at := 0
	if k := strings.IndexByte(line, ' '); k >= 0 && !isDigit(line[0]) {
		at = k + 1
	}
	s := scanner{text: line}
	if s.digitsEnd(at) != at+seconds || s.byteAt(at+seconds) != ' ' {
		return 0
	}
	at += seconds + 1
	end := at + len("2005.11.09")
	if end >= len(line) || line[end] != ' ' || !s.fullDate(at) {
		return 0
	}
	return end
}

// fullDate reports a date with the year first at i.
func (s *scanner) fullDate(i int) bool {
	first := s.digitsEnd(i)
	return first-i == 4 && validYear(s.text[i:first]) && s.digitsEnd(first+1) == first+3 &&
		s.byteAt(first+3) == s.byteAt(first) && validDay(s.text[first+4:s.digitsEnd(first+4)], s.text[first+1:first+3])
}

// writtenLevels are levels as some loggers write them.
//
//nolint:gochecknoglobals // constant table
var writtenLevels = lookup(wordSet("Trace Debug Info Notice Warn Warning Error Fatal Critical Verbose " +
	"trace debug info notice warn warning error fatal critical verbose"))
