package redis

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"strings"
	"time"
)

// dial connects and waits for a first response of Redis, within the time of the call that needs the
// connection, and within BlobBudget. The client would wait much longer for a hanging Redis, whose
// operating system still accepts connections.
func (o Options) dial(ctx context.Context, address string, d *net.Dialer, secure *tls.Config) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, o.BlobBudget)
	defer cancel()
	network := "tcp"
	if strings.HasPrefix(address, "/") {
		network = "unix"
	}
	var conn net.Conn
	var err error
	if secure != nil {
		conn, err = (&tls.Dialer{NetDialer: d, Config: secure}).DialContext(ctx, network, address)
	} else {
		conn, err = d.DialContext(ctx, network, address)
	}
	if err != nil {
		return nil, fmt.Errorf("dial: %w", err)
	}
	if err := ping(ctx, conn); err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("wait for a first word: %w", err)
	}
	return conn, nil
}

// longestWord is the maximum length of the response to a ping, in bytes: without a password Redis
// refuses it with a sentence.
const longestWord = 512

// ping waits for any response, including a refusal, and reads no byte beyond it.
func ping(ctx context.Context, conn net.Conn) error {
	if end, ok := ctx.Deadline(); ok {
		if err := conn.SetDeadline(end); err != nil {
			return err
		}
	}
	if _, err := conn.Write([]byte("PING\r\n")); err != nil {
		return err
	}
	b := []byte{0}
	for range longestWord {
		if _, err := conn.Read(b); err != nil {
			return err
		}
		if b[0] == '\n' {
			return conn.SetDeadline(time.Time{})
		}
	}
	return fmt.Errorf("the answer is longer than %d bytes", longestWord)
}
