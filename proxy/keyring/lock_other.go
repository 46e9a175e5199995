//go:build !unix

package keyring

import "context"

// lock does nothing here: one process alone may use the file.
func lock(context.Context, string) (release func(), err error) { return func() {}, nil }
