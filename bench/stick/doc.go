// Command stick measures whether conversations stay with their model: whether a second turn goes to
// the model of the first, and whether a change of subject goes to another one.
//
//	go run ./bench/stick --data DIR [--limit N] [--seed N] [--stick=false]
//
// It reads every *.jsonl below DIR, in the form of MT-Bench-101
// ({"id","task","history":[{"user","bot"}]}) or as {"id","task","turns":[...]}, and every *.txt in
// the form of the topics of TREC CAsT 2019 ("Number: N", then "TURN<tab>TEXT" lines). The data is
// not part of this repository. Conversations of an even number, and the topics 1 to 30 of CAsT, are
// left out.
//
// Every decision is made by the product with its embedded models, asked over HTTP on loopback, and
// read from the headers of its answers; the model servers behind it always answer alike. With one
// route and one model a domain the figures are the strictest there are.
package main
