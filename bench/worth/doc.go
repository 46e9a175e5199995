// Command worth measures the benefit of choosing models by outcomes. It replays public outcomes
// (the score and the tokens of models for prompts) through the product, and compares the result
// with the best single model, a random mix at the same cost, and an oracle.
//
//	go run ./bench/worth --data DIR [--limit N] [--vectors FILE] [--pairs SMALL:LARGE,...]
//	    [--efforts DIRECT:STEPS,...] [--losses SHARE,...] [--prices MODEL=USD,...]
//
// It reads every *.jsonl and *.jsonl.gz below DIR with lines of the form
//
//	{"id","src","task","text","out":{MODEL:[SCORE,TOKENS(,REASONING)]}}
//
// and prints Markdown. Each folder is a set; its benchmarks are its sources, or its tasks if it has
// a single source. Every figure is given twice: for prompts of benchmarks that the product has
// outcomes of (five folds), which is optimistic, and with all outcomes of a benchmark left out.
// Brackets are 95 % intervals, by bootstrap over prompts.
//
// # Efforts of reasoning
//
// If --efforts names two models of the data that are one model at two efforts, they are configured
// as such, and reasoning: auto chooses. The report has the loss of quality and the remaining share
// of the tokens compared with always reasoning, by the number of known outcomes of a task and by
// outcomes.max_quality_loss. bbh.py creates such outcomes.
//
// # How prompts are replayed
//
// Every prompt is sent to the product's handler over HTTP on loopback. The model server behind it
// sends the recorded answer, with as many tokens as the model used, and the benchmark knows its
// score. Outcomes of earlier traffic are added to the product's memory through its package, as from
// a file; ratings are sent to /signalbox/v1/feedback. The product's expectation for each candidate
// is read from x_signalbox.decision of the same responses.
//
// The embedding is the product's, computed once per prompt; everything else is computed for each
// request. Skills in the configuration are the models' scores on the prompts of the other parts.
package main
