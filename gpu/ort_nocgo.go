//go:build !cgo

package gpu

import "fmt"

// buildSupport returns why this binary cannot run models.
func buildSupport() error {
	return fmt.Errorf("%w: this binary was built without cgo", ErrUnavailable)
}

func loadLibrary(Library, string) (backend, error) { return nil, buildSupport() }
