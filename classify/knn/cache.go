package knn

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"signalbox/internal/disk"
)

// embedBatch is the maximum number of texts per call of an Embedder.
const embedBatch = 64

// Cache keeps vectors by model and text, so that a reload embeds only new texts and a restart none.
// It stores hashes of texts, not the texts. One Cache serves all indexes of a process and is safe
// for concurrent use; a nil Cache keeps nothing.
type Cache struct {
	dir string

	mu      sync.Mutex // guards vectors and files; not held while a model runs
	vectors map[cacheKey][]float32
	files   map[string]*cacheFile // by model; those that have been read
}

// cacheFile describes the file of a model.
type cacheFile struct {
	count int // number of entries in it
	dims  int // length of their vectors; 0 if there is no file to append to
}

// cacheKey is the SHA-256 of model and text.
type cacheKey [sha256.Size]byte

// NewCache returns a Cache that also keeps a file per model under dir, which is created when
// needed. An empty dir keeps vectors in memory only. A missing, damaged or read-only file is not an
// error: the texts are embedded again.
func NewCache(dir string) *Cache {
	return &Cache{dir: dir, vectors: make(map[cacheKey][]float32), files: make(map[string]*cacheFile)}
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
	c.store(model, texts, out, missing)
	return out, nil
}

// lookup sets out for the cached texts and returns the indices of the others.
func (c *Cache) lookup(model string, texts []string, out [][]float32) (missing []int) {
	if c != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.files[model] == nil {
			c.files[model] = c.load(model)
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

// store keeps vectors, of which those at the indices in fresh are new, and writes the new ones to
// the file of the model. Vectors that no index uses are dropped once there are twice as many as an
// index can have.
func (c *Cache) store(model string, texts []string, vectors [][]float32, fresh []int) {
	if c == nil || len(fresh) == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.vectors)+len(fresh) > 2*MaxExamples {
		clear(c.vectors)
	}
	for i, t := range texts {
		c.vectors[keyOf(model, t)] = vectors[i]
	}
	if c.dir == "" {
		return
	}
	dims := len(vectors[fresh[0]])
	for _, i := range fresh {
		if len(vectors[i]) != dims || dims == 0 {
			return // these are not vectors of a model; the index refuses them
		}
	}
	// If the cache cannot be written, only the next start takes longer.
	f := c.files[model]
	if f.dims == dims && f.count+len(fresh) <= 2*MaxExamples {
		if c.add(model, texts, vectors, fresh) == nil {
			f.count += len(fresh)
			return
		}
	}
	*f = cacheFile{}
	all := make([]int, len(texts))
	for i := range all {
		all[i] = i
	}
	if c.replace(model, texts, vectors, all) == nil {
		*f = cacheFile{count: len(all), dims: dims}
	}
}

// The file: magic and dims, then entries up to its end: key, vector, and the CRC-32 (IEEE) of both;
// numbers little-endian, vectors as float32 bits. New entries are appended. The next read truncates
// the file at an incomplete entry, left by a process that was killed.
const (
	cacheMagic  = "SBKNN\x00\x00\x02"
	cacheHeader = len(cacheMagic) + 4
	cacheSum    = 4
)

func (c *Cache) path(model string) string {
	m := sha256.Sum256([]byte(model))
	return filepath.Join(c.dir, "intents-"+hex.EncodeToString(m[:8])+".bin")
}

// load reads the file of a model, if there is a valid one, and removes a damaged end.
func (c *Cache) load(model string) *cacheFile {
	if c.dir == "" {
		return &cacheFile{}
	}
	data, err := os.ReadFile(c.path(model))
	if err != nil {
		return &cacheFile{}
	}
	vectors, dims, good := decodeVectors(data)
	maps.Copy(c.vectors, vectors)
	if good < len(data) && os.Truncate(c.path(model), int64(good)) != nil {
		dims = 0
	}
	return &cacheFile{count: len(vectors), dims: dims}
}

// add appends the entries at the given indices to the file.
func (c *Cache) add(model string, texts []string, vectors [][]float32, places []int) error {
	f, err := os.OpenFile(c.path(model), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	_, err = f.Write(appendEntries(nil, model, texts, vectors, places))
	return errors.Join(err, f.Close())
}

// replace writes a new file with the entries at the given indices.
func (c *Cache) replace(model string, texts []string, vectors [][]float32, places []int) error {
	if err := os.MkdirAll(c.dir, 0o700); err != nil {
		return err
	}
	return disk.Replace(c.path(model), 0o600, appendEntries(header(len(vectors[0])), model, texts, vectors, places))
}

func header(dims int) []byte {
	return binary.LittleEndian.AppendUint32([]byte(cacheMagic), uint32(dims))
}

// appendEntries encodes the entries at the given indices.
func appendEntries(dst []byte, model string, texts []string, vectors [][]float32, places []int) []byte {
	for _, i := range places {
		dst = appendEntry(dst, keyOf(model, texts[i]), vectors[i])
	}
	return dst
}

func appendEntry(dst []byte, key cacheKey, vector []float32) []byte {
	from := len(dst)
	dst = slices.Grow(dst, len(key)+4*len(vector)+cacheSum)
	dst = append(dst, key[:]...)
	for _, f := range vector {
		dst = binary.LittleEndian.AppendUint32(dst, math.Float32bits(f))
	}
	return binary.LittleEndian.AppendUint32(dst, crc32.ChecksumIEEE(dst[from:]))
}

// decodeVectors reads the entries of a file up to the first incomplete one, and returns the length
// of the valid part: 0, and dims 0, for another kind of file. It allocates no more than len(data)
// bytes.
func decodeVectors(data []byte) (vectors map[cacheKey][]float32, dims, good int) {
	if len(data) < cacheHeader || string(data[:len(cacheMagic)]) != cacheMagic {
		return nil, 0, 0
	}
	n := uint64(binary.LittleEndian.Uint32(data[len(cacheMagic):]))
	size := uint64(len(cacheKey{})) + 4*n + cacheSum
	if n == 0 || size > maxEntry {
		return nil, 0, 0
	}
	body := data[cacheHeader:]
	vectors = make(map[cacheKey][]float32, uint64(len(body))/size)
	good = cacheHeader
	for ; uint64(len(body)) >= size; body = body[size:] {
		entry, sum := body[:size-cacheSum], body[size-cacheSum:size]
		if crc32.ChecksumIEEE(entry) != binary.LittleEndian.Uint32(sum) {
			break
		}
		v := make([]float32, n)
		for i := range v {
			v[i] = math.Float32frombits(binary.LittleEndian.Uint32(entry[len(cacheKey{})+4*i:]))
		}
		vectors[cacheKey(entry[:len(cacheKey{})])] = v
		good += int(size)
	}
	return vectors, int(n), good
}

// maxEntry is larger than an entry of any embedding: vectors have some thousand numbers.
const maxEntry = 1 << 20
