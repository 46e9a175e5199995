package tools

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"signalbox/internal/bounded"
	"signalbox/internal/openai"
	"signalbox/memory"
	"signalbox/rules"
)

// Shortener is a Classifier that shortens texts.
type Shortener interface {
	// Shorten returns the most important content of a text in about the given number of tokens. It
	// is deterministic. The error is that of ctx.
	Shorten(ctx context.Context, text string, tokens int) (string, error)
}

const (
	// resultTime limits the time that a request spends on shortening tool results. Results not
	// shortened by then are sent whole.
	resultTime = 250 * time.Millisecond
	// shortResults is the number of short forms remembered, of a few KiB each.
	shortResults = 1024
	// keptFor is how long a result counts as stored without asking the store.
	keptFor = 5 * time.Minute
	// resultName is the name of contexts with tool results.
	resultName = "tool result"
)

// headerResults contains the number of shortened tool results and the total, such as 3/12.
const headerResults = "X-Signalbox-Tool-Results"

// Results holds the shortened tool results of a request. nil means that none is shortened.
type Results struct {
	texts map[int]string // by index of their message
	named int            // number of tool results
}

// Describe sets the header with the number of shortened results.
func (s *Results) Describe(h http.Header) {
	if s != nil {
		h.Set(headerResults, strconv.Itoa(len(s.texts))+"/"+strconv.Itoa(s.named))
	}
}

// Apply inserts the short texts into the body.
func (s *Results) Apply(p *openai.Patch) {
	if s == nil {
		return
	}
	for i, text := range s.texts {
		p.ReplaceMessageText(i, text)
	}
}

// guessTokens estimates the tokens of a text like the estimate of prompts does.
func guessTokens(text string) int { return len(text) / 4 }

// Stale returns the tool results to shorten, oldest first, so that those of a request stay within a
// budget. Only results that the model has already answered are shortened, and only if that saves
// tokens. The amount saved grows in steps of half the budget, so that successive prompts usually
// have the same beginning.
func Stale(req *openai.Request, want *rules.Results) (picked []int, results int) {
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

// ShortForms makes short forms of tool results and remembers them by the digest of text, owner and
// size. It is safe for concurrent use.
type ShortForms struct {
	known *bounded.Cache[shortForm]
}

// NewShortForms returns an empty ShortForms.
func NewShortForms() *ShortForms {
	return &ShortForms{bounded.New[shortForm](shortResults)}
}

// shortForm is a tool result as the model receives it.
type shortForm struct {
	text string
	kept time.Time // when the store was last asked to keep the whole result
}

// Shorten shortens the tool results that exceed the budget in want; nil if there are none. The
// whole text is first stored for owner, and the short form refers to it. It never fails a request:
// a result that cannot be stored, or takes too long, is sent whole.
func (f *ShortForms) Shorten(
	ctx context.Context, by Shortener, store *memory.Store, owner memory.Owner, req *openai.Request, want *rules.Results,
) *Results {
	picked, results := Stale(req, want)
	if len(picked) == 0 {
		return nil
	}
	ctx, done := context.WithTimeout(ctx, resultTime)
	defer done()
	out := &Results{texts: make(map[int]string, len(picked)), named: results}
	for _, i := range picked {
		text, err := f.shorten(ctx, by, store, owner, req.Messages[i].Text, want.Each)
		if err == nil {
			out.texts[i] = text
		}
	}
	if len(out.texts) == 0 {
		return nil
	}
	return out
}

// shorten returns the short form of a result whose whole text is stored.
func (f *ShortForms) shorten(
	ctx context.Context, by Shortener, store *memory.Store, owner memory.Owner, whole string, tokens int,
) (string, error) {
	h := sha256.New()
	_, _ = fmt.Fprintf(h, "%q %q %d %s", owner.Tenant, owner.Subject, tokens, whole)
	key := [sha256.Size]byte(h.Sum(nil))
	now := time.Now()
	if s, ok := f.known.Get(key); ok && now.Sub(s.kept) < keptFor {
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
	id, err := store.Keep(ctx, owner, resultName, whole, scope)
	if err != nil {
		return "", fmt.Errorf("store a result: %w", err)
	}
	text := fmt.Sprintf("%s\n[shortened: %d of %d characters; the whole result is the context %s]", short, len(short),
		len(whole), id)
	f.known.Set(key, shortForm{text, now})
	return text, nil
}
