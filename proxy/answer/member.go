package answer

// Member finds a member of the JSON object that data is, by its name as it is usually spelt, in quotes: its value, and the bytes to
// take out where the member is not to be there, its comma included. ok is false where there is none, or data is no object. It
// allocates nothing, and does not look at more of data than it has to.
func Member(data []byte, name string) (value []byte, from, to int, ok bool) {
	depth, comma := 0, -1
	for i := 0; i < len(data); i++ {
		switch data[i] {
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth <= 0 {
				return nil, 0, 0, false
			}
		case ',':
			if depth == 1 {
				comma = i
			}
		case '"':
			start := i
			i += 1 + stringLen(data[i+1:])
			if depth != 1 || i >= len(data) || string(data[start:i+1]) != name {
				continue
			}
			at := blank(data, i+1)
			if at >= len(data) || data[at] != ':' {
				continue // a value that is spelt like the name
			}
			at = blank(data, at+1)
			end := valueEnd(data, at)
			if end < 0 {
				return nil, 0, 0, false
			}
			return data[at:end], cutFrom(comma, start), cutTo(data, comma, end), true
		}
	}
	return nil, 0, 0, false
}

// cutFrom and cutTo bound a member with one of the commas beside it: the one before, or behind the first the one after.
func cutFrom(comma, start int) int {
	if comma >= 0 {
		return comma
	}
	return start
}

func cutTo(data []byte, comma, end int) int {
	if next := blank(data, end); comma < 0 && next < len(data) && data[next] == ',' {
		return next + 1
	}
	return end
}

// blank is the first place from i on that is no blank.
func blank(data []byte, i int) int {
	for i < len(data) && (data[i] == ' ' || data[i] == '\t' || data[i] == '\n' || data[i] == '\r') {
		i++
	}
	return i
}

// valueEnd is where the value that begins at i ends; -1 when data ends before.
func valueEnd(data []byte, i int) int {
	depth, start := 0, i
	for ; i < len(data); i++ {
		switch data[i] {
		case '"':
			if i += 1 + stringLen(data[i+1:]); depth == 0 && i < len(data) {
				return i + 1
			}
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return i
			}
			if depth--; depth == 0 {
				return i + 1
			}
		case ',', ' ', '\t', '\n', '\r':
			if depth == 0 && i > start {
				return i
			}
		}
	}
	return -1
}
