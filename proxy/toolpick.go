package proxy

import (
	"context"
	"crypto/sha256"
	"net/http"
	"slices"
	"strconv"
	"time"

	"signalbox/internal/openai"
	"signalbox/internal/signal"
	"signalbox/proxy/tools"
)

const (
	// toolTime bounds what embeddings of tools may take. What is embedded is remembered, so a list
	// that is too long for it is known when it comes again.
	toolTime = 500 * time.Millisecond
	// toolTurns is how many turns of the user are embedded, the latest ones.
	toolTurns = 16
)

// headerTools tells how many tools went to the model and how many the client had named, as 8/60.
const headerTools = ownPrefix + "Tools"

// pickTools leaves out the tools that the conversation cannot need, where the route asks for that.
// It never fails a request: what cannot be read is sent as it is.
func (d *decision) pickTools(ctx context.Context, req *openai.Request) *toolset {
	d.tools = d.toolset(ctx, req)
	return d.tools
}

// toolset returns what is kept of the tools of a request; nil where that is all of them.
func (d *decision) toolset(ctx context.Context, req *openai.Request) *toolset {
	want := d.Action.Tools
	if want == nil || !req.HasTools {
		return nil
	}
	field := "tools"
	if !req.Has(field) {
		field = "functions"
	}
	raw := req.Field(field)
	m := d.state.tools
	key := sha256.Sum256(raw)
	list, ok := m.lists.GetIfPresent(key)
	if !ok {
		var err error
		if list, err = tools.Parse(raw); err != nil {
			return nil
		}
		m.lists.Set(key, list)
	}
	if list.Len() <= want.Keep && want.Share == 0 {
		return nil
	}
	calls, before := tools.Called(req.Field(req.PromptField()))
	forced := tools.Mentions(req.Field("tool_choice"))
	if field == "functions" {
		forced = tools.Mentions(req.Field("function_call"))
	}
	must := func(name string) bool {
		return slices.Contains(calls, name) || forced[name] || slices.Contains(want.Always, name)
	}
	ctx, done := context.WithTimeout(ctx, toolTime)
	defer done()
	var forms []tools.Form
	if want.Share > 0 {
		m := d.toolMoment(ctx, req)
		m.Called = calls[:before]
		forms = list.Fit(m, d.toolVectors(ctx, list), want.Keep, want.Share, must)
	} else {
		turns := d.toolTurns(ctx, req)
		forms = list.Pick(turns, d.toolVectors(ctx, list), want.Keep, must)
	}
	out := &toolset{field: field, named: list.Len()}
	short := false
	for _, f := range forms {
		if f != tools.Away {
			out.kept++
		}
		short = short || f == tools.Brief
	}
	if forms == nil || out.kept == out.named && !short {
		return nil
	}
	out.json = list.JSON(forms)
	return out
}

// toolTurns returns what the user says in each turn.
func (d *decision) toolTurns(ctx context.Context, req *openai.Request) []tools.Turn {
	var turns []tools.Turn
	for i := range req.Messages {
		if x := &req.Messages[i]; x.Role == "user" && x.Text != "" {
			turns = append(turns, tools.Turn{Text: x.Text})
		}
	}
	for i := max(0, len(turns)-toolTurns); i < len(turns); i++ {
		turns[i].Vector = d.state.embedded(ctx, turns[i].Text)
	}
	return turns
}

// toolMoment returns what the user says last and the model said before.
func (d *decision) toolMoment(ctx context.Context, req *openai.Request) *tools.Moment {
	m := new(tools.Moment)
	for i := range slices.Backward(req.Messages) {
		x := &req.Messages[i]
		switch {
		case x.Text == "":
		case x.Role == "user" && m.Parts == nil:
			for _, s := range tools.Parts(x.Text) {
				m.Parts = append(m.Parts, tools.Turn{Text: s, Vector: d.state.embedded(ctx, s)})
			}
		case x.Role == "assistant" && m.Parts != nil:
			m.Before = tools.Turn{Text: x.Text, Vector: d.state.embedded(ctx, x.Text)}
			return m
		}
	}
	return m
}

// toolVectors returns the embeddings of the tools, as far as there is time for them.
func (d *decision) toolVectors(ctx context.Context, list *tools.List) [][]float32 {
	vectors := make([][]float32, list.Len())
	for i := range vectors {
		if list.Name(i) == "" {
			vectors[i] = []float32{} // is always kept
			continue
		}
		vectors[i] = d.state.embedded(ctx, list.Text(i))
	}
	return vectors
}

// embedded returns the embedding of a text; nil where there is no time for it.
func (st *State) embedded(ctx context.Context, text string) []float32 {
	key := sha256.Sum256([]byte(text))
	if v, ok := st.tools.vectors.GetIfPresent(key); ok {
		return v
	}
	if ctx.Err() != nil || !st.classifier.Signals().Has(signal.Embedding) {
		return nil
	}
	var set signal.Set
	t := signal.Text{LastUser: text, Segments: []signal.Segment{{Role: "user", Text: text}}}
	st.classifier.Extract(ctx, &t, signal.MaskOf(signal.Embedding), &set)
	v := &set.Values[signal.Embedding]
	if v.State != signal.Known {
		return nil
	}
	st.tools.vectors.Set(key, v.Vector)
	return v.Vector
}

// describe tells the client how many tools the model was offered.
func (t *toolset) describe(h http.Header) {
	if t != nil {
		h.Set(headerTools, t.String())
	}
}

func (t *toolset) String() string {
	if t == nil {
		return ""
	}
	return strconv.Itoa(t.kept) + "/" + strconv.Itoa(t.named)
}
