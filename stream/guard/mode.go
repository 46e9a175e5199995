package guard

// Mode is what happens to claims that fail. Modes ascend in strictness.
type Mode uint8

// The modes.
const (
	Off       Mode = iota // nothing is checked
	Observe               // verdicts are told, the answer is not touched
	Annotate              // failed claims are marked
	Terminate             // the answer ends at a failed claim
	Hold                  // text waits for its verdict, failed claims are replaced
)

// String is the name of the mode in configuration, API and headers.
func (m Mode) String() string {
	names := [...]string{Off: "off", Observe: "observe", Annotate: "annotate", Terminate: "terminate", Hold: "hold"}
	if int(m) >= len(names) {
		return "unknown"
	}
	return names[m]
}

// ParseMode is the mode of a name; ok is false when there is none.
func ParseMode(name string) (m Mode, ok bool) {
	for m := Off; m <= Hold; m++ {
		if m.String() == name {
			return m, true
		}
	}
	return Off, false
}

// Stricter is the stricter one of two modes.
func Stricter(a, b Mode) Mode { return max(a, b) }
