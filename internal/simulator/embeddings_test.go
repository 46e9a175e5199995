package simulator_test

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"math"
	"net/http"
	"testing"

	"signalbox/internal/simulator"
)

// embedded is what a server says to a request for embeddings.
func embedded(tb testing.TB, h http.Handler, body string) (vectors [][]float32, tokens int) {
	tb.Helper()
	w := post(tb, h, "/v1/embeddings", body)
	var got struct {
		Object string
		Data   []struct {
			Index     int
			Object    string
			Embedding json.RawMessage
		}
		Usage struct {
			PromptTokens int `json:"prompt_tokens"`
			TotalTokens  int `json:"total_tokens"`
		}
	}
	err := json.Unmarshal(w.Body.Bytes(), &got)
	if err != nil || w.Code != 200 || got.Object != "list" {
		tb.Fatalf("status %d, %v: %s", w.Code, err, w.Body)
	}
	for i, d := range got.Data {
		if d.Index != i || d.Object != "embedding" {
			tb.Errorf("item %d is %d, %q", i, d.Index, d.Object)
		}
		var v []float32
		var packed string
		if json.Unmarshal(d.Embedding, &packed) == nil {
			b, err := base64.StdEncoding.DecodeString(packed)
			if err != nil {
				tb.Fatal(err)
			}
			for ; len(b) >= 4; b = b[4:] {
				v = append(v, math.Float32frombits(binary.LittleEndian.Uint32(b)))
			}
		} else if err := json.Unmarshal(d.Embedding, &v); err != nil {
			tb.Fatal(err)
		}
		vectors = append(vectors, v)
	}
	if got.Usage.TotalTokens != got.Usage.PromptTokens {
		tb.Errorf("usage %+v", got.Usage)
	}
	return vectors, got.Usage.PromptTokens
}

func cosine(a, b []float32) float64 {
	sum := 0.0
	for i := range a {
		sum += float64(a[i]) * float64(b[i])
	}
	return sum
}

func TestTextsThatShareWordsAreNear(t *testing.T) {
	h := newServer(t, nil).Handler()
	v, tokens := embedded(t, h, `{"input":["A red signal","The red SIGNAL!","Boil two eggs"]}`)
	if len(v) != 3 || len(v[0]) != 256 || tokens != 3+4+3 {
		t.Fatalf("%d vectors, %d tokens", len(v), tokens)
	}
	if one := cosine(v[0], v[0]); math.Abs(one-1) > 1e-5 {
		t.Errorf("length %v", one)
	}
	if near, far := cosine(v[0], v[1]), cosine(v[0], v[2]); near < 0.5 || far > 0.3 {
		t.Errorf("near %.2f, far %.2f", near, far)
	}
	packed, _ := embedded(t, h, `{"input":"A red signal","encoding_format":"base64"}`)
	if math.Abs(cosine(packed[0], v[0])-1) > 1e-5 {
		t.Error("base64 holds another vector")
	}
	short, _ := embedded(t, h, `{"input":[[1,2,3],[4]],"dimensions":8}`)
	if len(short) != 2 || len(short[0]) != 8 {
		t.Errorf("vectors of token ids %v", short)
	}
}

func TestRequestsForEmbeddingsAreChecked(t *testing.T) {
	s := newServer(t, func(o *simulator.Options) { o.MaxModelLen = 4 })
	for body, want := range map[string]struct {
		status int
		param  string
	}{
		`{"model":"gpt-4","input":"a"}`:              {404, "model"},
		`{}`:                                         {400, "input"},
		`{"input":""}`:                               {400, "input"},
		`{"input":"one two three four five"}`:        {400, "input"},
		`{"input":"a","dimensions":0}`:               {400, "dimensions"},
		`{"input":"a","encoding_format":"int8"}`:     {400, "encoding_format"},
		`{"input":{"text":"a"},"model":"llama-70b"}`: {400, "input"},
	} {
		w := post(t, s.Handler(), "/v1/embeddings", body)
		var e struct{ Error struct{ Param string } }
		err := json.Unmarshal(w.Body.Bytes(), &e)
		if err != nil || w.Code != want.status || e.Error.Param != want.param {
			t.Errorf("%s: status %d, %v: %s", body, w.Code, err, w.Body)
		}
	}
}
