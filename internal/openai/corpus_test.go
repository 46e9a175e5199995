package openai

import (
	"encoding/json"
	"os"
	"strconv"
	"strings"
	"testing"
)

// TestValuesOfTheCorpus reads bodies that hold each value of testdata/values.txt, as a member that
// is not known, in a message, and as the arguments of a template, and compares the verdict with
// that of another reader.
func TestValuesOfTheCorpus(t *testing.T) {
	t.Parallel()
	file, err := os.ReadFile("testdata/values.txt")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	for line := range strings.Lines(string(file)) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "#") {
			continue
		}
		verdict, quoted, _ := strings.Cut(line, " ")
		value, err := strconv.Unquote(quoted)
		if err != nil || verdict != "y" && verdict != "n" && verdict != "d" {
			t.Fatalf("line %q: %v", line, err)
		}
		seen[verdict]++
		if valid := json.Valid([]byte(value)); valid != (verdict != "n") {
			t.Errorf("%q: the corpus says %s, the standard library that it is JSON: %v", value, verdict, valid)
		}
		for _, around := range []string{
			`{"model":"m","messages":[{"role":"user","content":"x"}],"unknown":%}`,
			`{"unknown": % ,"model":"m","messages":[{"role":"user","content":"x"}]}`,
			`{"model":"m","messages":[{"role":"user","content":"x","unknown":%}]}`,
			`{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"x","unknown":[%]}]}]}`,
		} {
			body := strings.Replace(around, "%", value, 1)
			r, err := ParseChat([]byte(body), Limits{})
			if (err == nil) != (verdict == "y") {
				t.Errorf("%q: %v, the corpus says %s", body, err, verdict)
				continue
			}
			if err != nil {
				continue
			}
			p := NewPatch(r)
			p.SetModel("another")
			if got, want := string(p.Bytes()), strings.Replace(body, `"m"`, `"another"`, 1); got != want {
				t.Errorf("%q became %q", body, got)
			}
		}
		if _, err := ParseChat([]byte(value), Limits{}); err == nil {
			t.Errorf("%q is a body", value)
		}
	}
	if seen["y"] < 50 || seen["n"] < 100 || seen["d"] < 20 {
		t.Errorf("the corpus holds %v", seen)
	}
}
