package redis

import (
	"log/slog"
	"strings"
	"testing"

	"signalbox/internal/testkit"
)

// S33: a password is in no error and in no line of the log, whatever is wrong with it or with the
// address beside it.
func TestAPasswordIsInNoErrorAndInNoLog(t *testing.T) {
	const password = "canary-password"
	server := testkit.NewRedis(t, "--requirepass", "another")
	for name, url := range map[string]string{
		"a wrong password":             "redis://:" + password + "@" + server.Addr(),
		"a user that is not there":     "redis://box:" + password + "@" + server.Addr(),
		"nobody listens":               "redis://:" + password + "@127.0.0.1:1",
		"no name of a host":            "redis://:" + password + "@nowhere.invalid:6379",
		"TLS to a server without it":   "rediss://:" + password + "@" + server.Addr(),
		"a port that is none":          "redis://:" + password + "@127.0.0.1:port",
		"a database that is none":      "redis://:" + password + "@" + server.Addr() + "/" + password,
		"a scheme that is none":        "http://:" + password + "@" + server.Addr(),
		"a parameter that is not read": "redis://:" + password + "@" + server.Addr() + "/0?protocol=" + password,
	} {
		t.Run(name, func(t *testing.T) {
			log := &testkit.Log{}
			o := DefaultOptions()
			o.URL, o.Log = url, slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))

			s, err := Open(t.Context(), o)
			if err == nil {
				defer s.Close()
				_, err = s.Load(t.Context(), "t", "ctx_1")
			}
			if err == nil {
				t.Fatal("no error")
			}
			said := err.Error() + log.String()
			if strings.Contains(said, password) {
				t.Errorf("told: %s", said)
			}
		})
	}
}
