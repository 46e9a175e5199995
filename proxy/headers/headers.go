// Package headers defines which headers cross the proxy and which end at it: those of one
// connection, and the credentials of either side.
//
// It writes no headers of the proxy's own. Names are in canonical form, as in net/http. Its
// functions keep no state and are safe for concurrent use as long as nobody changes the headers
// passed to them.
package headers

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// OwnPrefix is the prefix of the headers that only the proxy writes, except for two that clients
// may send.
const OwnPrefix = "X-Signalbox-"

// limitPrefix is the prefix of the headers that report the API's limits.
const limitPrefix = "X-Ratelimit-"

// The client headers that end here in addition to those in stays. Many proxies, clouds and vaults
// identify a client and its permissions in headers. Most of these are recognised by a part of their
// name, its beginning or its end.
//
//nolint:gochecknoglobals // constant tables
var (
	privateNames = [...]string{
		"Authorization", "Cookie", "Api-Key", "Apikey", "X-Auth-Key", "X-Auth-Email", "X-Auth-User",
		"Forwarded", "X-Real-Ip", "True-Client-Ip", "X-Client-Ip", "X-Cluster-Client-Ip",
		"Fastly-Client-Ip", "Cf-Connecting-Ip", "X-Envoy-External-Address",
		"Remote-User", "X-Remote-User", "X-Webauth-User",
		"X-Client-Cert", "X-Ssl-Client-Cert", "Client-Cert", "Client-Cert-Chain",
		// required by clouds when a machine's credentials are requested
		"Metadata", "Metadata-Flavor",
		"Baggage",
	}
	privatePrefixes = [...]string{
		OwnPrefix, "X-Forwarded-", "X-Auth-Request-", "X-Goog-", "X-Amzn-Oidc-", "X-Vault-",
		"X-Aws-Ec2-", "X-Ms-Token-", "X-Ms-Client-Principal", "Cf-Access-", "X-Authentik-",
		"Tailscale-User-",
	}
	privateSuffixes = [...]string{
		"-Token", "-Api-Key", "-Apikey", "-Secret", "-Password", "-Authorization",
		"-Jwt", "-Jwt-Assertion", "-Forwarded-For",
	}
)

// stays reports whether a client header is not forwarded. These are the headers of one connection
// (RFC 9110, section 7.6.1), and those that belong to the client's side of the proxy: credentials,
// cookies, origin addresses, and Baggage, which a model server could mistake for its operator's
// (W3C Baggage). A name with an underscore is treated like the name that a server may read it as.
func stays(name string) bool {
	if strings.Contains(name, "_") {
		name = Fold(name)
		if name == "Content-Type" || name == "Content-Encoding" {
			return true // it would be a second one, and the body would be read as that one says
		}
	}
	switch name {
	case "Connection", "Keep-Alive", "Proxy-Connection", "Proxy-Authenticate", "Te", "Trailer",
		"Transfer-Encoding", "Upgrade", "Http2-Settings", "Content-Length", "Expect", "Host",
		"Accept-Encoding", "X-Request-Id":
		return true
	}
	if slices.Contains(privateNames[:], name) {
		return true
	}
	return slices.ContainsFunc(privatePrefixes[:], func(s string) bool { return strings.HasPrefix(name, s) }) ||
		slices.ContainsFunc(privateSuffixes[:], func(s string) bool { return strings.HasSuffix(name, s) })
}

// ForUpstream returns the head of the upstream request. id is the request id, bearer the
// Authorization header of the endpoint, empty if it has none. Values are shared with in and must
// not be changed. Accept-Encoding is set to identity: the proxy reads responses, and a server
// without this header may compress them (RFC 9110, section 12.5.3).
func ForUpstream(in http.Header, id, bearer string) http.Header {
	out := make(http.Header, len(in)+4)
	listed := connectionListed(in)
	for name, values := range in {
		if !stays(name) && !slices.Contains(listed, name) {
			out[name] = values
		}
	}
	out["X-Request-Id"], out["Accept-Encoding"] = []string{id}, []string{"identity"}
	if bearer != "" {
		out["Authorization"] = []string{bearer}
	}
	if _, ok := out["User-Agent"]; !ok {
		out["User-Agent"] = nil // otherwise the transport adds its own
	}
	// Present but empty, the header is not sent, and tells the transport that it may repeat the
	// request on a new connection when a reused one closed before the first byte of a response
	// (net/http, Request.isReplayable).
	if _, ok := out["X-Idempotency-Key"]; !ok {
		out["X-Idempotency-Key"] = nil
	}
	return out
}

// connectionListed returns the header names that Connection declares hop-by-hop.
func connectionListed(h http.Header) []string {
	var out []string
	for _, line := range h["Connection"] {
		for name := range strings.SplitSeq(line, ",") {
			out = append(out, http.CanonicalHeaderKey(strings.TrimSpace(name)))
		}
	}
	return out
}

// corsPrefix is the prefix of the headers that allow pages of other sites to read a response.
const corsPrefix = "Access-Control-"

// ForClient copies an upstream's head from src to dst, except for the headers of its connection,
// its cookies, its permissions for other sites and the headers that only the proxy may write.
// Values are shared with src.
func ForClient(dst, src http.Header) {
	listed := connectionListed(src)
	for name, values := range src {
		switch name {
		case "Connection", "Keep-Alive", "Proxy-Connection", "Proxy-Authenticate", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
			"Set-Cookie", "Alt-Svc", "Server-Timing", "Timing-Allow-Origin",
			"Cross-Origin-Resource-Policy", "X-Request-Id", "X-Accel-Buffering":
			continue
		}
		if strings.HasPrefix(name, OwnPrefix) || strings.HasPrefix(name, corsPrefix) || slices.Contains(listed, name) {
			continue
		}
		if strings.HasPrefix(name, limitPrefix) && len(dst[name]) > 0 {
			continue // the client's limits are the proxy's
		}
		dst[name] = values
	}
}

// DropStale removes the headers that describe the bytes of a response as the upstream sent it (RFC
// 9530; RFC 9110, section 8.8).
func DropStale(h http.Header) {
	for _, name := range [...]string{"Content-Length", "Content-Digest", "Repr-Digest", "Digest", "Content-Md5", "Etag"} {
		delete(h, name)
	}
}

// DropBody removes the headers that describe a body, when another body replaces it. The old content
// coding would make the new body unreadable, and caches would store it.
func DropBody(h http.Header) {
	DropStale(h)
	for _, name := range [...]string{
		"Content-Encoding", "Content-Language", "Content-Disposition", "Content-Location", "Content-Range",
		"Cache-Control", "Expires", "Last-Modified", "Age",
	} {
		delete(h, name)
	}
}

// RetryAfter returns how long a server asks to be left alone: seconds or a date (RFC 9110, section
// 10.2.3), also with fractions of a second, which are not in the standard but some servers send. ok
// is false when the header is missing, invalid or negative. A date in the past gives 0.
func RetryAfter(h http.Header, now time.Time) (wait time.Duration, ok bool) {
	s := h.Get("Retry-After")
	whole, part, _ := strings.Cut(s, ".")
	if n, err := strconv.ParseUint(whole, 10, 63); err == nil {
		fraction, err := strconv.ParseFloat("0."+part+"0", 64)
		if err == nil && !strings.ContainsAny(part, "eE") { // "1.5e9" is not a valid wait
			return time.Duration((float64(min(n, maxSeconds)) + fraction) * float64(time.Second)), true
		}
	}
	if t, err := http.ParseTime(s); err == nil {
		return max(0, t.Sub(now)), true
	}
	return 0, false
}

// maxSeconds exceeds any real wait and fits into a time.Duration.
const maxSeconds = 1 << 32

// CapRetryAfter reduces the Retry-After in h to at most limit, in whole seconds, and removes an
// invalid one. It does the same for Retry-After-Ms, in milliseconds, which some clients prefer.
func CapRetryAfter(h http.Header, now time.Time, limit time.Duration) {
	if ms := h["Retry-After-Ms"]; len(ms) > 0 {
		n, err := strconv.ParseFloat(ms[0], 64)
		if err != nil || !(n >= 0) {
			delete(h, "Retry-After-Ms")
		} else if n > float64(limit.Milliseconds()) {
			h["Retry-After-Ms"] = []string{strconv.FormatInt(limit.Milliseconds(), 10)}
		}
	}
	if len(h["Retry-After"]) == 0 {
		return
	}
	wait, ok := RetryAfter(h, now)
	if !ok {
		delete(h, "Retry-After")
		return
	}
	h["Retry-After"] = []string{strconv.Itoa(int((min(wait, limit) + time.Second - 1) / time.Second))}
}

// Fold returns the canonical form of a name in the spelling that servers behind the proxy may read
// it as: those that pass headers as variables use one name for both a dash and an underscore (RFC
// 3875, section 4.1.18).
func Fold(name string) string {
	if strings.Contains(name, "_") {
		name = strings.ReplaceAll(name, "_", "-")
	}
	return http.CanonicalHeaderKey(name)
}

// engineNames and enginePrefixes are the headers by which the parts of serving systems tell each
// other where a request is processed, and the prefixes reserved for such headers: vLLM, the gateway
// and sidecar of llm-d, NVIDIA Dynamo, and the gateway of SGLang.
//
//nolint:gochecknoglobals // constant tables
var (
	engineNames = [...]string{
		"X-Data-Parallel-Rank", "X-Data-Parallel-Host-Port", "X-Prefiller-Host-Port",
		"X-Encoder-Hosts-Ports", "X-Kv-Cache-Source-Host-Port",
		"X-Gateway-Destination-Endpoint", "X-Gateway-Destination-Endpoint-Subset",
		"X-Gateway-Model-Name", "X-Gateway-Model-Name-Rewrite",
		"X-Worker-Instance-Id", "X-Prefill-Instance-Id",
	}
	enginePrefixes = [...]string{
		"X-Llm-D-", "X-Gateway-Inference-", "X-Dynamo-", "X-Smg-", "X-Sglang-", "X-Vllm-",
	}
)

// EngineNames lists the known headers that control model servers, in canonical form. Others are
// recognised by prefix; see Engine.
func EngineNames() []string { return slices.Clone(engineNames[:]) }

// Engine reports whether a header, in any spelling, is for the parts of a serving system rather
// than for clients.
func Engine(name string) bool {
	if len(name) < 2 || name[0]|0x20 != 'x' { // all of them begin with X
		return false
	}
	name = Fold(name)
	for _, prefix := range enginePrefixes {
		if len(name) > len(prefix) && strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return slices.Contains(engineNames[:], name)
}

// DropAnthropic removes the headers of Anthropic's API from the head of a chat completion.
func DropAnthropic(h http.Header) {
	for name := range h {
		if strings.HasPrefix(name, "Anthropic-") {
			delete(h, name)
		}
	}
}
