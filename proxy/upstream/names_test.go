package upstream

import (
	"testing"

	"signalbox/stream/response"
)

func TestNamesOfAResponse(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, body string
		stream     bool
		want       Names
	}{
		{"a completion", `{"id":"a","object":"chat.completion","model":"m","choices":[]}`, false, Names{"a", "m"}},
		{"members in another order", `{"choices":[{"message":{"content":"{\"id\":\"x\"}","tool_calls":[{"id":"call"}]}}],"id":"a","model":"m"}`, false, Names{"a", "m"}},
		{"one that is cut", `{"id":"a","model":"m","choices":[{"mess`, false, Names{"a", "m"}},
		{"a message", `{"model":"m","id":"a","type":"message","content":[{"type":"text","id":"no"}]}`, false, Names{"a", "m"}},
		{"an id that is a number", `{"id":7,"model":"m"}`, false, Names{"", "m"}},
		{"no names", `{"choices":[]}`, false, Names{}},
		{"no JSON", `<html>"id":"a"</html>`, false, Names{}},
		{"nothing", ``, false, Names{}},
		{"a stream", "data: {\"id\":\"a\",\"model\":\"m\",\"choices\":[]}\n\ndata: {\"id\":\"b\"}\n\n", true, Names{"a", "m"}},
		{"a stream behind a comment", ": wait\n\ndata:{\"id\":\"a\",\"model\":\"m\"}\n\n", true, Names{"a", "m"}},
		{"a stream of a response", "event: response.created\ndata: {\"type\":\"response.created\",\"response\":{\"id\":\"a\",\"model\":\"m\"}}\n\n", true, Names{"a", "m"}},
		{"a stream of a message", "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"a\",\"role\":\"assistant\",\"model\":\"m\"}}\n\n", true, Names{"a", "m"}},
	} {
		u := Response{asks: true}
		if c.stream {
			u.Stream = response.TakeStream(response.StreamOptions{})
			defer u.Stream.Release()
		}
		if u.find([]byte(c.body)); u.told != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, u.told, c.want)
		}
	}
	u := Response{}
	if u.find([]byte(`{"id":"a","model":"m"}`)); u.told != (Names{}) {
		t.Errorf("names that nobody asked for: %+v", u.told)
	}
}
