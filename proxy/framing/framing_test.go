package framing

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
)

// scripted is a connection that delivers bytes, a few at a time.
type scripted struct {
	net.Conn
	left string
	step int
}

func (s *scripted) Read(b []byte) (int, error) {
	if s.left == "" {
		return 0, io.EOF
	}
	n := copy(b, s.left[:min(s.step, len(s.left))])
	s.left = s.left[n:]
	return n, nil
}

func (*scripted) Write(b []byte) (int, error) { return len(b), nil }

// ask sends a request.
func ask(t *testing.T, c net.Conn) {
	t.Helper()
	if _, err := io.WriteString(c, "GET"); err != nil {
		t.Fatal(err)
	}
}

func TestHeadsThatMeanTwoThingsAreRefused(t *testing.T) {
	t.Parallel()
	const ok = "HTTP/1.1 200 OK\r\nContent-Type: x\r\n"
	tests := []struct {
		name, in string
		refused  bool
	}{
		{"a usual one", ok + "Content-Length: 2\r\n\r\n{}", false},
		{"line ends of LF", "HTTP/1.1 200 OK\nContent-Length: 2\n\n{}", false},
		{"a chunked one", ok + "Transfer-Encoding: chunked\r\n\r\n2\r\n\x00\r\r\n0\r\n\r\n", false},
		{"a body that looks like a head", ok + "Content-Length: 60\r\n\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", false},
		{"behind 103", "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + ok + "Content-Length: 2\r\n\r\n{}", false},
		{"a name that begins like one", ok + "Content-Length: 2\r\nContent-Length-Of: 3\r\nTransfer-Encodings: x\r\n\r\n{}", false},
		{"TLS", "\x16\x03\x03\x00\x00\r\x00", false},
		{"two lengths", ok + "Content-Length: 2\r\ncontent-length: 2\r\n\r\n{}", true},
		{"a length and a coding", ok + "Content-Length: 2\r\nTRANSFER-ENCODING: chunked\r\n\r\n", true},
		{"a coding and a length", ok + "Transfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n", true},
		{"two codings", ok + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n", true},
		{"a lone CR", ok + "X: a\rContent-Length: 2\r\n\r\n", true},
		{"a NUL", ok + "X: a\x00\r\n\r\n", true},
		{"behind 103, two lengths", "HTTP/1.1 103 Early Hints\r\n\r\n" + ok + "Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}", true},
		{"too many fields", ok + strings.Repeat("X: 1\r\n", maxFields) + "\r\n", true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			for _, step := range []int{1, 2, 7, 1 << 20} {
				c, err := Dialer(func(context.Context, string, string) (net.Conn, error) {
					return &scripted{left: tt.in, step: step}, nil
				}).Dial(t.Context(), "tcp", "x")
				if err != nil {
					t.Fatal(err)
				}
				ask(t, c)
				got, err := io.ReadAll(c)
				if refused := errors.Is(err, ErrMalformed); refused != tt.refused || !refused && string(got) != tt.in || refused && len(got) == 0 {
					t.Errorf("in pieces of %d: %q, %v", step, got, err)
				}
			}
		})
	}
}

func TestEachAnswerOfAConnectionIsLookedAt(t *testing.T) {
	t.Parallel()
	first := "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
	c := &Conn{Conn: &scripted{left: first + "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n1", step: len(first)}}
	c.Expect()
	ask(t, c)
	if n, err := c.Read(make([]byte, 1000)); n != len(first) || err != nil {
		t.Fatalf("the first: %d bytes, %v", n, err)
	}
	c.Expect()
	ask(t, c)
	if _, err := io.ReadAll(c); !errors.Is(err, ErrMalformed) {
		t.Errorf("got %v", err)
	}
}

// FuzzHead checks that a head that net/http reads as one with two lengths never passes, however it
// is split.
func FuzzHead(f *testing.F) {
	for _, s := range []string{"Content-Length: 2\r\n", "Content-Length: 2\r\nContent-Length: 2\r\n", "Transfer-Encoding: chunked\r\n", "A: \r\n b\r\n", ": x\r\n"} {
		f.Add(s, 3)
	}
	f.Fuzz(func(t *testing.T, fields string, step int) {
		in := "HTTP/1.1 200 OK\r\n" + fields + "\r\n"
		verdicts := make(map[bool]bool)
		for _, n := range []int{len(in), max(1, step%64)} {
			var h head
			v := more
			for from := 0; from < len(in) && v == more; from += n {
				v, _ = h.read([]byte(in[from:min(from+n, len(in))]))
			}
			verdicts[v == refused] = true
		}
		if len(verdicts) > 1 {
			t.Errorf("%q depends on its pieces", in)
		}
		plain, _, _ := strings.Cut(in, "\r\n\r\n")
		twice := 0
		for line := range strings.SplitSeq(plain, "\r\n") {
			if name, _, ok := strings.Cut(line, ":"); ok && (http.CanonicalHeaderKey(name) == "Content-Length" || http.CanonicalHeaderKey(name) == "Transfer-Encoding") {
				twice++
			}
		}
		if twice > 1 && !verdicts[true] && !strings.Contains(plain, "\n\n") && !strings.Contains(plain, "\n\r\n") {
			t.Errorf("%q passes", in)
		}
	})
}
