package response_test

import (
	"strings"
	"testing"

	"signalbox/stream/response"
)

func TestBodiesThatNoClientCanUse(t *testing.T) {
	t.Parallel()
	const fault = `{"error":{"message":"m","type":"server_error","param":null,"code":null}}`
	for body, want := range map[string]bool{
		"":                                 true,
		" \r\n":                            true,
		"<html>{}</html>":                  true,
		"upstream error":                   true,
		"null":                             true,
		`{"id":"x","choices":[{"index":0}`: true,
		`{"id":"x`:                         true,
		`{"id":"x\\"`:                      true,
		`{"id":"x\\\""`:                    true,
		fault:                              true,
		"\ufeff " + fault + "\n":           true,
		`{"object":"error","message":"m","type":"InternalServerError","param":null,"code":500}`: true,
		`{"status":"failed","error":{"code":"server_error","message":"m"},"output":[]}`:         true,
		`{"error": {"message":"no","type":"invalid_request_error","code":400}}`:                 false,
		`{"error":"out of memory"}`:                                                              false,
		`{"error":null,"output":[],"metadata":{"code":"500"}}`:                                   false,
		`{"choices":[{"index":0,"message":{"content":"\"error\": {\"code\": 500}, [{"}}]}`:       false,
		`{"choices":[{"index":0,"message":{"content":"a"}}],"error":{"code":500,"message":"m"}}`: false,
		`{"choices":[],"x":NaN,"y":-Infinity}`:                                                   false,
		`{"a":"\\\\"} {"second":1}`:                                                              false,
		"\ufeff[{}]":                                                                             false,
		" {}\n":                                                                                  false,
		strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000):                              false,
	} {
		if got := response.Useless([]byte(body)); got != want {
			t.Errorf("%v: %.80q", got, body)
		}
	}
}

func TestPartsOfBodiesThatNoClientCanUse(t *testing.T) {
	t.Parallel()
	for part, want := range map[string]bool{"": false, "  ": false, `{"a`: false, "[": false, " <ht": true, "no": true} {
		if got := response.BeginsUseless([]byte(part)); got != want {
			t.Errorf("begins with %q: %v", part, got)
		}
	}
	for parts, want := range map[[2]string]bool{
		{"", ""}: false, {"x", "}\n"}: false, {"}", " "}: false, {"]", ""}: false, {"}", "x"}: true, {`"a`, ""}: true,
	} {
		if got := response.EndsUseless([]byte(parts[0]), []byte(parts[1])); got != want {
			t.Errorf("ends with %q: %v", parts, got)
		}
	}
}
