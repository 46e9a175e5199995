package response_test

import (
	"errors"
	"strings"
	"testing"

	"signalbox/internal/testkit"
	"signalbox/stream/response"
	"signalbox/stream/sse"
)

const done = testkit.Done

// Ends of a stream by a filter and at a length limit.
var (
	filtered = strings.Replace(testkit.Finish, `"stop"`, `"content_filter"`, 1)
	limited  = strings.Replace(testkit.Finish, `"stop"`, `"length"`, 1)
)

// checked returns what is wrong with an answer.
func checked(streamed bool, pieces ...string) error { //nolint:revive // of which kind they are
	if !streamed {
		return response.CheckBody([]byte(strings.Join(pieces, "")))
	}
	var (
		p = sse.NewParser(0)
		c response.Chunk
		r response.Reader
		x response.Ending
	)
	for _, piece := range pieces {
		p.Feed([]byte(piece))
		for e := p.Next(); e != nil; e = p.Next() {
			c.Reset(*e, &r)
			x.Put(&c)
		}
	}
	return x.Err()
}

func TestOnlyWholeAnswersThatEndedWellAreGood(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name     string
		streamed bool
		pieces   []string
		good     bool
	}{
		{"a body", false, []string{testkit.Completion[:40], testkit.Completion[40:]}, true},
		{"half a body", false, []string{testkit.Completion[:40]}, false},
		{"nothing", false, nil, false},
		{"an error", false, []string{`{"error":{"message":"x"}}`}, false},
		{"an error that is null", false, []string{`{"error":null,"choices":[{"finish_reason":"stop"}]}`}, true},
		{"a filtered body", false, []string{strings.Replace(testkit.Completion, `"stop"`, `"content_filter"`, 1)}, false},
		{"a body cut at its limit", false, []string{strings.Replace(testkit.Completion, `"stop"`, `"length"`, 1)}, false},
		{
			"a completion cut at its limit", false,
			[]string{`{"object":"text_completion","choices":[{"index":0,"text":"x","finish_reason":"length"}]}`},
			false,
		},
		{"a body without an end", false, []string{strings.Replace(testkit.Completion, `"stop"`, `null`, 1)}, false},
		{"a response", false, []string{`{"object":"response","status":"completed"}`}, true},
		{
			"a response cut at its limit", false,
			[]string{`{"object":"response","status":"incomplete","incomplete_details":{"reason":"max_output_tokens"}}`},
			false,
		},
		{"a response that broke off", false, []string{`{"object":"response","status":"incomplete"}`}, false},
		{"a stream", true, []string{testkit.Event("a"), testkit.Event("b"), testkit.Finish, done}, true},
		{"a stream in odd pieces", true, []string{testkit.Event("a")[:9], testkit.Event("a")[9:] + testkit.Finish + "data: [DO", "NE]\n\n"}, true},
		{"a stream with comments and CRLF", true, []string{": hi\r\n\r\n", strings.ReplaceAll(testkit.Finish+done, "\n", "\r\n")}, true},
		{"a stream without its end", true, []string{testkit.Event("a"), testkit.Finish}, false},
		{"a stream without a reason to end", true, []string{testkit.Event("a"), done}, false},
		{"a stream cut in its last event", true, []string{testkit.Event("a"), testkit.Finish, "data: [DONE]\n"}, false},
		{"a stream that goes on", true, []string{testkit.Finish, done, testkit.Event("a")}, false},
		{"a stream with an error", true, []string{testkit.Event("a"), "data: {\"error\":{}}\n\n", testkit.Finish, done}, false},
		{"a filtered stream", true, []string{testkit.Event("a"), filtered, done}, false},
		{"a stream cut at its limit", true, []string{testkit.Event("a"), limited, done}, false},
		{
			"a stream of a response cut at its limit", true,
			[]string{"data: {\"type\":\"response.incomplete\",\"response\":{\"status\":\"incomplete\"," +
				"\"incomplete_details\":{\"reason\":\"max_output_tokens\"}}}\n\n"},
			false,
		},
		{"a stream of a response", true, []string{"event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{}}\n\n"}, true},
		{"a stream of a response that failed", true, []string{"data: {\"type\":\"response.failed\"}\n\n"}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			err := checked(tt.streamed, tt.pieces...)
			if (err == nil) != tt.good {
				t.Fatalf("error %v, want kept %v", err, tt.good)
			}
			if err != nil && !errors.Is(err, response.ErrIncomplete) {
				t.Errorf("error %v, want ErrIncomplete", err)
			}
		})
	}
}
