//go:build !linux && !darwin

package hub

import (
	"errors"
	"fmt"
)

func free(dir string) (uint64, error) {
	return 0, fmt.Errorf("free space of %s: %w", dir, errors.ErrUnsupported)
}
