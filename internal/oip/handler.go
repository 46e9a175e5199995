package oip

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"

	"signalbox/internal/signal"
	"signalbox/internal/tensor"
)

// Model is a model that a Handler serves. Implementations are safe for concurrent use.
type Model interface {
	// Run computes the named outputs from in, in order, or all if outputs is nil.
	Run(ctx context.Context, in []tensor.Tensor, outputs []string) ([]tensor.Tensor, error)
	// Inputs lists the inputs of Run.
	Inputs() []tensor.Spec
	// Outputs lists the outputs that Run can return.
	Outputs() []tensor.Spec
}

// Handler serves models. It is safe for concurrent use.
type Handler struct {
	mux     *http.ServeMux
	name    string
	version string
	find    func(name string) Model
}

// NewHandler creates a server of the models that find returns; find returns nil for unknown names.
// name and version describe the server.
func NewHandler(name, version string, find func(name string) Model) *Handler {
	h := &Handler{mux: http.NewServeMux(), name: name, version: version, find: find}
	ok := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }
	h.mux.HandleFunc("GET /v2/health/live", ok)
	h.mux.HandleFunc("GET /v2/health/ready", ok)
	h.mux.HandleFunc("GET /v2", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, serverMetadata{Name: h.name, Version: h.version, Extensions: []string{binaryExtension}})
	})
	for _, at := range []string{"/v2/models/{model}", "/v2/models/{model}/versions/{version}"} {
		h.mux.HandleFunc("GET "+at, h.metadata)
		h.mux.HandleFunc("GET "+at+"/ready", h.ready)
		h.mux.HandleFunc("POST "+at+"/infer", h.infer)
	}
	return h
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) { h.mux.ServeHTTP(w, r) }

// reasoned is an error with the reason why a signal is unknown.
type reasoned interface{ Reason() signal.Reason }

// Fail responds with an error in the form of the protocol, and with its reason if it has one.
func Fail(w http.ResponseWriter, status int, err error) {
	var r reasoned
	if errors.As(err, &r) {
		w.Header().Set(reasonHeader, string(r.Reason()))
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(wireError{err.Error()}) // fails if the client is gone
}

func answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // fails if the client is gone
}

// model finds the model of a request, or responds that there is none.
func (h *Handler) model(w http.ResponseWriter, r *http.Request) (string, Model) {
	name := r.PathValue("model")
	m := h.find(name)
	if m == nil {
		Fail(w, http.StatusNotFound, fmt.Errorf("no model %q", name))
	}
	return name, m
}

func (h *Handler) ready(w http.ResponseWriter, r *http.Request) {
	if _, m := h.model(w, r); m != nil {
		w.WriteHeader(http.StatusOK)
	}
}

func (h *Handler) metadata(w http.ResponseWriter, r *http.Request) {
	if name, m := h.model(w, r); m != nil {
		answer(w, Metadata{Name: name, Platform: "onnxruntime_onnx", Inputs: details(m.Inputs()), Outputs: details(m.Outputs())})
	}
}

func details(specs []tensor.Spec) []TensorDetail {
	out := make([]TensorDetail, len(specs))
	for i, s := range specs {
		out[i] = TensorDetail{Name: s.Name, Datatype: datatypeOf(s.DType), Shape: s.Shape}
	}
	return out
}

func (h *Handler) infer(w http.ResponseWriter, r *http.Request) {
	name, m := h.model(w, r)
	if m == nil {
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, mostBody))
	if err != nil {
		Fail(w, http.StatusBadRequest, err)
		return
	}
	req, in, err := readRequest(body, r.Header.Get(headerLength))
	if err != nil {
		Fail(w, http.StatusBadRequest, err)
		return
	}
	var names []string
	for _, o := range req.Outputs {
		names = append(names, o.Name)
	}
	out, err := m.Run(r.Context(), in, names)
	if err != nil {
		Fail(w, statusOf(err), err)
		return
	}
	h.send(w, name, &req, out)
}

func readRequest(body []byte, length string) (req inferRequest, in []tensor.Tensor, err error) {
	header, blobs, err := splitBody(body, length)
	if err != nil {
		return req, nil, err
	}
	if err := json.Unmarshal(header, &req); err != nil {
		return req, nil, fmt.Errorf("body: %w", err)
	}
	in, err = readTensors(req.Inputs, blobs)
	return req, in, err
}

// send writes outputs, in binary form if the request asks for it.
func (*Handler) send(w http.ResponseWriter, name string, req *inferRequest, out []tensor.Tensor) {
	all := req.Parameters != nil && req.Parameters.BinaryOutputs
	asBytes := func(i int) bool {
		return all || i < len(req.Outputs) && req.Outputs[i].Parameters != nil && req.Outputs[i].Parameters.Binary
	}
	types := make([]string, len(out))
	for i := range out {
		types[i] = datatypeOf(out[i].DType())
	}
	list, blobs, err := wrap(out, types, asBytes)
	if err != nil {
		Fail(w, http.StatusInternalServerError, err)
		return
	}
	header, err := json.Marshal(inferResponse{Model: name, ID: req.ID, Outputs: list})
	if err != nil {
		Fail(w, http.StatusInternalServerError, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if len(blobs) > 0 {
		w.Header().Set("Content-Type", "application/octet-stream")
		w.Header().Set(headerLength, strconv.Itoa(len(header)))
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(header)+len(blobs)))
	_, _ = w.Write(append(header, blobs...)) //nolint:gosec // numbers and names of tensors as JSON, to programs
}

// statusOf returns the status for a failed run.
func statusOf(err error) int {
	var r reasoned
	if !errors.As(err, &r) {
		if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
			return http.StatusGatewayTimeout
		}
		return http.StatusInternalServerError
	}
	switch r.Reason() {
	case signal.ReasonOverload:
		return http.StatusServiceUnavailable
	case signal.ReasonTimeout, signal.ReasonCanceled:
		return http.StatusGatewayTimeout
	case signal.ReasonNoModel:
		return http.StatusNotFound
	case signal.ReasonNone, signal.ReasonNoText, signal.ReasonUndecided, signal.ReasonInvalid, signal.ReasonInternal:
	}
	return http.StatusInternalServerError
}
