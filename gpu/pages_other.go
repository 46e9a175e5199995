//go:build cgo && !linux

package gpu

// span is a range of addresses.
type span struct{}

func anonymous() []span { return nil }

// onHugePages does nothing: only Linux supports it.
func onHugePages([]span) (bytes int64) { return 0 }
