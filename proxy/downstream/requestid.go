package downstream

import (
	"crypto/rand"
	"net/http"
	"strings"
	"sync"

	"signalbox/internal/option"
)

// maxRequestID limits the client's x-request-id, in bytes.
const maxRequestID = 128

// idWithAddresses occurs in ids by which the parts of a serving system tell each other where blocks
// are: ___prefill_addr_HOST:PORT___decode_addr_HOST:PORT_UUID (vLLM 0.11,
// distributed/kv_transfer/kv_connector/v1/p2p/p2p_nccl_connector.py).
const idWithAddresses = "___"

// RequestID returns the client's id if it is safe for headers and logs and means nothing to a model
// server. Otherwise it generates one.
func RequestID(h http.Header) string {
	ids := h["X-Request-Id"]
	if len(ids) == 1 && ids[0] != "" && len(ids[0]) <= maxRequestID &&
		option.VisibleASCII(ids[0]) &&
		!strings.Contains(ids[0], idWithAddresses) {
		return ids[0]
	}
	return freshID()
}

// idLetters are the characters of generated ids, 5 bits each: base 32 of RFC 4648.
const idLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"

// freshID generates an unguessable id of 130 random bits. Random bytes are drawn for many ids at a
// time, because drawing dominates the cost.
func freshID() string {
	const prefix = "req_"
	d := draws.Get().(*draw) //nolint:errcheck,forcetypeassert // only draws are in it
	defer draws.Put(d)
	var id [len(prefix) + 26]byte
	copy(id[:], prefix)
	if len(d.left) < len(id)-len(prefix) {
		_, _ = rand.Read(d.bytes[:]) // never fails
		d.left = d.bytes[:]
	}
	for i := len(prefix); i < len(id); i++ {
		id[i] = idLetters[d.left[0]%32]
		d.left[0], d.left = 0, d.left[1:]
	}
	return string(id[:])
}

// draw holds random bytes; left are the unused ones.
type draw struct {
	bytes [1 << 10]byte
	left  []byte
}

var draws = sync.Pool{New: func() any { return new(draw) }} //nolint:gochecknoglobals // buffers
