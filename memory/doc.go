// Package memory keeps contexts: long texts, or runs of messages, that are stored once and then
// named in requests by a pointer instead of being sent again.
//
// A context has numbered versions that never change; each is named by the SHA-256 of its canonical
// bytes, which are JSON that can be spliced into a request as it is. Appending makes a version that
// begins with the bytes of the last one, so what a model server has cached of it stays of use. What
// is costly to work out of a text (token counts, verdicts of safety, a skeleton for classification)
// is worked out once, by Options.Derive.
//
// Where the bytes are: hot (ready), L2 (packed, in RAM) or L3 (Redis, when there is a Remote). With
// a Remote everything is written there before it is acknowledged, so that any replica may die at
// any time, and what is in RAM is a copy; without one, RAM is all there is, and a store that is
// full refuses (ErrFull) instead of dropping what it promised to keep.
//
// What belongs to another tenant, or to another session or subject within a scope, does not exist:
// the answer is ErrNotFound, as for an id that never was.
//
// The package knows no HTTP, no classifier and no checker. A Store is safe for concurrent use. Run
// owns its goroutines: one that keeps time, one that listens to the Remote, one that packs tightly
// what rests, two that wake contexts and two that read again those of which something is unknown;
// without Run nothing is paged out by age, packed or read again, and what was put off (touches,
// creations at best effort) stays so.
//
// Locks: Store.mu, views.mu, cache.mu and those of page.Pager and ledger.Local are leaves, none is
// held while another is taken. Store.alone orders commits of a store without a Remote and is taken
// before any of them.
package memory
