//go:build !linux

package gpu

import "os"

// keepHandlers calls f. Only on Linux do providers change signal handlers.
func keepHandlers(f func() error) (changed []os.Signal, err error) { return nil, f() }
