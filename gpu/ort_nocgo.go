//go:build !cgo

package gpu

import "fmt"

// buildSupport says why this binary can run no model.
func buildSupport() error {
	return fmt.Errorf("%w: this binary was built without cgo", ErrUnavailable)
}

func loadLibrary(Library, string) (backend, error) { return nil, buildSupport() }
