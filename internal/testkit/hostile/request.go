package hostile

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// request is one request as received.
type request struct {
	method, target string
	head           string // raw
	body           []byte
}

// readHead reads the head of a request, byte for byte.
func readHead(r *bufio.Reader) (request, error) {
	var head strings.Builder
	for !strings.HasSuffix(head.String(), "\r\n\r\n") {
		line, err := r.ReadString('\n')
		head.WriteString(line)
		if err != nil {
			return request{}, err //nolint:wrapcheck // it ends the connection and is seen by nobody
		}
	}
	q := request{head: head.String()}
	first, _, _ := strings.Cut(q.head, "\r\n")
	q.method, first, _ = strings.Cut(first, " ")
	q.target, _, _ = strings.Cut(first, " ")
	return q, nil
}

// header returns the value of a field, empty when it is not there.
func (q *request) header(name string) string {
	for line := range strings.SplitSeq(q.head, "\r\n") {
		n, v, ok := strings.Cut(line, ":")
		if ok && strings.EqualFold(n, name) {
			return strings.TrimSpace(v)
		}
	}
	return ""
}

func (q *request) readBody(r *bufio.Reader) error {
	if strings.EqualFold(q.header("Transfer-Encoding"), "chunked") {
		return q.readChunks(r)
	}
	n, err := strconv.Atoi("0" + q.header("Content-Length"))
	if err != nil {
		return fmt.Errorf("content length: %w", err)
	}
	q.body = make([]byte, n)
	_, err = io.ReadFull(r, q.body)
	return err //nolint:wrapcheck // as in readHead
}

func (q *request) readChunks(r *bufio.Reader) error {
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return err //nolint:wrapcheck // as in readHead
		}
		n, err := strconv.ParseInt(strings.TrimSpace(line), 16, 64)
		if err != nil {
			return fmt.Errorf("chunk size: %w", err)
		}
		piece := make([]byte, n+2)
		if _, err := io.ReadFull(r, piece); err != nil {
			return err //nolint:wrapcheck // as in readHead
		}
		if n == 0 {
			return nil
		}
		q.body = append(q.body, piece[:n]...)
	}
}

func (q *request) streams() bool {
	return bytes.Contains(bytes.ReplaceAll(q.body, []byte(" "), nil), []byte(`"stream":true`))
}

// fault returns the mode that the request itself names; empty if it names none.
func (q *request) fault() string {
	if _, rest, ok := strings.Cut(string(q.body), "[[fault:"); ok {
		name, _, ok := strings.Cut(rest, "]]")
		if ok {
			return strings.ReplaceAll(name, `\u0026`, "&")
		}
	}
	return q.header("X-Fault")
}
