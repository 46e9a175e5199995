// Package keyring keeps virtual keys: keys that operators create, change, rotate and revoke while
// the proxy runs. Keys of the configuration belong to proxy/auth, which also checks and compiles
// what a virtual key may do.
//
// A key is `sk-sbv-ID-SECRET`. The ID is not secret and finds the record. Only the SHA-256 of the
// whole key is stored; it is compared in constant time. Records are texts in a Store, by name, and
// each is replaced by compare-and-swap, so that no change by another replica is lost. Requests are
// served from a snapshot behind an atomic pointer: they take no lock and query no Store.
//
// A record that cannot be read, such as one of a newer version with an unknown field, admits
// nobody: a restriction that this version cannot enforce must not be ignored.
//
// A Ring is safe for concurrent use. Run uses its caller's goroutine and starts none.
package keyring
