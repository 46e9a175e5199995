package gpu

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestProductsGetTheirOwnWeights(t *testing.T) {
	model := readFile(t, filepath.Join("testdata", "bytes.onnx"))
	before := string(model)
	own, err := apart(model)
	if err != nil {
		t.Fatal(err)
	}
	if string(model) != before {
		t.Error("the caller's model was written to")
	}
	var read []string
	if err := eachProduct(own, func(input []byte) error { read = append(read, string(input)); return nil }); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"bytes", "w", "", "zero", "again", "0", "", "0ero"}, read); diff != "" {
		t.Error(diff)
	}
	shared, names, err := sharedBytes(own)
	if err != nil {
		t.Fatal(err)
	}
	if len(shared) != 0 || !names["0"] || !names["0ero"] {
		t.Errorf("%d initializers are still shared, names %v", len(shared), names)
	}
	same, err := apart(own)
	if err != nil || &same[0] != &own[0] {
		t.Errorf("a model that needs nothing was copied, error %v", err)
	}
	if _, err := apart([]byte{modelGraph<<3 | 2, 0x7f}); err == nil {
		t.Error("a model that is cut short is no error")
	}
}
