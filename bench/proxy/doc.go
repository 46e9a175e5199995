// Command proxy measures what signalbox costs as a proxy, beside nothing, a bare
// httputil.ReverseProxy that reads the body first, and nginx where it is installed, in front of the
// same simulated model server.
//
// Each way runs in a process of its own, on loopback, with plain HTTP, metrics on and no models. A
// round puts every workload on every way in turn, so that what else runs on the machine meets all
// of them; the medians of the rounds are printed, with their ratios to the bare reverse proxy.
// Processor time is what the kernel charged to the processes of the way (user and system), in steps
// of 10 ms; memory is their resident size.
//
//	go run ./bench/proxy [-rounds 5] [-time 3s] [-signalbox FILE,FILE]
//
// measures one or several programs; further ones are compared with the first in the same rounds.
//
//	go run ./bench/proxy -add FILE,FILE [-key KEY]
//
// measures what parts of the configuration cost: the first program once without and once with each
// file. Those in the folder configs are for the key "a caller".
//
//	go run ./bench/proxy -promises [-streams 100000]
//
// counts streams that did not arrive whole, and measures what a request waits for when the Redis
// that counts its limits hangs or is gone.
//
// Closed loop: each of some clients sends its next request when it has its answer. Open loop:
// requests are sent at a fixed rate, whatever becomes of those before, and latency counts from when
// a request should have been sent.
package main
