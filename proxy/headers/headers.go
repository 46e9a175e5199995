// Package headers says which headers cross the proxy, and which end at it: those of one connection,
// and the credentials of either side.
//
// It writes no headers of the proxy's own. Names are in canonical form, as net/http has them. Its
// functions keep no state and are safe for concurrent use as long as nobody changes the headers
// they are given.
package headers

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// OwnPrefix starts the headers that only the proxy writes, two that clients may send aside.
const OwnPrefix = "X-Signalbox-"

// limitPrefix starts the headers by which the API tells a client its limits.
const limitPrefix = "X-Ratelimit-"

// The headers of a client that end here beside those of stays. Who or what the client is, and what
// it may do elsewhere, is told by so many proxies, clouds and vaults that most are known by a part
// of their name: how it begins, or how it ends.
//
//nolint:gochecknoglobals // constant tables
var (
	privateNames = [...]string{
		"Authorization", "Cookie", "Api-Key", "Apikey", "X-Auth-Key", "X-Auth-Email", "X-Auth-User",
		"Forwarded", "X-Real-Ip", "True-Client-Ip", "X-Client-Ip", "X-Cluster-Client-Ip",
		"Fastly-Client-Ip", "Cf-Connecting-Ip", "X-Envoy-External-Address",
		"Remote-User", "X-Remote-User", "X-Webauth-User",
		"X-Client-Cert", "X-Ssl-Client-Cert", "Client-Cert", "Client-Cert-Chain",
		"Metadata", "Metadata-Flavor", // what clouds want of who asks for a machine's credentials
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

// stays reports whether a header of the client ends here: the headers of one connection (RFC 9110,
// section 7.6.1), and those that belong to the client's side of this proxy: its credentials, its
// cookies, its word about where it comes from, and its Baggage, which a model server could take for
// that of whoever operates it (W3C Baggage). A name with an underscore is taken for the one that a
// server may read it as.
func stays(name string) bool {
	if strings.Contains(name, "_") {
		name = Fold(name)
		if name == "Content-Type" || name == "Content-Encoding" {
			return true // there would be two, and a body read as the other one says
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

// ForUpstream makes the head of the upstream request. id is the request's, bearer the endpoint's
// header Authorization, empty when it has none. Values are shared with in and must not be changed.
// Accept-Encoding stays here: responses are read on their way, and a server that is not told may
// choose to compress them (RFC 9110, section 12.5.3).
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
		out["User-Agent"] = nil // or the transport adds its own
	}
	// Present but empty, it is not sent, and tells the transport that it may repeat the request on
	// a fresh connection when a reused one ended without a byte of a response (net/http,
	// Request.isReplayable).
	if _, ok := out["X-Idempotency-Key"]; !ok {
		out["X-Idempotency-Key"] = nil
	}
	return out
}

// connectionListed returns the header names that Connection makes hop-by-hop.
func connectionListed(h http.Header) []string {
	var out []string
	for _, line := range h["Connection"] {
		for name := range strings.SplitSeq(line, ",") {
			out = append(out, http.CanonicalHeaderKey(strings.TrimSpace(name)))
		}
	}
	return out
}

// corsPrefix starts the headers by which a server lets pages of other sites read its responses.
const corsPrefix = "Access-Control-"

// ForClient passes an upstream's head, src, on to dst, less what belongs to its connection, its
// cookies, what it allows pages of other sites and what only the proxy may say. Values are shared
// with src.
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
			continue // the client's limits are those of the proxy
		}
		dst[name] = values
	}
}

// DropStale removes the headers that speak of the bytes of a response as the upstream sent it (RFC
// 9530; RFC 9110, section 8.8).
func DropStale(h http.Header) {
	for _, name := range [...]string{"Content-Length", "Content-Digest", "Repr-Digest", "Digest", "Content-Md5", "Etag"} {
		delete(h, name)
	}
}

// DropBody removes the headers that speak of a body, in whatever form, where another one takes its
// place: with the coding of the first one nobody could read it, and caches would keep it.
func DropBody(h http.Header) {
	DropStale(h)
	for _, name := range [...]string{
		"Content-Encoding", "Content-Language", "Content-Disposition", "Content-Location", "Content-Range",
		"Cache-Control", "Expires", "Last-Modified", "Age",
	} {
		delete(h, name)
	}
}

// RetryAfter reads how long a server asks to be left alone: seconds or a date (RFC 9110, section
// 10.2.3), and parts of a second, which the standard does not know but some servers send. It is not
// ok without one, or with one that cannot be read or is negative. A date that has passed is 0.
func RetryAfter(h http.Header, now time.Time) (wait time.Duration, ok bool) {
	s := h.Get("Retry-After")
	whole, part, _ := strings.Cut(s, ".")
	if n, err := strconv.ParseUint(whole, 10, 63); err == nil {
		fraction, err := strconv.ParseFloat("0."+part+"0", 64)
		if err == nil && !strings.ContainsAny(part, "eE") { // "1.5e9" is not a wait
			return time.Duration((float64(min(n, maxSeconds)) + fraction) * float64(time.Second)), true
		}
	}
	if t, err := http.ParseTime(s); err == nil {
		return max(0, t.Sub(now)), true
	}
	return 0, false
}

// maxSeconds is more than any wait and less than a time.Duration holds.
const maxSeconds = 1 << 32

// CapRetryAfter leaves in h a Retry-After that a client can take at its word: in seconds, of at
// most limit, or none where what is there cannot be read.
// Clients that know Retry-After-Ms take that before it, so that goes by the same.
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

// Fold returns the canonical form of a name in the spelling that servers behind this one may take
// it for: those that hand headers on as variables have one name for both a dash and an underscore
// (RFC 3875, section 4.1.18).
func Fold(name string) string {
	if strings.Contains(name, "_") {
		name = strings.ReplaceAll(name, "_", "-")
	}
	return http.CanonicalHeaderKey(name)
}

// engineNames and enginePrefixes are the headers by which parts of serving systems tell each other
// where a request is to be worked on, and the beginnings of names that their makers keep for
// themselves: vLLM, the gateway and the sidecar of llm-d, NVIDIA Dynamo, and the gateway of SGLang.
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

// EngineNames lists the known headers that steer model servers, in canonical form. Others are known
// by how they begin; see Engine.
func EngineNames() []string { return slices.Clone(engineNames[:]) }

// Engine reports whether a header, in any spelling, is for parts of a serving system and not for
// clients.
func Engine(name string) bool {
	if len(name) < 2 || name[0]|0x20 != 'x' { // as all of them begin
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

// DropAnthropic takes the headers of Anthropic's API out of the head of a chat completion.
func DropAnthropic(h http.Header) {
	for name := range h {
		if strings.HasPrefix(name, "Anthropic-") {
			delete(h, name)
		}
	}
}
