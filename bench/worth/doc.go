// Command worth measures what choosing models by outcomes is worth: it replays public outcomes,
// which model answered which prompt how well and with how many tokens, through the product's
// embedding and its predictor, and puts what comes out beside the best single model, a random mix
// at the same cost, and an oracle.
//
//	go run ./bench/worth --data DIR [--vectors FILE] [--limit N] [--pairs SMALL:LARGE,...]
//
// It reads every *.jsonl and *.jsonl.gz below DIR whose lines are
//
//	{"id","src","task","text","out":{MODEL:[SCORE,TOKENS(,REASONING)]}}
//
// and prints Markdown, deterministic for the same data and flags. Each folder is a set; its
// benchmarks are its sources, or its tasks where it has one source. Every figure is given twice:
// for prompts of benchmarks that the predictor has outcomes of (five folds), and with all of a
// benchmark's outcomes left out, since the first flatters. Brackets are 95 % intervals, by
// bootstrap over prompts.
//
// Prompts are embedded by the product, and its memory of outcomes is asked, in this process.
package main
