// Package condition implements the logic of rules: conditions, the values they can still take for a
// partially known request, and the relations between conditions. It knows neither YAML nor routes
// and actions. Package rules documents the requirements on signals.
//
// # Values
//
// Logic is three-valued (Kleene): true, false, unknown; all is the minimum, any the maximum, not
// swaps true and false. A leaf over a signal that has not been extracted yet is pending: it may
// take any value. A leaf over a signal whose extraction failed is unknown for good. A condition
// therefore has Bounds, the least and the greatest value that it can still take, from which
// everything else follows. A Matcher joins a condition with an OnUnknown, the policy for an unknown
// value.
//
// # Simplification
//
// Simplifier transforms a condition to negation normal form, folds constants, flattens nested
// operators of the same kind, shares equal leaves, intersects or unites label sets and ranges of
// one signal, and joins tests that exclude or imply each other: x together with not x becomes a
// leaf that is settled as soon as the signal is known. Each step is also valid for unknown, because
// all tests of one signal are unknown together.
//
// # Proofs
//
// Implies and Reach are sound but incomplete: what they report holds for every request, including
// failed signals, and what they do not report may also hold. Tests of one signal are only compared
// pairwise.
//
// # Concurrency
//
// Conditions and matchers are immutable and safe for concurrent use. A Simplifier belongs to one
// goroutine. Node.Eval and Node.Holds do not allocate.
package condition
