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

	"github.com/cespare/xxhash/v2"

	"signalbox/internal/app"
	"signalbox/internal/config" //nolint:depguard // the report builds the product as its commands do
	"signalbox/internal/signal"
)

const plain = "models: [{name: m, endpoints: [{name: e, url: http://127.0.0.1:9}]}]\n" +
	"default: {models: [m]}\n"

func noEnv(string) (string, bool) { return "", false }

// build makes the product of a configuration, with its embedded models.
func build(ctx context.Context, text string, log io.Writer) (*app.App, error) {
	cfg, _, err := config.Parse("bench.yaml", []byte(text), noEnv, app.Catalog)
	if err != nil {
		return nil, err
	}
	cfg.Telemetry.Log = "error"
	settings := config.Settings{Library: os.Getenv("SIGNALBOX_ONNXRUNTIME")}
	if settings.CacheDir, err = os.UserCacheDir(); err != nil {
		settings.CacheDir = ""
	}
	a, err := app.Build(ctx, cfg, app.Options{
		Version: "bench", Settings: settings, RequireModels: true, Log: log, Env: noEnv,
	})
	if err != nil {
		return nil, fmt.Errorf("build the product: %w", err)
	}
	return a, nil
}

// vectors keeps embeddings by the hash of their text, in a file of float32 rows behind an 8-byte
// hash each, so that a second run need not compute them. An empty path keeps nothing.
type vectors struct {
	path  string
	dims  int
	known map[uint64][]float32
}

func openVectors(path string) (*vectors, error) {
	v := &vectors{path: path, known: map[uint64][]float32{}}
	if path == "" {
		return v, nil
	}
	b, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return v, nil
	}
	if err != nil || len(b) < 4 {
		return v, err
	}
	v.dims = int(binary.LittleEndian.Uint32(b))
	row := 8 + 4*v.dims
	for b = b[4:]; len(b) >= row; b = b[row:] {
		vec := make([]float32, v.dims)
		for i := range vec {
			vec[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[8+4*i:]))
		}
		v.known[binary.LittleEndian.Uint64(b)] = vec
	}
	return v, nil
}

func (v *vectors) save() error {
	if v.path == "" {
		return nil
	}
	var b bytes.Buffer
	b.Write(binary.LittleEndian.AppendUint32(nil, uint32(v.dims)))
	for h, vec := range v.known {
		b.Write(binary.LittleEndian.AppendUint64(nil, h))
		for _, x := range vec {
			b.Write(binary.LittleEndian.AppendUint32(nil, math.Float32bits(x)))
		}
	}
	return os.WriteFile(v.path, b.Bytes(), 0o600)
}

// embed gives every prompt its vector: those of a memory of outcomes in the product.
func embed(ctx context.Context, sets []*set, v *vectors, log io.Writer) error {
	var todo []*prompt
	for _, s := range sets {
		for _, p := range s.prompts {
			if p.vector = v.known[xxhash.Sum64String(p.text)]; p.vector == nil {
				todo = append(todo, p)
			}
		}
	}
	if len(todo) == 0 {
		return nil
	}
	a, err := build(ctx, plain, log)
	if err != nil {
		return err
	}
	defer func() { _ = a.Close(context.WithoutCancel(ctx)) }()
	for i, p := range todo {
		if i%1000 == 0 {
			_, _ = fmt.Fprintf(log, "embedding %d of %d\n", i, len(todo))
		}
		found := a.Extract(ctx, p.text, signal.MaskOf(signal.Embedding))
		e := &found.Values[signal.Embedding]
		if e.State != signal.Known {
			return fmt.Errorf("%s: no embedding: %s", p.id, e.Reason)
		}
		p.vector, v.dims = e.Vector, len(e.Vector)
		v.known[xxhash.Sum64String(p.text)] = e.Vector
		if err := ctx.Err(); err != nil {
			return errors.Join(err, v.save())
		}
	}
	return v.save()
}
