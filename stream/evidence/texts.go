package evidence

// Texts are the texts of the sources, in order, for readers that take all of it at once. The caller
// owns the slice.
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
