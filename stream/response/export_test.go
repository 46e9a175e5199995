package response

// Reads returns how many times events were read.
func (r *Reader) Reads() int { return r.count }
