// Command guard measures what the check of streamed answers costs and how soon it tells: on this
// machine, in this process, over loopback, with the product built as its commands build it.
//
//	go run ./bench/guard [--only passthrough,gaps,verdicts,load,planted,meaning,answers,documents,
//		languages,numbers,grounding] [--quick] [--data FOLDER [--limit ROWS] [--dump FOLDER]]
//
// --data names a folder of labelled answers, dev/grounding_*.jsonl and grounding_*/rows.jsonl.gz,
// and of texts, real_benign/long_prose.jsonl.gz; without it the last two sections say so and end.
//
// It prints Markdown: a table of figures beside their bars, and under it what each was measured on.
// Figures to be compared are taken in turn, round by round, and given as ratios: a machine that is
// busy with something else is busy for both. All text but that of --data is made up, and its truth
// is known.
//
// Model servers are simulated: they send prepared events at a given pace, or the next one when the
// client has the one before. Processor time is that of the whole process, so what the client and
// the server take is measured without a proxy and taken off.
package main
