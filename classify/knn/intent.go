package knn

import (
	_ "embed" // the background set
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Limits of an Index.
const (
	// MaxExamples is the maximum number of examples and negative examples of all intents together.
	MaxExamples = 100_000
	// MaxExampleBytes is the maximum length of an example. Embeddings truncate longer texts anyway.
	MaxExampleBytes = 8 << 10
)

// Intent declares a class of requests by examples.
type Intent struct {
	// Name is the name by which conditions refer to the intent. Required. Its words also help to
	// distinguish the intent from others, so prefer parcel_lost to intent_7. Words are separated by
	// any character that is not a letter or a digit, and by a change from lower to upper case.
	Name string `yaml:"name"`
	// Examples lists example sentences as users write them: at least one, and no two alike across
	// all intents. Reloadable.
	Examples []string `yaml:"examples"`
	// Negatives lists sentences that are similar to the examples but not meant. A text that is
	// nearer to one of them than to every example does not belong to the intent. Default none.
	// Reloadable.
	Negatives []string `yaml:"negatives"`
	// Threshold is the score from which the intent is recognised: auto, which derives it from the
	// examples and a background set, or a number in (0,1]. Default auto. Reloadable.
	Threshold Threshold `yaml:"threshold"`
}

// Threshold is a score in (0,1], or Auto.
type Threshold float64

// Auto is a threshold derived from the examples. It is the zero value.
const Auto Threshold = 0

// UnmarshalText parses "auto" or a number in (0,1].
func (t *Threshold) UnmarshalText(text []byte) error {
	s := string(text)
	if s == "auto" {
		*t = Auto
		return nil
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || !(f > 0 && f <= 1) {
		return fmt.Errorf("found %q, expected auto or a number above 0 and at most 1", clip(s))
	}
	*t = Threshold(f)
	return nil
}

// MarshalText is the inverse of UnmarshalText.
func (t Threshold) MarshalText() ([]byte, error) {
	if t == Auto {
		return []byte("auto"), nil
	}
	return strconv.AppendFloat(nil, float64(t), 'g', -1, 64), nil
}

// ExampleError reports a text that cannot be an example.
type ExampleError struct {
	Index int    // its index in the given list
	Msg   string // the problem, without the index
}

// Error returns the index and the problem.
func (e *ExampleError) Error() string { return fmt.Sprintf("examples[%d]: %s", e.Index, e.Msg) }

// ValidateIntents reports every problem as "intents[i].field: problem", joined, or nil. An empty
// list is valid.
func ValidateIntents(intents []Intent) error {
	v := validator{names: make(map[string]int), seen: make(map[string]string)}
	total := 0
	for i := range intents {
		v.intent(&intents[i], i)
		total += len(intents[i].Examples) + len(intents[i].Negatives)
	}
	if total > MaxExamples {
		v.bad("intents: %d examples in all, want at most %d", total, MaxExamples)
	}
	return errors.Join(v.errs...)
}

// validator collects problems of intents.
type validator struct {
	names map[string]int    // positions of intents
	seen  map[string]string // positions of examples, by key
	errs  []error
}

func (v *validator) bad(format string, args ...any) {
	v.errs = append(v.errs, fmt.Errorf(format, args...))
}

func (v *validator) intent(in *Intent, i int) {
	at := fmt.Sprintf("intents[%d]", i)
	first, dup := v.names[in.Name]
	switch {
	case strings.TrimSpace(in.Name) == "":
		v.bad("%s.name: missing", at)
	case dup:
		v.bad("%s.name: %q is the name of intents[%d] already", at, in.Name, first)
	default:
		v.names[in.Name] = i
	}
	if len(in.Examples) == 0 {
		v.bad("%s.examples: missing, want at least one", at)
	}
	if !(in.Threshold == Auto || in.Threshold > 0 && in.Threshold <= 1) {
		v.bad("%s.threshold: %v is not above 0 and at most 1", at, float64(in.Threshold))
	}
	own := make(map[string]bool, len(in.Examples))
	for j, text := range in.Examples {
		own[key(text)] = true
		v.example(text, fmt.Sprintf("%s.examples[%d]", at, j))
	}
	for j, text := range in.Negatives {
		if msg := textProblem(text); msg != "" {
			v.bad("%s.negatives[%d]: %s", at, j, msg)
		} else if own[key(text)] {
			v.bad("%s.negatives[%d]: %q is an example of the same intent", at, j, clip(text))
		}
	}
}

func (v *validator) example(text, place string) {
	if msg := textProblem(text); msg != "" {
		v.bad("%s: %s", place, msg)
		return
	}
	k := key(text)
	if other, dup := v.seen[k]; dup {
		v.bad("%s: %q is the same as %s", place, clip(text), other)
		return
	}
	v.seen[k] = place
}

// textProblem returns the problem of an example text, or "".
func textProblem(text string) string {
	switch {
	case strings.TrimSpace(text) == "":
		return "empty"
	case len(text) > MaxExampleBytes:
		return fmt.Sprintf("%d bytes long, want at most %d", len(text), MaxExampleBytes)
	case !utf8.ValidString(text):
		return "not valid UTF-8"
	case !strings.ContainsFunc(text, isSeen):
		return "nothing that can be seen" // tokenizers drop such a text, so it has no vector
	}
	return ""
}

// isSeen reports whether r is a visible letter, digit, sign or symbol, as opposed to an invisible
// character or a mark on another one.
func isSeen(r rune) bool {
	return unicode.In(r, unicode.L, unicode.N, unicode.P, unicode.S)
}

// key returns a string that is equal for equivalent examples.
func key(text string) string { return strings.ToLower(strings.Join(strings.Fields(text), " ")) }

// clip shortens text for a message.
func clip(text string) string {
	const most = 60
	if len(text) <= most {
		return text
	}
	n := most
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n] + "..."
}

// label returns the words of an intent's name, or "" when it has no letters.
func label(name string) string {
	var b strings.Builder
	letters, before := false, ' '
	for _, r := range name {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r) {
			r = ' '
		}
		if unicode.IsUpper(r) && unicode.IsLower(before) {
			b.WriteByte(' ')
		}
		b.WriteRune(unicode.ToLower(r))
		letters, before = letters || unicode.IsLetter(r), r
	}
	if !letters || b.Len() > MaxExampleBytes {
		return ""
	}
	return strings.Join(strings.Fields(b.String()), " ")
}

// background is a sentence a line, written for this project: everyday questions, commands, stray
// words and odd statements in some forty languages.
//
//go:embed background.txt
var background string

func backgroundTexts() []string { return strings.Split(strings.TrimSpace(background), "\n") }

// backgroundOfScripts is more of it in scripts other than the Latin one: common words and the forms of
// questions, whose n-grams say nothing of an intent.
//
//go:embed background_scripts.txt
var backgroundOfScripts string

// abroadExamples returns the background sentences in other scripts, compared by n-grams alone.
func abroadExamples() []*example {
	var out []*example
	for line := range strings.Lines(backgroundOfScripts) {
		e := newExample(strings.TrimSpace(line), nil)
		e.blind = true
		out = append(out, e)
	}
	return out
}
