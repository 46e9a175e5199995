package pii

import (
	"context"
	"strings"
)

// inserts adds what the columns of a statement of SQL say of its rows: INSERT INTO people
// (full_name, city) VALUES ('Monica Reyes', 'Tucson'), (...).
func (s *scanner) inserts(ctx context.Context) error {
	for _, verb := range [...]string{"INSERT INTO", "insert into"} {
		for i := 0; ; {
			if err := ctx.Err(); err != nil {
				return err
			}
			k := strings.Index(s.text[i:], verb)
			if k < 0 {
				break
			}
			var err error
			if i, err = s.insert(ctx, i+k+len(verb)); err != nil {
				return err
			}
		}
	}
	return nil
}

// insert reads the statement that goes on at i, and returns where the next may begin: behind the
// rows, whose values may be statements themselves.
func (s *scanner) insert(ctx context.Context, i int) (next int, err error) {
	head := s.text[i:min(len(s.text), i+maxRow)]
	open := strings.IndexByte(head, '(')
	if open < 0 {
		return i, nil
	}
	n := strings.IndexByte(head[open:], ')')
	if n < 0 || strings.ContainsAny(head[:open], ";'=") {
		return i, nil
	}
	var table columns
	if !s.columnsIn(&table, i+open+1, i+open+n) {
		return i, nil
	}
	at := i + open + n + 1
	rest := strings.TrimLeft(s.text[at:min(len(s.text), at+cueWidth)], " \t\r\n")
	if len(rest) < len("VALUES") || !strings.EqualFold(rest[:len("VALUES")], "VALUES") {
		return i, nil
	}
	at += strings.Index(s.text[at:], rest) + len("VALUES")
	for look := 0; ; {
		if at >= look {
			if err := ctx.Err(); err != nil {
				return at, err
			}
			look = at + bytesPerLook
		}
		end := s.tuple(&table, at)
		if end == 0 {
			return at, nil
		}
		at = end
	}
}

// columnsIn reads the names of columns in [from, to), and reports whether one is of a person.
func (s *scanner) columnsIn(table *columns, from, to int) bool {
	var row [maxColumns]cell
	names, sure := 0, 0
	for from < to {
		if table.n == maxColumns {
			return false
		}
		end, next := s.cellEnd(from, to, ',')
		key, kind := strings.Trim(s.text[from:end], " \t\r\n`\"[]"), noField
		if len(key) <= maxKey {
			kind = keyKind(key)
		}
		switch kind {
		case anyField:
			names++
		case nameField, phoneField, streetField, birthField, fullField, otherField:
			sure++
		case noField, rollField:
		}
		table.kinds[table.n], row[table.n] = kind, cell{from, end}
		table.n++
		from = next
	}
	s.surnames(table, row[:table.n])
	return sure > 0 && names+sure > 1
}

// tuple reads the values of one row between parentheses, which begins at i or behind a comma, and
// returns its end, or 0.
func (s *scanner) tuple(table *columns, i int) (end int) {
	for i < len(s.text) && strings.IndexByte(" \t\r\n,", s.text[i]) >= 0 {
		i++
	}
	if s.byteAt(i) != '(' {
		return 0
	}
	for c, at := 0, i+1; at < len(s.text) && at-i < maxRow; {
		for at < len(s.text) && strings.IndexByte(" \t\r\nNE", s.text[at]) >= 0 {
			at++
		}
		from, to := at, at
		if s.byteAt(at) == '\'' {
			from = at + 1
			to = s.quotedEnd(from)
			at = to + 1
		}
		if at = s.valueEnd(at, i+maxRow); at == len(s.text) {
			return 0
		}
		if c < table.n {
			s.inColumn(table.kinds[c], cell{from, to})
		}
		c++
		at++
		if s.text[at-1] == ')' {
			return at
		}
	}
	return 0
}

// valueEnd returns where the comma or the parenthesis is that ends the value around i, whose own
// parentheses are closed and may have quotes in them: concat('a', 'b'). Else the end of the text.
func (s *scanner) valueEnd(i, limit int) int {
	limit = min(limit, len(s.text))
	for depth := 0; i < limit; i++ {
		switch s.text[i] {
		case '\'':
			if depth > 0 {
				i = s.quotedEnd(i + 1)
			}
		case '(':
			depth++
		case ',', ')':
			if depth == 0 {
				return i
			}
			if s.text[i] == ')' {
				depth--
			}
		}
	}
	return len(s.text)
}

// quotedEnd returns where the quote closes that opened before i, or where it is too long; two
// quotes are one of the value.
func (s *scanner) quotedEnd(i int) int {
	limit := min(len(s.text), i+maxRow)
	for ; i < limit; i++ {
		if s.text[i] != '\'' {
			continue
		}
		if s.byteAt(i+1) != '\'' {
			break
		}
		i++
	}
	return min(i, len(s.text))
}
