package rules

import "signalbox/rules/internal/syntax"

// readTools reads {keep, share, by, always}, of which keep is required.
func readTools(at syntax.Cursor) *Tools {
	mark := at.Mark()
	entries, ok := at.Mapping("{keep: NUMBER, always: [NAME]}", "keep", "share", "by", "always")
	if !ok {
		return nil
	}
	t := new(Tools)
	for _, e := range entries {
		switch e.Key {
		case "keep":
			t.Keep, _ = e.At.Integer(1)
		case "share":
			var ok bool
			if t.Share, ok = e.At.Share(); ok && t.Share == 0 {
				e.At.Expected("a number above 0, up to 1")
			}
		case "by":
			e.At.Choice("relevance")
		case "always":
			t.Always = e.At.Words("function", func(syntax.Cursor, string) {})
		}
	}
	if t.Keep == 0 {
		at.Lacking(mark, "found no keep, expected {keep: NUMBER}: how many tools a turn may bring")
		return nil
	}
	return t
}
