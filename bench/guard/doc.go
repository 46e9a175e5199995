// Command guard measures the cost of checking streamed responses and the delay of verdicts: on this
// machine, in this process, over loopback, with the product built as its commands build it.
//
//	go run ./bench/guard [--only passthrough,gaps,verdicts,load,planted,meaning,answers,documents,
//		languages,numbers,grounding] [--quick] [--data FOLDER [--limit ROWS] [--dump FOLDER]]
//
// --data names a folder with labelled answers, dev/grounding_*.jsonl and grounding_*/rows.jsonl.gz,
// and with texts, real_benign/long_prose.jsonl.gz; without it the last two sections print that it
// is missing.
//
// It prints Markdown: a table of figures with their required values, and below it the conditions of
// each measurement. Figures that are compared are measured in turn, round by round, and given as
// ratios, so that other load on the machine affects both. All text except that of --data is
// invented, so its truth is known.
//
// Model servers are simulated: they send prepared events at a given pace, or the next one when the
// client has received the previous one. Processor time is that of the whole process; the share of
// the client and the server is measured without a proxy and subtracted.
package main
