package hub

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"signalbox/internal/hub/local"
)

// Listing is one commit of a repository.
type Listing struct {
	// Repo and Revision are the requested ones.
	Repo, Revision string
	// Commit is the commit that the revision refers to.
	Commit string
	// License is the licence that the hub names, or empty.
	License string
	// Files are all files of the commit, in the hub's order.
	Files []Remote
}

// Remote is one file of a listing.
type Remote struct {
	// Path is slash-separated; it has been checked with fs.ValidPath.
	Path string
	// Bytes is the size, -1 if the hub did not report it.
	Bytes int64
	// SHA256 is the digest of a file in large file storage, BlobID the git object id (SHA-1 over a
	// header and the content) of any other file. Both are in lower-case hexadecimal digits. One is
	// enough to check a download; both are empty if the hub did not report them.
	SHA256, BlobID string
}

// known reports whether a download of the file can be checked.
func (r *Remote) known() bool { return r.Bytes >= 0 && (r.SHA256 != "" || r.BlobID != "") }

var (
	sha1Digest   = regexp.MustCompile(`^[0-9a-f]{40}$`)
	sha256Digest = regexp.MustCompile(`^[0-9a-f]{64}$`)
)

// digest returns s if it matches re, else "".
func digest(re *regexp.Regexp, s string) string {
	if s = strings.ToLower(s); re.MatchString(s) {
		return s
	}
	return ""
}

// maxPages limits the pages of a tree; the hub sends 1,000 files per page.
const maxPages = 200

// modelInfo is the part of /api/models/{repo}/revision/{rev}?blobs=true that is used.
type modelInfo struct {
	SHA      string `json:"sha"`
	Siblings []struct {
		Name   string   `json:"rfilename"`
		Size   *int64   `json:"size"`
		BlobID string   `json:"blobId"`
		LFS    *lfsInfo `json:"lfs"`
	} `json:"siblings"`
	Tags     []string `json:"tags"`
	CardData struct {
		License any `json:"license"`
	} `json:"cardData"`
}

// lfsInfo describes a file in large file storage. The digest is called sha256 in model descriptions
// and oid in trees.
type lfsInfo struct {
	SHA256 string `json:"sha256"`
	OID    string `json:"oid"`
	Size   int64  `json:"size"`
}

func (l *lfsInfo) digest() string {
	return cmp.Or(digest(sha256Digest, l.SHA256), digest(sha256Digest, strings.TrimPrefix(l.OID, "sha256:")))
}

// list requests the files of a revision. Errors wrap ErrNoRepo, ErrNoRevision, ErrUnauthorized,
// ErrGated, ErrBusy, ErrProtocol, local.ErrName or local.ErrPath.
func (c *Client) list(ctx context.Context, repo, revision string, observe func(Event)) (*Listing, error) {
	if _, err := local.FolderName(repo); err != nil {
		return nil, fmt.Errorf("list: %w", err)
	}
	revision = cmp.Or(revision, "main")
	u, err := c.apiURL(repo, "revision", revision, "?blobs=true")
	if err != nil {
		return nil, err
	}
	a := ask{method: http.MethodGet, url: u, repo: repo, rev: revision}
	var info modelInfo
	if _, err := c.getJSON(ctx, a, observe, &info); err != nil {
		return nil, err
	}
	out := &Listing{Repo: repo, Revision: revision, Commit: digest(sha1Digest, info.SHA), License: info.license()}
	if out.Commit == "" {
		return nil, fmt.Errorf("%v: %w: the listing names no commit; is %s a Hugging Face hub?", a, ErrProtocol, c.endpoint)
	}
	told := true
	for _, s := range info.Siblings {
		r := Remote{Path: s.Name, Bytes: -1, BlobID: digest(sha1Digest, s.BlobID)}
		if s.Size != nil {
			r.Bytes = *s.Size
		}
		if s.LFS != nil {
			r.SHA256, r.Bytes, r.BlobID = s.LFS.digest(), s.LFS.Size, ""
		}
		told = told && r.known()
		out.Files = append(out.Files, r)
	}
	if !told {
		if err := c.tree(ctx, out, observe); err != nil {
			return nil, err
		}
	}
	for _, f := range out.Files {
		// A hub serves no such name, so a server that lists one cannot be trusted.
		if !fs.ValidPath(f.Path) || strings.ContainsAny(f.Path, "\\\x00") {
			return nil, fmt.Errorf("%v: %w: the listing names %q", a, local.ErrPath, f.Path)
		}
	}
	return out, nil
}

// license returns the tag license:ID, which the hub derives from the card, or the licence in the
// card.
func (m *modelInfo) license() string {
	for _, t := range m.Tags {
		if id, ok := strings.CutPrefix(t, "license:"); ok {
			return clean(id)
		}
	}
	s, _ := m.CardData.License.(string) // a list or a missing value is not a licence name
	return clean(s)
}

// treeEntry is a file or a folder of /api/models/{repo}/tree/{rev}.
type treeEntry struct {
	Type string   `json:"type"`
	OID  string   `json:"oid"`
	Path string   `json:"path"`
	Size int64    `json:"size"`
	LFS  *lfsInfo `json:"lfs"`
}

func (e *treeEntry) remote() Remote {
	if e.LFS != nil {
		return Remote{Path: e.Path, Bytes: e.LFS.Size, SHA256: e.LFS.digest()}
	}
	return Remote{Path: e.Path, Bytes: e.Size, BlobID: digest(sha1Digest, e.OID)}
}

// tree requests sizes and digests separately, for mirrors whose description has none. Mirrors
// without trees are asked for each file later.
func (c *Client) tree(ctx context.Context, l *Listing, observe func(Event)) error {
	next, err := c.apiURL(l.Repo, "tree", l.Commit, "?recursive=true")
	if err != nil {
		return err
	}
	found := make(map[string]Remote, len(l.Files))
	for page := 0; next != nil && page < maxPages; page++ {
		var entries []treeEntry
		header, err := c.getJSON(ctx, ask{method: http.MethodGet, url: next, repo: l.Repo, rev: l.Revision}, observe, &entries)
		if status, ok := errors.AsType[*StatusError](err); ok && status.Status == http.StatusNotFound {
			return nil
		}
		if err != nil {
			return err
		}
		for _, e := range entries {
			if e.Type == "file" {
				found[e.Path] = e.remote()
			}
		}
		next = c.nextPage(next, header)
	}
	for i, f := range l.Files {
		if r, ok := found[f.Path]; ok && !f.known() {
			l.Files[i] = r
		}
	}
	return nil
}

// nextPage reads the Link header (RFC 8288) of a page. A next page on another host is ignored.
func (c *Client) nextPage(page *url.URL, h http.Header) *url.URL {
	for _, v := range h.Values("Link") {
		for link := range strings.SplitSeq(v, ",") {
			target, params, ok := strings.Cut(strings.TrimSpace(link), ">")
			if !ok || !strings.HasPrefix(target, "<") || !strings.Contains(params, `rel="next"`) {
				continue
			}
			if u, err := page.Parse(target[1:]); err == nil && c.isHub(u) {
				return u
			}
		}
	}
	return nil
}

// getJSON requests and decodes one response of the API and returns its header.
func (c *Client) getJSON(ctx context.Context, a ask, observe func(Event), v any) (http.Header, error) {
	var header http.Header
	err := c.retry(ctx, noteRetry(observe, a.String()), func() (bool, error) {
		watched, watch := c.watch(ctx)
		defer watch.stop()
		r, err := c.get(watched, a, http.Header{"Accept": {"application/json"}})
		if err != nil {
			return false, err
		}
		defer func() { _ = r.Body.Close() }()
		data, err := io.ReadAll(io.LimitReader(watch.reader(r.Body), maxJSON+1))
		if err != nil {
			return false, c.networkError(watched, a, r.Request.URL, err)
		}
		if len(data) > maxJSON {
			return false, fmt.Errorf("%v: %w: more than %d bytes", a, ErrProtocol, maxJSON)
		}
		if err := json.Unmarshal(data, v); err != nil {
			return false, fmt.Errorf("%v: %w: %s does not answer like a Hugging Face hub: %w", a, ErrProtocol, r.Request.URL.Host, err)
		}
		header = r.Header
		return false, nil
	})
	return header, err
}

// inquire requests the size and digest of one file, for mirrors whose listings have none.
func (c *Client) inquire(ctx context.Context, l *Listing, r Remote, observe func(Event)) (Remote, error) {
	u, err := c.resolveURL(l.Repo, l.Commit, r.Path)
	if err != nil {
		return r, err
	}
	a := ask{method: http.MethodHead, url: u, repo: l.Repo, rev: l.Revision, file: r.Path}
	err = c.retry(ctx, noteRetry(observe, r.Path), func() (bool, error) {
		watched, watch := c.watch(ctx)
		defer watch.stop()
		reply, err := c.get(watched, a, nil)
		if err != nil {
			return false, err
		}
		defer func() { _ = reply.Body.Close() }()
		r.SHA256 = digest(sha256Digest, unquote(reply.linked.Get("X-Linked-Etag")))
		if n, err := strconv.ParseInt(reply.linked.Get("X-Linked-Size"), 10, 64); err == nil && n >= 0 {
			r.Bytes = n
		} else if r.Bytes < 0 && reply.StatusCode == http.StatusOK {
			r.Bytes = reply.ContentLength
		}
		if r.SHA256 == "" {
			r.BlobID = digest(sha1Digest, unquote(reply.Header.Get("Etag")))
		}
		return false, nil
	})
	if err == nil && !r.known() {
		err = fmt.Errorf("%v: %w: %s tells neither size nor digest, so a download could not be checked", a, ErrProtocol, c.endpoint.Host)
	}
	return r, err
}

// unquote removes the quotes and the weak prefix of an entity tag (RFC 9110, section 8.8.3).
func unquote(etag string) string { return strings.Trim(strings.TrimPrefix(etag, "W/"), `"`) }
