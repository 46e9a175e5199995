package guardrail

import (
	"signalbox/internal/openai"
	"signalbox/memory"
	"signalbox/memory/ledger"
	"signalbox/proxy/resolve"
	"signalbox/stream/evidence"
)

// addFacts adds pinned facts; origin is the context that they are pinned to, empty for a session.
func (g *grounds) addFacts(facts []memory.Fact, origin string) {
	prefix := ""
	if origin == "" {
		prefix = "session."
	}
	for i, f := range facts {
		if origin != "" {
			g.from(len(g.sources), origin)
		}
		g.sources = append(g.sources, evidence.Source{ID: factID(f, prefix, i), Text: f.Text, Fact: true})
		g.facts++
	}
}

// from records the context of a source.
func (g *grounds) from(source int, origin string) {
	if g.origins == nil {
		g.origins = make(map[int]string)
	}
	g.origins[source] = origin
}

// origin returns the context of a source; empty if there is none.
func (g *grounds) origin(source int) string {
	if g.ready != nil {
		return g.only
	}
	return g.origins[source]
}

// ofContexts lists the evidence in contexts, under the same rules as in requests: documents and, in
// messages, tool results.
func (o Options) ofContexts(r *resolve.Contexts, g *grounds) []found {
	var out []found
	if r == nil {
		return nil
	}
	for _, s := range r.Snaps {
		at := resolve.Pointer(s)
		if s.Kind == ledger.Messages {
			if o.ToolResults || o.Documents {
				out = append(out, o.ofMessages(s, at, g)...)
			}
			continue
		}
		if !o.Documents {
			continue
		}
		if text, err := s.Text(); err == nil {
			out = append(out, found{at, evidence.Source{ID: content, Text: text}})
			g.documents++
		} else {
			g.cut = true
		}
	}
	return out
}

// ofMessages lists the evidence in the messages of a context. What the model itself said in them is
// not evidence.
func (o Options) ofMessages(s *memory.Snapshot, at string, g *grounds) []found {
	body := append(append([]byte(`{"model":"none","messages":`), s.Messages()...), '}')
	req, err := openai.ParseChat(body, openai.Accepted())
	if err != nil {
		g.cut = true
		return nil
	}
	var out []found
	o.messages(req, at+".", g, func(f evidence.Source) { out = append(out, found{at, f}) })
	return out
}

// alone uses the evidence prepared when the only context was stored, if there is no other evidence.
func (g *grounds) alone(o Options, r *resolve.Contexts) bool {
	if !r.Named() || len(r.Snaps) != 1 || len(r.Facts) > 0 || len(g.sources) > 0 || r.Snaps[0].Kind != ledger.Text {
		return false
	}
	s := r.Snaps[0]
	e, ok := s.Grounding.(*evidence.Evidence)
	if !ok {
		return false
	}
	g.ready, g.only, g.facts = e, resolve.Pointer(s), len(s.Facts)
	if o.Documents {
		g.documents, g.cut = 1, s.Bytes > MaxDocumentBytes
	}
	return true
}
