// Package engine holds what of a request steers a model server and is not for every client: the
// fields and headers that parts of a serving system tell each other, and the salt that keeps the
// prefix caches of tenants apart.
//
// Controls and Salts are immutable and safe for concurrent use.
package engine
