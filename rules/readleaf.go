package rules

import (
	"regexp"
	"slices"
	"strings"

	"signalbox/internal/signal"
	"signalbox/rules/internal/condition"
	"signalbox/rules/internal/syntax"
)

// The readers of leaves return nil if nothing could be read; a problem has been reported in that
// case.

// defaultThreshold applies to tasks whose threshold is not in the environment.
const defaultThreshold = 0.5

func (c *compiler) threshold(k signal.Kind) float64 {
	if t, ok := c.env.Thresholds[k]; ok {
		return t
	}
	return defaultThreshold
}

// scoreIn makes the test of the probability of a binary signal.
func scoreIn(k signal.Kind, in condition.Range) (l *condition.Leaf, ok bool) {
	label := "" // jailbreak, injection and cache report this probability as Score
	if k == signal.FactCheck {
		label = "needs"
	}
	return condition.Score(k, label, in)
}

// holdsWhen returns the leaf or, if says is false, its negation.
func holdsWhen(says bool, l *condition.Leaf) condition.Node { //nolint:revive // what the rule says of the leaf
	if says {
		return l
	}
	return &condition.Not{X: l}
}

// inRange makes a test of a number; it is an error if no number passes.
func inRange(at syntax.Cursor, in condition.Range, test func(condition.Range) (*condition.Leaf, bool)) condition.Node {
	l, possible := test(in)
	if !possible {
		at.Errorf("no value lies between these bounds, so this is never true")
		return nil
	}
	return l
}

// readBinary reads jailbreak, injection and factcheck: true, false, or bounds of the probability
// and, for the first two, the origins of the text. Origins without a bound use the threshold of the
// task.
func (c *compiler) readBinary(at syntax.Cursor, k signal.Kind) condition.Node {
	if at.IsScalar("!!bool") {
		says, _ := at.Bool()
		l, _ := scoreIn(k, condition.AtLeast(c.threshold(k)))
		return holdsWhen(says, l)
	}
	keys := []string{"min_score", "max_score"}
	if signal.DefaultOrigins(k) != 0 {
		keys = append(keys, "origins")
	}
	expected := "{" + strings.Join(keys, ", ") + "}"
	mark := at.Mark()
	entries, ok := at.Mapping("true, false or "+expected, keys...)
	if !ok {
		return nil
	}
	if len(entries) == 0 {
		at.Lacking(mark, "found no bound, expected %s", expected)
	}
	in, origins, ok := readBounds(entries)
	if !ok {
		return nil
	}
	if origins == 0 {
		score := func(in condition.Range) (*condition.Leaf, bool) { return scoreIn(k, in) }
		return inRange(at, in, score)
	}
	if in == condition.Unbounded() {
		in = condition.AtLeast(c.threshold(k))
	}
	score := func(in condition.Range) (*condition.Leaf, bool) {
		return condition.ScoreOf(k, origins, in)
	}
	return inRange(at, in, score)
}

// readBounds reads min_score, max_score and origins; origins is 0 if absent.
func readBounds(entries []syntax.Entry) (in condition.Range, origins signal.Origins, ok bool) {
	in, ok = condition.Unbounded(), true
	for _, e := range entries {
		if e.Key == "origins" {
			origins = readOrigins(e.At)
			ok = ok && origins != 0
			continue
		}
		x, isShare := e.At.Share()
		ok = ok && isShare
		if e.Key == "min_score" {
			in.Lo = x
		} else {
			in.Hi = x
		}
	}
	return in, origins, ok
}

// readOrigins reads a word or a list of words; 0 if one of them is not an origin.
func readOrigins(at syntax.Cursor) (set signal.Origins) {
	words := make([]string, 0, signal.NumOrigins)
	for o := signal.OriginInstructions; o < signal.NumOrigins; o++ {
		words = append(words, o.String())
	}
	mark := at.Mark()
	at.Words("origin", func(at syntax.Cursor, word string) {
		if at.Known("origin", word, words) {
			o, _ := signal.ParseOrigin(word)
			set |= signal.OriginsOf(o)
		}
	})
	if at.Mark() != mark {
		return 0
	}
	return set
}

// readSimilarity reads cache: {similarity: X}.
func readSimilarity(at syntax.Cursor) condition.Node {
	mark := at.Mark()
	entries, ok := at.Mapping("{similarity: NUMBER}", "similarity")
	if !ok {
		return nil
	}
	if len(entries) == 0 {
		at.Lacking(mark, "found no similarity, expected {similarity: NUMBER}")
		return nil
	}
	least, ok := entries[0].At.Share()
	if !ok {
		return nil
	}
	l, _ := scoreIn(signal.Cache, condition.AtLeast(least))
	return l
}

// readEntities reads pii: true, false, TYPE, [TYPE, ...] or {types, min_score}.
func (c *compiler) readEntities(at syntax.Cursor) condition.Node {
	const what = "type of personal data"
	least := c.threshold(signal.PII)
	if at.IsScalar("!!bool") {
		says, _ := at.Bool()
		return holdsWhen(says, condition.Entities(least))
	}
	check := c.checkLabel(signal.PII, what)
	if !at.IsMapping() {
		types := at.Words(what, check)
		if len(types) == 0 {
			return nil
		}
		return condition.Entities(least, types...)
	}
	mark := at.Mark()
	entries, ok := at.Mapping("{types, min_score}", "types", "min_score")
	if ok && len(entries) == 0 {
		at.Lacking(mark, "found an empty mapping, expected {types, min_score}")
	}
	var types []string
	for _, e := range entries {
		if e.Key == "types" {
			types = e.At.Words(what, check)
			ok = ok && len(types) > 0
			continue
		}
		var isShare bool
		least, isShare = e.At.Share()
		ok = ok && isShare
	}
	if !ok {
		return nil
	}
	return condition.Entities(least, types...)
}

// readTokens reads tokens or context_tokens: {gt, gte, lt, lte}. test makes the leaf for the range.
func readTokens(at syntax.Cursor, test func(condition.Range) (*condition.Leaf, bool)) condition.Node {
	mark := at.Mark()
	entries, ok := at.Mapping("a comparison such as {gt: 8000}", "gt", "gte", "lt", "lte")
	if !ok {
		return nil
	}
	if len(entries) == 0 {
		at.Lacking(mark, "found no comparison, expected {gt, gte, lt, lte}")
		return nil
	}
	in := condition.Unbounded()
	for _, e := range entries {
		n, isInt := e.At.Integer(0)
		ok = ok && isInt
		switch x := float64(n); e.Key {
		case "gt":
			in = in.Intersect(condition.Above(x))
		case "gte":
			in = in.Intersect(condition.AtLeast(x))
		case "lt":
			in = in.Intersect(condition.Below(x))
		case "lte":
			in = in.Intersect(condition.AtMost(x))
		}
	}
	if !ok {
		return nil
	}
	return inRange(at, in, test)
}

// readConversation reads conversation: {turns, tool_results, tool_loop}, all of which must hold.
func readConversation(at syntax.Cursor) condition.Node {
	const expected = "{turns: {gt: 3}, tool_results, tool_loop: true}"
	mark := at.Mark()
	entries, ok := at.Mapping(expected, "turns", "tool_results", "tool_loop")
	if !ok {
		return nil
	}
	if len(entries) == 0 {
		at.Lacking(mark, "found no test, expected %s", expected)
		return nil
	}
	var all []condition.Node
	for _, e := range entries {
		var test condition.Node
		switch e.Key {
		case "turns":
			test = readTokens(e.At, condition.Turns)
		case "tool_results":
			test = readTokens(e.At, condition.Results)
		case "tool_loop":
			says, isBool := e.At.Bool()
			if test = holdsWhen(says, condition.ToolLoop()); !isBool {
				test = nil
			}
		}
		if test == nil {
			return nil
		}
		all = append(all, test)
	}
	if len(all) == 1 {
		return all[0]
	}
	return &condition.All{Xs: all}
}

// readFeatures reads has: NAME or [NAME, ...], all of which are required.
func (c *compiler) readFeatures(at syntax.Cursor) condition.Node {
	words := []string{"tools", "images", "context", "facts"}
	bits := []signal.Features{signal.HasTools, signal.HasImages, signal.HasContext, signal.HasFacts}
	var want signal.Features
	names := at.Words("feature", func(at syntax.Cursor, name string) {
		switch {
		case slices.Contains(c.env.Absent, name):
			at.Errorf("has: %s is not in this version", name)
		case at.Known("feature", name, words):
			want |= bits[slices.Index(words, name)]
		}
	})
	if want == 0 {
		return nil
	}
	return condition.Has(want, names...)
}

// readHeaderTest reads header: {name, equals|matches}.
func (c *compiler) readHeaderTest(at syntax.Cursor) condition.Node {
	mark := at.Mark()
	entries, ok := at.Mapping("{name, equals} or {name, matches}", "name", "equals", "matches")
	if !ok {
		return nil
	}
	var name, equals string
	var matches *regexp.Regexp
	tests := 0
	for _, e := range entries {
		s, valid := e.At.Text("a text")
		switch e.Key {
		case "name":
			if valid {
				name, valid = headerName(e.At, s)
			}
			valid = valid && seen(e.At, name)
		case "equals":
			equals = s
			tests++
		case "matches":
			if valid {
				matches, valid = expression(e.At, s)
			}
			tests++
		}
		ok = ok && valid
	}
	if name == "" && ok || tests != 1 {
		at.Lacking(mark, "expected a name and exactly one of equals, matches")
		return nil
	}
	if !ok {
		return nil
	}
	c.headers[name] = true
	if matches != nil {
		return condition.HeaderMatches(name, matches)
	}
	return condition.HeaderEquals(name, equals)
}

// seen reports headers that conditions never see as errors, and warns about headers that state the
// source of a request, because any client can send them.
func seen(at syntax.Cursor, name string) bool {
	switch {
	case name == "Host" || strings.HasPrefix(name, "X-Signalbox-"):
		at.Errorf("conditions do not see the header %s; role, tenant, model and session tell who asks for what", name)
		return false
	case name == "Forwarded" || name == "X-Real-Ip" || strings.HasPrefix(name, "X-Forwarded-"):
		at.Warnf("any client can send %s, unless a proxy in front of this one sets it", name)
	}
	return true
}

// expression compiles a regular expression.
func expression(at syntax.Cursor, s string) (re *regexp.Regexp, ok bool) {
	re, err := regexp.Compile(s)
	if err != nil {
		at.Errorf("found an expression that RE2 cannot read: %s", strings.TrimPrefix(err.Error(), "error parsing regexp: "))
	}
	return re, err == nil
}

// readSession reads session: {present: BOOL}.
func (c *compiler) readSession(at syntax.Cursor) condition.Node {
	mark := at.Mark()
	entries, ok := at.Mapping("{present: true}", "present")
	if !ok {
		return nil
	}
	if len(entries) == 0 {
		at.Lacking(mark, "found no test, expected {present: true}")
		return nil
	}
	present, ok := entries[0].At.Bool()
	if !ok {
		return nil
	}
	c.session = true
	return holdsWhen(present, condition.Session())
}

// namesIn is the result of readNames: NAME, [NAME, ...], or the keys in and not_in of a mapping; if
// readNames returns true, at least one of the two fields below is set.
type namesIn struct {
	in, notIn []string
	given     bool // in was given
	excluded  bool // not_in was given
}

func (l namesIn) set() condition.Names {
	if !l.given {
		return condition.NoneOf(l.notIn...)
	}
	return condition.OneOf(slices.DeleteFunc(slices.Clone(l.in), func(n string) bool { return slices.Contains(l.notIn, n) })...)
}

// readNames reads NAME, [NAME, ...], or the keys in and not_in of a mapping, and checks each name.
// It returns the other entries, whose keys must be among extra.
func readNames(at syntax.Cursor, what string, check func(syntax.Cursor, string), extra ...string) (l namesIn, rest []syntax.Entry, ok bool) {
	if !at.IsMapping() {
		l.in, l.given = at.Words(what, check), true
		return l, nil, len(l.in) > 0
	}
	mark := at.Mark()
	keys := append([]string{"in", "not_in"}, extra...)
	entries, _ := at.Mapping("a "+what, keys...)
	for _, e := range entries {
		switch e.Key {
		case "in":
			l.in, l.given = e.At.Words(what, check), true
		case "not_in":
			l.notIn, l.excluded = e.At.Words(what, check), true
		default:
			rest = append(rest, e)
		}
	}
	if len(entries) == 0 {
		at.Lacking(mark, "found an empty mapping, expected a %s, a list of them, or %s", what, syntax.OneOf(keys))
		return l, nil, false
	}
	if len(l.in) > 0 && l.set().Empty() {
		at.Errorf("not_in excludes everything that in lists")
		return l, rest, false
	}
	return l, rest, !l.given || len(l.in) > 0
}

// readFact reads role, tenant and model. test makes the leaf for the names.
func (c *compiler) readFact(e syntax.Entry, test func(condition.Names) *condition.Leaf) condition.Node {
	l, _, ok := readNames(e.At, e.Key, func(at syntax.Cursor, name string) {
		switch {
		case e.Key == "model":
			at.Known("model", name, append(slices.Clone(c.env.AutoModels), c.env.Models...))
			c.use("model", name)
		case e.Key == "role" && c.env.Roles != nil && !slices.Contains(c.env.Roles, name):
			at.Warnf("no key has role %q%s", syntax.Shorten(name), syntax.Suggestion(name, c.env.Roles))
		case e.Key == "tenant" && c.env.Tenants != nil && !slices.Contains(c.env.Tenants, name):
			at.Warnf("no key has tenant %q%s", syntax.Shorten(name), syntax.Suggestion(name, c.env.Tenants))
		}
	})
	if !ok {
		return nil
	}
	return test(l.set())
}

// checkLabel returns a check that a kind can have a label; what describes the kind.
func (c *compiler) checkLabel(k signal.Kind, what string) func(syntax.Cursor, string) {
	return func(at syntax.Cursor, name string) {
		c.use(what, name)
		known, listed := c.env.Labels[k]
		if k == signal.Complexity && !listed {
			// the words of the signal, for every model
			known, listed = []string{"low", "medium", "high"}, true
		}
		if listed || k == signal.Keyword || k == signal.Intent {
			at.Known(what, name, known)
		}
	}
}

// readKeyword reads keyword. A text can match several sets, so in and not_in are two tests.
func (c *compiler) readKeyword(at syntax.Cursor) condition.Node {
	l, _, ok := readNames(at, "keyword set", c.checkLabel(signal.Keyword, "keyword set"))
	switch {
	case !ok:
		return nil
	case !l.excluded:
		return condition.Keywords(condition.OneOf(l.in...))
	case !l.given:
		return condition.Keywords(condition.NoneOf(l.notIn...))
	}
	return &condition.All{Xs: []condition.Node{
		condition.Keywords(condition.OneOf(l.in...)), condition.Keywords(condition.NoneOf(l.notIn...)),
	}}
}

// readLabels reads domain, intent, complexity and language.
func (c *compiler) readLabels(at syntax.Cursor, k signal.Kind) condition.Node {
	l, rest, ok := readNames(at, k.String(), c.checkLabel(k, k.String()), syntax.BoundKeys()...)
	bounds := condition.BestBounds{Max: 1, Margin: -1}
	for _, e := range rest {
		x, isShare := e.At.Share()
		ok = ok && isShare
		switch e.Key {
		case "min_score":
			bounds.Min = x
		case "max_score":
			bounds.Max = x
		case "margin":
			bounds.Margin = x
		}
	}
	switch {
	case !ok:
		return nil
	case bounds.Min > bounds.Max:
		at.Errorf("min_score %v is above max_score %v, so this is never true", bounds.Min, bounds.Max)
		return nil
	case len(rest) == 0:
		return condition.Label(k, l.set())
	}
	return condition.Best(k, l.set(), bounds, c.env.Labels[k])
}
