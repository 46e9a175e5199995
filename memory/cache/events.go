package cache

import (
	"bytes"
	"iter"
)

// events gives the data of the events of a stream, in order, without those that have none. Data of several lines is
// joined with a newline (WHATWG HTML, section 9.2.6).
func events(stream []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		var joined []byte
		lines := 0
		for len(stream) > 0 {
			var line []byte
			line, stream = cutLine(stream)
			if value, ok := bytes.CutPrefix(line, []byte("data:")); ok {
				value = bytes.TrimPrefix(value, []byte(" "))
				switch lines++; lines {
				case 1:
					joined = value
				case 2:
					joined = append(append(bytes.Clone(joined), '\n'), value...)
				default:
					joined = append(append(joined, '\n'), value...)
				}
				continue
			}
			if len(line) == 0 && lines > 0 {
				if !yield(joined) {
					return
				}
				joined, lines = nil, 0
			}
		}
	}
}

// cutLine cuts the first line off, which ends with LF, CR or both.
func cutLine(b []byte) (line, rest []byte) {
	i := bytes.IndexAny(b, "\r\n")
	if i < 0 {
		return b, nil
	}
	line, rest = b[:i], b[i+1:]
	if b[i] == '\r' && len(rest) > 0 && rest[0] == '\n' {
		rest = rest[1:]
	}
	return line, rest
}

// boundary is the offset behind the last whole event of a stream; 0 when it holds none.
func boundary(stream []byte) int {
	end := 0
	for _, mark := range [...]string{"\n\n", "\r\n\r\n", "\r\r"} {
		if i := bytes.LastIndex(stream, []byte(mark)); i >= 0 {
			end = max(end, i+len(mark))
		}
	}
	return end
}
