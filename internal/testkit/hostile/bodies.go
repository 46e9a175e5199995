package hostile

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"strconv"
	"strings"

	"github.com/klauspost/compress/zstd"
)

func itoa(n int) string { return strconv.Itoa(n) }

// fingerprint is a short hash of a credential.
func fingerprint(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:6])
}

// bodies are the faults of bodies that are not streams.
func bodies() map[string]play {
	encoded := func(encoding string, body []byte) play {
		return func(x *exchange) bool { return x.json(200, string(body), "Content-Encoding: "+encoding) }
	}
	plain := func(body string) play {
		return func(x *exchange) bool { return x.json(200, body) }
	}
	zipped := gzipped(Completion)
	corrupt := bytes.Clone(zipped)
	for i := 12; i < 24; i++ {
		corrupt[i] ^= 0xff
	}
	return map[string]play{
		"cl-too-long": func(x *exchange) bool {
			x.write(answerHead(200, "application/json", len(Completion)+100) + Completion)
			return x.fin()
		},
		"cl-too-short": func(x *exchange) bool {
			return x.write(answerHead(200, "application/json", len(Completion)-20) + Completion)
		},
		"gzip-json":    encoded("gzip", zipped),
		"br-json":      encoded("br", brotli(Completion)),
		"zstd-json":    encoded("zstd", zstandard(Completion)),
		"deflate-json": encoded("deflate", deflated(Completion, true)),
		"deflate-raw":  encoded("deflate", deflated(Completion, false)),
		"gzip-corrupt": encoded("gzip", corrupt),
		"gzip-trunc":   encoded("gzip", zipped[:len(zipped)-12]),
		"gzip-bomb": func(x *exchange) bool {
			return x.json(200, string(bomb(x.num("mb", 1024))), "Content-Encoding: gzip")
		},
		"json-huge": func(x *exchange) bool {
			n := x.num("mb", 500) << 20
			if !x.write(answerHead(200, "application/json", n+8) + `{"a":"`) {
				return false
			}
			piece := strings.Repeat("x", 64<<10)
			for left := n; left > 0; left -= len(piece) {
				if !x.write(piece[:min(left, len(piece))]) {
					return false
				}
			}
			return x.write(`"}`)
		},
		"json-deep":     func(x *exchange) bool { return x.json(200, deep(x.num("n", 100_000))) },
		"json-nan":      plain(`{"choices":[],"x":NaN,"y":-Infinity}`),
		"json-trailing": plain(Completion + `{"second":1}`),
		"json-empty":    plain(""),
		"json-array":    plain("[" + Completion + "]"),
		"sse-for-json":  func(x *exchange) bool { return x.head() && x.events(3) && x.finish() },
		"json-200-for-stream": func(x *exchange) bool {
			return x.json(200, Completion)
		},
		"gzip-stream": gzipStream,
	}
}

// gzipStream compresses a stream and flushes after each event.
func gzipStream(x *exchange) bool {
	if !x.write(strings.Replace(StreamHead, "\r\n\r\n", "\r\nContent-Encoding: gzip\r\n\r\n", 1)) {
		return false
	}
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	for i := range x.num("n", 3) + 2 {
		event := x.event(i, word(i))
		switch i - x.num("n", 3) {
		case 0:
			event = Finish
		case 1:
			event = Done
		}
		_, _ = io.WriteString(z, event)
		_ = z.Flush()
		if !x.chunk(b.String()) || !x.pause(x.wait("d", 0)) {
			return false
		}
		b.Reset()
	}
	_ = z.Close()
	return x.chunk(b.String()) && x.write(End)
}

func gzipped(s string) []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = io.WriteString(z, s)
	_ = z.Close()
	return b.Bytes()
}

// bomb returns mb mebibytes of spaces, compressed with gzip.
func bomb(mb int) []byte {
	var b bytes.Buffer
	z, _ := gzip.NewWriterLevel(&b, gzip.BestSpeed) // the level is valid
	blank := bytes.Repeat([]byte(" "), 1<<20)
	for range mb {
		_, _ = z.Write(blank)
	}
	_ = z.Close()
	return b.Bytes()
}

// deflated returns s in zlib format, which HTTP calls deflate (RFC 9110, section 8.4.1.2), or
// without its wrapper, as some servers send it.
func deflated(s string, wrapped bool) []byte { //nolint:revive // a fact
	var b bytes.Buffer
	var z io.WriteCloser = zlib.NewWriter(&b)
	if !wrapped {
		z, _ = flate.NewWriter(&b, flate.DefaultCompression)
	}
	_, _ = io.WriteString(z, s)
	_ = z.Close()
	return b.Bytes()
}

func zstandard(s string) []byte {
	z, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	if err != nil {
		panic(err)
	}
	defer func() { _ = z.Close() }()
	return z.EncodeAll([]byte(s), nil)
}

// brotli encodes s as one uncompressed meta-block (RFC 7932, section 9.2): a window of 16 bits is
// the bit 0, then ISLAST 0, MNIBBLES 4 as 00, the length minus one in 16 bits, and ISUNCOMPRESSED
// 1; an empty last meta-block is 11.
func brotli(s string) []byte {
	head := uint32(len(s)-1)<<4 | 1<<20
	out := []byte{byte(head), byte(head >> 8), byte(head >> 16)}
	return append(append(out, s...), 0x03)
}
