package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"

	"signalbox/bench/lab"
	"signalbox/internal/openai"
	"signalbox/memory"
	"signalbox/memory/blob"
	"signalbox/memory/page"
	"signalbox/memory/prefix"
	"signalbox/memory/redis"
)

// owner owns all contexts.
var owner = memory.Owner{Tenant: "bench"} //nolint:gochecknoglobals // a constant

// timed is the duration of an operation and the processor time of the process in milliseconds.
type timed struct{ wall, cpu sample }

// repeat measures n calls of f.
func repeat(n int, f func(i int) error) (timed, error) {
	var t timed
	for i := range n {
		began, cpu := time.Now(), lab.Spent()
		if err := f(i); err != nil {
			return t, err
		}
		t.wall, t.cpu = append(t.wall, ms(time.Since(began))), append(t.cpu, ms(lab.Spent()-cpu))
	}
	return t, nil
}

func ms(d time.Duration) float64 { return d.Seconds() * 1000 }

// at returns a quantile.
func (s sample) at(q float64) float64 {
	sorted := slices.Sorted(slices.Values(s))
	return sorted[int(q*float64(len(sorted)-1))]
}

// rounds splits a sample into five parts and returns the same quantile of each.
func (s sample) rounds(q float64) sample {
	var out sample
	for part := range slices.Chunk(s, (len(s)+4)/5) {
		out = append(out, part.at(q))
	}
	return out
}

// compression packs texts of several kinds, with the codec in use and with alternatives.
func (l *live) compression(_ context.Context, r *report) error {
	texts, err := corpora()
	if err != nil {
		return err
	}
	levels := []zstd.EncoderLevel{zstd.SpeedFastest, zstd.SpeedDefault, zstd.SpeedBetterCompression, zstd.SpeedBestCompression}
	fmt.Fprintf(&r.tables, "Texts of up to 600 KiB, packed by zstd: unpacked over packed size, and processor time (median of %d).\n\n| text | KiB |", l.repeats)
	for _, level := range levels {
		fmt.Fprintf(&r.tables, " %v | ms |", level)
	}
	r.tables.WriteString(" of |\n| --- | --- |" + strings.Repeat(" --- | --- |", len(levels)) + " --- |\n")
	bars := map[string]float64{"prose": 3.2, "code": 4.3, "JSON": 4.2}
	for _, c := range texts {
		fmt.Fprintf(&r.tables, "| %s | %d |", c.name, len(c.text)>>10)
		for _, level := range levels {
			e, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(level), zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(false), zstd.WithSingleSegment(true))
			if err != nil {
				return fmt.Errorf("level %v: %w", level, err)
			}
			var packed []byte
			t, err := repeat(l.repeats, func(int) error { packed = e.EncodeAll(c.text, packed[:0]); return nil })
			if err != nil {
				return err
			}
			fmt.Fprintf(&r.tables, " %.2f | %.1f |", float64(len(c.text))/float64(len(packed)), t.cpu.at(0.5))
		}
		fmt.Fprintf(&r.tables, " %s |\n", c.from)
		if bar, ok := bars[c.name]; ok {
			ratio := func(packed []byte) sample { return sample{float64(len(c.text)) / float64(len(packed))} }
			packed, sum := blob.Pack(c.text)
			r.demand("compression of "+c.name+" at rest", ratio(blob.Tighten(c.text, sum)), "%.2f", atLeast, bar)
			r.demand("compression of "+c.name+" as it is stored first", ratio(packed), "%.2f", noBar, 0)
		}
	}
	r.tables.WriteString("\n")
	return nil
}

// paging stores texts in Redis and loads them again.
func (l *live) paging(ctx context.Context, r *report) error {
	server, err := startRedis(ctx)
	if err != nil {
		return err
	}
	defer server.stop()
	remote, err := redis.Open(ctx, redis.Options{URL: server.url})
	if err != nil {
		return fmt.Errorf("redis: %w", err)
	}
	defer remote.Close()
	s, err := memory.New(memory.Options{}, remote)
	if err != nil {
		return err
	}
	texts, err := corpora()
	if err != nil {
		return err
	}
	n := 20 * l.repeats
	ids, drafts := make([]memory.Ref, n), make([]memory.Draft, n)
	for i := range drafts {
		drafts[i].Content.Text = string(shuffled(texts[0].text, source(l.seeds[0], uint64(i))))
	}
	out, err := repeat(n, func(i int) error {
		c, err := s.Create(ctx, owner, drafts[i])
		ids[i].ID = c.ID
		return err
	})
	if err != nil {
		return fmt.Errorf("create: %w", err)
	}
	for _, ref := range ids {
		if _, err := s.PageOut(ctx, owner, ref, page.L3); err != nil {
			return fmt.Errorf("page out: %w", err)
		}
	}
	in, err := repeat(n, func(i int) error {
		snap, err := s.Resolve(ctx, owner, ids[i])
		if err != nil {
			return err
		}
		defer snap.Release()
		if snap.Tier != page.L3 {
			return fmt.Errorf("a text was in %v", snap.Tier)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("page in: %w", err)
	}
	what := fmt.Sprintf(" of %d KiB of prose, Redis on loopback, %d calls in 5 rounds: ", len(texts[0].text)>>10, n)
	r.demand("page out"+what+"p50, ms", out.wall.rounds(0.5), "%.2f", atMost, 6)
	r.demand("page out: p99, ms", out.wall.rounds(0.99), "%.2f", noBar, 0)
	r.demand("page out: processor time of the process, p50, ms", out.cpu.rounds(0.5), "%.2f", noBar, 0)
	r.demand("page in"+what+"p50, ms", in.wall.rounds(0.5), "%.2f", atMost, 1.5)
	r.demand("page in: p99, ms", in.wall.rounds(0.99), "%.2f", atMost, 8)
	r.demand("page in: processor time of the process, p50, ms", in.cpu.rounds(0.5), "%.2f", noBar, 0)
	return nil
}

// density measures how many contexts of 600 KiB fit into a GiB of RAM when they are packed: at
// rest, and before.
func (l *live) density(ctx context.Context, r *report) error {
	texts, err := corpora()
	if err != nil {
		return err
	}
	n := 100 * l.repeats
	s, err := memory.New(memory.Options{Pages: page.Options{Bytes: 8 << 30}, Quota: func(string) memory.Quota { return memory.Quota{Bytes: 8 << 30} }}, nil)
	if err != nil {
		return err
	}
	keep := func(from, to int) error {
		for i := from; i < to; i++ {
			c, err := s.Create(ctx, owner, memory.Draft{Content: memory.Content{Text: string(shuffled(texts[0].text, source(l.seeds[0], uint64(i))))}})
			if err != nil {
				return fmt.Errorf("create: %w", err)
			}
			if _, err := s.PageOut(ctx, owner, memory.Ref{ID: c.ID}, page.L2); err != nil {
				return fmt.Errorf("page out: %w", err)
			}
		}
		return nil
	}
	const warm = 10 // one-time allocations of codecs and store happen before the measurement
	if err := keep(0, warm); err != nil {
		return err
	}
	s.Sweep(ctx)
	var at [3]int64 // before, loosely packed, at rest
	for i, step := range []func() error{
		func() error { return nil },
		func() error { return keep(warm, warm+n) },
		func() error { s.Sweep(ctx); return nil },
	} {
		if err := step(); err != nil {
			return err
		}
		at[i] = resident()
	}
	in := func(bytes int64) sample { return sample{(1 << 30) / (float64(bytes) / float64(n))} }
	r.demand(fmt.Sprintf("contexts of %d KiB of prose a GiB of resident memory, %d of them at rest", len(texts[0].text)>>10, n), in(at[2]-at[0]), "%.0f", atLeast, 5000)
	r.demand("the same as they are stored first", in(at[1]-at[0]), "%.0f", noBar, 0)
	runtime.KeepAlive(s)
	return nil
}

// resident is the resident memory of this process after a collection.
func resident() int64 {
	runtime.GC()
	debug.FreeOSMemory()
	return lab.Memory("self", "VmRSS")
}

// pointer compares the cost of a context of 600 KiB by reference and sent as text.
func (l *live) pointer(ctx context.Context, r *report) error {
	texts, err := corpora()
	if err != nil {
		return err
	}
	text := string(texts[0].text)
	s, err := memory.New(memory.Options{}, nil)
	if err != nil {
		return err
	}
	c, err := s.Create(ctx, owner, memory.Draft{Content: memory.Content{Text: text}})
	if err != nil {
		return fmt.Errorf("create: %w", err)
	}
	small := []byte(`{"model":"m","messages":[{"role":"user","content":"Who pays for delays?"}]}`)
	message, err := json.Marshal(text)
	if err != nil {
		return fmt.Errorf("encode: %w", err)
	}
	whole := append(append([]byte(`{"model":"m","messages":[{"role":"system","content":`), message...), `},{"role":"user","content":"Who pays for delays?"}]}`...)
	limits := openai.Limits{}
	named := func() error {
		if _, err := openai.Parse(openai.Chat, small, limits); err != nil {
			return err
		}
		snap, err := s.Resolve(ctx, owner, memory.Ref{ID: c.ID})
		if err != nil {
			return err
		}
		defer snap.Release()
		body, err := prefix.Compile(prefix.Request{API: openai.Chat, Body: small, Contexts: []prefix.Context{{Kind: snap.Kind, Fragments: snap.Fragments}}})
		if err != nil {
			return err
		}
		_, err = body.Reader().WriteTo(io.Discard)
		return err
	}
	parsed := func() error { _, err := openai.Parse(openai.Chat, whole, limits); return err }
	again := func() error {
		var v map[string]any
		if err := json.Unmarshal(whole, &v); err != nil {
			return err
		}
		_, err := json.Marshal(v)
		return err
	}
	for _, c := range []struct {
		name string
		n    int
		f    func() error
		side side
		bar  float64
	}{
		{"a request with a pointer to 600 KiB: parsed, resolved, spliced; processor time, ms", 1000, named, atMost, 0.1},
		{"the same text in the request, parsed once as the product does; ms", 20, parsed, noBar, 0},
		{"the same decoded and encoded again, as most proxies do; ms", 20, again, noBar, 0},
	} {
		times, err := l.each(c.n, c.f)
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		r.demand(c.name, times, "%.3f", c.side, c.bar)
	}
	return nil
}

// each returns the processor time per call for n calls of f, measured several times.
func (l *live) each(n int, f func() error) (sample, error) {
	var times sample
	for range l.repeats {
		t, err := repeat(1, func(int) error {
			for range n {
				if err := f(); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		times = append(times, t.cpu[0]/float64(n))
	}
	return times, nil
}
