package bundle

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"

	"signalbox/internal/tensor"
)

// ErrGraph reports a file that is not an ONNX graph: truncated, corrupt or something else.
var ErrGraph = errors.New("not an ONNX graph")

// ErrExternal reports unavailable external weights: the file is missing, too short, outside the
// folder, or they are too large for one graph in memory.
var ErrExternal = errors.New("external weights")

// Field numbers of onnx.proto3 (onnx/onnx 1.23, IR version 13) and values in them.
const (
	modelGraph         = 7
	graphInitializer   = 5
	graphInput         = 11
	graphOutput        = 12
	tensorName         = 8
	tensorRaw          = 9
	tensorExternal     = 13
	tensorLocation     = 14
	locationExternal   = 1
	entryKey           = 1
	entryValue         = 2
	valueName          = 1
	valueType          = 2
	typeTensor         = 1
	tensorElem         = 1
	tensorShape        = 2
	shapeDim           = 1
	dimValue           = 1
	maxGraphString     = 64 << 10 // a name or a path
	maxGraphValues     = 4096     // inputs, outputs or dimensions; a decoder with caches has some hundreds
	maxExternalEntries = 16
)

// MaxGraphBytes is the exclusive limit for a graph with its weights: a protobuf message is shorter
// than 2 GiB.
const MaxGraphBytes = math.MaxInt32

// graphFacts is the description in a graph, without its weights.
type graphFacts struct {
	inputs, outputs []tensor.Spec
	weights         map[string]bool // names of initialisers; inputs of that name are optional
	external        []externalWeights
}

// externalWeights is one initialiser with external data.
type externalWeights struct {
	name     string
	location string // relative to the graph's folder
	offset   int64
	length   int64 // -1: to the end of the file
}

// scanner iterates over the fields of a serialised message without holding it in memory: unneeded
// parts are skipped, by seeking if the file supports it.
type scanner struct {
	r    *bufio.Reader
	seek io.ReadSeeker // nil if the file cannot seek
	off  int64
}

func readGraphFacts(r io.Reader, size int64) (*graphFacts, error) {
	s := &scanner{r: bufio.NewReaderSize(r, 64<<10)}
	if seek, ok := r.(io.ReadSeeker); ok {
		s.seek = seek
	}
	g := &graphFacts{weights: map[string]bool{}}
	err := s.message(size, func(num int, _ uint64, end int64) error {
		if num != modelGraph {
			return nil
		}
		return s.message(end, func(num int, _ uint64, end int64) error {
			switch num {
			case graphInitializer:
				return g.readWeights(s, end)
			case graphInput:
				return readValue(s, end, &g.inputs)
			case graphOutput:
				return readValue(s, end, &g.outputs)
			}
			return nil
		})
	})
	if err == nil && (len(g.inputs) == 0 || len(g.outputs) == 0) {
		err = errors.New("no inputs or no outputs")
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrGraph, err)
	}
	g.inputs = slices.DeleteFunc(g.inputs, func(in tensor.Spec) bool { return g.weights[in.Name] })
	return g, nil
}

// message calls visit for each field up to end: v holds a varint, stop is the end of a
// length-delimited field. visit may read up to there; the rest is skipped.
func (s *scanner) message(end int64, visit func(num int, v uint64, stop int64) error) error {
	for s.off < end {
		num, v, stop, err := s.field(end)
		if err != nil {
			return err
		}
		if err := visit(num, v, stop); err != nil {
			return err
		}
		if err := s.skipTo(stop); err != nil {
			return err
		}
	}
	return nil
}

// field reads the head of a field, and a varint completely.
func (s *scanner) field(end int64) (num int, v uint64, stop int64, err error) {
	tag, err := s.varint(end)
	if err != nil {
		return 0, 0, 0, err
	}
	number, typ := protowire.DecodeTag(tag)
	if number < protowire.MinValidNumber {
		return 0, 0, 0, fmt.Errorf("field number %d at %d", number, s.off)
	}
	stop = s.off
	switch typ {
	case protowire.VarintType:
		v, err = s.varint(end)
		stop = s.off
	case protowire.BytesType:
		var n uint64
		if n, err = s.varint(end); err == nil && n > uint64(end-s.off) {
			err = fmt.Errorf("field %d at %d has %d bytes: %w", number, s.off, n, io.ErrUnexpectedEOF)
		}
		stop = s.off + int64(n)
	case protowire.Fixed32Type:
		stop += 4
	case protowire.Fixed64Type:
		stop += 8
	case protowire.StartGroupType, protowire.EndGroupType:
		err = fmt.Errorf("field %d at %d is a group", number, s.off)
	default:
		err = fmt.Errorf("field %d at %d has no known wire type", number, s.off)
	}
	if err == nil && stop > end {
		err = io.ErrUnexpectedEOF
	}
	return int(number), v, stop, err
}

func (s *scanner) varint(end int64) (uint64, error) {
	var v uint64
	for shift := 0; shift < 64; shift += 7 {
		if s.off >= end {
			return 0, io.ErrUnexpectedEOF
		}
		b, err := s.r.ReadByte()
		if err != nil {
			return 0, io.ErrUnexpectedEOF
		}
		s.off++
		v |= uint64(b&0x7f) << shift
		if b < 0x80 {
			return v, nil
		}
	}
	return 0, errors.New("varint of more than 64 bits")
}

func (s *scanner) skipTo(stop int64) error {
	n := stop - s.off
	s.off = stop
	if s.seek != nil && n > int64(s.r.Size()) {
		if _, err := s.seek.Seek(stop, io.SeekStart); err != nil {
			return err
		}
		s.r.Reset(s.seek)
		return nil
	}
	for n > 0 { // Discard takes an int
		k, err := s.r.Discard(int(min(n, math.MaxInt32)))
		if err != nil {
			return io.ErrUnexpectedEOF
		}
		n -= int64(k)
	}
	return nil
}

func (s *scanner) text(stop int64) (string, error) {
	n := stop - s.off
	if n > maxGraphString {
		return "", fmt.Errorf("a name of %d bytes", n)
	}
	b := make([]byte, n)
	if _, err := io.ReadFull(s.r, b); err != nil {
		return "", io.ErrUnexpectedEOF
	}
	s.off = stop
	return string(b), nil
}

func readValue(s *scanner, end int64, to *[]tensor.Spec) error {
	if len(*to) >= maxGraphValues {
		return errors.New("too many inputs or outputs")
	}
	var v tensor.Spec
	err := s.message(end, func(num int, _ uint64, stop int64) (err error) {
		switch num {
		case valueName:
			v.Name, err = s.text(stop)
		case valueType:
			err = s.message(stop, func(num int, _ uint64, stop int64) error {
				if num != typeTensor {
					return nil
				}
				return readTensorType(s, stop, &v)
			})
		}
		return err
	})
	*to = append(*to, v)
	return err
}

func readTensorType(s *scanner, end int64, v *tensor.Spec) error {
	return s.message(end, func(num int, n uint64, stop int64) error {
		switch num {
		case tensorElem:
			v.DType = seamType(n)
		case tensorShape:
			v.Shape = []int64{}
			return s.message(stop, func(num int, _ uint64, stop int64) error {
				if num != shapeDim {
					return nil
				}
				size := int64(tensor.Dynamic)
				err := s.message(stop, func(num int, n uint64, _ int64) error {
					if num == dimValue && int64(n) > 0 {
						size = int64(n)
					}
					return nil
				})
				if v.Shape = append(v.Shape, size); len(v.Shape) > maxGraphValues {
					return errors.New("too many dimensions")
				}
				return err
			})
		}
		return nil
	})
}

// seamType converts a value of TensorProto.DataType to the type in which package gpu returns such a
// value.
func seamType(elem uint64) tensor.DType {
	switch elem {
	case 1, 10, 11, 16: // float, float16, double, bfloat16
		return tensor.Float32
	case 2, 3, 4, 5, 6, 7, 9, 12: // unsigned and signed integers, bool
		return tensor.Int64
	}
	return tensor.Invalid
}

func (g *graphFacts) readWeights(s *scanner, end int64) error {
	w, external := externalWeights{length: -1}, false
	entries := 0
	err := s.message(end, func(num int, n uint64, stop int64) (err error) {
		switch num {
		case tensorName:
			w.name, err = s.text(stop)
		case tensorLocation:
			external = n == locationExternal
		case tensorExternal:
			if entries++; entries > maxExternalEntries {
				return errors.New("too many entries of external data")
			}
			err = w.readEntry(s, stop)
		}
		return err
	})
	if err != nil {
		return err
	}
	g.weights[w.name] = true
	if external {
		if w.location == "" {
			return fmt.Errorf("weights %q name no file", w.name)
		}
		g.external = append(g.external, w)
	}
	return nil
}

// readEntry reads one key and value of TensorProto.external_data; see docs/ExternalData.md of
// onnx/onnx for the keys.
func (w *externalWeights) readEntry(s *scanner, end int64) error {
	var key, value string
	err := s.message(end, func(num int, _ uint64, stop int64) (err error) {
		switch num {
		case entryKey:
			key, err = s.text(stop)
		case entryValue:
			value, err = s.text(stop)
		}
		return err
	})
	if err != nil {
		return err
	}
	switch key {
	case "location":
		w.location = value
	case "offset":
		w.offset, err = strconv.ParseInt(value, 10, 64)
	case "length":
		w.length, err = strconv.ParseInt(value, 10, 64)
		if err == nil && w.length < 0 {
			err = strconv.ErrRange
		}
	}
	if err != nil || w.offset < 0 {
		return fmt.Errorf("external data: %s is %q", key, value)
	}
	return nil
}
