package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"sync"

	"github.com/cespare/xxhash/v2"

	"signalbox/internal/signal"
	"signalbox/proxy/signals"
)

// reader is the product's classifier, which reads each prompt once: the same prompt is sent many
// times, and its embedding does not change. It returns the embedding, and the complexity if
// requested. Safe for concurrent use.
type reader struct {
	extract func(ctx context.Context, text string, need signal.Mask) *signal.Set

	mu      sync.Mutex // guards the fields below
	known   map[uint64][]float32
	complex map[uint64]signal.Value
}

var _ signals.Classifier = (*reader)(nil)

func newReader(extract func(context.Context, string, signal.Mask) *signal.Set) *reader {
	return &reader{
		extract: extract, known: map[uint64][]float32{}, complex: map[uint64]signal.Value{},
	}
}

// Signals implements proxy.Classifier.
func (*reader) Signals() signal.Mask { return signal.MaskOf(signal.Embedding, signal.Complexity) }

// Degraded implements proxy.Classifier.
func (*reader) Degraded() []string { return nil }

// Extract implements proxy.Classifier.
func (r *reader) Extract(ctx context.Context, text *signal.Text, need signal.Mask, set *signal.Set) {
	if need.Has(signal.Complexity) {
		set.Put(signal.Complexity, r.complexity(ctx, text.LastUser))
	}
	if !need.Has(signal.Embedding) {
		return
	}
	vector, reason := r.vector(ctx, text.LastUser)
	if vector == nil {
		set.Put(signal.Embedding, signal.Value{State: signal.Unknown, Reason: reason})
		return
	}
	set.Put(signal.Embedding, signal.Value{State: signal.Known, Vector: vector})
}

func (r *reader) complexity(ctx context.Context, text string) signal.Value {
	h := xxhash.Sum64String(text)
	r.mu.Lock()
	v, known := r.complex[h]
	r.mu.Unlock()
	if known {
		return v
	}
	v = *r.extract(ctx, text, signal.MaskOf(signal.Complexity)).Value(signal.Complexity)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.complex[h] = v
	return v
}

// vector returns the embedding of a text, or why there is none.
func (r *reader) vector(ctx context.Context, text string) ([]float32, signal.Reason) {
	h := xxhash.Sum64String(text)
	r.mu.Lock()
	known := r.known[h]
	r.mu.Unlock()
	if known != nil {
		return known, ""
	}
	found := r.extract(ctx, text, signal.MaskOf(signal.Embedding))
	e := found.Value(signal.Embedding)
	if e.State != signal.Known {
		return nil, e.Reason
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.known[h] = e.Vector
	return e.Vector, ""
}

// read embeds all prompts that no file has, and reports progress.
func (r *reader) read(ctx context.Context, sets []*set, log io.Writer) error {
	n := 0
	for _, s := range sets {
		for _, p := range s.prompts {
			if n++; n%1000 == 0 {
				_, _ = fmt.Fprintf(log, "read %d prompts\n", n)
			}
			if v, why := r.vector(ctx, p.text); v == nil {
				return fmt.Errorf("%s: no embedding: %s", p.id, why)
			}
			if err := ctx.Err(); err != nil {
				return err
			}
		}
	}
	return nil
}

// load reads embeddings of an earlier run: the number of dimensions, and after the 64-bit hash of
// each text its float32 row, all little-endian. A missing file counts as empty.
func (r *reader) load(path string) error {
	b, err := os.ReadFile(path)
	if path == "" || errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil || len(b) < 4 {
		return err
	}
	row := make([]float32, binary.LittleEndian.Uint32(b))
	size := 8 + 4*len(row)
	for b = b[4:]; len(b) >= size; b = b[size:] {
		row = make([]float32, len(row))
		for i := range row {
			row[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[8+4*i:]))
		}
		r.known[binary.LittleEndian.Uint64(b)] = row
	}
	return nil
}

// save stores the embeddings for the next run.
func (r *reader) save(path string) error {
	if path == "" {
		return nil
	}
	var b bytes.Buffer
	for h, row := range r.known {
		if b.Len() == 0 {
			b.Write(binary.LittleEndian.AppendUint32(nil, uint32(len(row))))
		}
		b.Write(binary.LittleEndian.AppendUint64(nil, h))
		for _, x := range row {
			b.Write(binary.LittleEndian.AppendUint32(nil, math.Float32bits(x)))
		}
	}
	return os.WriteFile(path, b.Bytes(), 0o600)
}
