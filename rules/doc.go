// Package rules compiles the routing part of a configuration into a decision engine: from YAML to
// an immutable Program, which makes a Decision for every request.
//
// The package is pure: it performs no I/O, uses no clock and no randomness, and never runs a model.
// The caller passes what is known about a request (signal.Set). The result is either a decision or
// the signals to extract before calling again.
//
// # Semantics
//
// Logic is three-valued (Kleene): true, false, unknown. A leaf over a signal that has not been
// extracted yet is pending; a leaf over a signal whose extraction failed is unknown for good. A
// condition therefore has bounds, the least and the greatest value it can still take. Everything
// else follows from them:
//
//   - Routes are tried in file order and the first true one wins, so a route can only win once
//     every route above it is settled.
//   - A condition that ends unknown is resolved by the route's on_unknown: skip treats it as false,
//     match as true, error ends the request. The default is match for a route that blocks, else
//     skip. Because the mapping is monotone it can be applied to bounds, which settles a route as
//     early as possible: with match, the disjunction of a failed and a pending leaf already
//     matches.
//   - Step requests the signals of the cheapest tier that are read by an open part of the condition
//     of some route that can still win. All kinds of that tier are requested together, because one
//     neural pass computes them all, including those that the actions of these routes need from the
//     same pass. A neural pass is requested only if no cheaper signal remains.
//   - Signals that nothing provides are requested before all others and alone: the caller records
//     them as unknown at no cost, and they may settle routes without a pass.
//
// # Parts
//
// Compile reads the YAML (readroute.go, readwhen.go, readleaf.go, readaction.go), warns (warn.go)
// and links a Program (program.go); Trace explains its decisions (trace.go). Two packages below
// this one are independent of each other: internal/condition is the logic, from truth values to
// simplification, proofs and blockers; internal/syntax reads the YAML value by value and handles
// unknown words. Conditions are simplified when they are loaded, which preserves their meaning,
// including unknown.
//
// # Warnings
//
// Compile also reports what is legal but probably a mistake: routes that cannot match, members of
// an operator that exclude or complement each other, names that nothing uses. It compares
// conditions with three values: a route that also matches unknown is not reported as unreachable
// because of a route above it that skips unknown. The analysis is sound (a property test checks
// every warning against random requests) but not complete: tests of one signal are only compared
// pairwise.
//
// # Requirements on signals
//
// A known value's Label is the most probable of its Labels and its Probs sum to at most 1. Scores
// are compared in single precision, the precision of model outputs. For PII, Labels are the types
// found and Probs the highest score of each, where a type without a score is certain; for Keyword,
// Labels are the names of the sets that matched. A score that is not a number counts as failed.
//
// # Concurrency
//
// A Program is immutable after Compile and safe for concurrent use. Step does not allocate, except
// before it requests a signal that one condition tests in several nested places.
package rules
