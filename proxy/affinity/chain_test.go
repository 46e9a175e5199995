package affinity_test

import (
	"encoding/base64"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"signalbox/proxy/affinity"
)

// text returns n bytes that differ for each word.
func text(word string, n int) string {
	return strings.Repeat(word+" ", n/(len(word)+1)+1)[:n]
}

func chainOf(parts ...string) *affinity.Chain {
	c := &affinity.Chain{}
	c.Message("system", "")
	for _, p := range parts {
		c.Write(p)
	}
	return c
}

func TestChainsDoNotDependOnHowTextIsWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		whole := rapid.StringN(0, 6000, 6000).Draw(t, "text")
		var pieces affinity.Chain
		pieces.Message("user", "")
		stored := affinity.Chain{}
		for rest := whole; rest != ""; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "piece")
			pieces.Write(rest[:n])
			if rest = rest[n:]; rapid.Bool().Draw(t, "resume") {
				stored.Resume(&pieces)
				pieces.Reset()
				pieces.Write("something else")
				pieces.Resume(&stored)
			}
		}
		var once affinity.Chain
		once.Message("user", whole)
		if !slices.Equal(once.Blocks(), pieces.Blocks()) || once.Bytes() != pieces.Bytes() {
			t.Fatalf("chain in pieces %x, at once %x", pieces.Blocks(), once.Blocks())
		}
		if want := once.Bytes() / affinity.BlockBytes; len(once.Blocks()) != want {
			t.Fatalf("%d blocks of %d bytes, want %d", len(once.Blocks()), once.Bytes(), want)
		}
	})
}

func TestChainsShareWhatTheirTextsShare(t *testing.T) {
	common := text("contract", 4500)
	a, b := chainOf(common, text("one", 4000)), chainOf(common, text("two", 4000))
	for i := range a.Blocks() {
		if same, want := a.Blocks()[i] == b.Blocks()[i], i < len(common)/affinity.BlockBytes; same != want {
			t.Errorf("block %d is shared: %t, want %t", i, same, want)
		}
	}
}

func TestRolesArePartOfTheText(t *testing.T) {
	var a, b, c affinity.Chain
	a.Message("user", text("x", 2000))
	b.Message("system", text("x", 2000))
	c.Message("user", text("x", 1000))
	c.Message("user", text("x", 1000))
	if a.Blocks()[0] == b.Blocks()[0] {
		t.Error("user and system have the same chain")
	}
	if slices.Equal(a.Blocks(), c.Blocks()) {
		t.Error("one message and two have the same chain")
	}
}

func TestClassesDependOnEveryTrait(t *testing.T) {
	all := []affinity.Traits{
		{},
		{Model: "a"},
		{LoRA: "a"},
		{Salt: "a"},
		{Template: "a"},
		{Model: "a", LoRA: "b"},
		{Model: "ab"},
		{LoRA: "a", Salt: "b"},
	}
	seen := map[affinity.Class]affinity.Traits{}
	for _, traits := range all {
		c := traits.Class()
		if other, ok := seen[c]; ok {
			t.Errorf("%+v and %+v are one class", traits, other)
		}
		seen[c] = traits
	}
}

func TestSaltsDifferForTenantsScopesAndSecrets(t *testing.T) {
	seen := map[string]string{}
	for _, secret := range []string{"s1", "s2"} {
		for _, tenant := range []string{"", "a", "ab", "b"} {
			for _, scope := range []string{"", "a", "b", "bc", "c"} {
				salt := affinity.Salt([]byte(secret), tenant, scope)
				who := secret + "|" + tenant + "|" + scope
				if other, ok := seen[salt]; ok {
					t.Errorf("%s and %s have the same salt", who, other)
				}
				seen[salt] = who
				if b, err := base64.RawURLEncoding.DecodeString(salt); err != nil || len(b) != 32 {
					t.Errorf("salt %q: %d bytes, %v", salt, len(b), err)
				}
			}
		}
	}
}

func TestKeyIsTheFirstThingThatARequestNames(t *testing.T) {
	class := (&affinity.Traits{Model: "m"}).Class()
	blocks := chainOf(text("long", 8000)).Blocks()
	full := affinity.Hints{
		Contexts: []string{"ctx_a@1"}, Session: "s", PromptCacheKey: "s", SessionID: "s", ClaudeSession: "s", PreviousResponse: "s",
	}
	seen := map[uint64]affinity.Source{}
	for _, c := range []struct {
		drop func(h *affinity.Hints)
		want affinity.Source
	}{
		{func(*affinity.Hints) {}, affinity.Contexts},
		{func(h *affinity.Hints) { h.Contexts = nil }, affinity.Session},
		{func(h *affinity.Hints) { h.Session = "" }, affinity.PromptCacheKey},
		{func(h *affinity.Hints) { h.PromptCacheKey = "" }, affinity.SessionID},
		{func(h *affinity.Hints) { h.SessionID = "" }, affinity.ClaudeSession},
		{func(h *affinity.Hints) { h.ClaudeSession = "" }, affinity.PreviousResponse},
		{func(h *affinity.Hints) { h.PreviousResponse = "" }, affinity.Prefix},
	} {
		c.drop(&full)
		key, source := full.Key(class, blocks, 2000)
		if source != c.want || key == 0 {
			t.Errorf("source %v with key %x, want %v", source, key, c.want)
		}
		if other, ok := seen[key]; ok {
			t.Errorf("%v and %v have the same key", source, other)
		}
		seen[key] = source
	}
	var nothing affinity.Hints
	for _, c := range []struct {
		name   string
		blocks []uint64
		tokens int
	}{{"few tokens", blocks, 1023}, {"little text", blocks[:3], 2000}} {
		if key, source := nothing.Key(class, c.blocks, c.tokens); key != 0 || source != affinity.NoSource {
			t.Errorf("%s: key %x of %v", c.name, key, source)
		}
	}
}

func TestKeysBelongToOneClassAndOneOrder(t *testing.T) {
	keys := map[uint64]bool{}
	for _, tenant := range []string{"a", "b"} {
		class := (&affinity.Traits{Salt: tenant}).Class()
		for _, h := range []affinity.Hints{
			{Contexts: []string{"x", "y"}}, {Contexts: []string{"y", "x"}}, {Contexts: []string{"xy"}}, {SessionID: "x"}, {Session: "x"},
		} {
			key, _ := h.Key(class, nil, 0)
			keys[key] = true
		}
	}
	if len(keys) != 10 {
		t.Errorf("%d different keys, want 10", len(keys))
	}
}

func BenchmarkChain600KiB(b *testing.B) {
	body := text("contract", 600<<10)
	var c affinity.Chain
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		c.Reset()
		c.Message("user", body)
	}
}
