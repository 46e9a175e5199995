// Command worth measures what choosing models by outcomes is worth: it replays public outcomes,
// which model answered which prompt how well and with how many tokens, through the product, and
// puts what comes out beside the best single model, a random mix at the same cost, and an oracle.
//
//	go run ./bench/worth --data DIR [--limit N] [--vectors FILE] [--pairs SMALL:LARGE,...]
//	    [--efforts DIRECT:STEPS,...] [--losses SHARE,...] [--prices MODEL=USD,...]
//
// It reads every *.jsonl and *.jsonl.gz below DIR whose lines are
//
//	{"id","src","task","text","out":{MODEL:[SCORE,TOKENS(,REASONING)]}}
//
// and prints Markdown. Each folder is a set; its benchmarks are its sources, or its tasks where it
// has one source. Every figure is given twice: for prompts of benchmarks that the product has
// outcomes of (five folds), and with all of a benchmark's outcomes left out, since the first
// flatters. Brackets are 95 % intervals, by bootstrap over prompts.
//
// # Efforts of reasoning
//
// Two models of the data that are one at two efforts, as --efforts names them, are configured as
// such, and reasoning: auto chooses. The report has what that loses, and what is left of the tokens
// of always reasoning, by how many outcomes of a task are known and what outcomes.max_quality_loss
// allows. bbh.py makes such outcomes.
//
// # How prompts are replayed
//
// Every prompt is sent to the product's handler over HTTP on loopback. Behind it stands a model
// server that gives the recorded answer: as many tokens as the model took, and the bench knows how
// good it was. Outcomes of earlier traffic are put into the product's memory by its package, as a
// file of them would be; ratings go to /signalbox/v1/feedback. What the product expects of each
// candidate is read from x_signalbox.decision of the same answers.
//
// The embedding is the product's, computed once a prompt; all else is computed for each request.
// Skills of the configuration are what the models scored on the prompts of the other parts.
package main
