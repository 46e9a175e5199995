package testkit

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"strconv"
	"testing"
)

// FreePort returns a free loopback port. It is below the ports that Linux assigns to connections
// and to listeners on port 0 (32768 and up, ip(7)): only another listener that chose it explicitly
// can take it before its use, and a client that connects to it repeatedly cannot connect to itself.
func FreePort(ctx context.Context) (string, error) {
	for range 1000 {
		port := strconv.Itoa(10000 + rand.IntN(22768)) //nolint:gosec // no secret
		l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:"+port)
		if err == nil {
			return port, l.Close()
		}
	}
	return "", errors.New("no port is free")
}

// FreeAddress is FreePort with its host, for a test.
func FreeAddress(tb testing.TB) string {
	tb.Helper()
	port, err := FreePort(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	return "127.0.0.1:" + port
}
