// Command replicas measures the costs that grow with the number of replicas: the Redis commands of
// a request, by feature; the commands and server requests of an idle replica; and the size of the
// scraped pages. docs/scale.md summarises the results.
//
// Two replicas, with a separate redis-server and simulated model servers, run as processes on
// loopback. Requests alternate between the replicas, with a first and a second turn each, so that
// half of the second turns reach the replica that has not seen the first. Commands are those that
// `INFO commandstats` counts, without those of this program; processor time is that of the
// redis-server, from `INFO cpu`.
//
//	go run ./bench/replicas [-requests 400] [-idle 10s] [-signalbox FILE]
package main
