package framing

import (
	"context"
	"io"
	"net"
	"testing"
)

// What a server sends after a body of known length reaches nobody; other responses pass unchanged.
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
			_, _ = io.ReadFull(server, make([]byte, len("GET")))
			for _, p := range c.pieces {
				_, _ = io.WriteString(server, p) // the reader may have left
			}
			_ = server.Close()
		}()
		ask(t, conn)
		got, err := io.ReadAll(conn)
		if err != nil || string(got) != c.want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
		_ = client.Close()
	}
}

func TestNothingIsReadBeforeItIsAskedFor(t *testing.T) {
	t.Parallel()
	const answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
	fresh := &Conn{Conn: &scripted{left: answer, step: 100}}
	fresh.Expect()
	used := &Conn{Conn: &scripted{left: answer + answer, step: len(answer)}}
	used.Expect()
	ask(t, used)
	if n, err := used.Read(make([]byte, 100)); n != len(answer) || err != nil {
		t.Fatalf("%d, %v", n, err)
	}
	used.Expect() // the next request has the connection, and has sent nothing
	for name, c := range map[string]*Conn{"fresh": fresh, "used": used} {
		for range 2 {
			if n, err := c.Read(make([]byte, 100)); n != 0 || err != io.EOF { //nolint:errorlint // readers compare so, too
				t.Errorf("a %s connection gives %d bytes, %v", name, n, err)
			}
		}
	}
}
