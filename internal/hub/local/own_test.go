package local

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"signalbox/classify/bundle"
	"signalbox/classify/head"
)

// trainedHead writes a classifier as `signalbox fit` does.
func trainedHead(t *testing.T, dir string) {
	t.Helper()
	var rows []head.Row
	for i := range 20 {
		label := []string{"fine", "toxic"}[i%2]
		rows = append(rows, head.Row{Text: fmt.Sprintf("%s words %d", label, i), Labels: []string{label}})
	}
	o := head.DefaultOptions()
	o.Name, o.Labels, o.Mode = "toxicity", []string{"fine", "toxic"}, head.Binary
	h, _, err := head.Train(t.Context(), rows, o)
	if err != nil {
		t.Fatal(err)
	}
	info, weights, err := h.Encode()
	if err != nil {
		t.Fatal(err)
	}
	write(t, dir, map[string]string{head.InfoFile: string(info), head.WeightsFile: string(weights)})
}

// adapterBytes is an adapter that takes one tap, serialised.
func adapterBytes() []byte {
	field := func(b []byte, num protowire.Number, s string) []byte {
		return protowire.AppendString(protowire.AppendTag(b, num, protowire.BytesType), s)
	}
	value := func(name string) string { // ValueInfoProto of floats
		float := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), 1)
		return string(field(field(nil, 1, name), 2, string(field(nil, 1, string(float)))))
	}
	graph := string(field(field(nil, 11, value("keys")), 12, value(bundle.AdapterOutput)))
	info := fmt.Sprintf(`{"format":1,"base":{"name":"tiny","version":"2","sha256":"x"},"mode":"binary","labels":["no","yes"],`+
		`"scale":[1],"shift":[0],"thresholds":[0,0.5],"tokens":64,"graph_sha256":%q}`, digest(graph))
	return field(field(nil, 7, graph), 14, string(field(field(nil, 1, bundle.AdapterKey), 2, info)))
}

// What was trained here lies beside the models that were downloaded: it is listed and verified as
// what it is.
func TestClassifiersAndAdaptersAreListedAndVerified(t *testing.T) {
	dir := t.TempDir()
	trainedHead(t, filepath.Join(dir, "toxicity"))
	adapter := filepath.Join(dir, "harm.onnx")
	if err := os.WriteFile(adapter, adapterBytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	write(t, dir, map[string]string{"notes.txt": "no model"})
	all, err := List(dir)
	if err != nil || len(all) != 2 {
		t.Fatalf("listed %+v, error %v", all, err)
	}
	for i, want := range []struct {
		kind    Kind
		name    string
		labels  []string
		version string
	}{{Adapter, "harm", []string{"no", "yes"}, "for tiny 2"}, {Classifier, "toxicity", []string{"fine", "toxic"}, ""}} {
		m := &all[i]
		if m.Kind != want.kind || m.Name != want.name || !slices.Equal(m.Tasks, want.labels) || m.Version != want.version || m.Bytes == 0 {
			t.Errorf("listed %+v, want %+v", m, want)
		}
		if problems := Verify(t.Context(), m.Dir); len(problems) > 0 {
			t.Errorf("%s: %v", m.Name, problems)
		}
	}
	for name, broken := range map[string]string{
		adapter: "onnx", filepath.Join(dir, "toxicity", head.WeightsFile): "nothing",
	} {
		if err := os.WriteFile(name, []byte(broken), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if all, err = List(dir); err != nil || all[0].Kind != Broken || all[0].Problem == "" {
		t.Errorf("listed %+v, error %v", all[0], err)
	}
	for i := range all {
		if problems := Verify(t.Context(), all[i].Dir); len(problems) == 0 {
			t.Errorf("%s: no problem found", all[i].Name)
		}
	}
	if problems := Verify(t.Context(), filepath.Join(dir, "toxicity")); !strings.Contains(problems[0].Error(), head.WeightsFile) {
		t.Errorf("%v", problems)
	}
}
