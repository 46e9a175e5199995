// Package rules turns the routing part of a configuration into a decision engine: YAML in, an
// immutable Program out, and a Decision for every request.
//
// It is pure. It performs no I/O, knows no clock and no randomness, and never runs a model: the
// caller hands it what is known about a request (signal.Set) and is told either what to do or
// which signals to extract before asking again.
//
// # Semantics
//
// Logic is three-valued (Kleene): true, false, unknown. A leaf over a signal that was not extracted
// yet is pending; a leaf over a signal whose extraction failed is unknown for good. A condition
// therefore has bounds, the least and the greatest value it can still take, and everything else
// follows:
//
//   - Routes are tried in file order and the first true one wins, so a route is decided only when
//     every route above it is settled.
//   - A condition that ends unknown is resolved by the route's on_unknown: skip reads it as false,
//     match as true, error ends the request. The default is match for a route that blocks, else
//     skip. Because the mapping is monotone it may be applied to bounds, which settles a route as
//     early as logic allows: any of a failed and a pending leaf is already a match under match.
//   - Step asks for the signals of the cheapest tier that some route which can still win reads in
//     a part of its condition that is still open. All kinds of that tier are named together, since
//     one neural pass serves them all, together with what the actions of those routes want from
//     the same pass. A neural pass is asked for only when no cheaper signal is left to ask.
//   - Signals that nothing provides are asked for before all others and alone: the caller records
//     them as unknown at no cost, and what they settle needs no pass.
//
// # Parts
//
// Compile reads the YAML (readroute.go, readwhen.go, readleaf.go, readaction.go), warns (warn.go)
// and links a Program (program.go), which Trace explains (trace.go). Below this package lie two
// others, which know nothing of each other: internal/condition is the logic, from truth values to
// simplification, proofs and blockers; internal/syntax reads YAML word by word and says what to
// make of a word that is not known. A condition is simplified at load, which keeps its meaning,
// unknown included.
//
// # Warnings
//
// Compile also reports what is legal and probably not meant: routes that cannot match, members of
// an operator that exclude or complete each other, names that nothing uses. It compares conditions
// in three values, so a route that takes what is unknown is not called dead for standing below one
// that lets it pass. The analysis is sound (a property test holds every warning against random
// requests) and not complete: tests of one signal are compared two by two.
//
// # Requirements on signals
//
// A known value's Label is the most probable of its Labels and its Probs sum to at most 1. Scores
// are compared in single precision, the precision that models report. For PII, Labels are the types
// found and Probs the highest score of each, where a type without one is certain; for Keyword,
// Labels are the names of the sets that matched. A score that is not a number counts as failed.
//
// # Concurrency
//
// A Program never changes after Compile and any number of goroutines may use it. Step does not
// allocate, except before it asks for a signal that one condition tests in several nested places.
package rules
