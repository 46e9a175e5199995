package testkit

import (
	"os"
	"time"
)

// Patience is how long a test waits for what must come before it calls it lost. It judges nothing:
// on a busy machine everything comes late.
const Patience = 3 * time.Minute

// Timed reports whether tests may judge how long something takes on the wall, as `make test-timed`
// has it on a machine with nothing else to do. Elsewhere a test may say what happens, and in which
// order, alone.
func Timed() bool { return os.Getenv("SIGNALBOX_TIMED") != "" }
