package proxy

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"signalbox/internal/openai"
	"signalbox/memory"
	"signalbox/proxy/resolve"
	"signalbox/rules"
)

// Shortener is a Classifier that makes a text short.
type Shortener interface {
	// Shorten returns what says most of a text, in about the given number of tokens: the same for the
	// same text. Its error is that of ctx.
	Shorten(ctx context.Context, text string, tokens int) (string, error)
}

const (
	// resultTime bounds what shortening the results of tools may take of a request. What is not done
	// by then is sent whole.
	resultTime = 250 * time.Millisecond
	// shortResults is how many short forms are remembered: some KiB each.
	shortResults = 1024
	// keptFor is how long a result counts as stored without asking the store.
	keptFor = 5 * time.Minute
	// resultName is what contexts with results of tools are called.
	resultName = "tool result"
)

// headerResults tells how many results of tools were shortened and how many there were, as 3/12.
const headerResults = ownPrefix + "Tool-Results"

// describe tells the client how many results the model gets in short.
func (s *resultset) describe(h http.Header) {
	if s != nil {
		h.Set(headerResults, s.String())
	}
}

func (s *resultset) String() string {
	if s == nil {
		return ""
	}
	return strconv.Itoa(len(s.texts)) + "/" + strconv.Itoa(s.named)
}

// guessTokens guesses the length of a text as estimateTokens does.
func guessTokens(text string) int { return len(text) / 4 }

// stale returns which results of tools are to be shortened, the oldest first, so that those of a
// request keep to a budget: results that the model has answered already, and that shortening makes
// shorter. How much is saved grows in steps of half the budget, so that the prompt of one turn begins
// as that of the turn before more often than not.
func stale(req *openai.Request, want *rules.Results) (picked []int, results int) {
	answered, total := -1, 0
	for i := range req.Messages {
		switch m := &req.Messages[i]; m.Role {
		case "assistant":
			answered = i
		case "tool", "function":
			results++
			total += guessTokens(m.Text)
		}
	}
	over := total - want.Budget
	if over <= 0 {
		return nil, results
	}
	step := max(want.Budget/2, 1)
	over = (over + step - 1) / step * step
	for i := 0; i < answered && over > 0; i++ {
		m := &req.Messages[i]
		saved := guessTokens(m.Text) - want.Each
		if m.Role != "tool" && m.Role != "function" || !m.Content.Present() || m.HasImage || saved < want.Each/2 {
			continue
		}
		picked = append(picked, i)
		over -= saved
	}
	return picked, results
}

// shortenResults makes the results of tools short where the route has a budget for them. The whole text is
// stored first, and the short one names it. It never fails a request: what cannot be stored, or takes
// too long, is sent whole.
func (p *Proxy) shortenResults(ctx context.Context, w *reply, o *exchange, req *openai.Request, session string) {
	want := o.Action.Results
	shortener, ok := o.state.classifier.(Shortener)
	if want == nil || !ok || p.resolver.Store == nil || o.hideAll {
		return
	}
	picked, results := stale(req, want)
	if len(picked) == 0 {
		return
	}
	ctx, done := context.WithTimeout(ctx, resultTime)
	defer done()
	out := &resultset{texts: make(map[int]string, len(picked)), named: results}
	for _, i := range picked {
		text, err := p.shortOf(ctx, shortener, resolve.Owner(o.who, session), o.state.results, req.Messages[i].Text, want.Each)
		if err == nil {
			out.texts[i] = text
		}
	}
	if len(out.texts) > 0 {
		o.results = out
		out.describe(w.Header())
	}
}

// shortOf returns the short form of a result whose whole text is stored.
func (p *Proxy) shortOf(ctx context.Context, by Shortener, owner memory.Owner, known *resultMemo, whole string, tokens int) (string, error) {
	h := sha256.New()
	_, _ = fmt.Fprintf(h, "%q %q %d %s", owner.Tenant, owner.Subject, tokens, whole)
	key := [sha256.Size]byte(h.Sum(nil))
	now := time.Now()
	if s, ok := known.GetIfPresent(key); ok && now.Sub(s.kept) < keptFor {
		return s.text, nil
	}
	short, err := by.Shorten(ctx, whole, tokens)
	if err != nil {
		return "", err
	}
	scope := memory.TenantScope
	if owner.Subject != "" {
		scope = memory.PrivateScope
	}
	id, err := p.resolver.Store.Keep(ctx, owner, resultName, whole, scope)
	if err != nil {
		return "", fmt.Errorf("store a result: %w", err)
	}
	text := fmt.Sprintf("%s\n[shortened: %d of %d characters; the whole result is the context %s]", short, len(short),
		len(whole), id)
	known.Set(key, shortResult{text, now})
	return text, nil
}
