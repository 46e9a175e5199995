//go:build unix

package hostile

import (
	"context"
	"fmt"
	"net"
	"os"
	"syscall"
	"time"
)

// fullListener returns a listener that is never accepted from and whose queue is full, and the
// connections that fill it: the SYN of a further one is dropped (listen(2), tcp_abort_on_overflow).
func fullListener(ctx context.Context) (net.Listener, []net.Conn, error) {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("socket: %w", err)
	}
	f := os.NewFile(uintptr(fd), "full listener")
	defer func() { _ = f.Close() }()
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return nil, nil, fmt.Errorf("bind: %w", err)
	}
	if err := syscall.Listen(fd, 0); err != nil {
		return nil, nil, fmt.Errorf("listen: %w", err)
	}
	l, err := net.FileListener(f)
	if err != nil {
		return nil, nil, fmt.Errorf("listen: %w", err)
	}
	if err := syscall.Listen(fd, 0); err != nil { // FileListener keeps the queue length; set again in case it does not
		return nil, nil, fmt.Errorf("listen: %w", err)
	}
	var fill []net.Conn
	dialer := net.Dialer{Timeout: 250 * time.Millisecond}
	for range 16 { // on Linux a queue of length 0 holds one
		c, err := dialer.DialContext(ctx, "tcp", l.Addr().String())
		if err != nil {
			return l, fill, nil
		}
		fill = append(fill, c)
	}
	return nil, nil, fmt.Errorf("the queue of %s does not fill", l.Addr())
}
