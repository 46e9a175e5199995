package pii

import (
	"context"
	"strings"
)

const (
	maxColumns = 32
	maxRow     = 1024 // bytes of a line of a table
)

// columns are the keys in the head of a table.
type columns struct {
	kinds [maxColumns]fieldKind
	n     int
	sep   byte
}

// cell is a part of a line.
type cell struct{ from, to int }

// tables adds the values of tables (CSV, or with tabs, semicolons or bars) whose first line
// identifies their columns as personal.
func (s *scanner) tables(ctx context.Context) error {
	var head columns
	var row [maxColumns]cell
	look := 0
	for from := 0; from < len(s.text); {
		if from >= look {
			if err := ctx.Err(); err != nil {
				return err
			}
			look = from + bytesPerLook
		}
		to := len(s.text)
		if k := strings.IndexByte(s.text[from:], '\n'); k >= 0 {
			to = from + k
		}
		s.row(&head, &row, from, to)
		from = to + 1
	}
	return nil
}

// row processes the line [from, to) as a row of the table, or as the head of another.
func (s *scanner) row(head *columns, row *[maxColumns]cell, from, to int) {
	if to-from > maxRow || to == from {
		head.n = 0
		return
	}
	if head.n > 0 {
		if n := s.cells(row, from, to, head.sep); n == head.n {
			for c := range n {
				s.inColumn(head.kinds[c], row[c])
			}
			return
		}
	}
	s.head(head, row, from, to)
}

// inColumn adds the value of a cell.
func (s *scanner) inColumn(kind fieldKind, c cell) {
	if kind != noField && kind != otherField && c.to > c.from && c.to-c.from <= maxFieldValue {
		s.addField(kind, c.from, c.to)
	}
}

// head reads the line [from, to) as the keys of columns. There must be at least two, and one
// besides a bare name must show that the rows are people.
func (s *scanner) head(head *columns, row *[maxColumns]cell, from, to int) {
	head.n = 0
	for _, sep := range [...]byte{',', ';', '\t', '|'} {
		if strings.IndexByte(s.text[from:to], sep) < 0 {
			continue
		}
		n := s.cells(row, from, to, sep)
		if n < 2 {
			continue
		}
		names, sure := 0, 0
		for c := range n {
			k := noField
			if key := s.text[row[c].from:row[c].to]; len(key) <= maxKey {
				k = keyKind(key)
			}
			head.kinds[c] = k
			switch k {
			case anyField:
				names++
			case nameField, phoneField, streetField, birthField, fullField, otherField:
				sure++
			case noField, rollField:
			}
		}
		if sure > 0 && names+sure > 1 {
			s.surnames(head, row[:n])
			head.n, head.sep = n, sep
			return
		}
	}
}

// surnames treats a column named only "name" as one half of names if another column has the other
// half: nom, prénom.
func (s *scanner) surnames(head *columns, row []cell) {
	names, other := -1, false
	for c := range row {
		switch strings.ToLower(strings.Trim(s.text[row[c].from:row[c].to], " \t\r\n`\"[]")) {
		case "name", "nom", "naam", "nome", "nombre":
			names = c
		case "vorname", "prenom", "prénom", "voornaam", "cognome", "apellido", "apellidos", "sobrenome", "first_name",
			"firstname", "imię":
			other = true
		}
	}
	if other && names >= 0 && head.kinds[names] == anyField {
		head.kinds[names] = nameField
	}
}

// cells splits a line at a separator, without bars at its ends, spaces and quotes; it returns 0 if
// there are too many.
func (s *scanner) cells(row *[maxColumns]cell, from, to int, sep byte) (n int) {
	for to > from && (s.text[to-1] == '\r' || s.text[to-1] == ' ') {
		to--
	}
	if sep == '|' && to-from > 1 && s.text[from] == sep && s.text[to-1] == sep {
		from, to = from+1, to-1
	}
	for from <= to {
		if n == maxColumns {
			return 0
		}
		end, next := s.cellEnd(from, to, sep)
		c := cell{from, end}
		for c.from < c.to && strings.IndexByte(" \"", s.text[c.from]) >= 0 {
			c.from++
		}
		for c.to > c.from && strings.IndexByte(" \"", s.text[c.to-1]) >= 0 {
			c.to--
		}
		row[n] = c
		n++
		from = next
	}
	return n
}

// cellEnd returns the end of the cell at from, and the start of the next one.
func (s *scanner) cellEnd(from, to int, sep byte) (end, next int) {
	at := from
	if at < to && s.text[at] == '"' {
		if k := strings.IndexByte(s.text[at+1:to], '"'); k >= 0 {
			at += k + 2
		}
	}
	if k := strings.IndexByte(s.text[at:to], sep); k >= 0 {
		return at + k, at + k + 1
	}
	return to, to + 1
}
