package evidence

// Texts returns the texts of the sources, in order, for readers that need all of them. The caller
// owns the slice. e may be nil.
func (e *Evidence) Texts() []string {
	if e == nil {
		return nil
	}
	list := make([]string, len(e.sources))
	for i := range e.sources {
		list[i] = e.sources[i].Text
	}
	return list
}
