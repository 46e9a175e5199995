// Command turns prints what package classify/lean reads in turns of conversations, so that its head
// is fitted on exactly what the product computes.
//
// It reads rows from standard input, one JSON object a line: "before", the texts of the user's turns
// so far, and "turn", the one behind them. A row gives a line {"features": [numbers], "english":
// bool}; the cosine among the features is 0.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"signalbox/classify/language"
	"signalbox/classify/lean"
)

// maxRow bounds a row, in bytes.
const maxRow = 16 << 20

// near is with how many turns before it the product compares a turn, foreign from which probability
// it takes it for one in another language.
const (
	near    = 3
	foreign = .8
)

func main() {
	if err := run(os.Stdin, os.Stdout); err != nil {
		_, _ = fmt.Fprintf(os.Stderr, "turns: %v\n", err)
		os.Exit(1) //nolint:forbidigo // a main
	}
}

func run(in io.Reader, out io.Writer) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxRow)
	to := json.NewEncoder(out)
	for lines.Scan() {
		var row struct {
			Before []string
			Turn   string
		}
		if err := json.Unmarshal(lines.Bytes(), &row); err != nil {
			return fmt.Errorf("read a row: %w", err)
		}
		var before []*lean.Turn
		for _, text := range row.Before[max(0, len(row.Before)-near):] {
			before = append(before, lean.Read(text))
		}
		if err := to.Encode(map[string]any{
			"features": lean.Read(row.Turn).Features(before, lean.NoCosine),
			"english":  language.Tell(row.Turn).Foreign < foreign,
		}); err != nil {
			return fmt.Errorf("write: %w", err)
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("read rows: %w", err)
	}
	return nil
}
