package decisionlog

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"signalbox/internal/signal"
)

func TestASignalThatIsNoNumberIsLoggedAsUnknown(t *testing.T) {
	t.Parallel()
	id := Identity{}
	nan := signal.Value{State: signal.Known, Label: "math", Score: 0.5, Labels: []string{"math"}}
	nan.Probs = []float32{float32(0)}
	nan.Probs[0] /= nan.Probs[0]
	got := id.SignalOf(signal.Domain, &nan)
	if diff := cmp.Diff(Signal{State: "unknown", Reason: "invalid_output"}, got); diff != "" {
		t.Errorf("signal (-want +got):\n%s", diff)
	}
	if _, err := json.Marshal(got); err != nil {
		t.Error(err)
	}
}

func TestASignalOfSomeWindowsHoldsOnlyForTheSameNumberOfWindows(t *testing.T) {
	t.Parallel()
	all := signal.MaskOf(signal.Jailbreak, signal.PII, signal.Domain)
	for _, tt := range []struct {
		name                     string
		k                        signal.Kind
		windows, read, then, now int
		want                     bool
	}{
		{"the same number", signal.Jailbreak, 40, 14, 12, 12, true},
		{"more than then", signal.Jailbreak, 40, 14, 12, 20, false},
		{"fewer than then", signal.PII, 40, 14, 12, 4, false},
		{"all were read, and still would be", signal.Jailbreak, 10, 10, 12, 20, true},
		{"all were read, and would not be", signal.Jailbreak, 10, 10, 12, 4, false},
		{"the text has one", signal.Jailbreak, 0, 0, 12, 4, true},
		{"a signal that it does not limit", signal.Domain, 40, 4, 12, 4, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			v := signal.Value{State: signal.Known, Windows: tt.windows, Read: tt.read}
			if tt.windows > 0 {
				v.Coverage = signal.Windowed
			}
			then, now := Identity{Windows: tt.then, Provided: all}, Identity{Windows: tt.now, Provided: all}
			s := then.SignalOf(tt.k, &v)
			if got := now.still(tt.k, &s); got != tt.want {
				t.Errorf("%+v holds: %v, want %v", s, got, tt.want)
			}
		})
	}
}

func TestParseNamesWhatIsWrong(t *testing.T) {
	t.Parallel()
	const whole = `{"v":1,"request":{"model":"auto"},"route":"r","outcome":"matched","action":{"verb":"use"},"signals":{}}`
	if _, err := Parse([]byte(whole)); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ old, by, want string }{
		"a torn line":        {`"signals":{}}`, `"sig`, "unexpected end"},
		"another version":    {`"v":1`, `"v":2`, "version is 2"},
		"no version":         {`"v":1,`, ``, "version is 0"},
		"no route":           {`"route":"r",`, ``, "route, outcome or action"},
		"no model":           {`{"model":"auto"}`, `{}`, "request.model"},
		"a state unheard of": {`"signals":{}`, `"signals":{"domain":{"state":"maybe"}}`, "signals.domain.state"},
		"a huge number":      {`"signals":{}`, `"signals":{"domain":{"state":"evaluated","score":1e300}}`, "out of range"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := Parse([]byte(strings.Replace(whole, c.old, c.by, 1)))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
		})
	}
}

// What was parsed can be written and parsed again.
func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"v":1,"request":{"model":"auto","headers":{"X":{"sha256":["00"]}}},"route":"r","outcome":"matched","action":{"verb":"use"},"signals":{"domain":{"state":"evaluated","labels":["a"],"probs":[0.5]}}}`))
	f.Add([]byte(`{"v":1,"request":{"model":"small"},"route":"named","outcome":"default","action":{"verb":"use"},"signals":{"keyword":{"state":"evaluated","labels":["a"],"sets":{"a":"1"}}},"prompt":{"last_user":"x","segments":[]}}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		first, err := Parse(line)
		if err != nil {
			return
		}
		out, err := json.Marshal(first)
		if err != nil {
			t.Fatal(err)
		}
		second, err := Parse(out)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(first, second, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("read again (-first +second):\n%s", diff)
		}
	})
}

func TestAHeaderWhoseNameSpeaksOfACredentialIsHashedInAnyCase(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"Authorization", "Proxy-Authorization", "Cookie", "X-Api-Key", "Api-Key", "X-Goog-Api-Key", "Ocp-Apim-Subscription-Key", "X-Amz-Security-Token",
		"X-Client-Secret", "X-Auth", "Set-Cookie", "X-Session-Id", "X-Hub-Signature-256", "X-Password", "X-Credential", "x-apikey", "X-CSRFTOKEN",
	} {
		if diff := cmp.Diff(Header{Hashed: []string{HashHeader(name, "red")}}, HeaderOf(name, []string{"red"}, true)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestValuesOfHeadersAreHashedUnlessTheyMayBeRead(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		literal bool
		want    Header
	}{
		{"X-Team", false, Header{Hashed: []string{HashHeader("X-Team", "red")}}},
		{"X-Team", true, Header{Literal: []string{"red"}}},
		{"Cookie", true, Header{Hashed: []string{HashHeader("Cookie", "red")}}},
	} {
		if diff := cmp.Diff(tt.want, HeaderOf(tt.name, []string{"red"}, tt.literal)); diff != "" {
			t.Errorf("%s, literal %v (-want +got):\n%s", tt.name, tt.literal, diff)
		}
	}
}

func TestALineThatIsNoDecisionIsRefusedInPlainWords(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"[1]":                      "it is a JSON array and no object",
		"7":                        "it is a JSON number and no object",
		`{"v":1,"route":[1]}`:      "route cannot be read from such a JSON array",
		`{"v":1e400}`:              "v cannot be read from such a JSON number",
		`{"request":{"model":{}}}`: "request.model cannot be read from such a JSON object",
		`{"time":7}`:               "a value in it cannot be read",
		`{"v":1`:                   "unexpected end of JSON input",
	} {
		_, err := Parse([]byte(line))
		if !errors.Is(err, ErrNotADecision) || err.Error() != ErrNotADecision.Error()+": "+want {
			t.Errorf("%s: %v, want %s", line, err, want)
		}
	}
}
