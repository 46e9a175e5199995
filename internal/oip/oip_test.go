package oip

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"signalbox/internal/signal"
	"signalbox/internal/tensor"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// tritonish answers as the public servers do, written from the protocol's text and apart from the
// code under test: the model gives, for token ids, each id as a number (FP16), and the sum of a row
// (FP32).
type tritonish struct {
	binary  bool
	idsType string
	key     string
	infer   http.HandlerFunc // instead of the model
	bodies  []map[string]any
}

func (s *tritonish) start(t *testing.T) string {
	t.Helper()
	write := func(w http.ResponseWriter, v any) { json.NewEncoder(w).Encode(v) }
	mux := http.NewServeMux()
	mux.HandleFunc("GET /tier/v2", func(w http.ResponseWriter, _ *http.Request) {
		extensions := []string{"classification"}
		if s.binary {
			extensions = append(extensions, "binary_tensor_data")
		}
		write(w, map[string]any{"name": "triton", "version": "2.60.0", "extensions": extensions})
	})
	mux.HandleFunc("GET /tier/v2/models/mini lm/versions/3/ready", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("GET /tier/v2/models/mini lm/versions/3", func(w http.ResponseWriter, _ *http.Request) {
		write(w, map[string]any{
			"name": "mini lm", "versions": []string{"3"}, "platform": "onnxruntime_onnx",
			"inputs":  []any{map[string]any{"name": "input_ids", "datatype": s.idsType, "shape": []int{-1, -1}}},
			"outputs": []any{map[string]any{"name": "each", "datatype": "FP16", "shape": []int{-1, -1}}, map[string]any{"name": "sum", "datatype": "FP32", "shape": []int{-1, 1}}},
		})
	})
	mux.HandleFunc("POST /tier/v2/models/mini lm/versions/3/infer", func(w http.ResponseWriter, r *http.Request) {
		if s.infer != nil {
			s.infer(w, r)
			return
		}
		s.run(t, w, r)
	})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.key != "" && r.Header.Get("Authorization") != "Bearer "+s.key {
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		}
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(srv.Close)
	return srv.URL + "/tier/"
}

func (s *tritonish) run(t *testing.T, w http.ResponseWriter, r *http.Request) {
	t.Helper()
	body, _ := io.ReadAll(r.Body)
	head := len(body)
	if n := r.Header.Get("Inference-Header-Content-Length"); n != "" {
		head, _ = strconv.Atoi(n)
	}
	var req map[string]any
	if err := json.Unmarshal(body[:head], &req); err != nil {
		t.Errorf("request %q: %v", body[:head], err)
	}
	s.bodies = append(s.bodies, req)
	in := req["inputs"].([]any)[0].(map[string]any)
	shape := in["shape"].([]any)
	rows, width := int(shape[0].(float64)), int(shape[1].(float64))
	var ids []float64
	if data, ok := in["data"].([]any); ok {
		for _, v := range data {
			ids = append(ids, v.(float64))
		}
	} else {
		for b := body[head:]; len(b) > 0; {
			if s.idsType == "INT32" {
				ids, b = append(ids, float64(int32(binary.LittleEndian.Uint32(b)))), b[4:]
			} else {
				ids, b = append(ids, float64(int64(binary.LittleEndian.Uint64(b)))), b[8:]
			}
		}
	}
	var half, sums []byte
	var nested []any
	for row := range rows {
		total := float32(0)
		var numbers []any
		for _, id := range ids[row*width : (row+1)*width] {
			half = binary.LittleEndian.AppendUint16(half, halves[id])
			numbers = append(numbers, id)
			total += float32(id)
		}
		nested = append(nested, numbers)
		sums = binary.LittleEndian.AppendUint32(sums, math.Float32bits(total))
	}
	each := map[string]any{"name": "each", "datatype": "FP16", "shape": []int{rows, width}}
	sum := map[string]any{"name": "sum", "datatype": "FP32", "shape": []int{rows, 1}}
	var blobs []byte
	if s.binary { // sum comes before each, whatever was asked: the protocol promises no order
		sum["parameters"] = map[string]any{"binary_data_size": len(sums)}
		each["parameters"] = map[string]any{"binary_data_size": len(half)}
		blobs = slices.Concat(sums, half)
	} else {
		each["data"] = nested
		var flat []any
		for b := sums; len(b) > 0; b = b[4:] {
			flat = append(flat, math.Float32frombits(binary.LittleEndian.Uint32(b)))
		}
		sum["data"] = flat
	}
	resp, _ := json.Marshal(map[string]any{"model_name": "mini lm", "model_version": "3", "outputs": []any{sum, each}})
	if s.binary {
		w.Header().Set("Inference-Header-Content-Length", strconv.Itoa(len(resp)))
	}
	w.Write(append(resp, blobs...))
}

// halves are numbers in IEEE 754 binary16, worked out by hand.
var halves = map[float64]uint16{1: 0x3c00, 2: 0x4000, 3: 0x4200, 4: 0x4400, 5: 0x4500, 6: 0x4600, 7: 0x4700, -2: 0xc000}

func dialTo(t *testing.T, url string, change func(*Options)) (*Client, error) {
	t.Helper()
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	o := Options{URL: url, Model: "mini lm", Version: "3", HTTP: &http.Client{Transport: transport}}
	if change != nil {
		change(&o)
	}
	return Dial(t.Context(), o)
}

type seen struct{ told []string }

func (s *seen) ModelRun(session, provider string, elapsed time.Duration, rows int) {
	s.told = append(s.told, fmt.Sprintf("%s on %s: %d rows, %v", session, provider, rows, elapsed > 0))
}

func ids(shape []int64, v ...int64) []tensor.Tensor {
	return []tensor.Tensor{{Name: "input_ids", Shape: shape, I64: v}}
}

func TestTheClientSpeaksWithPublicServers(t *testing.T) {
	for _, c := range []tritonish{
		{binary: true, idsType: "INT64"},
		{binary: true, idsType: "INT32", key: "secret"},
		{idsType: "INT64"},
		{idsType: "INT32"},
	} {
		t.Run(fmt.Sprintf("%s, binary %v", c.idsType, c.binary), func(t *testing.T) {
			var told seen
			client, err := dialTo(t, c.start(t), func(o *Options) { o.Key, o.Observer, o.Name = c.key, &told, "topics" })
			if err != nil {
				t.Fatal(err)
			}
			wantIn := []tensor.Spec{{Name: "input_ids", DType: tensor.Int64, Shape: []int64{-1, -1}}}
			wantOut := []tensor.Spec{{Name: "each", DType: tensor.Float32, Shape: []int64{-1, -1}}, {Name: "sum", DType: tensor.Float32, Shape: []int64{-1, 1}}}
			if diff := cmp.Diff(wantIn, client.Inputs()) + cmp.Diff(wantOut, client.Outputs()); diff != "" {
				t.Error(diff)
			}
			out, err := client.Run(t.Context(), ids([]int64{2, 3}, 1, 2, 3, 4, 5, -2), []string{"each", "sum"})
			if err != nil {
				t.Fatal(err)
			}
			want := []tensor.Tensor{
				{Name: "each", Shape: []int64{2, 3}, F32: []float32{1, 2, 3, 4, 5, -2}},
				{Name: "sum", Shape: []int64{2, 1}, F32: []float32{6, 7}},
			}
			if diff := cmp.Diff(want, out); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff([]string{"topics on remote: 2 rows, true"}, told.told); diff != "" {
				t.Error(diff)
			}
			if _, asJSON := c.bodies[0]["inputs"].([]any)[0].(map[string]any)["data"]; asJSON == c.binary {
				t.Errorf("sent %v", c.bodies[0])
			}
		})
	}
}

// Whatever goes wrong has a reason that a signal can be unknown for.
func TestEveryFaultHasItsReason(t *testing.T) {
	answers := func(status int, body string, header ...string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			for i := 0; i+1 < len(header); i += 2 {
				w.Header().Set(header[i], header[i+1])
			}
			w.WriteHeader(status)
			io.WriteString(w, body)
		}
	}
	good := `{"outputs":[{"name":"sum","datatype":"FP32","shape":[1,1],"data":[1]}]}`
	for _, c := range []struct {
		name  string
		infer http.HandlerFunc
		want  signal.Reason
	}{
		{"a good answer", answers(200, good), signal.ReasonNone},
		{"the model was unloaded", answers(404, `{"error":"unknown model"}`), signal.ReasonNoModel},
		{"the key was revoked", answers(403, ``), signal.ReasonNoModel},
		{"the queue is full", answers(503, `{"error":"exceeds maximum queue size"}`), signal.ReasonOverload},
		{"too many requests", answers(429, ``), signal.ReasonOverload},
		{"a gateway gave up", answers(504, `<html>`), signal.ReasonTimeout},
		{"a request that it refuses", answers(400, `{"error":"unexpected shape"}`), signal.ReasonInternal},
		{"its own fault", answers(500, `{"error":"CUDA error"}`), signal.ReasonInternal},
		{"a fault with a reason", answers(500, `{"error":"full"}`, reasonHeader, "overload"), signal.ReasonOverload},
		{"a reason that nobody knows", answers(500, `{}`, reasonHeader, "none of your business"), signal.ReasonInternal},
		{"a redirect", answers(302, ``, "Location", "/elsewhere"), signal.ReasonInternal},
		{"no JSON", answers(200, `<html>`), signal.ReasonInvalid},
		{"another output", answers(200, `{"outputs":[{"name":"logits","datatype":"FP32","shape":[1],"data":[1]}]}`), signal.ReasonInvalid},
		{"fewer numbers than its shape", answers(200, `{"outputs":[{"name":"sum","datatype":"FP32","shape":[2,2],"data":[1]}]}`), signal.ReasonInvalid},
		{"words for numbers", answers(200, `{"outputs":[{"name":"sum","datatype":"FP32","shape":[1],"data":["1"]}]}`), signal.ReasonInvalid},
		{"a type of text", answers(200, `{"outputs":[{"name":"sum","datatype":"BYTES","shape":[1],"data":[1]}]}`), signal.ReasonInvalid},
		{"a shape that overflows", answers(200, `{"outputs":[{"name":"sum","datatype":"FP32","shape":[4294967296,4294967296],"data":[]}]}`), signal.ReasonInvalid},
		{"a negative shape", answers(200, `{"outputs":[{"name":"sum","datatype":"FP32","shape":[-1],"data":[]}]}`), signal.ReasonInvalid},
		{"a header longer than the body", answers(200, good, headerLength, "99999"), signal.ReasonInvalid},
		{"a header of no length", answers(200, good, headerLength, "much"), signal.ReasonInvalid},
		{"bytes that are not there", answers(200, `{"outputs":[{"name":"sum","datatype":"FP32","shape":[1],"parameters":{"binary_data_size":4}}]}`), signal.ReasonInvalid},
		{"bytes of nobody", answers(200, good+"1234", headerLength, strconv.Itoa(len(good))), signal.ReasonInvalid},
		{"deep nesting", answers(200, `{"outputs":[{"name":"sum","datatype":"FP32","shape":[1],"data":`+strings.Repeat("[", 40)+"1"+strings.Repeat("]", 40)+`}]}`), signal.ReasonInvalid},
		{"more numbers than its shape", answers(200, `{"outputs":[{"name":"sum","datatype":"FP32","shape":[1],"data":[1,2]}]}`), signal.ReasonInvalid},
		{"no numbers", answers(200, `{"outputs":[{"name":"sum","datatype":"FP32","shape":[1],"data":null}]}`), signal.ReasonInvalid},
		{"a number beyond its type", answers(200, `{"outputs":[{"name":"sum","datatype":"FP32","shape":[1],"data":[1e39]}]}`), signal.ReasonInvalid},
		{"a fraction for an integer", answers(200, `{"outputs":[{"name":"sum","datatype":"INT64","shape":[1],"data":[1.5]}]}`), signal.ReasonInvalid},
		{"it hangs", func(_ http.ResponseWriter, r *http.Request) { io.Copy(io.Discard, r.Body); <-r.Context().Done() }, signal.ReasonTimeout},
		{"it hangs up", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, signal.ReasonNoModel},
		{"it hangs up halfway", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000")
			io.WriteString(w, good)
		}, signal.ReasonNoModel},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := tritonish{idsType: "INT64", infer: c.infer}
			client, err := dialTo(t, s.start(t), func(o *Options) {
				o.Timeout = 2 * time.Second
				o.HTTP.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
			})
			if err != nil {
				t.Fatal(err)
			}
			_, err = client.Run(t.Context(), ids([]int64{1, 1}, 1), []string{"sum"})
			got := signal.ReasonNone
			if e := (*Error)(nil); errors.As(err, &e) {
				got = e.Reason()
			} else if err != nil {
				t.Fatalf("no reason: %v", err)
			}
			if got != c.want {
				t.Errorf("reason %q, want %q: %v", got, c.want, err)
			}
		})
	}
}

// Integers come through JSON as they are, also those that a float64 cannot hold, in every form that
// servers write.
func TestIntegersComeThroughJSON(t *testing.T) {
	c := &Client{outputs: []tensor.Spec{{Name: "n"}}}
	out, err := c.read([]byte(`{"outputs":[{"name":"n","datatype":"INT64","shape":[2,3],"data":[[9007199254740993, -1, 3.0 ],[true,false ,2e3]]}]}`), "", nil)
	if err != nil {
		t.Fatal(err)
	}
	if want := []int64{9007199254740993, -1, 3, 1, 0, 2000}; !slices.Equal(out[0].I64, want) {
		t.Errorf("got %v, want %v", out[0].I64, want)
	}
}

// An answer costs memory for the numbers that its shape promises, not for what it holds beyond.
func TestNumbersBeyondTheShapeCostNothing(t *testing.T) {
	const size = 8 << 20
	body := []byte(`{"outputs":[{"name":"sum","datatype":"FP32","shape":[1],"data":[` + strings.Repeat("1,", size/2) + `1]}]}`)
	c := &Client{outputs: []tensor.Spec{{Name: "sum"}}}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := c.read(body, "", nil); err == nil {
		t.Error("no error")
	}
	if runtime.ReadMemStats(&after); after.TotalAlloc-before.TotalAlloc > 3*size {
		t.Errorf("%d bytes of an answer took %d", len(body), after.TotalAlloc-before.TotalAlloc)
	}
}

// What a server says of its fault is told, and cannot fill the log.
func TestWhatAServerSaysOfItsFaultIsCutShort(t *testing.T) {
	s := tritonish{idsType: "INT64", infer: func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusInternalServerError)
		fmt.Fprintf(w, `{"error":"CUDA %s"}`, strings.Repeat("é", 5000))
	}}
	client, err := dialTo(t, s.start(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = client.Run(t.Context(), ids([]int64{1, 1}, 1), nil)
	if err == nil || !strings.Contains(err.Error(), "CUDA éé") || len(err.Error()) > 600 || !utf8.ValidString(err.Error()) {
		t.Errorf("got %v", err)
	}
}

func TestARunEndsWithItsContext(t *testing.T) {
	started := make(chan struct{})
	s := tritonish{idsType: "INT64", infer: func(_ http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		close(started)
		<-r.Context().Done()
	}}
	client, err := dialTo(t, s.start(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-started; cancel() }()
	if _, err := client.Run(ctx, ids([]int64{1, 1}, 1), nil); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestAServerThatCannotRunTheModelIsNotDialled(t *testing.T) {
	s := tritonish{idsType: "INT64", key: "secret"}
	url := s.start(t)
	text := tritonish{idsType: "BYTES"}
	for name, change := range map[string]func(*Options){
		"another model":      func(o *Options) { o.Model, o.Key = "maxi", "secret" },
		"another version":    func(o *Options) { o.Version, o.Key = "4", "secret" },
		"the wrong key":      func(o *Options) { o.Key = "guess" },
		"nobody there":       func(o *Options) { o.URL = "http://127.0.0.1:1" },
		"an input of text":   func(o *Options) { o.URL = text.start(t) },
		"another protocol":   func(o *Options) { o.URL, o.Key = url+"v1", "secret" },
		"an address of none": func(o *Options) { o.URL = "http://[::1" },
	} {
		_, err := dialTo(t, url, change)
		var e *Error
		if !errors.As(err, &e) || name != "an address of none" && e.Reason() != signal.ReasonNoModel {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestNumbersThatDoNotFitAreNotSent(t *testing.T) {
	s := tritonish{idsType: "INT32", binary: true}
	client, err := dialTo(t, s.start(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	var e *Error
	if _, err := client.Run(t.Context(), ids([]int64{1, 1}, 1<<40), nil); !errors.As(err, &e) || e.Reason() != signal.ReasonInternal {
		t.Errorf("got %v", err)
	}
	nan := []tensor.Tensor{{Name: "x", Shape: []int64{1}, F32: []float32{float32(math.NaN())}}}
	if _, err := appendJSON(nil, &nan[0]); err == nil {
		t.Error("JSON was given what is no number")
	}
}

func TestNumbersOfEveryType(t *testing.T) {
	le := binary.LittleEndian
	for _, c := range []struct {
		datatype string
		bytes    []byte
		f32      []float32
		i64      []int64
	}{
		{"BOOL", []byte{1, 0}, nil, []int64{1, 0}},
		{"UINT8", []byte{255}, nil, []int64{255}},
		{"INT8", []byte{255}, nil, []int64{-1}},
		{"UINT16", []byte{255, 255}, nil, []int64{65535}},
		{"INT16", []byte{255, 255}, nil, []int64{-1}},
		{"UINT32", []byte{255, 255, 255, 255}, nil, []int64{math.MaxUint32}},
		{"INT32", []byte{255, 255, 255, 255}, nil, []int64{-1}},
		{"INT64", le.AppendUint64(nil, 1<<40), nil, []int64{1 << 40}},
		{"FP32", le.AppendUint32(nil, math.Float32bits(1.5)), []float32{1.5}, nil},
		{"FP64", le.AppendUint64(nil, math.Float64bits(-2.25)), []float32{-2.25}, nil},
		{"BF16", []byte{0xc0, 0x3f}, []float32{1.5}, nil},
		// 65504, the smallest subnormal and the largest, minus infinity.
		{"FP16", []byte{0xff, 0x7b, 0x01, 0x00, 0xff, 0x83, 0x00, 0xfc}, []float32{65504, 0x1p-24, -1023 * 0x1p-24, float32(math.Inf(-1))}, nil},
	} {
		got := tensor.Tensor{Name: "x"}
		n := len(c.f32) + len(c.i64)
		if err := readBinary(&got, c.datatype, c.bytes, n); err != nil {
			t.Error(err)
		}
		if !slices.Equal(got.F32, c.f32) || !slices.Equal(got.I64, c.i64) {
			t.Errorf("%s: got %v %v", c.datatype, got.F32, got.I64)
		}
		if err := readBinary(&got, c.datatype, c.bytes, n+1); err == nil {
			t.Errorf("%s: too few bytes are accepted", c.datatype)
		}
	}
}

// model is served by a Handler: the row maximum of x.
type model struct{ err error }

func (model) Inputs() []tensor.Spec {
	return []tensor.Spec{{Name: "x", DType: tensor.Float32, Shape: []int64{-1, 2}}}
}

func (model) Outputs() []tensor.Spec {
	return []tensor.Spec{{Name: "max", DType: tensor.Float32, Shape: []int64{-1}}, {Name: "count", DType: tensor.Int64, Shape: []int64{1}}}
}

func (m model) Run(_ context.Context, in []tensor.Tensor, outputs []string) ([]tensor.Tensor, error) {
	if m.err != nil {
		return nil, m.err
	}
	most := make([]float32, in[0].Shape[0])
	for i := range most {
		most[i] = max(in[0].F32[2*i], in[0].F32[2*i+1])
	}
	all := map[string]tensor.Tensor{
		"max":   {Name: "max", Shape: []int64{in[0].Shape[0]}, F32: most},
		"count": {Name: "count", Shape: []int64{1}, I64: in[0].Shape[:1]},
	}
	if outputs == nil {
		outputs = []string{"max", "count"}
	}
	var out []tensor.Tensor
	for _, name := range outputs {
		out = append(out, all[name])
	}
	return out, nil
}

// full is an error that knows its reason.
type full struct{}

func (full) Error() string         { return "no room" }
func (full) Reason() signal.Reason { return signal.ReasonOverload }

func TestClientAndHandlerUnderstandEachOther(t *testing.T) {
	srv := httptest.NewServer(NewHandler("test", "1", func(name string) Model {
		switch name {
		case "most":
			return model{}
		case "full":
			return model{full{}}
		}
		return nil
	}))
	defer srv.Close()
	client, err := dialTo(t, srv.URL, func(o *Options) { o.Model, o.Version = "most", "" })
	if err != nil {
		t.Fatal(err)
	}
	in := []tensor.Tensor{{Name: "x", Shape: []int64{2, 2}, F32: []float32{1, 2, 4, 3}}}
	most := tensor.Tensor{Name: "max", Shape: []int64{2}, F32: []float32{2, 4}}
	count := tensor.Tensor{Name: "count", Shape: []int64{1}, I64: []int64{2}}
	for _, c := range []struct {
		names []string
		want  []tensor.Tensor
	}{{[]string{"count", "max"}, []tensor.Tensor{count, most}}, {nil, []tensor.Tensor{most, count}}} {
		for _, asBytes := range []bool{true, false} {
			client.binary = asBytes
			got, err := client.Run(t.Context(), in, c.names)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		}
	}
	client, err = dialTo(t, srv.URL, func(o *Options) { o.Model, o.Version = "full", "" })
	if err != nil {
		t.Fatal(err)
	}
	var e *Error
	if _, err := client.Run(t.Context(), in, nil); !errors.As(err, &e) || e.Reason() != signal.ReasonOverload || !strings.Contains(e.Error(), "no room") {
		t.Errorf("got %v", err)
	}
	for _, body := range []string{"", "{", `{"inputs":[{"name":"x","shape":[1],"datatype":"FP32"}]}`} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, srv.URL+"/v2/models/most/infer", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client.o.HTTP.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		said, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != http.StatusBadRequest || !strings.Contains(string(said), `"error"`) {
			t.Errorf("%q: %d %s", body, resp.StatusCode, said)
		}
	}
}

// FuzzAnswers: no answer makes the client panic, or take memory that its size does not justify.
func FuzzAnswers(f *testing.F) {
	f.Add([]byte(`{"outputs":[{"name":"sum","datatype":"FP32","shape":[1,1],"data":[1]}]}`), "")
	f.Add([]byte(`{"outputs":[{"name":"sum","datatype":"FP16","shape":[2],"parameters":{"binary_data_size":4}}]}abcd`), "83")
	f.Add([]byte(`{"outputs":[{"name":"sum","datatype":"FP32","shape":[0],"data":[]}]}`), "")
	f.Fuzz(func(t *testing.T, body []byte, length string) {
		c := &Client{outputs: []tensor.Spec{{Name: "sum"}}}
		out, err := c.read(body, length, nil)
		if err != nil {
			return
		}
		for i := range out {
			if err := out[i].Check(); err != nil {
				t.Error(err)
			}
		}
	})
}
