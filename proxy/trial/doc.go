// Package trial holds the responses of a route with escalation until they are judged, by package
// escalate and by the guard. A response that is not good enough is discarded, so that another model
// can be asked, and kept in case no other model answers; its usage is reported to the caller. All
// values belong to the goroutine of one request. A nil *Course means that the first response is
// final, a nil *Trial that a response is not judged.
//
// It asks no model and writes nothing to the client.
package trial
