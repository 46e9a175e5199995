// Package memory keeps contexts: long texts, or lists of messages, that are stored once and then
// referenced in requests by an id instead of being sent again.
//
// A context has numbered, immutable versions. Each is identified by the SHA-256 of its canonical
// bytes, which are JSON that can be spliced into a request unchanged. Appending creates a version
// that begins with the bytes of the previous one, so that the prefix cached by a model server stays
// useful. What is expensive to compute from a text (token counts, safety verdicts, a skeleton for
// classification) is computed once, by Options.Derive.
//
// Bytes are hot (ready to use), in L2 (packed, in RAM) or in L3 (Redis, if there is a Remote). With
// a Remote everything is written there before it is acknowledged, so that any replica may fail at
// any time, and RAM only holds copies. Without one, RAM holds the only copy, and a full store
// refuses new contexts (ErrFull) instead of dropping acknowledged ones.
//
// Contexts of another tenant, or of another session or subject within a scope, are invisible: the
// error is ErrNotFound, as for an unknown id.
//
// The package knows no HTTP, no classifier and no checker. A Store is safe for concurrent use. Run
// owns its goroutines: one for timers, one that listens to the Remote, one that packs resting
// objects tightly, two that wake contexts and two that derive again what is incomplete. Without Run
// nothing is paged out by age, packed or derived again, and postponed work (touches, best-effort
// creations) stays postponed.
//
// Locks: Store.mu, views.mu, cache.mu and those of page.Pager and ledger.Local are leaves; none is
// held while another is acquired. Store.alone orders commits of a store without a Remote and is
// acquired before any of them.
package memory
