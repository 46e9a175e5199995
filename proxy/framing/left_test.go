package framing

import (
	"context"
	"io"
	"net"
	"testing"
)

// What a server sends behind a body of a known length reaches nobody; other answers pass as they are.
func TestNothingBehindABodyIsRead(t *testing.T) {
	t.Parallel()
	const head = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n"
	for name, c := range map[string]struct {
		pieces []string
		want   string
	}{
		"in one piece":      {[]string{head + "bodyHTTP/1.1 200 OK\r\n\r\n"}, head + "body"},
		"in a piece later":  {[]string{head + "bo", "dy", "left"}, head + "body"},
		"across":            {[]string{head, "bodyleft"}, head + "body"},
		"no body":           {[]string{"HTTP/1.1 204 No Content\r\n\r\n", "left"}, "HTTP/1.1 204 No Content\r\n\r\n"},
		"of unknown length": {[]string{"HTTP/1.1 200 OK\r\n\r\n", "body", "more"}, "HTTP/1.1 200 OK\r\n\r\nbodymore"},
		"in chunks":         {[]string{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n"}, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n"},
		"behind 103":        {[]string{"HTTP/1.1 103 Early Hints\r\n\r\n" + head, "body!"}, "HTTP/1.1 103 Early Hints\r\n\r\n" + head + "body"},
		"whole":             {[]string{head, "body"}, head + "body"},
	} {
		server, client := net.Pipe()
		conn, err := Dialer(func(context.Context, string, string) (net.Conn, error) { return client, nil }).Dial(t.Context(), "", "")
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			for _, p := range c.pieces {
				_, _ = io.WriteString(server, p) // the reader may have left
			}
			_ = server.Close()
		}()
		got, err := io.ReadAll(conn)
		if err != nil || string(got) != c.want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
		_ = client.Close()
	}
}
