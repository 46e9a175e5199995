package check_test

import (
	"strconv"
	"strings"
	"testing"

	"signalbox/stream/check"
	"signalbox/stream/evidence"
)

// longRecords are fragments that, when repeated, form evidence or an answer that is expensive to
// read: fields, checkboxes, headings, tables, changes.
var longRecords = map[string]string{
	"fields":   `"in_stock": false, "qty": 3, `,
	"colons":   ": a = b : ",
	"true":     "a:true,",
	"names":    "in_stock_in_stock_in-stock-",
	"boxes":    "- [ ] a page 5\n- [x] b page 7\n",
	"headings": "## Removed 5\n- a page\n",
	"table":    "| a page 5 | is 7 in stock |",
	"rows":     "| a | in stock |\n|---|---|\n| 5 | 7 |\n",
	"moves":    "moved from Bonn to Cologne ",
	"from":     "from 3 euros up to 5 euros to 9 euros ",
	"numbers":  "12 34 kg 56 % ",
	"commas":   "in stock, 5 blue, ",
	"brackets": "(7) [in stock] (was 8443) ",
	"braces":   `{"a":{"in_stock":true},"b":[`,
	"quotes":   "'in stock' \"a\" `b` ",
}

// BenchmarkLongText measures the time per byte to read evidence and an answer. It should not grow
// with the text.
func BenchmarkLongText(b *testing.B) {
	c := checker(b, check.Options{Judge: free{}, English: true})
	for name, piece := range longRecords {
		for _, size := range [...]int{8 << 10, 16 << 10, 32 << 10, 64 << 10} {
			text := strings.Repeat(piece, size/len(piece))
			plain := facts(b, "The page is in stock since 5 May. It was moved from Bonn to Cologne.")
			long := facts(b, text)
			for _, way := range [...]struct {
				name string
				read func()
			}{
				{"evidence", func() {
					_, _ = evidence.New(b.Context(), []evidence.Source{{Text: text}}, evidence.Options{})
				}},
				{"claim", func() {
					c.Check(b.Context(), long, "", []check.Claim{{Text: "The page 5 in Bonn is in stock, moved from 3 euros."}})
				}},
				{"answer", func() { _, _ = c.Text(b.Context(), plain, "", text) }},
			} {
				b.Run(name+"/"+way.name+"/"+strconv.Itoa(size>>10)+"K", func(b *testing.B) {
					for b.Loop() {
						way.read()
					}
					b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(text)), "ns/B")
				})
			}
		}
	}
}
