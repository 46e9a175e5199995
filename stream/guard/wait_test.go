package guard_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"signalbox/stream/check"
	"signalbox/stream/guard"
	"signalbox/stream/sse"
)

// result is what Copy returned, and when.
type result struct {
	out guard.Outcome
	err error
	at  time.Time
}

// start runs Copy on a goroutine.
func start(ctx context.Context, g *guard.Guard, src byteSource, dst writer, job guard.Job) <-chan result {
	c := make(chan result, 1)
	go func() {
		out, err := g.Copy(ctx, source(src), sink(dst), job)
		c <- result{out, err, time.Now()}
	}()
	return c
}

func TestTerminateCancelsASilentUpstreamAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := &judge{gate: make(chan struct{})}
		g := guard.New(j, guard.Options{Workers: 1})
		defer g.Close()
		src, dst := newScript(role(), chunk("This is slow and false. And")), &record{}
		src.hangs = true
		c := start(t.Context(), g, src, dst, jobOf(t, guard.Terminate))
		time.Sleep(100 * time.Millisecond) // the bubble's clock
		verdict := time.Now()
		j.gate <- struct{}{}
		r := <-c
		if r.err != nil || !r.out.Cut || src.canceled.IsZero() || src.canceled.Sub(verdict) > 50*time.Millisecond {
			t.Errorf("%+v, cancelled %v behind the verdict", r, src.canceled.Sub(verdict))
		}
		if heard := listen(t, dst.String()); heard.finish[0] != "content_filter" || !heard.done {
			t.Errorf("%+v", heard)
		}
	})
}

func TestAStalledCheckerDelaysAStreamByNoMoreThanMaxHold(t *testing.T) {
	for _, deaf := range []bool{false, true} {
		for m := guard.Observe; m <= guard.Hold; m++ {
			for _, block := range []guard.OnUnchecked{guard.Pass, guard.Block} {
				synctest.Test(t, func(t *testing.T) {
					testStalled(t, m, block, deaf)
				})
			}
		}
	}
}

func testStalled(t *testing.T, m guard.Mode, block guard.OnUnchecked, deaf bool) {
	t.Helper()
	j, seen := &judge{gate: make(chan struct{}), deaf: deaf}, newTally()
	g := guard.New(j, guard.Options{Workers: 1, Observer: seen})
	job, dst := jobOf(t, m), &record{}
	job.Policy.OnUnchecked = block
	const text = "All is slow. And well."
	from := time.Now()
	r := <-start(t.Context(), g, newScript(words(text)...), dst, job)
	heard := listen(t, dst.String())
	took := r.at.Sub(from)
	ended := block == guard.Block && m > guard.Observe
	switch {
	case r.err != nil || took > guard.DefaultMaxHold || r.out.Cut != ended:
		t.Errorf("%v, block %v: %v after %v, %+v", m, block, r.err, took, r.out)
	case m == guard.Observe && took != 0:
		t.Errorf("observe waited %v", took)
	case m == guard.Observe && r.out.Pending != 1, m > guard.Observe && (r.out.Shed != 1 || r.out.Pending != 0):
		t.Errorf("%v: %+v", m, r.out)
	case !ended && heard.texts[0] != text, ended && heard.finish[0] != "content_filter", !heard.done:
		t.Errorf("%v, block %v: %+v", m, block, heard)
	case m == guard.Hold && ended && heard.texts[0] != "":
		t.Errorf("text %q got out", heard.texts[0])
	}
	time.Sleep(time.Second) // the bubble's clock: the remainder reaches its end
	close(j.gate)
	g.Close()
	if seen.of(check.Unchecked) != 1 || seen.done(guard.Shed) != 1 {
		t.Errorf("%v: %d unchecked, %d shed", m, seen.of(check.Unchecked), seen.done(guard.Shed))
	}
}

func TestHoldLetsTextGoWithItsVerdict(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := &judge{gate: make(chan struct{})}
		g := guard.New(j, guard.Options{Workers: 1})
		defer g.Close()
		src, dst := newScript(words("This is slow. That goes on")...), &record{}
		src.pieces, src.hangs = src.pieces[:len(src.pieces)-3], true
		ctx, cancel := context.WithCancel(t.Context())
		c := start(ctx, g, src, dst, jobOf(t, guard.Hold))
		synctest.Wait()
		if heard := listen(t, dst.String()); heard.texts[0] != "" {
			t.Errorf("%q went without a verdict", heard.texts[0])
		}
		j.gate <- struct{}{}
		synctest.Wait()
		if heard := listen(t, dst.String()); heard.texts[0] != "This is slow. " {
			t.Errorf("%q went with the verdict", heard.texts[0])
		}
		cancel()
		if r := <-c; !errors.Is(r.err, context.Canceled) || src.canceled.IsZero() {
			t.Errorf("%+v", r)
		}
	})
}

func TestAnnotateLetsBytesGoAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := &judge{gate: make(chan struct{})}
		g := guard.New(j, guard.Options{Workers: 1})
		defer g.Close()
		src, dst := newScript(words("This is slow and false. That goes on")...), &record{}
		want := strings.Join(src.pieces[:len(src.pieces)-3], "")
		c := start(t.Context(), g, src, dst, jobOf(t, guard.Annotate))
		synctest.Wait()
		if dst.String() != want {
			t.Errorf("only the end should wait:\n%s", dst.String())
		}
		j.gate <- struct{}{}
		r := <-c
		heard := listen(t, dst.String())
		if r.err != nil || heard.texts[0] != "This is slow and false. That goes on [unverified]" || heard.after {
			t.Errorf("%v, %+v", r.err, heard)
		}
	})
}

func TestObserveLeavesTheLastChecksToTheBackground(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j, seen := &judge{gate: make(chan struct{})}, newTally()
		g := guard.New(j, guard.Options{Workers: 1, Observer: seen})
		defer g.Close()
		dst := &record{}
		r := <-start(t.Context(), g, newScript(words("This is slow and false.")...), dst, jobOf(t, guard.Observe))
		if r.err != nil || r.out.Pending != 1 || r.out.Claims != 1 {
			t.Errorf("%+v", r)
		}
		j.gate <- struct{}{}
		synctest.Wait()
		if seen.of(check.Contradicted) != 1 {
			t.Error("the verdict was not counted")
		}
	})
}

func TestAFullQueueShedsAndIsCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j, seen := &judge{gate: make(chan struct{})}, newTally()
		g := guard.New(j, guard.Options{Workers: 1, Queue: 2, Observer: seen})
		defer g.Close()
		text := strings.Repeat("One is slow. ", 5)
		dst := &record{}
		c := start(t.Context(), g, newScript(chunk(text), stop(), done), dst, jobOf(t, guard.Hold))
		synctest.Wait()
		// 5 less 2 that wait; the worker takes both together
		if n := seen.done(guard.Shed); n != 3 {
			t.Errorf("%d shed at once, want 3", n)
		}
		j.gate <- struct{}{}
		synctest.Wait()
		r := <-c
		if heard := listen(t, dst.String()); r.err != nil || heard.texts[0] != text || r.out.Shed != 3 || seen.of(check.Supported) != 2 {
			t.Errorf("%+v, text %q", r, heard.texts[0])
		}
	})
}

func TestClaimsOfAnAnswerAreCheckedTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := &judge{gate: make(chan struct{}), calls: make(chan int, 9)}
		g := guard.New(j, guard.Options{Workers: 1})
		defer g.Close()
		var list []string
		for range 20 {
			list = append(list, chunk("One is slow. "))
		}
		src := newScript(append(list, stop(), done)...)
		c := start(t.Context(), g, src, &record{}, jobOf(t, guard.Hold))
		synctest.Wait()
		close(j.gate)
		<-c
		var got []int
		for len(j.calls) > 0 {
			got = append(got, <-j.calls)
		}
		if len(got) > 4 {
			t.Errorf("20 claims in %v", got)
		}
	})
}

func TestErrorsOfTheUpstreamComeOutAsTheyAre(t *testing.T) {
	broken := errors.New("broken")
	g := guardOf(t, &judge{}, guard.Options{})
	for _, c := range []struct {
		name   string
		pieces []string
		err    error
		want   error
		state  sse.State
	}{
		{"the connection breaks", []string{chunk("This is well. And")}, broken, broken, sse.Truncated},
		{"the stream ends early", []string{chunk("This is well. And")}, nil, guard.ErrNoEnd, sse.Truncated},
		{"it ends inside of an event", []string{chunk("This is well. And"), `data: {"choices":[{"in`}, nil, guard.ErrNoEnd, sse.Truncated},
		{"it ends with a finish_reason", []string{chunk("This is well. And"), stop()}, nil, nil, sse.Done},
		{"one of two choices ends", []string{chunkOf(1, `{"content":"Well"}`, "null"), chunk("This is well. And"), stop()}, nil, guard.ErrNoEnd, sse.Truncated},
		{"it breaks behind the end", []string{chunk("This is well. And"), stop() + done}, broken, nil, sse.Done},
		{"the upstream tells an error", []string{chunk("This is well. And"), `data: {"error":{"message":"x"}}` + "\n\n"}, nil, guard.ErrNoEnd, sse.Failed},
	} {
		for m := guard.Observe; m <= guard.Hold; m++ {
			t.Run(c.name+" in mode "+m.String(), func(t *testing.T) {
				src, dst := newScript(c.pieces...), record{}
				src.err = c.err
				out, err := g.Copy(t.Context(), source(src), sink(&dst), jobOf(t, m))
				if !errors.Is(err, c.want) || (err == nil) != (c.want == nil) || out.State != c.state {
					t.Errorf("error %v, want %v, state %v", err, c.want, out.State)
				}
				if heard := listen(t, dst.String()); heard.texts[0] != "This is well. And" || heard.done != (c.want == nil) {
					t.Errorf("%+v", heard)
				}
			})
		}
	}
}

func TestHeldTextOfABrokenStreamIsTreatedAsUnchecked(t *testing.T) {
	for block, want := range map[guard.OnUnchecked]string{guard.Pass: "This is slow. And", guard.Block: ""} {
		synctest.Test(t, func(t *testing.T) {
			g := guard.New(&judge{gate: make(chan struct{})}, guard.Options{Workers: 1})
			defer g.Close()
			job, dst := jobOf(t, guard.Hold), &record{}
			job.Policy.OnUnchecked = block
			src := newScript(chunk("This is slow. And"))
			src.err = io.ErrUnexpectedEOF
			r := <-start(t.Context(), g, src, dst, job)
			if heard := listen(t, dst.String()); heard.texts[0] != want {
				t.Errorf("block %v: %+v, text %q, want %q", block, r, heard.texts[0], want)
			}
		})
	}
}

func TestAClientThatIsGoneEndsEverything(t *testing.T) {
	gone := errors.New("gone")
	synctest.Test(t, func(t *testing.T) {
		j := &judge{gate: make(chan struct{})}
		g := guard.New(j, guard.Options{Workers: 1})
		defer g.Close()
		src, dst := newScript(chunk("This is slow. And"), chunk(" well. So")), &record{fail: gone}
		src.hangs = true
		r := <-start(t.Context(), g, src, dst, jobOf(t, guard.Annotate))
		if !errors.Is(r.err, gone) || src.canceled.IsZero() {
			t.Errorf("%+v", r)
		}
		synctest.Wait() // the check has ended with its answer: the worker is free
		c := start(t.Context(), g, newScript(words("This is slow.")...), &record{}, jobOf(t, guard.Hold))
		j.gate <- struct{}{}
		if r := <-c; r.err != nil || r.out.Shed != 0 {
			t.Errorf("%+v", r)
		}
	})
}

// panicker is a Checker that panics.
type panicker struct{ judge }

func (*panicker) Check(context.Context, *evidenceOf, string, []check.Claim) []check.Result {
	panic("broken")
}

func TestACheckerThatPanicsEndsNothing(t *testing.T) {
	g := guardOf(t, &panicker{}, guard.Options{Workers: 1})
	got, out, err := pass(t, g, jobOf(t, guard.Hold), words("This is slow. So is this.")...)
	if heard := listen(t, got); err != nil || heard.texts[0] != "This is slow. So is this." || out.Verdict != check.Supported {
		t.Errorf("error %v, %+v, %+v", err, heard, out)
	}
}

func TestAGuardThatIsClosedSheds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := guard.New(&judge{}, guard.Options{Workers: 1})
		g.Close()
		g.Close()
		dst := &record{}
		r := <-start(t.Context(), g, newScript(words("This is slow.")...), dst, jobOf(t, guard.Hold))
		if heard := listen(t, dst.String()); r.err != nil || heard.texts[0] != "This is slow." || r.out.Shed != 1 {
			t.Errorf("%+v %+v", r, heard)
		}
	})
}

func TestWhatWaitsForAnOpenClaimIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := guard.New(&judge{}, guard.Options{Workers: 1})
		defer g.Close()
		// The usage keeps its position, and everything after it waits.
		pieces := []string{chunk("An open claim"), usage}
		for range 1 << 20 / len(chunk("Well. ")) {
			pieces = append(pieces, chunkOf(1, `{"content":"Well. "}`, "null"))
		}
		src, dst := newScript(append(pieces, chunkOf(1, `{"content":"More. "}`, "null"))...), &record{}
		src.hangs = true
		ctx, cancel := context.WithCancel(t.Context())
		c := start(ctx, g, src, dst, jobOf(t, guard.Hold))
		synctest.Wait()
		if got := dst.String(); !strings.Contains(got, "An open claim") || !strings.Contains(got, "More. ") {
			t.Errorf("only %d bytes went", len(got))
		}
		cancel()
		<-c
	})
}

func TestTheUpstreamWaitsWhenTooMuchWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := &judge{gate: make(chan struct{})}
		g := guard.New(j, guard.Options{Workers: 1})
		defer g.Close()
		src, dst := newScript(), &record{}
		src.pieces = []string{chunk("One is slow. ")}
		for range 3 << 20 / len(chunk("well and ")) {
			src.pieces = append(src.pieces, chunk("well and "))
		}
		src.pieces = append(src.pieces, stop(), done)
		c := start(t.Context(), g, src, dst, jobOf(t, guard.Hold))
		synctest.Wait()
		if left := len(src.pieces); left == 0 || dst.String() != "" {
			t.Errorf("%d pieces left, %d bytes went", left, len(dst.String()))
		}
		j.gate <- struct{}{}
		if r := <-c; r.err != nil || r.out.Shed != 0 {
			t.Errorf("%+v", r)
		}
	})
}

// joined is a Source that returns its only piece together with the end.
type joined string

func (j joined) Read() ([]byte, error) { return []byte(j), io.EOF }
func (joined) Cancel()                 {}

func TestBytesMayComeWithTheEnd(t *testing.T) {
	g := guardOf(t, &judge{}, guard.Options{})
	for m := guard.Off; m <= guard.Hold; m++ {
		var dst record
		out, err := g.Copy(t.Context(), source(joined(strings.Join(words("All is well."), ""))), sink(&dst), jobOf(t, m))
		if heard := listen(t, dst.String()); err != nil || heard.texts[0] != "All is well." || !heard.done || out.State != sse.Done {
			t.Errorf("%v: error %v, %+v", m, err, heard)
		}
	}
}

// TestAStreamThatBreaksOffIsNeverCutInOrder checks that an answer broken off by the server is
// reported as such, as without a guard, and that an unfinished claim is not checked like a complete
// one.
func TestAStreamThatBreaksOffIsNeverCutInOrder(t *testing.T) {
	broken := errors.New("broken")
	g := guardOf(t, &judge{}, guard.Options{})
	const fault = `data: {"error":{"message":"x"}}` + "\n\n"
	for name, c := range map[string]struct {
		text  string
		claim string // the failed claim
	}{
		"in the middle of a claim": {"All is well. This is false", ""},
		"behind a claim":           {"All is well. This is false.", "This is false."},
		"behind a claim of a model": {
			"All is well. This is slow and false.", "This is slow and false.",
		},
		"behind a half claim of a model": {"All is well. This is slow and false", ""},
	} {
		for m := guard.Observe; m <= guard.Hold; m++ {
			for _, failures := range []int{0, 1} {
				job := jobOf(t, m)
				job.Policy.Failures = failures
				for _, said := range []string{"", fault} {
					src, dst := newScript(role(), chunk(c.text)), record{}
					if src.err = broken; said != "" {
						src.pieces, src.err = append(src.pieces, said), nil
					}
					out, err := g.Copy(t.Context(), source(src), sink(&dst), job)
					heard := listen(t, dst.String())
					want, state := broken, sse.Truncated
					if said != "" {
						want, state = guard.ErrNoEnd, sse.Failed
					}
					failed := 0
					if c.claim != "" {
						failed = 1
					}
					if !errors.Is(err, want) || out.State != state || out.Cut || heard.done || heard.finish[0] != "" ||
						m > guard.Observe && out.Failed != failed {
						t.Errorf("%s, %v, %q: error %v, %+v, %+v", name, m, said, err, out, heard)
					}
					marked := failed > 0 && (m == guard.Annotate || m == guard.Hold && failures == 0)
					if !strings.HasSuffix(dst.String(), said) || strings.Contains(heard.texts[0], "[unverified]") != marked {
						t.Errorf("%s, %v, %q: got %s", name, m, said, dst.String())
					}
					if m == guard.Hold && c.claim != "" && strings.Contains(dst.String(), "false") {
						t.Errorf("%s: %s", name, dst.String())
					}
				}
			}
		}
	}
}

// TestAResponseThatFailsTellsNoClaimThatFailed checks that an error of the Responses API, which
// repeats the text, reveals nothing that was held.
func TestAResponseThatFailsTellsNoClaimThatFailed(t *testing.T) {
	g := guardOf(t, &judge{}, guard.Options{})
	job := jobOf(t, guard.Hold)
	job.Policy.Failures = 1
	stream := responseOf("All is well. T", "his is slow and false. So")
	stream, _, _ = strings.Cut(stream, "event: response.output_text.done")
	const text = `"output":[{"type":"message","content":[{"type":"output_text","text":"All is well. This is slow ` +
		`and false. So"}]}]`
	stream += event("response.failed", `"sequence_number":9,"response":{"id":"r1","object":"response",`+
		`"status":"failed","error":{"message":"x"},`+text+`}`)
	got, out, err := pass(t, g, job, stream)
	deltas, wholes, last := answerOf(t, got)
	if err != nil || out.Cut || out.State != sse.Done || last["type"] != "response.failed" || deltas != "All is well. " ||
		len(wholes) != 1 || wholes[0] != deltas {
		t.Errorf("error %v, %+v, %q, %q\n%s", err, out, deltas, wholes, got)
	}
}

// TestHalfAClaimIsHeldBackWhereNothingUncheckedPasses checks that unfinished text is withheld if
// nothing unchecked may pass.
func TestHalfAClaimIsHeldBackWhereNothingUncheckedPasses(t *testing.T) {
	g := guardOf(t, &judge{}, guard.Options{})
	for block, want := range map[guard.OnUnchecked]string{guard.Pass: "All is well. And so", guard.Block: "All is well. "} {
		job := jobOf(t, guard.Hold)
		job.Policy.OnUnchecked = block
		src, dst := newScript(chunk("All is well. And so")), record{}
		src.err = io.ErrUnexpectedEOF
		out, err := g.Copy(t.Context(), source(src), sink(&dst), job)
		if heard := listen(t, dst.String()); !errors.Is(err, src.err) || heard.texts[0] != want || out.Cut {
			t.Errorf("block %v: error %v, %+v, text %q", block, err, out, heard.texts[0])
		}
	}
}
