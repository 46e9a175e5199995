// Package trial holds the responses of a route that escalates until they are judged: by what they
// show, which package escalate says, and by the guard. One that is not good enough is thrown away,
// so that another model can be asked, and kept in case that no other answers; what it took is told
// to whoever counts. Everything here belongs to the goroutine of one request. A nil *Course is that
// of a request whose first response stands, a nil *Trial a response that nobody judges.
//
// It asks no model and writes nothing to the client.
package trial
