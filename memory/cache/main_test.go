package cache_test

import (
	"testing"

	"signalbox/internal/testkit"
)

func TestMain(m *testing.M) { testkit.VerifyNoLeaks(m) }
