// Package engine holds the parts of a request that control a model server and are not open to every
// client: the fields and headers that the parts of a serving system exchange, and the salt that
// separates the prefix caches of tenants.
//
// Controls and Salts are immutable and safe for concurrent use.
package engine
