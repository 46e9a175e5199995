package cli

import (
	"errors"
	"strings"
	"testing"
	"time"

	"signalbox/internal/hub"
)

func TestAPullThatTriesAgainNamesAModelOnce(t *testing.T) {
	const busy, reset = "acme/topics@main: the hub is busy", "acme/topics/model.onnx: reset by peer"
	for _, tt := range []struct{ path, err, want string }{
		{"acme/topics@main", busy, busy},
		{"model.onnx", reset, reset},
		{"model.onnx", "unexpected EOF", "model.onnx: unexpected EOF"},
		{"onnx", "dial tcp: refused", "onnx: dial tcp: refused"},
	} {
		var out strings.Builder
		p := &pullProgress{command: &command{Streams: Streams{Err: &out}}}
		err := errors.New(tt.err)
		p.observe(hub.Event{Kind: hub.Retrying, Path: tt.path, Err: err, Wait: time.Second})
		if got := out.String(); got != tt.want+"; trying again in 1s\n" {
			t.Errorf("printed %q, want %q", got, tt.want)
		}
	}
}
