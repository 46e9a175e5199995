// Package tools selects those tools of a request that its conversation can need. A tool is found by
// the words in its name, description and parameters, and by the embedding of its purpose. Tools
// similar to the best matches are favoured, because a task often uses several tools of one kind.
//
// Pick keeps a number of tools: each user turn selects its own, and what any turn has selected
// stays. Fit keeps a share of the list's tokens: the latest turn selects, the best tools are sent
// whole and further ones brief, without descriptions. Both change only at user turns, so that the
// beginning of the prompt, which contains the tools, stays the same during a loop of calls.
//
// The weights of Pick were chosen on BFCL v4 (the Berkeley function calling leaderboard,
// Apache-2.0), those of Fit on AgentDojo and tau-bench (both MIT); see docs/parameters.md for the
// measurements.
package tools

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode"
)

const (
	// maxText limits what is read of one tool and of one turn, in bytes.
	maxText = 4 << 10
	// The weights of a word by its place.
	inName, inAbout, inArguments = 2, 1, .5
	// neighbours is the number of best tools that favour similar ones, and nearWeight the weight of
	// that.
	neighbours = 3
	nearWeight = .5
	// maxWork limits the comparisons of turns with words of tools to a few tenths of a second: with
	// 60 tools of a hundred words each, the last 9,000 turns are used. Ranking a tool costs as much
	// as rankCost words.
	maxWork  = 1 << 26
	rankCost = 16
)

// List is a list of tools. It is immutable and safe for concurrent use.
type List struct {
	entries []json.RawMessage
	briefs  []json.RawMessage // the entries without descriptions
	costs   [2][]int          // approximate tokens of each entry, whole and brief
	names   []string          // empty for an entry that is not a function
	texts   []string
	words   map[string][]posting
	found   int // sum over all words of the number of tools that contain them
}

// Form is how a tool is sent.
type Form uint8

// The forms of a tool. A brief tool has its name and the names and types of its parameters.
const (
	Away Form = iota
	Brief
	Whole
)

// posting is a tool that contains a word, with the word's weight.
type posting struct {
	tool   int
	weight float64
}

// function is the part of a tool that is read.
type function struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
	InputSchema json.RawMessage `json:"input_schema"`
}

// Parse parses the value of `tools` or `functions` in a request. An entry that is not a function,
// such as a server-side tool, has no name and is always kept. An error is a JSON error.
func Parse(raw []byte) (*List, error) {
	l := &List{words: map[string][]posting{}}
	if err := json.Unmarshal(raw, &l.entries); err != nil {
		return nil, fmt.Errorf("tools: %w", err)
	}
	for i, e := range l.entries {
		var entry struct {
			function

			Type     string   `json:"type"`
			Function function `json:"function"`
		}
		_ = json.Unmarshal(e, &entry) // an entry of another form is not a function
		f := entry.Function
		if f.Name == "" && (entry.Type == "" || entry.Type == "function") {
			f = entry.function
		}
		l.names = append(l.names, f.Name)
		l.briefs = append(l.briefs, brief(e))
		l.costs[0], l.costs[1] = append(l.costs[0], cost(e)), append(l.costs[1], cost(l.briefs[i]))
		l.texts = append(l.texts, cut(strings.Join(split(f.Name), " ")+": "+f.Description))
		if f.Name != "" {
			l.index(i, &f)
		}
	}
	for word, found := range l.words {
		rare := math.Log(1 + float64(len(l.entries))/float64(len(found)))
		for i := range l.words[word] {
			found[i].weight *= rare
		}
	}
	return l, nil
}

// index adds the words of a tool.
func (l *List) index(tool int, f *function) {
	weights := map[string]float64{}
	add := func(text string, weight float64) {
		for w := range bag(text) {
			weights[w] += weight
		}
	}
	add(f.Name, inName)
	add(f.Description, inAbout)
	schema := f.Parameters
	if schema == nil {
		schema = f.InputSchema
	}
	add(arguments(schema), inArguments)
	for w, weight := range weights {
		l.words[w] = append(l.words[w], posting{tool, weight})
	}
	l.found += len(weights)
}

// arguments returns the descriptions of a function's parameters in its schema, one level deep.
func arguments(schema []byte) string {
	var s struct {
		Properties map[string]struct {
			Description string `json:"description"`
			Enum        []any  `json:"enum"`
		} `json:"properties"`
	}
	_ = json.Unmarshal(schema, &s) // an invalid schema describes nothing
	var out strings.Builder
	for name, p := range s.Properties {
		fmt.Fprintln(&out, name, p.Description)
		for _, v := range p.Enum {
			fmt.Fprintln(&out, v)
		}
		if out.Len() > maxText {
			break
		}
	}
	return out.String()
}

// Len returns the number of tools.
func (l *List) Len() int { return len(l.entries) }

// Name returns the name of tool i; empty for an entry that is not a function.
func (l *List) Name(i int) string { return l.names[i] }

// Text returns the purpose of tool i, for embedding.
func (l *List) Text(i int) string { return l.texts[i] }

// JSON returns the list of the tools that are kept. Whole tools keep their spelling.
func (l *List) JSON(forms []Form) []byte {
	out := []byte{'['}
	for i, e := range l.entries {
		if forms[i] == Away {
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		if forms[i] == Brief {
			e = l.briefs[i]
		}
		out = append(out, e...)
	}
	return append(out, ']')
}

// Turn is what a user said, with its L2-normalised embedding; nil if unknown.
type Turn struct {
	Text   string
	Vector []float32
}

// Pick returns which tools are kept, all of them whole: those for which must is true, entries that
// are not functions, and for each turn the n best matches. vectors are the embeddings of the tools,
// with the dimensions of the turns' embeddings; nil for an unknown one. It returns nil if there is
// no basis for a choice: no turn shares a word with a tool, and there are no embeddings. turns must
// be in order; if there is too much work, the latest ones are used.
func (l *List) Pick(turns []Turn, vectors [][]float32, n int, must func(name string) bool) []Form {
	forms := l.musts(must)
	told := false
	most := max(1, maxWork/(1+rankCost*l.Len()+l.found))
	for _, t := range turns[max(0, len(turns)-most):] {
		scores, ok := l.scores([]Turn{t}, vectors)
		if !ok {
			continue
		}
		told = true
		for _, i := range best(scores, n, l.isFunction) {
			forms[i] = Whole
		}
	}
	if !told {
		return nil
	}
	return forms
}

// musts returns the forms of tools before any is selected.
func (l *List) musts(must func(name string) bool) []Form {
	forms := make([]Form, l.Len())
	for i, name := range l.names {
		if name == "" || must(name) {
			forms[i] = Whole
		}
	}
	return forms
}

func (l *List) isFunction(i int) bool { return l.names[i] != "" }

// scores returns how well each tool matches what was said, by its best matching part; false if
// nothing can be compared.
func (l *List) scores(parts []Turn, vectors [][]float32) (scores []float64, ok bool) {
	scores, ok = l.likeness(parts, vectors)
	if !known(vectors) || !slices.ContainsFunc(parts, func(t Turn) bool { return t.Vector != nil }) {
		return scores, ok
	}
	top := best(scores, neighbours, func(int) bool { return true })
	first := scores[top[0]]
	near := make([]float64, len(scores))
	for i, v := range vectors {
		near[i] = math.Inf(-1)
		for _, j := range top {
			near[i] = max(near[i], dot(v, vectors[j])*math.Exp(scores[j]-first))
		}
	}
	addStandard(scores, near, nearWeight)
	return scores, true
}

// likeness compares words and, where known, embeddings.
func (l *List) likeness(parts []Turn, vectors [][]float32) (scores []float64, ok bool) {
	var words, alike []float64
	for _, t := range parts {
		x := make([]float64, l.Len())
		for w := range bag(t.Text) {
			for _, p := range l.words[w] {
				x[p.tool] += p.weight
				ok = true
			}
		}
		words = larger(words, x)
		if t.Vector == nil || !known(vectors) {
			continue
		}
		y := make([]float64, l.Len())
		for i, v := range vectors {
			y[i] = dot(t.Vector, v)
		}
		alike, ok = larger(alike, y), true
	}
	if words == nil {
		return make([]float64, l.Len()), false
	}
	for i, v := range alike {
		words[i] += v
	}
	return words, ok
}

// known reports whether all embeddings of tools are known.
func known(vectors [][]float32) bool {
	return !slices.ContainsFunc(vectors, func(v []float32) bool { return v == nil })
}

// larger standardises x and returns the element-wise maximum of it and most, which may be nil.
func larger(most, x []float64) []float64 {
	standardise(x)
	for i, v := range most {
		x[i] = max(x[i], v)
	}
	return x
}

// addStandard adds x, standardised and weighted, to scores.
func addStandard(scores, x []float64, weight float64) {
	standardise(x)
	for i := range scores {
		scores[i] += weight * x[i]
	}
}

// best returns the indices of the n highest scores among those for which counts is true; of equal
// ones the first.
func best(scores []float64, n int, counts func(i int) bool) []int {
	order := make([]int, 0, len(scores))
	for i := range scores {
		if counts(i) {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(scores[b], scores[a]) })
	return order[:min(n, len(order))]
}

// standardise scales scores to mean 0 and standard deviation 1; equal scores become 0.
func standardise(x []float64) {
	mean, square := 0.0, 0.0
	for _, v := range x {
		mean += v / float64(len(x))
	}
	for _, v := range x {
		square += (v - mean) * (v - mean) / float64(len(x))
	}
	deviation := math.Sqrt(square)
	for i := range x {
		if x[i] -= mean; deviation > 0 {
			x[i] /= deviation
		}
	}
}

func dot(a, b []float32) float64 {
	sum := 0.0
	for i := range min(len(a), len(b)) {
		sum += float64(a[i]) * float64(b[i])
	}
	return sum
}

// cut returns the beginning of a text that is too long.
func cut(s string) string {
	if len(s) <= maxText {
		return s
	}
	return strings.ToValidUTF8(s[:maxText], "")
}

// bag returns the stems of the words at the beginning of a text, without words that say nothing
// about its subject.
func bag(text string) map[string]struct{} {
	out := map[string]struct{}{}
	for _, w := range split(cut(text)) {
		if w = strings.ToLower(w); !strings.Contains(fillers, " "+w+" ") {
			out[stem(w)] = struct{}{}
		}
	}
	return out
}

// fillers are words that occur in every request.
const fillers = " a an the of to for in on at by with and or is are be this that it as from i me " +
	"my you your can could please would what which who how do does did will want need get have has "

// split returns the words of a text: runs of letters or of digits, divided where a capital begins
// another word, as in getUserID.
func split(s string) []string {
	var out []string
	begin, before := -1, rune(0)
	for i, r := range s {
		word := unicode.IsLetter(r) || unicode.IsDigit(r)
		turns := unicode.IsLower(before) && unicode.IsUpper(r) || unicode.IsDigit(before) != unicode.IsDigit(r)
		if begin >= 0 && (!word || turns) {
			out = append(out, s[begin:i])
			begin = -1
		}
		if word && begin < 0 {
			begin = i
		}
		before = r
	}
	if begin >= 0 {
		out = append(out, s[begin:])
	}
	return out
}

// stem removes a common English ending from a word.
func stem(w string) string {
	for _, s := range [...]string{"ing", "ed", "es", "s"} {
		if strings.HasSuffix(w, s) && len(w)-len(s) >= 3 {
			w = w[:len(w)-len(s)]
			break
		}
	}
	if len(w) > 3 {
		w = strings.TrimSuffix(w, "e")
	}
	return w
}
