package classify

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

	"signalbox/classify/bundle"
	"signalbox/classify/tokenize"
)

// Mark is a part of an answer that, according to a model, its evidence does not support.
type Mark struct {
	Start, End int // bytes [Start,End) of the answer, at least one, without surrounding spaces
	// the highest probability among its tokens of being unsupported, from the task's threshold to 1
	Score float64
}

// ErrNoEvidence reports an answer for which there is no evidence.
var ErrNoEvidence = errors.New("no evidence")

// MarkTokens finds the parts of an answer that evidence does not support, with a model that judges
// every token of the answer, such as HaluGate or LettuceDetect. question may be empty. Marks are in
// the order of the answer and do not touch each other; nil means that all of it is supported. The
// caller owns the result.
//
// Evidence that does not fit into a row with the answer is read in overlapping windows, each
// together with the question and the whole answer. A token is supported if one window supports it,
// because the other windows may not cover its subject. Answers longer than half a row are read in
// parts, each with all of the evidence. If Window.Max is set and the evidence needs more windows,
// the first Max-1 and the last are read; text that only the others support is marked.
//
// Errors: ErrNoTask, ErrNoEvidence, those of the session, a Reasoned error for invalid output, and
// ctx's. Options.Timeout does not apply; only the caller's context limits the call.
func (c *Classifier) MarkTokens(ctx context.Context, task string, evidence []string, question, answer string) ([]Mark, error) {
	e, t := c.judgingTask(task)
	if t == nil || !e.Ready() {
		return nil, fmt.Errorf("mark tokens: %w: %q", ErrNoTask, task)
	}
	out, err := e.markTokens(ctx, t, evidence, question, answer, &c.opts)
	if err != nil {
		return nil, fmt.Errorf("mark tokens: %w", err)
	}
	return out, nil
}

func (c *Classifier) judgingTask(name string) (*Engine, *task) {
	return c.findTask(func(t *task) bool { return t.Judges() && t.Name == name })
}

// Indices of the texts of a pass over an answer.
const (
	answerText = iota
	evidenceText
	questionText
	judgedTexts // number of texts
)

func (e *Engine) markTokens(ctx context.Context, t *task, evidence []string, question, answer string, o *Options) (out []Mark, err error) {
	if strings.TrimSpace(strings.Join(evidence, "")) == "" {
		return nil, ErrNoEvidence
	}
	if strings.TrimSpace(answer) == "" {
		return nil, nil
	}
	defer func() {
		if v := recover(); v != nil {
			err = recovered(v)
		}
	}()
	p := e.pairPass(t, judgedTexts, o)
	e.tokens.Encode(answer, &p.texts[answerText])
	room := t.Window.Tokens - e.pairSpecials
	rows := newJudgedRows(t, e.frame(p, t, evidence, question, room/4), len(p.texts[answerText].IDs), room)
	rows.add(p)
	if err := p.runPairs(ctx); err != nil {
		return nil, err
	}
	out = marks(&p.texts[answerText], rows.scores(p), t.Threshold, answer)
	e.putBack(p)
	return out, nil
}

// judgedRows are the rows in which an answer is read: each part of it with every window of the
// evidence. An answer of one part with evidence of one window is a single row.
type judgedRows struct {
	t       *task
	frame   frame
	tokens  int // of the answer
	parts   tokenize.Windows
	windows []int // start of each window of the evidence that is read, in tokens
	size    int   // length of such a window in tokens
}

func newJudgedRows(t *task, f frame, tokens, room int) *judgedRows {
	r := &judgedRows{t: t, frame: f, tokens: tokens}
	part := min(tokens, max(room/2, 1))
	r.parts = tokenize.NewWindows(tokens, part, r.stride(part))
	r.size = max(room-part-len(f.head)-len(f.tail), 1)
	all := tokenize.NewWindows(len(f.body), r.size, r.stride(r.size))
	for i := range all.Len() {
		if most := t.Window.Max; most > 0 && i >= most-1 && i < all.Len()-1 {
			continue
		}
		from, _ := all.At(i)
		r.windows = append(r.windows, from)
	}
	return r
}

// stride returns the distance between windows of size tokens, in the proportion given by the
// manifest.
func (r *judgedRows) stride(size int) int {
	return max(1, size*r.t.Window.Stride/r.t.Window.Tokens)
}

// add adds the rows, part by part.
func (r *judgedRows) add(p *pass) {
	answer := p.texts[answerText].IDs
	for i := range r.parts.Len() {
		from, to := r.parts.At(i)
		for _, at := range r.windows {
			p.addPair(r.frame.around(at, min(at+r.size, len(r.frame.body))), answer[from:to])
		}
	}
}

// scores returns, for every token of the answer, the probability that it is unsupported, from the
// window that supports it best. Where parts overlap, each half of the overlap belongs to the part
// whose middle is nearer.
func (r *judgedRows) scores(p *pass) []float64 {
	out := make([]float64, r.tokens)
	probs := make([]float64, len(r.t.Labels))
	left := 0
	for i := range r.parts.Len() {
		from, to := r.parts.At(i)
		right := to
		if i+1 < r.parts.Len() {
			next, _ := r.parts.At(i + 1)
			right = (next + to) / 2
		}
		for token := left; token < right; token++ {
			out[token] = r.least(p, i, token-from, probs)
		}
		left = right
	}
	return out
}

// least returns the score of a token of a part, from the window that supports it best. probs is
// scratch space for the probabilities of one token.
func (r *judgedRows) least(p *pass, part, token int, probs []float64) float64 {
	least := math.Inf(1)
	for w := range r.windows {
		at := part*len(r.windows) + w
		k := (p.e.pairLead + len(p.rows[at].ids) + token) * len(probs)
		softmax(probs, p.reads[at].out[k:k+len(probs)], r.t.Temperature)
		least = min(least, probs[r.t.positive])
	}
	return least
}

// marks joins neighbouring tokens whose score reaches the threshold. Tokens without text, and
// spaces between tokens, are part of a mark only in its interior.
func marks(enc *tokenize.Encoding, scores []float64, threshold float64, answer string) []Mark {
	var out []Mark
	open := false
	for i, score := range scores {
		start, end := trimmed(answer, int(enc.Start[i]), int(enc.End[i]))
		if start == end {
			continue
		}
		if score < threshold {
			open = false
			continue
		}
		if !open {
			out, open = append(out, Mark{Start: start}), true
		}
		last := &out[len(out)-1]
		last.End = max(last.End, end)
		last.Score = max(last.Score, score)
	}
	return out
}

// trimmed returns text[start:end] without surrounding spaces.
func trimmed(text string, start, end int) (from, to int) {
	rest := strings.TrimLeft(text[start:end], " \t\r\n")
	start = end - len(rest)
	return start, start + len(strings.TrimRight(rest, " \t\r\n"))
}

// frame is the part of a row before the answer: the evidence, and the tokens around it that every
// row has.
type frame struct{ head, body, tail []int32 }

// around returns the tokens of a row with the evidence tokens [from,to).
func (f *frame) around(from, to int) []int32 {
	if len(f.tail) == 0 && len(f.head) == 0 {
		return f.body[from:to]
	}
	row := make([]int32, 0, len(f.head)+to-from+len(f.tail))
	row = append(row, f.head...)
	row = append(row, f.body[from:to]...)
	return append(row, f.tail...)
}

// limit cuts the tokens around the evidence to at most so many: first the end of the head, where a
// long question is, then the end of the tail.
func (f *frame) limit(tokens int) {
	tokens = max(tokens, 0)
	f.tail = f.tail[:min(len(f.tail), tokens)]
	f.head = f.head[:min(len(f.head), tokens-len(f.tail))]
}

// frame lays out evidence and question according to the template of t, with at most fixed tokens
// around the evidence.
func (e *Engine) frame(p *pass, t *task, evidence []string, question string, fixed int) frame {
	var f frame
	if t.Template == bundle.Separated {
		f = e.separated(p, evidence, question)
	} else {
		f = e.passages(p, evidence, question)
	}
	f.limit(fixed)
	return f
}

// separated lays out evidence, separator and question.
func (e *Engine) separated(p *pass, evidence []string, question string) frame {
	e.tokens.Encode(strings.Join(evidence, "\n"), &p.texts[evidenceText])
	f := frame{body: p.texts[evidenceText].IDs}
	if strings.TrimSpace(question) == "" {
		return f
	}
	e.tokens.Encode(question, &p.texts[questionText])
	f.tail = append(append(f.tail, e.separator...), p.texts[questionText].IDs...)
	return f
}

// passages lays out the instruction of bundle.Passages. It is tokenised as one text, so that a row
// that holds all of it equals the training input of the models.
func (e *Engine) passages(p *pass, evidence []string, question string) frame {
	before, body, after := passageTexts(evidence, question)
	enc := &p.texts[evidenceText]
	e.tokens.Encode(before+body+after, enc)
	first := firstAt(enc, len(before))
	last := max(first, firstAt(enc, len(before)+len(body)))
	return frame{head: enc.IDs[:first], body: enc.IDs[first:last], tail: enc.IDs[last:]}
}

// firstAt returns the first token that starts at or after byte at.
func firstAt(enc *tokenize.Encoding, at int) int {
	for i, start := range enc.Start {
		if int(start) >= at {
			return i
		}
	}
	return len(enc.Start)
}

// passageTexts returns the three parts of the instruction of bundle.Passages, with or without a
// question. The words are those of the prompts of RAGTruth as LettuceDetect 0.2 writes them; the
// models were trained on no others.
func passageTexts(evidence []string, question string) (before, body, after string) {
	var b strings.Builder
	for i, text := range evidence {
		if i > 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "passage %d: %s", i+1, text)
	}
	if strings.TrimSpace(question) == "" {
		return "Summarize the following text:\n", b.String(), "\noutput:"
	}
	before = "Briefly answer the following question:\n" + question +
		fmt.Sprintf("\nBear in mind that your response should be strictly based on the following %d passages:\n", len(evidence))
	return before, b.String(), "\nIn case the passages do not contain the necessary information to answer the question, " +
		"please reply with: \"Unable to answer based on given passages.\"\noutput:"
}
