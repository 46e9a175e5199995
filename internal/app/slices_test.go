package app

import (
	"encoding/pem"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// cluster is an API server as a Pod sees it.
func cluster(t *testing.T, answer http.HandlerFunc) *kubernetes {
	t.Helper()
	api := httptest.NewTLSServer(answer)
	t.Cleanup(api.Close)
	dir := t.TempDir()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: api.Certificate().Raw})
	for name, data := range map[string]string{"token": "secret\n", "ca.crt": string(ca), "namespace": "models"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	u, err := url.Parse(api.URL)
	if err != nil {
		t.Fatal(err)
	}
	host, port, err := net.SplitHostPort(u.Host)
	if err != nil {
		t.Fatal(err)
	}
	return &kubernetes{folder: dir, env: func(name string) (string, bool) {
		return map[string]string{"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port}[name], true
	}}
}

// Two slices of one service, as a cluster writes them: one Pod is starting, one ends.
const twoSlices = `{"kind": "EndpointSliceList", "items": [
	{"addressType": "IPv4", "ports": [{"name": "http", "port": 8000, "protocol": "TCP"}, {"name": "metrics", "port": 9000}],
	 "endpoints": [
		{"addresses": ["10.0.0.1"], "conditions": {"ready": true, "serving": true, "terminating": false}},
		{"addresses": ["10.0.0.2"], "conditions": {"ready": false, "serving": false, "terminating": false}},
		{"addresses": ["10.0.0.3"], "conditions": {"ready": false, "serving": true, "terminating": true}}]},
	{"addressType": "IPv6", "ports": [{"name": "", "port": 8000}], "endpoints": [{"addresses": ["fd00::4"], "conditions": {}}, {"addresses": []}]}]}`

func TestPodsOfAServiceAreFoundByTheirSlices(t *testing.T) {
	var asked *http.Request
	k := cluster(t, func(w http.ResponseWriter, r *http.Request) {
		asked = r
		_, _ = io.WriteString(w, twoSlices)
	})
	for _, tc := range []struct {
		host, port, path string
		want             []found
	}{
		{"qwen", "", "/apis/discovery.k8s.io/v1/namespaces/models/endpointslices", []found{{"10.0.0.1", 8000, 0}, {"fd00::4", 8000, 0}}},
		{"qwen.other.svc.cluster.local", "80", "/apis/discovery.k8s.io/v1/namespaces/other/endpointslices", []found{{"10.0.0.1", 8000, 0}, {"fd00::4", 8000, 0}}},
		{"qwen.other", "9000", "/apis/discovery.k8s.io/v1/namespaces/other/endpointslices", []found{{"10.0.0.1", 9000, 0}, {"fd00::4", 8000, 0}}},
	} {
		got, err := k.find(t.Context(), tc.host, tc.port)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(tc.want, got, cmp.AllowUnexported(found{})); d != "" {
			t.Errorf("%s:%s (-want +got):\n%s", tc.host, tc.port, d)
		}
		if asked.URL.Path != tc.path || asked.URL.Query().Get("labelSelector") != "kubernetes.io/service-name=qwen" ||
			asked.Header.Get("Authorization") != "Bearer secret" {
			t.Errorf("asked %s with %q", asked.URL, asked.Header)
		}
	}
}

// TestAPodOfADualStackServiceIsOneServer checks that a Pod in slices of both address families is
// one endpoint, with the same address whatever the order of the slices.
func TestAPodOfADualStackServiceIsOneServer(t *testing.T) {
	const four = `{"addressType": "IPv4", "ports": [{"port": 8000}], "endpoints": [
		{"addresses": ["10.0.0.1"], "targetRef": {"uid": "one"}}, {"addresses": ["10.0.0.2"], "targetRef": {"uid": "two"}}]}`
	const six = `{"addressType": "IPv6", "ports": [{"port": 8000}], "endpoints": [
		{"addresses": ["fd00::1"], "targetRef": {"uid": "one"}}, {"addresses": ["fd00::2"], "targetRef": {"uid": "two"}}]}`
	for _, items := range []string{four + "," + six, six + "," + four} {
		k := cluster(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"items": [`+items+`]}`) })
		got, err := k.find(t.Context(), "qwen", "")
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff([]found{{"10.0.0.1", 8000, 0}, {"10.0.0.2", 8000, 0}}, got, cmp.AllowUnexported(found{})); d != "" {
			t.Errorf("(-want +got):\n%s", d)
		}
	}
}

func TestWhyPodsAreNotFound(t *testing.T) {
	for name, tc := range map[string]struct {
		answer http.HandlerFunc
		spoil  func(k *kubernetes)
		want   string
	}{
		"not allowed": {
			answer: func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(http.StatusForbidden)
				_, _ = io.WriteString(w, `{"kind": "Status", "message": "endpointslices is forbidden: User \"x\" cannot list"}`)
			},
			want: "403 Forbidden: endpointslices is forbidden",
		},
		"no cluster": {
			spoil: func(k *kubernetes) { k.env = nil },
			want:  "KUBERNETES_SERVICE_HOST is not set",
		},
		"no account": {
			spoil: func(k *kubernetes) { k.folder = filepath.Join(k.folder, "nothing") },
			want:  "namespace of qwen",
		},
		"no JSON": {
			answer: func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>") },
			want:   "the API server's answer",
		},
		"a redirect": {
			answer: func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, "https://example.com", http.StatusFound)
			},
			want: "302 Found",
		},
		"a port that is none": {
			answer: func(w http.ResponseWriter, _ *http.Request) {
				_, _ = io.WriteString(w, strings.ReplaceAll(twoSlices, `"http"`, `"grpc"`))
			},
			want: "named http",
		},
	} {
		t.Run(name, func(t *testing.T) {
			k := cluster(t, tc.answer)
			if tc.spoil != nil {
				tc.spoil(k)
			}
			if got, err := k.find(t.Context(), "qwen", ""); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, %v; want %q", got, err, tc.want)
			}
		})
	}
}
