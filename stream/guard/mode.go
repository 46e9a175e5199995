package guard

// Mode is what happens to claims that fail. Larger values are stricter.
type Mode uint8

// The modes.
const (
	Off       Mode = iota // nothing is checked
	Observe               // verdicts are reported, the answer is not changed
	Annotate              // failed claims are marked
	Terminate             // the answer ends at a failed claim
	Hold                  // text waits for its verdict, failed claims are replaced
)

// String returns the name of the mode in configuration, API and headers.
func (m Mode) String() string {
	names := [...]string{Off: "off", Observe: "observe", Annotate: "annotate", Terminate: "terminate", Hold: "hold"}
	if int(m) >= len(names) {
		return "unknown"
	}
	return names[m]
}

// ParseMode returns the mode with the given name; ok is false if there is none.
func ParseMode(name string) (m Mode, ok bool) {
	for m := Off; m <= Hold; m++ {
		if m.String() == name {
			return m, true
		}
	}
	return Off, false
}

// Stricter returns the stricter of two modes.
func Stricter(a, b Mode) Mode { return max(a, b) }
