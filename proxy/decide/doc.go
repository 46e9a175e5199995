// Package decide makes the decision of a request: it steps through the rules, has the signals read
// that they ask for, and adds what the turns before, outcomes, canaries and budgets have to say. Its
// files, in that order:
//
//   - base (what a configuration decides by), decision (what comes of it), decide (rules and
//     signals)
//   - conversation and stick_options: what stays as it was
//   - canary: conversations that go to a model that is tried out
//   - outcomes and outcome_options: what earlier answers let one expect of models and efforts
//   - choice: the models in the order to try them
//   - lookup: what the cache has for the request
//   - describe: the headers that tell a client of the decision
//
// It sends nothing and picks no endpoint. A Base is safe for concurrent use, a Decision belongs to
// the goroutine of its request.
package decide
