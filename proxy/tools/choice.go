package tools

import (
	"context"
	"crypto/sha256"
	"net/http"
	"slices"
	"strconv"
	"time"

	"signalbox/internal/bounded"
	"signalbox/internal/openai"
	"signalbox/internal/signal"
	"signalbox/rules"
)

const (
	// toolTime limits the time for embedding tools. Embeddings are remembered, so a list that takes
	// longer is complete in a later request.
	toolTime = 500 * time.Millisecond
	// toolTurns is the number of latest user turns that are embedded.
	toolTurns = 16
	// toolLists and toolVectors are the numbers of lists and embeddings remembered: 512 lists of
	// about 100 KiB, with their brief forms, and 6 MiB.
	toolLists   = 512
	toolVectors = 4096
)

// headerTools contains the number of tools offered to the model and the number in the request, such
// as 8/60.
const headerTools = "X-Signalbox-Tools"

// Classifier computes embeddings of texts. Implementations are safe for concurrent use.
type Classifier interface {
	// Extract sets every kind in need to known or unknown.
	Extract(ctx context.Context, text *signal.Text, need signal.Mask, set *signal.Set)
	// Signals returns the kinds that it can compute now.
	Signals() signal.Mask
}

// Memo remembers lists of tools and embeddings by the digest of their text. It is safe for
// concurrent use.
type Memo struct {
	lists   *bounded.Cache[*List]
	vectors *bounded.Cache[[]float32]
}

// NewMemo returns an empty memo.
func NewMemo() *Memo {
	return &Memo{
		lists:   bounded.New[*List](toolLists),
		vectors: bounded.New[[]float32](toolVectors),
	}
}

// Choice is a list of tools of which some are withheld from the model. nil means that all are
// offered.
type Choice struct {
	Field string // field of the body
	JSON  []byte // its value
	kept  int
	named int
}

// Choose returns the tools of a request to offer. It returns nil for all of them: if want is nil,
// or if the request continues turns stored only by the server, where the tools offered and called
// are unknown. It never fails a request: an unreadable list is sent unchanged.
func (m *Memo) Choose(
	ctx context.Context, by Classifier, req *openai.Request, want *rules.Tools,
) *Choice {
	if want == nil || !req.HasTools || req.Continues() {
		return nil
	}
	field := "tools"
	list := m.list(req.Field(field))
	if list == nil {
		field = "functions"
		list = m.list(req.Field(field))
	}
	if list == nil || list.Len() <= want.Keep {
		return nil
	}
	forms := m.forms(ctx, by, req, want, list, field)
	out := &Choice{Field: field, named: list.Len()}
	short := false
	for _, f := range forms {
		if f != Away {
			out.kept++
		}
		short = short || f == Brief
	}
	if out.kept == 0 || out.kept == out.named && !short {
		return nil
	}
	out.JSON = list.JSON(forms)
	return out
}

// list parses a list of tools; nil if there is none or it is empty.
func (m *Memo) list(raw []byte) *List {
	if raw == nil {
		return nil
	}
	key := sha256.Sum256(raw)
	list, ok := m.lists.Get(key)
	if !ok {
		var err error
		if list, err = Parse(raw); err != nil || list.Len() == 0 {
			return nil
		}
		m.lists.Set(key, list)
	}
	return list
}

// forms selects the forms of the tools; nil if there is no basis for a choice.
func (m *Memo) forms(
	ctx context.Context, by Classifier, req *openai.Request, want *rules.Tools, list *List, field string,
) []Form {
	calls, before := Called(req.Field(req.PromptField()))
	forced := Mentions(req.Field("tool_choice"))
	if field == "functions" {
		forced = Mentions(req.Field("function_call"))
	}
	called := make(map[string]bool, len(calls))
	for _, name := range calls {
		called[name] = true
	}
	must := func(name string) bool { return called[name] || forced[name] || slices.Contains(want.Always, name) }
	ctx, done := context.WithTimeout(ctx, toolTime)
	defer done()
	if want.Share > 0 {
		now := m.moment(ctx, by, req)
		now.Called = calls[:before]
		return list.Fit(now, m.vectorsOf(ctx, by, list), want.Keep, want.Share, must)
	}
	turns := m.turns(ctx, by, req)
	return list.Pick(turns, m.vectorsOf(ctx, by, list), want.Keep, must)
}

// turns returns what the user says in each turn.
func (m *Memo) turns(ctx context.Context, by Classifier, req *openai.Request) []Turn {
	var turns []Turn
	for i := range req.Messages {
		if x := &req.Messages[i]; x.Role == "user" && x.Text != "" {
			turns = append(turns, Turn{Text: x.Text})
		}
	}
	for i := max(0, len(turns)-toolTurns); i < len(turns); i++ {
		turns[i].Vector = m.vector(ctx, by, turns[i].Text)
	}
	return turns
}

// moment returns the user's last message and what the model said before.
func (m *Memo) moment(ctx context.Context, by Classifier, req *openai.Request) *Moment {
	out := new(Moment)
	for i := range slices.Backward(req.Messages) {
		x := &req.Messages[i]
		switch {
		case x.Text == "":
		case x.Role == "user" && out.Parts == nil:
			for _, s := range Parts(x.Text) {
				out.Parts = append(out.Parts, Turn{Text: s, Vector: m.vector(ctx, by, s)})
			}
		case x.Role == "assistant" && out.Parts != nil:
			out.Before = Turn{Text: x.Text, Vector: m.vector(ctx, by, x.Text)}
			return out
		}
	}
	return out
}

// vectorsOf returns the embeddings of the tools, as far as time permits.
func (m *Memo) vectorsOf(ctx context.Context, by Classifier, list *List) [][]float32 {
	vectors := make([][]float32, list.Len())
	for i := range vectors {
		if list.Name(i) == "" {
			vectors[i] = []float32{} // always kept
			continue
		}
		vectors[i] = m.vector(ctx, by, list.Text(i))
	}
	return vectors
}

// vector returns the embedding of a text; nil if time ran out.
func (m *Memo) vector(ctx context.Context, by Classifier, text string) []float32 {
	key := sha256.Sum256([]byte(text))
	if v, ok := m.vectors.Get(key); ok {
		return v
	}
	if ctx.Err() != nil || !by.Signals().Has(signal.Embedding) {
		return nil
	}
	var set signal.Set
	t := signal.Text{LastUser: text, Segments: []signal.Segment{{Role: "user", Text: text}}}
	by.Extract(ctx, &t, signal.MaskOf(signal.Embedding), &set)
	v := set.Value(signal.Embedding)
	if v.State != signal.Known {
		return nil
	}
	m.vectors.Set(key, v.Vector)
	return v.Vector
}

// Describe sets the header with the number of tools offered.
func (t *Choice) Describe(h http.Header) {
	if t != nil {
		h.Set(headerTools, t.String())
	}
}

// String returns the value of the header, such as 8/60; empty for nil.
func (t *Choice) String() string {
	if t == nil {
		return ""
	}
	return strconv.Itoa(t.kept) + "/" + strconv.Itoa(t.named)
}
