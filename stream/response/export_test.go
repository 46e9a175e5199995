package response

// Reads is how many events were read, each time that one was.
func (r *Reader) Reads() int { return r.count }
