// Package keyring keeps virtual keys: those that operators make, change, rotate and revoke while
// the proxy runs. It is not for the keys of the configuration, which proxy/auth holds; what a
// virtual key may do is checked and compiled there too.
//
// A key is `sk-sbv-ID-SECRET`. ID is no secret and finds the record; the SHA-256 of the whole, which
// is all that is kept, is compared in constant time. Records are texts in a Store, by name, and are
// swapped one by one against what was read, so that no change of another replica is lost. What
// requests are served from is a snapshot behind an atomic pointer: they take no lock and ask no
// Store.
//
// A record that cannot be read, as one of a newer version with a field that this one does not know,
// lets nobody in: what it would not enforce it must not accept.
//
// A Ring is safe for concurrent use. Run owns its caller's goroutine and starts none.
package keyring
