// Package relay passes a response on to the client: as it comes, or through what restores hidden
// values, checks, saves and explains it; one that was cached as well.
//
// It chooses no endpoint and repeats nothing: a fault behind the first byte ends the response. What
// it holds belongs to one request, and runs on its goroutine; Stage is safe for concurrent use.
package relay
