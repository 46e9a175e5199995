// Command routing measures what routing is worth: the product's own classifier, rules and choice of
// models decide about questions for which it is known which models answered them right, and the
// shares of right answers and the prices are put beside those of simple policies.
//
// It reads the data sets that the embedded models were trained on, which are not part of this
// repository, and evaluates only what the models were not trained on. It prints Markdown and is
// deterministic: the same data, models and flags give the same bytes.
//
//	go run ./bench/routing --data DIR [--limit N]
//
// Every decision is made by a proxy that is sent the question over HTTP handlers, and read from the
// headers of its answer; behind it stands a server that always answers alike. A question is
// classified once and the signals are kept for the other policies.
package main
