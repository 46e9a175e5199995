// Package tools picks, of the tools that a request offers a model, those that its conversation can
// need. A tool is found by the words of its name, its description and its parameters, and by the
// embedding of what it is for; what stands near the best ones comes along, because a task takes
// several tools of one kind.
//
// Pick takes a number of tools: each turn of the user picks for itself, and what any turn has picked
// stays. Fit takes a share of the list's tokens: the latest turn picks, the best tools go whole and
// further ones brief, without their descriptions. Either changes at turns of the user only, so that
// the prefix of the prompt, of which tools are the beginning, stays through a loop of calls.
//
// The weights of Pick were chosen on BFCL v4 (the Berkeley function calling leaderboard, Apache-2.0),
// those of Fit on AgentDojo and tau-bench (both MIT); see docs/parameters.md for what was measured.
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
	// maxText bounds what is read of one tool and of one turn, in bytes.
	maxText = 4 << 10
	// The weight of a word by where it stands.
	inName, inAbout, inArguments = 2, 1, .5
	// neighbours is how many of the best tools bring others along, and nearWeight by how much.
	neighbours = 3
	nearWeight = .5
	// maxWork bounds the comparisons of turns with words of tools, to some tenths of a second: of 60
	// tools of a hundred words, the last 9,000 turns pick. To rank a tool costs as much as rankCost
	// words.
	maxWork  = 1 << 26
	rankCost = 16
)

// List is a list of tools. It is immutable and safe for concurrent use.
type List struct {
	entries []json.RawMessage
	briefs  []json.RawMessage // the same without descriptions
	costs   [2][]int          // tokens, about, of an entry whole and brief
	names   []string          // empty for what is no function
	texts   []string
	words   map[string][]posting
	found   int // of all words, in how many tools they stand
}

// Form is how a tool is sent.
type Form uint8

// The forms of a tool. A brief one has its name and the names and types of its parameters.
const (
	Away Form = iota
	Brief
	Whole
)

// posting is a tool in which a word stands, and how much that says.
type posting struct {
	tool   int
	weight float64
}

// function is what is read of a tool.
type function struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
	InputSchema json.RawMessage `json:"input_schema"`
}

// Parse reads the value of `tools` or `functions` of a request. An entry that is no function, such
// as a tool that a server runs itself, has no name and is always kept. Its error is one of JSON.
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
		_ = json.Unmarshal(e, &entry) // what does not fit is no function
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

// index notes the words of a tool.
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

// arguments is what a schema says of the parameters of a function, one level deep.
func arguments(schema []byte) string {
	var s struct {
		Properties map[string]struct {
			Description string `json:"description"`
			Enum        []any  `json:"enum"`
		} `json:"properties"`
	}
	_ = json.Unmarshal(schema, &s) // what is no schema says nothing
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

// Name returns the name of tool i, empty for what is no function.
func (l *List) Name(i int) string { return l.names[i] }

// Text returns what tool i is for, to be embedded.
func (l *List) Text(i int) string { return l.texts[i] }

// JSON returns the list of the tools that are not away. One that is whole is as it was spelled.
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

// Turn is what a user has said, and its L2-normalised embedding; nil where that is unknown.
type Turn struct {
	Text   string
	Vector []float32
}

// Pick returns which tools are kept, all of them whole: those of must, what is no function, and for
// each turn the n that fit it best. vectors are the embeddings of the tools, of the dimensions of
// those of the turns; nil for one that is unknown. It returns nil where nothing can be told: no turn
// has a word that a tool has, and no embedding. Turns are in their order; of more than there is work
// for, the latest pick.
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

// musts are the forms of tools of which nothing is picked yet.
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

// scores tells how well the tools fit what was said, each as the part of it that it fits best; false
// where nothing of it can be compared.
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

// likeness compares words and, where they are known, embeddings.
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

// known reports whether all embeddings of tools are.
func known(vectors [][]float32) bool {
	return !slices.ContainsFunc(vectors, func(v []float32) bool { return v == nil })
}

// larger standardises x and returns the larger values of it and of most, which may be nil.
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

// best returns the indices of the n greatest scores among those that count, the first of equal ones.
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

// standardise gives scores a mean of 0 and a deviation of 1; scores that are all alike become 0.
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

// cut returns the beginning of a text that is too long to be read.
func cut(s string) string {
	if len(s) <= maxText {
		return s
	}
	return strings.ToValidUTF8(s[:maxText], "")
}

// bag returns the words of the beginning of a text, without those that say nothing of its subject,
// as their stems.
func bag(text string) map[string]struct{} {
	out := map[string]struct{}{}
	for _, w := range split(cut(text)) {
		if w = strings.ToLower(w); !strings.Contains(fillers, " "+w+" ") {
			out[stem(w)] = struct{}{}
		}
	}
	return out
}

// fillers are words that stand in every request.
const fillers = " a an the of to for in on at by with and or is are be this that it as from i me " +
	"my you your can could please would what which who how do does did will want need get have has "

// split returns the words of a text: runs of letters or of digits, parted where a capital begins
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

// stem takes a common ending of English off a word.
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
