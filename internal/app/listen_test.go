package app

import (
	"net"
	"strings"
	"testing"
)

func TestATakenPortSaysHowToTakeAnother(t *testing.T) {
	t.Parallel()
	taken, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = taken.Close() })
	_, err = listen(t.Context(), taken.Addr().String())
	if err == nil {
		t.Fatal("a port is taken twice")
	}
	said := anotherAddress(err, "server.listen", "--listen").Error()
	for _, part := range []string{taken.Addr().String(), "address already in use", "choose another address with server.listen or --listen"} {
		if !strings.Contains(said, part) {
			t.Errorf("%q lacks %q", said, part)
		}
	}
	_, err = listen(t.Context(), "127.0.0.1:99999")
	if err == nil || strings.Contains(anotherAddress(err, "server.listen", "--listen").Error(), "another address") {
		t.Errorf("a port that does not exist: %v", err)
	}
}
