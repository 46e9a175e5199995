// Package save stores the prompt and the response of one request as a context, where the request
// asks for that, and puts the id of the context into the response.
//
// A Saver belongs to the goroutine of its request.
package save
