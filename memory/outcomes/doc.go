// Package outcomes remembers how good answers were, and predicts from that how good another model's
// answer to a request would be, and how long.
//
// # What is kept
//
// An Outcome is one answer that somebody, or something, has judged: the embedding of the request,
// the model, a score in [0,1] and the tokens of the answer. Nothing of a text is kept. Outcomes are
// kept by tenant, whose predictions are made of its own alone; of each tenant the newest, of all
// tenants those that were used last. A Decision is a request that was answered and that nobody has
// judged yet: it waits for its judgement in a ring.
//
// # Prediction
//
// The prior of a model is what the configuration says of it. To that come three corrections, each
// the mean of what the one before left over, shrunk towards nothing by a number of outcomes that
// stands for doubt: of the model in this tenant's traffic (shrunk towards what all models have in
// common), of requests that are near, whichever model answered, and of the model at requests that
// are near. What is hard for all models is told by a ridge regression besides, and what is hard for
// one by another, which counts for as much as it told of outcomes before it knew them. So a tenant
// without outcomes gets the prior, and few of them change little.
//
// Efforts of a model of which enough is known are compared otherwise: by how much better answers
// were at one than at another where near answers differed as they do here; see calibrate.
//
// Near means cosine similarity from nearest on, of the embeddings; the signs of the components find
// the candidates and 8-bit integers rank them, which costs about 0.1 ms at 10,000 outcomes.
//
// # File
//
// With a path, outcomes are appended to a file of JSON lines as they come, and read from it by
// Open. The file is written anew, and replaced as a whole, when half of its lines are superseded,
// and by Close, which adds the decisions that wait. It has one writer: a lock on PATH.lock tells a
// second one, which keeps what it learns in memory until the first has ended. It takes the file over
// then: both become one in the order of time.
//
// # Concurrency
//
// A Store is safe for concurrent use and starts no goroutine. Its one lock is held while a tenant
// is scanned for reading, and for writing while a line is appended and eight outcomes are looked
// at, some 2 ms with 10,000 outcomes. A file is taken over by one of the calls that write; that one
// waits for it, and others only while the file is written anew.
package outcomes
