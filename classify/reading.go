package classify

import (
	"cmp"
	"context"
	"strings"
	"unicode/utf8"

	"signalbox/classify/bundle"
	"signalbox/classify/compress"
	"signalbox/classify/tokenize"
	"signalbox/internal/signal"
)

// chunkBytes is the amount of text tokenised between two checks of the context.
const chunkBytes = tokenize.ChunkBytes

// maxTokenBytes is a number of bytes per token that no text reaches. A text longer than that many
// bytes for every token of a row is compressed without counting its tokens.
const maxTokenBytes = 64

// source identifies a text that tasks read.
type source uint8

const (
	topic  source = iota // the subject of the request: the last user message
	safety               // a unit read by the safety signals
	twin                 // the normalised form of a unit
)

// readingKey identifies a reading.
type readingKey struct {
	source source
	prefix string // text that the task puts before the text
	room   int    // length of a row in tokens; 0 for texts that are read in windows
	short  int    // length of a row in tokens for texts that do not fit into room
	extra  int64  // token after the text; 0 for none
	base   int    // start of the text in its unit, in bytes
}

// reading is a tokenised text. Offsets in enc count from base.
type reading struct {
	key      readingKey
	enc      tokenize.Encoding
	coverage signal.Coverage
}

// reading returns an empty reading with the given key and its index. It reuses the slices of an
// earlier one.
func (p *pass) reading(key readingKey) (*reading, int32) {
	if p.read == len(p.readings) {
		p.readings = append(p.readings, reading{})
	}
	p.read++
	r := &p.readings[p.read-1]
	r.key, r.coverage = key, signal.Complete
	r.enc.Reset()
	return r, int32(p.read - 1)
}

// planTopic makes task i read the last user message in one row. A text that is too long is
// compressed, to a shorter row if the bundle specifies one.
func (p *pass) planTopic(ctx context.Context, i int, _ signal.Mask) error {
	t := &p.e.tasks[i]
	text := p.req.text.LastUser
	empty, err := blank(ctx, text)
	if err != nil {
		return err
	}
	if empty {
		p.plans = append(p.plans, taskPlan{task: i, failed: signal.ReasonNoText})
		return nil
	}
	if t.Window.Long == bundle.Windows {
		return p.planLong(ctx, i, text)
	}
	key := readingKey{
		source: topic, prefix: t.Prefix, room: t.Window.Tokens - p.e.specials,
		short: cmp.Or(t.Window.Skeleton, t.Window.Tokens) - p.e.specials, extra: t.AppendID,
	}
	at, err := p.topic(ctx, key, text)
	if err != nil {
		return err
	}
	r := &p.readings[at]
	if len(r.enc.IDs) == 0 {
		p.plans = append(p.plans, taskPlan{task: i, failed: signal.ReasonNoText})
		return nil
	}
	if _, known := p.find(r.enc.IDs); t.kind == turnVector && p.g.history.before == nil && !known {
		return nil // there is no turn to follow: needs no row of its own
	}
	p.plans = append(p.plans, taskPlan{
		task: i, reads: span{len(p.reads), len(p.reads) + 1}, windows: 1, read: 1, coverage: r.coverage,
	})
	p.add(i, at, 0, len(r.enc.IDs))
	return nil
}

// planLong makes task i read a whole text: in one row, or, if it does not fit, in overlapping rows,
// each with the prefix and the last token of the task. If the text needs more rows than the task
// reads at most, the first ones and the last are read.
func (p *pass) planLong(ctx context.Context, i int, text string) error {
	t := &p.e.tasks[i]
	var prefix tokenize.Encoding
	if t.Prefix != "" {
		p.e.tokens.Encode(t.Prefix, &prefix)
	}
	r, at := p.reading(readingKey{source: topic, prefix: t.Prefix, extra: t.AppendID})
	// The prefix and the text after it are tokenised as one text, as they share one row.
	if err := p.encode(ctx, t.Prefix+text, &r.enc); err != nil {
		return err
	}
	room := t.Window.Tokens - p.e.specials
	if t.AppendID != 0 {
		room--
	}
	ids := r.enc.IDs
	if len(ids) == 0 {
		p.plans = append(p.plans, taskPlan{task: i, failed: signal.ReasonNoText})
		return nil
	}
	if len(ids) <= room {
		p.planWindows(i, at, nil, [][2]int{{0, len(ids)}}, 1)
		return nil
	}
	lead := min(len(prefix.IDs), room-1)
	starts := windowStarts(len(ids)-lead, room-lead, max(1, min(t.Window.Stride, room-lead)))
	total := len(starts)
	if most := t.Window.Max; most > 0 && total > most {
		starts = append(starts[:most-1:most-1], starts[total-1])
	}
	spans := make([][2]int, len(starts))
	for k, s := range starts {
		spans[k] = [2]int{lead + s, min(lead+s+room-lead, len(ids))}
	}
	p.planWindows(i, at, ids[:lead], spans, total)
	return nil
}

// windowStarts returns the starts of the windows of size tokens that cover n tokens: stride apart,
// the last one flush with the end.
func windowStarts(n, size, stride int) []int {
	var out []int
	for s := 0; ; s += stride {
		if s+size >= n {
			return append(out, max(0, n-size))
		}
		out = append(out, s)
	}
}

// planWindows makes task i read spans of a reading, each after the tokens of lead and before the
// task's last token. total is the number of windows that cover the text.
func (p *pass) planWindows(i int, at int32, lead []int32, spans [][2]int, total int) {
	t := &p.e.tasks[i]
	plan := taskPlan{task: i, windows: total, read: len(spans), coverage: signal.Complete}
	if total > 1 {
		plan.coverage = signal.Windowed
	}
	plan.reads = span{len(p.reads), len(p.reads) + len(spans)}
	for _, s := range spans {
		ids := p.readings[at].enc.IDs[s[0]:s[1]]
		if len(lead) > 0 || t.AppendID != 0 {
			ids = append(append(make([]int32, 0, len(lead)+len(ids)+1), lead...), ids...)
			if t.AppendID != 0 {
				ids = append(ids, int32(t.AppendID))
			}
		}
		p.addRow(i, at, s[0], s[1], ids)
	}
	p.plans = append(p.plans, plan)
}

// topic returns the index of the reading of text for rows as described by key.
func (p *pass) topic(ctx context.Context, key readingKey, text string) (int32, error) {
	for i := range p.read {
		if p.readings[i].key == key {
			return int32(i), nil
		}
	}
	r, at := p.reading(key)
	room, short := key.room, key.short
	if key.extra != 0 {
		room, short = room-1, short-1
	}
	if len(text) <= room*maxTokenBytes {
		if err := p.encode(ctx, key.prefix+text, &r.enc); err != nil {
			return 0, err
		}
	}
	if len(r.enc.IDs) > room || len(text) > room*maxTokenBytes {
		if err := p.compress(ctx, r, text, short); err != nil {
			return 0, err
		}
	}
	if key.extra != 0 {
		r.enc.IDs = append(r.enc.IDs, int32(key.extra))
	}
	return at, nil
}

// compress reads text as a skeleton that fits into room tokens. If the row is too short for any
// skeleton, the text is cut off. Its error is that of ctx.
func (p *pass) compress(ctx context.Context, r *reading, text string, room int) error {
	var enc tokenize.Encoding
	count := func(s string) int {
		p.e.tokens.Encode(s, &enc)
		return len(enc.IDs)
	}
	budget := room
	if r.key.prefix != "" {
		budget -= count(r.key.prefix)
	}
	short, err := compress.Compress(ctx, text, compress.Options{Budget: budget, Count: count})
	if err != nil {
		return err
	}
	p.e.tokens.Encode(r.key.prefix+short.Text, &r.enc)
	r.enc.IDs = r.enc.IDs[:min(len(r.enc.IDs), max(room, 1))]
	if short.Sentences > 0 {
		r.coverage = signal.Compressed
	}
	return nil
}

// encode appends the tokens of text to enc. Long texts are cut at white space into chunks, and the
// context is checked between chunks. Cuts change nothing for tokenizers that split at white space;
// for others they change at most the tokens next to a cut.
func (p *pass) encode(ctx context.Context, text string, enc *tokenize.Encoding) error {
	if len(text) <= chunkBytes {
		if err := ctx.Err(); err != nil {
			return err
		}
		p.e.tokens.Encode(text, enc)
		return nil
	}
	enc.Reset()
	var chunk tokenize.Encoding
	for base := 0; base < len(text); {
		if err := ctx.Err(); err != nil {
			return err
		}
		part := text[base:]
		if len(part) > chunkBytes {
			part = part[:cutAt(part, chunkBytes)]
		}
		p.e.tokens.Encode(part, &chunk)
		enc.IDs = append(enc.IDs, chunk.IDs...)
		for i := range chunk.IDs {
			enc.Start = append(enc.Start, chunk.Start[i]+int32(base))
			enc.End = append(enc.End, chunk.End[i]+int32(base))
		}
		base += len(part)
	}
	return nil
}

// cutAt returns where to cut text at or before byte n > 0: at white space if possible, else between
// code points.
func cutAt(text string, n int) int {
	if cut := strings.LastIndexAny(text[:n], " \n"); cut > 0 {
		return cut
	}
	cut := n
	for cut > n-utf8.UTFMax && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return cut
}
