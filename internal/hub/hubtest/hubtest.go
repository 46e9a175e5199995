// Package hubtest is a model hub for tests: two servers on the loopback interface, one that speaks
// the Hugging Face HTTP layout, and one for the storage host that large files are redirected to.
// Production code does not import it.
package hubtest

import (
	"bytes"
	"crypto/sha1" //nolint:gosec // git names blobs by it
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// The names of the two servers in Request.Host and Hub.Intercept.
const (
	HubHost = "hub"
	CDNHost = "cdn"
)

// signature is part of every address of the storage host; it must not appear in a message.
const signature = "X-Signature=tell-nobody"

// File is one file of a repository.
type File struct {
	Path string
	Data []byte
	LFS  bool // served by the storage host
	// Digest is the wrong digest that the hub reports; if empty, it reports the true one.
	Digest string
}

// Repo is one repository with one commit.
type Repo struct {
	Name    string
	Commit  string // 40 hexadecimal digits; derived from the name if empty
	License string
	Files   []File
	Token   string // the token that may see the repository, empty for everybody
	Gated   bool   // files are refused with 403
}

// Request is one received request.
type Request struct {
	Host, Method, Path, Range, IfRange, Authorization string
}

// Hub is the pair of servers. The fields are set before the first request.
type Hub struct {
	// Bare omits sizes and digests from the description, as simple mirrors do. NoTree also omits
	// the trees.
	Bare, NoTree bool
	// PageSize is the number of files on a page of a tree, 0 for all.
	PageSize int
	// Intercept may answer a request itself and then returns true. host is HubHost or CDNHost.
	Intercept func(host string, w http.ResponseWriter, r *http.Request) bool

	hub, cdn *httptest.Server
	repos    map[string]*Repo

	mu       sync.Mutex // guards requests
	requests []Request
}

// New starts both servers; they stop with the test.
func New(tb testing.TB, repos ...*Repo) *Hub {
	tb.Helper()
	h := &Hub{repos: make(map[string]*Repo)}
	for _, r := range repos {
		if r.Commit == "" {
			r.Commit = BlobID([]byte(r.Name))
		}
		h.repos[r.Name] = r
	}
	h.hub = httptest.NewServer(h.serve(HubHost, h.serveHub))
	tb.Cleanup(h.hub.Close)
	h.cdn = httptest.NewServer(h.serve(CDNHost, h.serveCDN))
	tb.Cleanup(h.cdn.Close)
	return h
}

// URL is the endpoint of the hub.
func (h *Hub) URL() string { return h.hub.URL }

// CDN returns the address of the storage host.
func (h *Hub) CDN() string { return h.cdn.URL }

// Signature returns the secret part of every address of the storage host.
func (*Hub) Signature() string { return signature }

// Requests returns the requests received so far.
func (h *Hub) Requests() []Request {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.requests)
}

// Digest returns the SHA-256 of data in hexadecimal digits.
func Digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// BlobID returns git's object id of data.
func BlobID(data []byte) string {
	sum := sha1.Sum(append(fmt.Appendf(nil, "blob %d\x00", len(data)), data...)) //nolint:gosec // git's object ids
	return hex.EncodeToString(sum[:])
}

func (h *Hub) serve(host string, next http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.mu.Lock()
		h.requests = append(h.requests, Request{
			Host: host, Method: r.Method, Path: r.URL.Path, Range: r.Header.Get("Range"), IfRange: r.Header.Get("If-Range"),
			Authorization: r.Header.Get("Authorization"),
		})
		h.mu.Unlock()
		if h.Intercept != nil && h.Intercept(host, w, r) {
			return
		}
		next(w, r)
	})
}

// Refuse responds like the hub.
func Refuse(w http.ResponseWriter, status int, code, message string) {
	if code != "" {
		w.Header().Set("X-Error-Code", code)
	}
	w.Header().Set("X-Error-Message", message)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{"error": message})
}

func (h *Hub) serveHub(w http.ResponseWriter, r *http.Request) {
	path, api := strings.CutPrefix(r.URL.EscapedPath(), "/api/models/")
	parts := strings.SplitN(strings.TrimPrefix(path, "/"), "/", 5)
	if len(parts) < 4 {
		Refuse(w, http.StatusNotFound, "", "not found")
		return
	}
	repo, ok := h.repos[parts[0]+"/"+parts[1]]
	auth := r.Header.Get("Authorization")
	switch {
	case !ok && auth == "", ok && repo.Token != "" && auth == "":
		Refuse(w, http.StatusUnauthorized, "", "Invalid username or password.") // as for anything a stranger may not see
		return
	case !ok:
		Refuse(w, http.StatusNotFound, "RepoNotFound", "Repository not found")
		return
	case repo.Token != "" && auth != "Bearer "+repo.Token:
		Refuse(w, http.StatusUnauthorized, "", "Invalid credentials in Authorization header")
		return
	case parts[3] != "main" && parts[3] != repo.Commit && parts[3] != "refs%2Fpr%2F1":
		Refuse(w, http.StatusNotFound, "RevisionNotFound", "Invalid rev id: "+parts[3])
		return
	}
	switch {
	case api && parts[2] == "revision":
		h.describe(w, repo)
	case api && parts[2] == "tree" && !h.NoTree:
		h.tree(w, r, repo)
	case !api && parts[2] == "resolve" && len(parts) == 5:
		h.resolve(w, r, repo)
	default:
		Refuse(w, http.StatusNotFound, "", "not found")
	}
}

func (f *File) digest() string {
	if f.Digest != "" {
		return f.Digest
	}
	if f.LFS {
		return Digest(f.Data)
	}
	return BlobID(f.Data)
}

func (h *Hub) describe(w http.ResponseWriter, repo *Repo) {
	siblings := make([]map[string]any, 0, len(repo.Files))
	for _, f := range repo.Files {
		s := map[string]any{"rfilename": f.Path}
		if !h.Bare {
			s["size"] = len(f.Data)
			s["blobId"] = BlobID([]byte("pointer")) // of a pointer, for large files
			if f.LFS {
				s["lfs"] = map[string]any{"sha256": f.digest(), "size": len(f.Data), "pointerSize": 135}
			} else {
				s["blobId"] = f.digest()
			}
		}
		siblings = append(siblings, s)
	}
	writeJSON(w, map[string]any{
		"id": repo.Name, "sha": repo.Commit, "siblings": siblings, "tags": []string{"onnx", "license:" + repo.License},
		"gated": repo.Gated,
	})
}

func (h *Hub) tree(w http.ResponseWriter, r *http.Request, repo *Repo) {
	entries := []map[string]any{{"type": "directory", "path": "onnx", "oid": BlobID(nil), "size": 0}}
	for _, f := range repo.Files {
		e := map[string]any{"type": "file", "path": f.Path, "size": len(f.Data), "oid": BlobID(f.Data)}
		if f.LFS {
			e["lfs"] = map[string]any{"oid": f.digest(), "size": len(f.Data), "pointerSize": 135}
		} else {
			e["oid"] = f.digest()
		}
		entries = append(entries, e)
	}
	if h.PageSize > 0 {
		from := 0
		_, _ = fmt.Sscan(r.URL.Query().Get("cursor"), &from)
		to := min(from+h.PageSize, len(entries))
		if to < len(entries) {
			w.Header().Set("Link", fmt.Sprintf(`<%s%s?recursive=true&cursor=%d>; rel="next"`, h.hub.URL, r.URL.EscapedPath(), to))
		}
		entries = entries[from:to]
	}
	writeJSON(w, entries)
}

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}

func (h *Hub) resolve(w http.ResponseWriter, r *http.Request, repo *Repo) {
	if repo.Gated {
		Refuse(w, http.StatusForbidden, "GatedRepo", "Access to model "+repo.Name+" is restricted")
		return
	}
	name := strings.SplitN(strings.TrimPrefix(r.URL.Path, "/"), "/", 5)[4]
	i := slices.IndexFunc(repo.Files, func(f File) bool { return f.Path == name })
	if i < 0 {
		Refuse(w, http.StatusNotFound, "EntryNotFound", "Entry not found")
		return
	}
	f := &repo.Files[i]
	w.Header().Set("X-Repo-Commit", repo.Commit)
	if f.LFS {
		w.Header().Set("X-Linked-Etag", `"`+f.digest()+`"`)
		w.Header().Set("X-Linked-Size", fmt.Sprint(len(f.Data)))
		http.Redirect(w, r, h.cdn.URL+"/lfs/"+Digest(f.Data)+"?"+signature, http.StatusFound)
		return
	}
	w.Header().Set("Etag", `"`+f.digest()+`"`)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(f.Data))
}

// serveCDN rejects tokens, like storage hosts with signed addresses.
func (h *Hub) serveCDN(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") != "" {
		http.Error(w, "only one auth mechanism allowed", http.StatusBadRequest)
		return
	}
	if r.URL.RawQuery != signature {
		http.Error(w, "no signature", http.StatusForbidden)
		return
	}
	for _, repo := range h.repos {
		for _, f := range repo.Files {
			if f.LFS && r.URL.Path == "/lfs/"+Digest(f.Data) {
				w.Header().Set("Etag", `"cdn-`+Digest(f.Data)[:8]+`"`)
				http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(f.Data))
				return
			}
		}
	}
	http.NotFound(w, r)
}
