package lab

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
)

// longest limits the length of a line of a file, in bytes.
const longest = 16 << 20

// Lines calls each with every non-blank line of a file; files whose name ends in .gz are
// decompressed. It stops at the first error of each.
func Lines(path string, each func(line []byte) error) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	var r io.Reader = f
	if strings.HasSuffix(path, ".gz") {
		if r, err = gzip.NewReader(f); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	if err := scan(r, each); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

func scan(r io.Reader, each func(line []byte) error) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, longest)
	for n := 1; lines.Scan(); n++ {
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		if err := each(lines.Bytes()); err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		}
	}
	return lines.Err()
}

// Rows decodes a file with one JSON value per line; files whose name ends in .gz are decompressed.
func Rows[T any](path string) (rows []T, err error) {
	err = Lines(path, decode(&rows))
	return rows, err
}

// Decode decodes one JSON value per line.
func Decode[T any](r io.Reader) (rows []T, err error) {
	err = scan(r, decode(&rows))
	return rows, err
}

func decode[T any](rows *[]T) func(line []byte) error {
	return func(line []byte) error {
		var row T
		err := json.Unmarshal(line, &row)
		*rows = append(*rows, row)
		return err
	}
}

// Spread returns at most n evenly spaced rows; all of them if n is 0.
func Spread[T any](rows []T, n int) []T {
	if n <= 0 || n >= len(rows) {
		return rows
	}
	out := make([]T, n)
	for i := range out {
		out[i] = rows[i*len(rows)/n]
	}
	return out
}

// Wilson returns the share k of n with the limits of its 95 % interval (Wilson, Probable Inference,
// the Law of Succession, and Statistical Inference, 1927).
func Wilson(k, n int) (at, low, high float64) {
	if n == 0 {
		return 0, 0, 1
	}
	const z = 1.959963984540054
	p, m := float64(k)/float64(n), float64(n)
	centre := (p + z*z/(2*m)) / (1 + z*z/m)
	half := z / (1 + z*z/m) * math.Sqrt(p*(1-p)/m+z*z/(4*m*m))
	return p, max(0, centre-half), min(1, centre+half)
}

// One returns 1 for true and 0 for false.
func One[T int | float64](b bool) T { //nolint:revive // a truth as a number
	if b {
		return 1
	}
	return 0
}
