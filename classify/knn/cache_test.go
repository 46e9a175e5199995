package knn

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCacheEmbedsEveryTextOnce(t *testing.T) {
	dir := t.TempDir()
	opts := DefaultOptions()
	opts.Model = "model one"
	start := func(c *Cache, intents ...Intent) (*Index, []string) {
		t.Helper()
		m := new(model)
		o := opts
		o.Cache = c
		x, err := New(t.Context(), intents, o, m.embed)
		if err != nil {
			t.Fatal(err)
		}
		return x, m.asked
	}
	cache := NewCache(dir)
	x, asked := start(cache, hr())
	if want := len(hr().Examples) + 1 + len(backgroundTexts()); len(asked) != want { // 1: the name
		t.Errorf("%d texts embedded at first, want %d", len(asked), want)
	}
	if _, asked = start(cache, hr(), it()); !slices.Equal(asked, append(it().Examples, "it help")) {
		t.Errorf("after a reload: %q embedded, want those of the new intent", asked)
	}
	if _, err := x.Add(t.Context(), "hr_bot", []string{"Is my canteen voucher taxed?"}); err != nil {
		t.Fatal(err)
	}
	extended := hr()
	extended.Examples = append(extended.Examples, "Is my canteen voucher taxed?")
	y, asked := start(NewCache(dir), extended, it())
	if len(asked) != 0 {
		t.Errorf("after a restart: %q embedded, want none", asked)
	}
	if d := cmp.Diff(ask(t, build(t, extended, it()), "vouchers"), ask(t, y, "vouchers")); d != "" {
		t.Errorf("cached vectors give another result:\n%s", d)
	}
	opts.Model = "model two"
	if _, asked = start(NewCache(dir), hr()); len(asked) == 0 {
		t.Error("another model got the vectors of the first")
	}
}

// twoVectors is a file of two entries of two numbers.
func twoVectors() []byte {
	return appendEntry(appendEntry(header(2), keyOf("m", "a"), []float32{1, 2}), keyOf("m", "b"), []float32{3, 4})
}

func TestACacheFileIsReadAsFarAsItIsGood(t *testing.T) {
	good := twoVectors()
	flip := func(at int) []byte {
		data := slices.Clone(good)
		data[at] ^= 1
		return data
	}
	tests := map[string]struct {
		data []byte
		want int // entries
	}{
		"whole":                       {good, 2},
		"without entries":             {good[:cacheHeader], 0},
		"cut in the second entry":     {good[:len(good)-9], 1},
		"a word behind it":            {append(slices.Clone(good), "torn"...), 2},
		"damaged in the second entry": {flip(len(good) - 20), 1},
		"damaged in the first entry":  {flip(cacheHeader + 3), 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			vectors, dims, n := decodeVectors(tt.data)
			if len(vectors) != tt.want || dims != 2 || n != cacheHeader+tt.want*(len(good)-cacheHeader)/2 {
				t.Fatalf("%d entries of %d numbers, %d bytes good; want %d entries", len(vectors), dims, n, tt.want)
			}
			// What is added behind a damaged end is read again.
			dir := t.TempDir()
			cache := NewCache(dir)
			if err := os.WriteFile(cache.path("m"), tt.data, 0o600); err != nil {
				t.Fatal(err)
			}
			asked := 0
			embed := func(_ context.Context, texts []string) ([][]float32, error) {
				asked += len(texts)
				return slices.Repeat([][]float32{{5, 6}}, len(texts)), nil
			}
			for i, want := range []int{1, 1} { // the second time from the file
				if _, err := NewCache(dir).embed(t.Context(), "m", []string{"c"}, embed); err != nil || asked != want {
					t.Fatalf("look %d: %d texts embedded, error %v", i, asked, err)
				}
			}
			data, err := os.ReadFile(cache.path("m"))
			if got, _, n := decodeVectors(data); err != nil || len(got) != tt.want+1 || n != len(data) {
				t.Errorf("%d entries, %d of %d bytes good, error %v; want %d entries", len(got), n, len(data), err, tt.want+1)
			}
		})
	}
}

func TestACacheFileThatCannotBeReadIsNoFault(t *testing.T) {
	tests := map[string][]byte{
		"empty": nil, "foreign": []byte("something else entirely, and long enough"), "no numbers": header(0),
		"too many numbers": header(math.MaxUint32), "of another version": []byte("SBKNN\x00\x00\x01\x02\x00\x00\x00\x00\x00\x00\x00"),
	}
	for name, data := range tests {
		t.Run(name, func(t *testing.T) {
			if got, dims, n := decodeVectors(data); len(got) > 0 || dims != 0 || n != 0 {
				t.Fatalf("%v of %d numbers, %d bytes, want nothing", got, dims, n)
			}
			dir := t.TempDir()
			cache := NewCache(dir)
			if err := os.WriteFile(cache.path(""), data, 0o600); err != nil {
				t.Fatal(err)
			}
			opts := DefaultOptions()
			opts.Cache = cache
			m := new(model)
			if _, err := New(t.Context(), []Intent{hr()}, opts, m.embed); err != nil || len(m.asked) == 0 {
				t.Errorf("error %v with %d texts embedded, want all of them and none", err, len(m.asked))
			}
			left, err := filepath.Glob(filepath.Join(dir, "*.tmp"))
			if err != nil || len(left) > 0 {
				t.Errorf("left behind: %v, %v", left, err)
			}
			opts.Cache, m = NewCache(dir), new(model)
			if _, err := New(t.Context(), []Intent{hr()}, opts, m.embed); err != nil || len(m.asked) != 0 {
				t.Errorf("error %v with %d texts embedded after a restart, want none", err, len(m.asked))
			}
		})
	}
	t.Run("a folder that cannot be made", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		opts := DefaultOptions()
		opts.Cache = NewCache(filepath.Join(file, "cache"))
		if _, err := New(t.Context(), []Intent{hr()}, opts, new(model).embed); err != nil {
			t.Errorf("error %v, want none", err)
		}
	})
}

func FuzzDecodeVectors(f *testing.F) {
	f.Add(twoVectors())
	f.Add(header(2))
	f.Add([]byte(cacheMagic + "\xff\xff\xff\xff--------"))
	f.Fuzz(func(t *testing.T, data []byte) {
		got, dims, good := decodeVectors(data)
		if good > len(data) || len(got) > 0 && good < cacheHeader+len(got) {
			t.Fatalf("%d entries in %d of %d bytes", len(got), good, len(data))
		}
		again := header(dims)
		for k, v := range got {
			again = appendEntry(again, k, v)
		}
		if back, _, n := decodeVectors(again); dims > 0 && (len(back) != len(got) || n != len(again)) {
			t.Errorf("%d entries, and %d after writing them again", len(got), len(back))
		}
	})
}

// BenchmarkCacheAdd adds one example to a file of many.
func BenchmarkCacheAdd(b *testing.B) {
	const many, dims = 10_000, 384
	dir := b.TempDir()
	vector := make([]float32, dims)
	embed := func(_ context.Context, texts []string) ([][]float32, error) {
		return slices.Repeat([][]float32{vector}, len(texts)), nil
	}
	texts := make([]string, many)
	for i := range texts {
		texts[i] = fmt.Sprint("example ", i)
	}
	c := NewCache(dir)
	if _, err := c.embed(b.Context(), "m", texts, embed); err != nil {
		b.Fatal(err)
	}
	for i := 0; b.Loop(); i++ {
		if _, err := c.embed(b.Context(), "m", []string{fmt.Sprint("another ", i)}, embed); err != nil {
			b.Fatal(err)
		}
	}
}
