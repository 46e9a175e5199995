// Package decide makes the decision for a request: it evaluates the rules, has the signals computed
// that they ask for, and adds the influence of earlier turns, outcomes, canaries and budgets.
//
// Its files, in that order:
//
//   - base (what the decisions of a configuration are made from), decision (the result), decide
//     (rules and signals)
//   - conversation and stick_options: what stays the same within a conversation
//   - canary: conversations that are sent to a model on trial
//   - outcomes and outcome_options: what earlier responses predict about models and efforts
//   - choice: the models in the order in which they are tried
//   - lookup: the cache lookup for the request
//   - describe: the response headers that describe the decision
//
// It sends nothing and picks no endpoint. A Base is safe for concurrent use, a Decision belongs to
// the goroutine of its request.
package decide
