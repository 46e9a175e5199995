//go:build !unix

package hostile

import (
	"context"
	"errors"
	"net"
)

func fullListener(context.Context) (net.Listener, []net.Conn, error) {
	return nil, nil, errors.New("blackhole needs listen(2)")
}
