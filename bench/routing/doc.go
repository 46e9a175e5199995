// Command routing measures the benefit of routing: the product's own classifier, rules and choice
// of models decide on questions for which it is known which models answered correctly. The shares
// of correct answers and the prices are compared with those of simple policies.
//
// It reads the data sets that the embedded models were trained on, which are not part of this
// repository, and evaluates only rows that the models were not trained on. It prints Markdown and
// is deterministic: the same data, models and flags give the same bytes.
//
//	go run ./bench/routing --data DIR [--limit N]
//
// Each decision is made by a proxy that receives the question through its HTTP handlers, and is
// read from the headers of the response; the server behind it always sends the same response. A
// question is classified once and its signals are reused for the other policies.
package main
