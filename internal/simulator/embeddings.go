package simulator

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"math"
	"net/http"
	"strings"
	"time"
)

// The lengths of vectors.
const (
	defaultDimensions = 256
	maxDimensions     = 4096
	wordSpread        = 8 // number of vector components that a word is added to
)

// embeddingRequest is the body of a request for embeddings.
type embeddingRequest struct {
	Model          string   `json:"model"`
	Input          prompts  `json:"input"`
	Dimensions     *float64 `json:"dimensions"`
	EncodingFormat string   `json:"encoding_format"`
}

type embeddingResponse struct {
	ID      string      `json:"id"`
	Object  string      `json:"object"`
	Created int64       `json:"created"`
	Model   string      `json:"model"`
	Data    []embedding `json:"data"`
	Usage   usage       `json:"usage"`
}

// embedding is a vector: a list of numbers, or the base64 of its little-endian float32.
type embedding struct {
	Index  int    `json:"index"`
	Object string `json:"object"`
	Vector any    `json:"embedding"`
}

// embeddings responds immediately: it needs no seat and no space in the prefix cache.
func (s *Server) embeddings(w http.ResponseWriter, r *http.Request) {
	var req embeddingRequest
	if !s.read(w, r, &req) {
		return
	}
	out, err := s.embed(r, &req)
	if err != nil {
		s.fail(w, err)
		return
	}
	w.Header().Set(PrefaceHeader, printable(fmt.Sprintf(
		"[%s] I am a simulated server. I was sent %d texts to embed.", s.opt.Model, len(out.Data))))
	s.reply(w, http.StatusOK, out)
}

// embed checks a request and computes its vectors. A non-nil error is a *requestError.
func (s *Server) embed(r *http.Request, req *embeddingRequest) (*embeddingResponse, error) {
	if req.Model != "" && req.Model != s.opt.Model {
		return nil, &requestError{
			http.StatusNotFound, "NotFoundError", "model",
			fmt.Sprintf("The model `%s` does not exist.", req.Model),
		}
	}
	dimensions := defaultDimensions
	if req.Dimensions != nil {
		var err error
		if dimensions, err = whole("dimensions", *req.Dimensions, 1, maxDimensions); err != nil {
			return nil, err
		}
	}
	if f := req.EncodingFormat; f != "" && f != "float" && f != "base64" {
		return nil, badRequest("encoding_format", "must be float or base64, got %q.", f)
	}
	if len(req.Input) == 0 {
		return nil, badRequest("input", "input must be provided and not empty")
	}
	g := s.newGeneration(r, "embd-", &sampling{})
	out := &embeddingResponse{
		ID: g.id, Object: "list", Created: time.Now().Unix(), Model: s.opt.Model,
		Data: make([]embedding, len(req.Input)),
	}
	for i := range req.Input {
		p := &req.Input[i]
		if p.tokens == 0 || p.tokens > s.opt.MaxModelLen {
			return nil, badRequest("input", "an input must have 1 to %d tokens, got %d.",
				s.opt.MaxModelLen, p.tokens)
		}
		out.Usage.PromptTokens += p.tokens
		v := vector(p, dimensions)
		out.Data[i] = embedding{Index: i, Object: "embedding", Vector: v}
		if req.EncodingFormat == "base64" {
			out.Data[i].Vector = packed(v)
		}
	}
	out.Usage.TotalTokens = out.Usage.PromptTokens
	return out, nil
}

// vector returns a vector of length 1 that depends only on the words of a text, so that texts that
// share words are close to each other.
func vector(p *prompt, dimensions int) []float32 {
	sum := make([]float64, dimensions)
	add := func(seed uint64, word string) {
		h := hashString(seed, word)
		for k := range uint64(wordSpread) {
			n := mix(h + k)
			sum[n%uint64(dimensions)] += 1 - 2*float64(n>>63)
		}
	}
	for _, id := range p.ids {
		add(uint64(id), "")
	}
	if p.ids == nil {
		list := strings.Fields(words(p.text))
		for _, word := range list {
			add(1, word)
		}
		if len(list) == 0 {
			add(2, p.text)
		}
	}
	length := 0.0
	for _, f := range sum {
		length += f * f
	}
	if length = math.Sqrt(length); length == 0 {
		sum[0], length = 1, 1
	}
	out := make([]float32, dimensions)
	for i, f := range sum {
		out[i] = float32(f / length)
	}
	return out
}

// packed returns a vector in the base64 form, which clients request to save bytes.
func packed(v []float32) string {
	b := make([]byte, 0, 4*len(v))
	for _, f := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(f))
	}
	return base64.StdEncoding.EncodeToString(b)
}
