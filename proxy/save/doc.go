// Package save stores the prompt and response of a request as a context, if the request asks for
// it, and puts the context's id into the response.
//
// A Saver belongs to the goroutine of its request.
package save
