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
			i += k + len(verb)
			if err := s.insert(ctx, i); err != nil {
				return err
			}
		}
	}
	return nil
}

// insert reads the statement that goes on at i.
func (s *scanner) insert(ctx context.Context, i int) error {
	head := s.text[i:min(len(s.text), i+maxRow)]
	open := strings.IndexByte(head, '(')
	if open < 0 {
		return nil
	}
	n := strings.IndexByte(head[open:], ')')
	if n < 0 || strings.ContainsAny(head[:open], ";'=") {
		return nil
	}
	var table columns
	if !s.columnsIn(&table, i+open+1, i+open+n) {
		return nil
	}
	at := i + open + n + 1
	rest := strings.TrimLeft(s.text[at:min(len(s.text), at+cueWidth)], " \t\r\n")
	if len(rest) < len("VALUES") || !strings.EqualFold(rest[:len("VALUES")], "VALUES") {
		return nil
	}
	at += strings.Index(s.text[at:], rest) + len("VALUES")
	for look := 0; ; {
		if at >= look {
			if err := ctx.Err(); err != nil {
				return err
			}
			look = at + bytesPerLook
		}
		if at = s.tuple(&table, at); at == 0 {
			return nil
		}
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
		stop := strings.IndexAny(s.text[min(at, len(s.text)):min(len(s.text), at+maxRow)], ",)")
		if stop < 0 {
			return 0
		}
		at += stop
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

// quotedEnd returns where the quote closes that opened before i, or where it is too long; two
// quotes are one of the value.
func (s *scanner) quotedEnd(i int) int {
	limit := min(len(s.text), i+maxRow)
	for i < limit && s.text[i] != '\'' {
		if i++; strings.HasPrefix(s.text[i:], "''") {
			i += len("''")
		}
	}
	return i
}
