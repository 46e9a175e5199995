package question

// Kind is what a question asks for.
type Kind uint8

// The kinds of questions. A text that is not a question, such as "Summarise the plot of Hamlet",
// asks for a thing.
const (
	anyKind Kind = iota
	Thing        // what, which, how much, how tall; and orders
	Who          // a person
	When         // a time
	Where        // a place
	Why          // a reason
	How          // a manner, steps
	Whether      // yes or no
)

//nolint:gochecknoglobals // constant table
var kindNames = [...]string{"any", "thing", "who", "when", "where", "why", "how", "polar"}

// String returns the name in lower case.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "unknown"
}

func parseKind(name string) (Kind, bool) {
	for k, n := range kindNames {
		if n == name && k > 0 {
			return Kind(k), true
		}
	}
	return anyKind, false
}

// meets reports whether questions of two kinds can share an answer. "Who won" and "which country
// won" can.
func (k Kind) meets(other Kind) bool {
	return k == other || k == Thing && other == Who || k == Who && other == Thing
}
