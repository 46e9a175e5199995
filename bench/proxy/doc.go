// Command proxy measures the cost of signalbox as a proxy, compared with direct access, with a bare
// httputil.ReverseProxy that reads the body first, and with nginx if installed, in front of the
// same simulated model server.
//
// Each variant runs in a separate process, on loopback, with plain HTTP, metrics on and no models.
// A round runs every workload on every variant in turn, so that other load on the machine affects
// all of them. The medians of the rounds are printed, with their ratios to the bare reverse proxy.
// Processor time is the time that the kernel charged to the processes of the variant (user and
// system), in steps of 10 ms; memory is their resident size.
//
//	go run ./bench/proxy [-rounds 5] [-time 3s] [-signalbox FILE,FILE]
//
// measures one or several programs; additional ones are compared with the first in the same rounds.
//
//	go run ./bench/proxy -add FILE,FILE [-key KEY]
//
// measures the cost of parts of the configuration: the first program without and with each file.
// The files in the folder configs expect the key "a caller".
//
//	go run ./bench/proxy -promises [-streams 100000]
//
// counts streams that did not arrive completely, and measures the delay of a request if the Redis
// that counts its limits hangs or is unreachable.
//
// Closed loop: each client sends its next request when it has received a response. Open loop:
// requests are sent at a fixed rate, independent of earlier ones, and latency is measured from the
// time at which a request should have been sent.
package main
