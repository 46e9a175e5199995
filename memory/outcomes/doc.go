// Package outcomes stores how good responses were, and predicts from that how good and how long
// another model's response to a request would be.
//
// # What is stored
//
// An Outcome is one rated response: the embedding of the request, the model, a score in [0,1] and
// the number of tokens in the response. No text is stored. Outcomes are stored per tenant, and
// predictions for a tenant use only its own. Each tenant keeps its newest outcomes; of the tenants
// those used last are kept. A Decision is a request that was answered but not yet rated: it waits
// for its rating in a ring.
//
// # Prediction
//
// The prior of a model comes from the configuration. Three corrections are added, each the mean of
// the residuals of the previous one, shrunk towards zero by a number of outcomes that represents
// doubt: for the model in this tenant's traffic (shrunk towards the correction common to all
// models), for similar requests regardless of the model, and for the model on similar requests. In
// addition a ridge regression estimates what is hard for all models, and another one what is hard
// for one model; the latter is weighted by how well it predicted outcomes before they were known. A
// tenant without outcomes thus gets the prior, and few outcomes change little.
//
// Efforts of a model with enough outcomes are compared differently: by how much better responses
// were at one effort than at another where similar responses differed as they do here; see
// calibrate.
//
// Requests are similar from a cosine similarity of their embeddings of nearest on. The signs of the
// components select the candidates and 8-bit integers rank them, which costs about 0.1 ms at 10,000
// outcomes.
//
// # File
//
// With a path, outcomes are appended to a file of JSON lines as they arrive, and read from it by
// Open. The file is rewritten and replaced as a whole if half of its lines are superseded, and by
// Close, which adds the waiting decisions. It has one writer, enforced by a lock on PATH.lock. A
// second process keeps what it learns in memory until the first has ended, and then takes the file
// over: both histories are merged in the order of time.
//
// # Concurrency
//
// A Store is safe for concurrent use and starts no goroutine. Its only lock is held for reading
// while a tenant is scanned, and for writing while a line is appended and eight outcomes are
// examined, some 2 ms with 10,000 outcomes. A file is taken over by one of the calls that write;
// that call waits for it, and others only while the file is rewritten.
package outcomes
