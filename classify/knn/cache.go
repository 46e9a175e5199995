package knn

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sync"
)

// embedBatch is how many texts an Embedder gets at once.
const embedBatch = 64

// Cache keeps vectors by model and text, so that a reload embeds only what is new and a restart
// nothing. It holds no text, only hashes of texts. One Cache serves all indexes of a process and is
// safe for concurrent use; nil keeps nothing.
type Cache struct {
	dir string

	mu      sync.Mutex // guards vectors and loaded; not held while a model runs
	vectors map[cacheKey][]float32
	loaded  map[string]bool // models whose file was read
}

// cacheKey is the SHA-256 of model and text.
type cacheKey [sha256.Size]byte

// NewCache returns a Cache that also keeps a file a model under dir, which is made when needed. An
// empty dir keeps vectors in memory only. A file that is missing, damaged or not writable is no
// error: texts are then embedded again.
func NewCache(dir string) *Cache {
	return &Cache{dir: dir, vectors: make(map[cacheKey][]float32), loaded: make(map[string]bool)}
}

func keyOf(model, text string) cacheKey {
	m := sha256.Sum256([]byte(model))
	return sha256.Sum256(append(m[:], text...))
}

// embed returns the vectors of texts, from the cache where it has them.
func (c *Cache) embed(ctx context.Context, model string, texts []string, embedder Embedder) ([][]float32, error) {
	out := make([][]float32, len(texts))
	missing := c.lookup(model, texts, out)
	var fresh []string
	for _, i := range missing {
		fresh = append(fresh, texts[i])
	}
	done := 0
	for batch := range slices.Chunk(fresh, embedBatch) {
		vectors, err := embedder(ctx, batch)
		if err != nil {
			return nil, err
		}
		if len(vectors) != len(batch) {
			return nil, fmt.Errorf("%d vectors for %d texts", len(vectors), len(batch))
		}
		for _, v := range vectors {
			out[missing[done]] = v
			done++
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
	c.store(model, texts, out, len(missing))
	return out, nil
}

// lookup fills out where the cache knows the text and returns the places of the others.
func (c *Cache) lookup(model string, texts []string, out [][]float32) (missing []int) {
	if c != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		if !c.loaded[model] {
			c.loaded[model] = true
			c.load(model)
		}
	}
	for i, t := range texts {
		if c != nil {
			out[i] = c.vectors[keyOf(model, t)]
		}
		if out[i] == nil {
			missing = append(missing, i)
		}
	}
	return missing
}

// store keeps vectors and, if any is new, writes the file of the model. What an index does not use
// any more is dropped once there are twice as many vectors as an index can have.
func (c *Cache) store(model string, texts []string, vectors [][]float32, fresh int) {
	if c == nil || fresh == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.vectors)+fresh > 2*MaxExamples {
		clear(c.vectors)
	}
	for i, t := range texts {
		c.vectors[keyOf(model, t)] = vectors[i]
	}
	if c.dir == "" {
		return
	}
	// A cache that cannot be written costs the next start some time and nothing else.
	_ = c.save(model, texts, vectors)
}

// The file: magic, dims, count, then count times key and vector, then an FNV-1a sum of it all;
// numbers little-endian, vectors as float32 bits.
const (
	cacheMagic  = "SBKNN\x00\x00\x01"
	cacheHeader = len(cacheMagic) + 4 + 4
	cacheSum    = 8
)

var errCacheFile = errors.New("not a file of vectors")

func (c *Cache) path(model string) string {
	m := sha256.Sum256([]byte(model))
	return filepath.Join(c.dir, "intents-"+hex.EncodeToString(m[:8])+".bin")
}

// load reads the file of a model, if there is a good one.
func (c *Cache) load(model string) {
	if c.dir == "" {
		return
	}
	data, err := os.ReadFile(c.path(model))
	if err != nil {
		return
	}
	vectors, err := decodeVectors(data)
	if err != nil {
		return
	}
	maps.Copy(c.vectors, vectors)
}

// save writes the vectors of an Add behind those of the file, and those of a New in their place.
func (c *Cache) save(model string, texts []string, vectors [][]float32) error {
	entries := make(map[cacheKey][]float32, len(texts))
	for i, t := range texts {
		entries[keyOf(model, t)] = vectors[i]
	}
	if data, err := os.ReadFile(c.path(model)); err == nil {
		if old, err := decodeVectors(data); err == nil && len(old)+len(entries) <= 2*MaxExamples {
			maps.Copy(entries, old)
		}
	}
	if err := os.MkdirAll(c.dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(c.dir, "intents-*.tmp")
	if err != nil {
		return err
	}
	_, err = f.Write(encodeVectors(entries))
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), c.path(model))
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// encodeVectors writes entries, all vectors of equal length, ascending by key.
func encodeVectors(entries map[cacheKey][]float32) []byte {
	keys := make([]cacheKey, 0, len(entries))
	dims := 0
	for k, v := range entries {
		keys = append(keys, k)
		dims = len(v)
	}
	slices.SortFunc(keys, func(a, b cacheKey) int { return bytes.Compare(a[:], b[:]) })
	out := make([]byte, 0, cacheHeader+len(keys)*(len(cacheKey{})+4*dims)+cacheSum)
	out = append(out, cacheMagic...)
	out = binary.LittleEndian.AppendUint32(out, uint32(dims))
	out = binary.LittleEndian.AppendUint32(out, uint32(len(keys)))
	for _, k := range keys {
		out = append(out, k[:]...)
		for _, f := range entries[k] {
			out = binary.LittleEndian.AppendUint32(out, math.Float32bits(f))
		}
	}
	return binary.LittleEndian.AppendUint64(out, sumOf(out))
}

// decodeVectors is the inverse of encodeVectors. It allocates no more than data is long.
func decodeVectors(data []byte) (map[cacheKey][]float32, error) {
	if len(data) < cacheHeader+cacheSum || string(data[:len(cacheMagic)]) != cacheMagic {
		return nil, errCacheFile
	}
	body, sum := data[:len(data)-cacheSum], binary.LittleEndian.Uint64(data[len(data)-cacheSum:])
	dims := uint64(binary.LittleEndian.Uint32(body[len(cacheMagic):]))
	count := uint64(binary.LittleEndian.Uint32(body[len(cacheMagic)+4:]))
	body = body[cacheHeader:]
	size := uint64(len(cacheKey{})) + 4*dims
	if dims == 0 || count > uint64(len(body))/size || count*size != uint64(len(body)) || sumOf(data[:len(data)-cacheSum]) != sum {
		return nil, errCacheFile
	}
	out := make(map[cacheKey][]float32, count)
	for ; len(body) > 0; body = body[size:] {
		v := make([]float32, dims)
		for i := range v {
			v[i] = math.Float32frombits(binary.LittleEndian.Uint32(body[len(cacheKey{})+4*i:]))
		}
		out[cacheKey(body[:len(cacheKey{})])] = v
	}
	return out, nil
}

func sumOf(data []byte) uint64 {
	h := fnv.New64a()
	_, _ = h.Write(data)
	return h.Sum64()
}
