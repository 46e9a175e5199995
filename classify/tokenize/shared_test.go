package tokenize

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

func TestFilesOfTheSameBytesShareATokenizer(t *testing.T) {
	names, err := filepath.Glob(filepath.Join("testdata", "wordpiece_*.json"))
	if err != nil || len(names) == 0 {
		t.Fatal(err, names)
	}
	file, err := os.ReadFile(names[0])
	if err != nil {
		t.Fatal(err)
	}
	open := func(file []byte) Engine {
		t.Helper()
		e, err := Open("", file)
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	first := open(file)
	if open(bytes.Clone(file)) != first {
		t.Error("a file of the same bytes was read again while the first is in use")
	}
	if open(append(bytes.Clone(file), '\n')) == first {
		t.Error("a file of other bytes got the tokenizer of the first")
	}
	runtime.KeepAlive(first)
}

func TestATokenizerThatNobodyUsesIsForgotten(t *testing.T) {
	file := []byte(`{"model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100, "vocab": {"[UNK]": 0, "a": 1}}}`)
	gone := make(chan struct{})
	func() {
		e, err := Open(Native, file)
		if err != nil {
			t.Fatal(err)
		}
		runtime.AddCleanup(e.(*Tokenizer), func(c chan struct{}) { close(c) }, gone) //nolint:forcetypeassert // the native engine
	}()
	for open := true; open; { // a collection or two
		runtime.GC()
		select {
		case <-gone:
			open = false
		default:
		}
	}
	if _, err := Open(Native, file); err != nil {
		t.Error(err)
	}
}
