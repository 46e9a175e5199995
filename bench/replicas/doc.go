// Command replicas measures what grows with the number of replicas: what a request asks of the Redis
// that they share, by feature; what a replica asks of Redis and of model servers when nobody asks
// anything of it; and how large the pages are that are scraped. docs/scale.md adds it up.
//
// Two replicas, with one redis-server of their own and simulated model servers, each a process on
// loopback. Requests are sent to both in turn, a first turn and a second one each, so that half of
// the second turns come to the replica that has not seen the first. Commands are those that
// `INFO commandstats` counts, without the ones that this program sends; processor time is that of
// the redis-server, as `INFO cpu` tells it.
//
//	go run ./bench/replicas [-requests 400] [-idle 10s] [-signalbox FILE]
package main
