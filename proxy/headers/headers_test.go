package headers

import (
	"net/http"
	"testing"
	"time"

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
		"Accept-Encoding": {"identity"},
	}
	if diff := cmp.Diff(want, ForUpstream(in, "ours", "Bearer backend")); diff != "" {
		t.Errorf("headers (-want +got):\n%s", diff)
	}
	bare := http.Header{
		"User-Agent": nil, "X-Request-Id": {"ours"}, "X-Idempotency-Key": nil, "Accept-Encoding": {"identity"},
	}
	if diff := cmp.Diff(bare, ForUpstream(http.Header{"Authorization": {"Bearer client"}}, "ours", "")); diff != "" {
		t.Errorf("headers without a key (-want +got):\n%s", diff)
	}
}

func TestWhatAModelServerAnswersReachesTheClientWithoutItsOwn(t *testing.T) {
	t.Parallel()
	src := http.Header{
		"Content-Type": {"application/json"}, "Retry-After": {"1"}, "Content-Length": {"7"},
		"Connection": {"x-hop"}, "X-Hop": {"1"}, "Set-Cookie": {"c"}, "Server-Timing": {"t"}, "X-Request-Id": {"theirs"}, "X-Signalbox-Route": {"forged"},
		"Access-Control-Allow-Origin": {"*"}, "Timing-Allow-Origin": {"*"}, "Access-Control-Allow-Credentials": {"true"},
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

func TestWaitsAreReadAsServersWriteThem(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for written, want := range map[string]string{
		"7": "7", "0": "0", "0.5": "1", "1e40": "", "99999": "60", "2.25": "3", "1.x": "", "1.5e30": "", "1.5e1": "", ".5": "", "5.e3": "",
		"Fri, 02 Jan 2026 03:04:08 GMT": "3",
		"Thu, 01 Jan 2026 03:04:08 GMT": "0", "-1": "", "NaN": "", "soon": "", "": "",
	} {
		h := http.Header{"Retry-After": {written}}
		CapRetryAfter(h, now, time.Minute)
		if got := h.Get("Retry-After"); got != want {
			t.Errorf("%q becomes %q, want %q", written, got, want)
		}
	}
}

func TestWaitsInMillisecondsAreCutAsThoseInSeconds(t *testing.T) {
	t.Parallel()
	for written, want := range map[string]string{
		"7": "7", "1500.5": "1500.5", "60000": "60000", "3600000": "60000", "1e40": "60000",
		"-1": "", "NaN": "", "soon": "", "": "",
	} {
		h := http.Header{"Retry-After-Ms": {written}}
		CapRetryAfter(h, time.Now(), time.Minute)
		if got := h.Get("Retry-After-Ms"); got != want {
			t.Errorf("%q becomes %q, want %q", written, got, want)
		}
	}
}

// S36: credentials in any header that servers behind or in front of the proxy use for them.
func TestCredentialsEndHereInEverySpelling(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"Proxy-Connection", "X_Api_Key", "X_api-key", "API_KEY", "X_Forwarded_For",
		"X-Forwarded_Client_Cert", "Proxy_Authorization",
		"X_Signalbox_Session", "X_Request_Id", "Transfer_Encoding", "Content_Length",
		"Content_Type", "Content_Encoding",
		"X-Vault-Token", "X-Vault-Namespace", "X-Amz-Security-Token", "X-Aws-Ec2-Metadata-Token",
		"X-Amzn-Oidc-Identity",
		"X-Goog-Authenticated-User-Email", "X-Goog-User-Project", "X_Goog_Api_Key",
		"Metadata-Flavor", "Metadata",
		"X-Ms-Token-Aad-Access-Token", "X-Ms-Client-Principal", "X-Auth-Token", "X-Access-Token",
		"X-Consul-Token",
		"Private-Token", "X-Gitlab-Token", "X-Csrf-Token", "Anthropic-Api-Key", "X-Openai-Apikey",
		"Client-Secret",
		"X-Db-Password", "X-Original-Authorization", "X-Client-Jwt", "Cf-Access-Client-Id",
		"Cf-Access-Client-Secret",
		"Cf-Connecting-Ip", "X-Client-Ip", "Fastly-Client-Ip", "X-Original-Forwarded-For",
		"X-Remote-User", "Remote-User",
		"X-Ssl-Client-Cert", "X-Client-Cert", "X-Webauth-User", "X-Authentik-Username",
		"X-Auth-Key", "X-Auth-Email",
		"Tailscale-User-Login", "X-Envoy-External-Address",
	} {
		name = http.CanonicalHeaderKey(name)
		if got := ForUpstream(http.Header{name: {"secret"}}, "ours", ""); len(got[name]) > 0 {
			t.Errorf("%s passes", name)
		}
	}
}

func TestHeadersOfApplicationsPassInEverySpelling(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"X-Custom", "X_custom", "Openai-Organization", "Openai-Project", "Openai-Beta",
		"X-Stainless-Lang", "Helicone-Cache",
		"X-Tokenizer", "X-Secretary", "X-Session-Id", "Http-Referer", "X-Title", "Accept-Language",
		"Content-Type", "X-Max-Tokens",
	} {
		name = http.CanonicalHeaderKey(name)
		if got := ForUpstream(http.Header{name: {"v"}}, "ours", ""); len(got[name]) != 1 {
			t.Errorf("%s does not pass", name)
		}
	}
}
