//go:build unix

package keyring

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// lock takes a file for this process and this call alone, and waits for it as long as ctx does.
func lock(ctx context.Context, path string) (release func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	retry := time.NewTicker(5 * time.Millisecond)
	defer retry.Stop()
	for {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { _ = f.Close() }, nil // which gives the lock back
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			break
		}
		select {
		case <-ctx.Done():
			err = ctx.Err()
		case <-retry.C:
			continue
		}
		break
	}
	return nil, errors.Join(fmt.Errorf("%w: lock %s: %w", ErrUnavailable, path, err), f.Close())
}
