package evidence_test

import (
	"fmt"
	"strings"
	"testing"

	"signalbox/stream/evidence"
)

// page is many sentences about other things, each with an own name, with some of ours among them.
func page(ours map[int]string) string {
	var b strings.Builder
	for i := range 80 {
		if s, ok := ours[i]; ok {
			b.WriteString(s + " ")
		}
		fmt.Fprintf(&b, "Visitor %c%d walked along the river and looked at the boats for a while. ", 'A'+i%26, i)
	}
	return b.String()
}

func pages(tb testing.TB, sources ...string) *evidence.Evidence {
	tb.Helper()
	list := make([]evidence.Source, len(sources))
	for i, s := range sources {
		list[i] = evidence.Source{ID: fmt.Sprintf("s%d", i), Text: s}
	}
	e, err := evidence.New(list, evidence.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	return e
}

func TestWhatAClaimStatesIsGatheredFromSeveralPlaces(t *testing.T) {
	t.Parallel()
	const born, opened, closed = "Anna Berg was born in Lund.", "She opened the Astra harbour.", "The harbour closed in 1962."
	e := pages(t, "Anna Berg is in another source, with Lund and Astra and 1962.", page(map[int]string{60: closed, 5: born, 30: opened}))
	p := e.Gather("Anna Berg, born in Lund, opened the Astra harbour, which closed in 1962.", 1)
	if want := born + " " + opened + " " + closed; !strings.Contains(p.Text, closed) || !strings.HasPrefix(p.Text, born) || !strings.Contains(p.Text, opened) {
		t.Errorf("gathered %q, want the sentences of %q in their order", p.Text, want)
	}
	if p.Source != 1 || p.ID != "s1" || p.Page < 1000 || e.Premise(p.Sentence).Source != 1 || !strings.HasPrefix(e.Premise(p.Sentence).Text, "Visitor") && !strings.Contains(e.Premise(p.Sentence).Text, born) {
		t.Errorf("%+v, want a premise of the second source", p)
	}
}

func TestWhatIsGatheredIsShortAndSaysNothingTwice(t *testing.T) {
	t.Parallel()
	same := map[int]string{}
	for i := range 40 {
		same[i] = "The Astra harbour opened early."
	}
	text := pages(t, page(same)).Gather("The Astra harbour opened early for visitors.", 0).Text
	if n := strings.Count(text, "Astra"); n != 1 {
		t.Errorf("%d times the same in %q", n, text)
	}
	if n := len(strings.Fields(text)); n > 72 {
		t.Errorf("%d words, want 72 at most: %q", n, text)
	}
	long := "Astra " + strings.Repeat("boats and ", 30) + "harbour."
	if text := pages(t, page(map[int]string{3: long})).Gather("The Astra harbour.", 0).Text; !strings.Contains(text, "Astra") {
		t.Errorf("gathered %q, want the long sentence among it", text)
	}
}

func TestNothingSharedIsNothingGathered(t *testing.T) {
	t.Parallel()
	e := pages(t, page(nil), "A fact.")
	for _, claim := range []string{"Bananas ripen.", "", "and the of"} {
		if p := e.Gather(claim, 0); p.Text != "" || p.Sentence != -1 || p.Source != 0 {
			t.Errorf("%q: %+v, want nothing", claim, p)
		}
	}
}

func BenchmarkGather(b *testing.B) {
	e := pages(b, page(map[int]string{5: "Anna Berg was born in Lund.", 30: "She opened the Astra harbour."}))
	b.ReportAllocs()
	for b.Loop() {
		e.Gather("Anna Berg, born in Lund, opened the Astra harbour by the river.", 0)
	}
}
