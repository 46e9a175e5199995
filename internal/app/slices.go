package app

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// kubernetes asks the API server of the cluster that the process runs in for EndpointSlices
// (discovery.k8s.io/v1, stable since Kubernetes 1.21). Its account needs to get and list them. It is
// safe for concurrent use.
type kubernetes struct {
	env    func(name string) (string, bool) // nil is empty
	folder string                           // of the service account: token, ca.crt, namespace

	mu     sync.Mutex // guards client, which is made once
	client *http.Client
}

func newKubernetes(env func(string) (string, bool)) *kubernetes {
	return &kubernetes{env: env, folder: "/var/run/secrets/kubernetes.io/serviceaccount"}
}

// variable reads one of the environment.
func (k *kubernetes) variable(name string) string {
	if k.env == nil {
		return ""
	}
	value, _ := k.env(name)
	return value
}

// errNoCluster says that the process does not run in a cluster.
var errNoCluster = errors.New("resolve: endpointslice requires a Pod with a service account: " +
	"KUBERNETES_SERVICE_HOST is not set")

// maxSlices bounds the answer of the API server: some 20,000 endpoints.
const maxSlices = 16 << 20

// slice is what is read of an EndpointSlice.
type slice struct {
	AddressType string `json:"addressType"` // IPv4 or IPv6
	Endpoints   []struct {
		Addresses  []string `json:"addresses"`
		Conditions struct {
			Ready *bool `json:"ready"` // absent is ready
		} `json:"conditions"`
		Target struct {
			UID string `json:"uid"` // of the Pod
		} `json:"targetRef"`
	} `json:"endpoints"`
	Ports []struct {
		Name string `json:"name"`
		Port int    `json:"port"`
	} `json:"ports"`
}

// port returns the port of the Pods: the only one, that of the given number, or that called http; 0
// where none of these is there.
func (s *slice) port(wanted string) (number int) {
	for _, p := range s.Ports {
		if len(s.Ports) == 1 || strconv.Itoa(p.Port) == wanted || number == 0 && p.Name == "http" {
			number = p.Port
		}
	}
	return number
}

// find returns the servers of a service that are ready. host is SERVICE, SERVICE.NAMESPACE or the
// DNS name of a service; port is that of the URL, which names a port of the Pods where they have
// several, by its number. A Pod of a dual-stack service is in slices of both families; it is
// returned once, with its IPv4 address.
func (k *kubernetes) find(ctx context.Context, host, port string) (out []found, err error) {
	service, rest, _ := strings.Cut(host, ".")
	namespace, _, _ := strings.Cut(rest, ".")
	if namespace == "" {
		own, err := os.ReadFile(filepath.Join(k.folder, "namespace"))
		if err != nil {
			return nil, fmt.Errorf("namespace of %s: %w", host, err)
		}
		namespace = strings.TrimSpace(string(own))
	}
	list, err := k.list(ctx, namespace, service)
	if err != nil {
		return nil, fmt.Errorf("EndpointSlices of %s: %w", host, err)
	}
	slices.SortStableFunc(list, func(a, b slice) int { return strings.Compare(a.AddressType, b.AddressType) })
	seen := map[string]string{} // the family of each Pod
	for _, s := range list {
		number := s.port(port)
		if number == 0 {
			return nil, fmt.Errorf("%s has no port that is %q or named http", host, port)
		}
		for _, e := range s.Endpoints {
			pod := e.Target.UID
			if family := seen[pod]; pod != "" && family != "" && family != s.AddressType {
				continue
			}
			if ready := e.Conditions.Ready; len(e.Addresses) > 0 && (ready == nil || *ready) {
				seen[pod] = s.AddressType
				out = append(out, found{address: e.Addresses[0], port: number})
			}
		}
	}
	return out, nil
}

// list asks for the EndpointSlices of a service.
func (k *kubernetes) list(ctx context.Context, namespace, service string) ([]slice, error) {
	host := k.variable("KUBERNETES_SERVICE_HOST")
	if host == "" {
		return nil, errNoCluster
	}
	client, err := k.connect()
	if err != nil {
		return nil, err
	}
	token, err := os.ReadFile(filepath.Join(k.folder, "token")) // it is replaced every hour or so
	if err != nil {
		return nil, err
	}
	u := url.URL{
		Scheme: "https", Host: net.JoinHostPort(host, k.variable("KUBERNETES_SERVICE_PORT")),
		Path:     "/apis/discovery.k8s.io/v1/namespaces/" + namespace + "/endpointslices",
		RawQuery: url.Values{"labelSelector": {"kubernetes.io/service-name=" + service}}.Encode(),
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	req.Header.Set("Accept", "application/json")
	res, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = res.Body.Close() }()
	body := io.LimitReader(res.Body, maxSlices)
	if res.StatusCode != http.StatusOK {
		var status struct{ Message string }
		_ = json.NewDecoder(body).Decode(&status)
		return nil, fmt.Errorf("the API server returned %s: %s", res.Status, status.Message)
	}
	var all struct{ Items []slice }
	if err := json.NewDecoder(body).Decode(&all); err != nil {
		return nil, fmt.Errorf("the API server's answer: %w", err)
	}
	return all.Items, nil
}

// connect makes the client, which trusts the cluster's authority alone.
func (k *kubernetes) connect() (*http.Client, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.client != nil {
		return k.client, nil
	}
	file := filepath.Join(k.folder, "ca.crt")
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s holds no certificate", file)
	}
	k.client = &http.Client{
		Transport: &http.Transport{
			TLSClientConfig:   &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
			DisableKeepAlives: true, // a question every ten seconds
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return k.client, nil
}
