package head

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
)

// The files of a head in its folder.
const (
	InfoFile    = "classifier.json"
	WeightsFile = "weights.bin"
)

// format is the version of the files.
const format = 1

// weightsMagic is the start of the weights file. The rest is little-endian: the n-grams' hashes
// (uint32), their inverse document frequencies and the weights (float32).
const weightsMagic = "SBHEAD\x00\x01"

// maxWeights is the maximum number of weights of a head that is read: 256 MB.
const maxWeights = 1 << 26

// Encode returns the two files.
func (h *Head) Encode() (info, weights []byte, err error) {
	weights = append(weights, weightsMagic...)
	for _, x := range h.vocab.hashes {
		weights = binary.LittleEndian.AppendUint32(weights, x)
	}
	for _, list := range [][]float32{h.vocab.idf, h.weights} {
		for _, x := range list {
			weights = binary.LittleEndian.AppendUint32(weights, math.Float32bits(x))
		}
	}
	in := h.info
	sum := sha256.Sum256(weights)
	in.SHA256 = hex.EncodeToString(sum[:])
	if info, err = json.MarshalIndent(&in, "", "  "); err != nil {
		return nil, nil, fmt.Errorf("encode classifier: %w", err)
	}
	return append(info, '\n'), weights, nil
}

// DecodeInfo decodes and checks the first file alone.
func DecodeInfo(data []byte) (*Info, error) {
	var in Info
	if err := json.Unmarshal(data, &in); err != nil {
		return nil, fmt.Errorf("%s: %w", InfoFile, err)
	}
	if err := in.check(); err != nil {
		return nil, fmt.Errorf("%s: %w", InfoFile, err)
	}
	return &in, nil
}

// Decode decodes the two files of a head. It allocates no more than their length, and checks every
// number, so that Predict returns probabilities whatever they contain.
func Decode(info, weights []byte) (*Head, error) {
	in, err := DecodeInfo(info)
	if err != nil {
		return nil, err
	}
	h := &Head{info: *in, outputs: in.outputs()}
	sum := sha256.Sum256(weights)
	if in.SHA256 != hex.EncodeToString(sum[:]) {
		return nil, fmt.Errorf("%s is not the file that %s was written with", WeightsFile, InfoFile)
	}
	want := len(weightsMagic) + 4*(2*in.Grams+(in.Dims+in.Grams+1)*h.outputs)
	if len(weights) != want || string(weights[:min(len(weights), len(weightsMagic))]) != weightsMagic {
		return nil, fmt.Errorf("%s: it is %d bytes long, want %d", WeightsFile, len(weights), want)
	}
	rest := weights[len(weightsMagic):]
	h.vocab.hashes = make([]uint32, in.Grams)
	for i := range h.vocab.hashes {
		h.vocab.hashes[i] = binary.LittleEndian.Uint32(rest[4*i:])
	}
	if !slices.IsSorted(h.vocab.hashes) {
		return nil, fmt.Errorf("%s: the n-grams are not in order", WeightsFile)
	}
	numbers := make([]float32, in.Grams+(in.Dims+in.Grams+1)*h.outputs)
	for i := range numbers {
		x := math.Float32frombits(binary.LittleEndian.Uint32(rest[4*(in.Grams+i):]))
		if a := math.Abs(float64(x)); !(a < 1e6) { // NaN as well
			return nil, fmt.Errorf("%s: weight %d is no usable number", WeightsFile, i)
		}
		numbers[i] = x
	}
	h.vocab.idf, h.weights = numbers[:in.Grams], numbers[in.Grams:]
	return h, nil
}

func (in *Info) outputs() int {
	if in.Mode == Binary {
		return 1
	}
	return len(in.Labels)
}

// check reports the first problem that makes the head unusable.
func (in *Info) check() error {
	n := len(in.Labels)
	switch {
	case in.Format != format:
		return fmt.Errorf("format %d, expected %d", in.Format, format)
	case in.Mode != Binary && in.Mode != Classes && in.Mode != Tags:
		return fmt.Errorf("mode: %q is none of binary, classes, tags", in.Mode)
	case n > MaxLabels, in.Mode == Binary && n != 2, in.Mode == Classes && n < 2, n < 1:
		return fmt.Errorf("labels: %d of them do not go with mode %s", n, in.Mode)
	case in.Dims < 0 || in.Dims > MaxDims || in.Grams < 0 || in.Grams > maxVocabulary:
		return fmt.Errorf("%d dims and %d n-grams are out of range", in.Dims, in.Grams)
	case (in.Dims+in.Grams+1)*in.outputs() > maxWeights:
		return errors.New("it has too many weights")
	case len(in.Thresholds) != n || len(in.Scale) != in.outputs() || len(in.Shift) != in.outputs():
		return errors.New("thresholds, scale and shift do not go with the labels")
	}
	for i, l := range in.Labels {
		if l == "" || slices.Contains(in.Labels[:i], l) {
			return fmt.Errorf("labels[%d]: %q is empty or there twice", i, l)
		}
		if t := in.Thresholds[i]; !(t >= 0 && t <= 1) {
			return fmt.Errorf("thresholds[%d]: %v is not in [0,1]", i, t)
		}
	}
	for i := range in.Scale {
		if !(in.Scale[i] > 0 && in.Scale[i] < 1e6) || !(math.Abs(in.Shift[i]) < 1e6) {
			return fmt.Errorf("scale[%d] or shift[%d] is out of range", i, i)
		}
	}
	return nil
}
