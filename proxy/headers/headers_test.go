package headers

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWhatAClientSendsReachesTheModelOnlyWhenItIsMeantForIt(t *testing.T) {
	t.Parallel()
	in := http.Header{
		"Accept": {"*/*"}, "Traceparent": {"00-1"}, "User-Agent": {"sdk"}, "Openai-Beta": {"x"}, // meant for it
		"Connection": {"keep-alive, x-hop"}, "X-Hop": {"1"}, "Te": {"trailers"}, "Accept-Encoding": {"gzip"}, "Content-Length": {"3"}, // of one connection
		"Authorization": {"Bearer client"}, "Cookie": {"c"}, "X-Api-Key": {"k"}, "X-Forwarded-For": {"10.0.0.1"}, // of the client's side
		"X-Signalbox-Session": {"s"}, "X-Request-Id": {"theirs"}, // for the proxy
	}
	want := http.Header{
		"Accept": {"*/*"}, "Traceparent": {"00-1"}, "User-Agent": {"sdk"}, "Openai-Beta": {"x"},
		"Authorization": {"Bearer backend"}, "X-Request-Id": {"ours"}, "X-Idempotency-Key": nil,
	}
	if diff := cmp.Diff(want, ForUpstream(in, "ours", "Bearer backend")); diff != "" {
		t.Errorf("headers (-want +got):\n%s", diff)
	}
	bare := http.Header{"User-Agent": nil, "X-Request-Id": {"ours"}, "X-Idempotency-Key": nil}
	if diff := cmp.Diff(bare, ForUpstream(http.Header{"Authorization": {"Bearer client"}}, "ours", "")); diff != "" {
		t.Errorf("headers without a key (-want +got):\n%s", diff)
	}
}

func TestWhatAModelServerAnswersReachesTheClientWithoutItsOwn(t *testing.T) {
	t.Parallel()
	src := http.Header{
		"Content-Type": {"application/json"}, "Retry-After": {"1"}, "Content-Length": {"7"},
		"Connection": {"x-hop"}, "X-Hop": {"1"}, "Set-Cookie": {"c"}, "Server-Timing": {"t"}, "X-Request-Id": {"theirs"}, "X-Signalbox-Route": {"forged"},
	}
	dst := http.Header{"X-Request-Id": {"ours"}, "X-Signalbox-Route": {"real"}}
	ForClient(dst, src)
	want := http.Header{
		"Content-Type": {"application/json"}, "Retry-After": {"1"}, "Content-Length": {"7"}, "X-Request-Id": {"ours"}, "X-Signalbox-Route": {"real"},
	}
	if diff := cmp.Diff(want, dst); diff != "" {
		t.Errorf("headers (-want +got):\n%s", diff)
	}
	DropStale(dst)
	delete(want, "Content-Length")
	if diff := cmp.Diff(want, dst); diff != "" {
		t.Errorf("headers of a body that was changed (-want +got):\n%s", diff)
	}
}
