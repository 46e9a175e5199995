package hub

import (
	"cmp"
	"context"
	"crypto/sha1" //nolint:gosec // git names blobs by it; see hashes
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sync/errgroup"

	"signalbox/internal/hub/local"
)

// errNoRanges reports a server that does not support range requests. The file is then fetched in
// one piece.
var errNoRanges = errors.New("server sends no ranges")

// partial is the state of an unfinished download, kept beside its bytes.
type partial struct {
	Bytes     int64   `json:"bytes"`
	PartBytes int64   `json:"part_bytes"`
	ETag      string  `json:"etag,omitempty"` // the storage host's, for If-Range
	Have      []int64 `json:"have"`           // bytes received of each part, from its start
}

// transfer fetches one file into local.PartialDir. Its parts run in parallel; each writes to a
// separate range of the file.
type transfer struct {
	c       *Client
	root    *os.Root
	remote  Remote
	ask     ask
	observe func(Event)
	file    *os.File
	resumed bool // some bytes are from an earlier pull
	whole   bool // one piece, from the start: no ranges

	mu    sync.Mutex // guards state and the state's file
	state partial
}

func (c *Client) newTransfer(root *os.Root, l *Listing, r Remote, observe func(Event)) (*transfer, error) {
	u, err := c.resolveURL(l.Repo, l.Commit, r.Path)
	if err != nil {
		return nil, err
	}
	return &transfer{
		c: c, root: root, remote: r, observe: observe,
		ask: ask{method: http.MethodGet, url: u, repo: l.Repo, rev: l.Revision, file: r.Path},
	}, nil
}

// partialName is the name of the file that collects the bytes. It contains path and digest, so that
// a changed file starts anew, and equal files do not conflict.
func partialName(r *Remote) string {
	sum := sha256.Sum256([]byte(r.Path + "\x00" + r.SHA256 + "\x00" + r.BlobID))
	return path.Join(local.PartialDir, hex.EncodeToString(sum[:16]))
}

// run fetches and verifies the file and returns its SHA-256. Its bytes are then in partialName.
func (t *transfer) run(ctx context.Context) (string, error) {
	sum, err := t.once(ctx)
	if errors.Is(err, ErrChecksum) && t.resumed {
		// The data of an earlier pull may be corrupt, for example after a power failure.
		t.resumed = false
		sum, err = t.once(ctx)
	}
	return sum, explainDisk(err)
}

// explainDisk adds advice to the error of a full disk.
func explainDisk(err error) error {
	if !errors.Is(err, syscall.ENOSPC) {
		return err
	}
	return fmt.Errorf("%w: make room and pull again; what has arrived is kept: %w", ErrDiskFull, err)
}

func (t *transfer) once(ctx context.Context) (string, error) {
	name := partialName(&t.remote)
	f, err := t.root.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return "", fmt.Errorf("%v: %w", t.ask, err)
	}
	defer func() { _ = f.Close() }()
	t.file = f
	t.load(name)
	err = t.fetch(ctx)
	if errors.Is(err, errNoRanges) {
		t.whole = true
		t.reset()
		err = t.fetch(ctx)
	}
	if err != nil {
		return "", errors.Join(err, t.keep(name))
	}
	sum, err := t.check(ctx)
	if errors.Is(err, ErrChecksum) {
		t.reset()
		_ = t.root.Remove(name) // files that cannot be removed are overwritten by the next pull
	}
	return sum, err
}

// load reads the state of an earlier pull, or starts a new one.
func (t *transfer) load(name string) {
	size, part := t.remote.Bytes, t.c.o.PartBytes
	fresh := partial{Bytes: size, PartBytes: part, Have: make([]int64, (size+part-1)/part)}
	t.state = fresh
	data, err := fs.ReadFile(t.root.FS(), name+".json")
	var old partial
	if err != nil || json.Unmarshal(data, &old) != nil {
		return
	}
	if old.Bytes != size || old.PartBytes < 1 || int64(len(old.Have)) != (size+old.PartBytes-1)/old.PartBytes {
		return
	}
	info, err := t.file.Stat()
	if err != nil {
		return
	}
	t.state = old
	var sum int64
	for i, have := range old.Have {
		from, to := t.span(i)
		if have < 0 || have > to-from || have > 0 && from+have > info.Size() {
			t.state = fresh
			return
		}
		sum += have
	}
	if t.resumed = sum > 0; t.resumed {
		t.observe(Event{Kind: Resumed, Path: t.remote.Path, Bytes: sum})
	}
}

// span returns the byte range of part i: from is its first byte, to the one after its last.
func (t *transfer) span(i int) (from, to int64) {
	from = int64(i) * t.state.PartBytes
	return from, min(from+t.state.PartBytes, t.state.Bytes)
}

// keep saves the received data for the next pull, or removes it if it is useless.
func (t *transfer) keep(name string) error {
	if t.whole || !slices.ContainsFunc(t.state.Have, func(n int64) bool { return n > 0 }) {
		return errors.Join(t.root.Remove(name), ignoreMissing(t.root.Remove(name+".json")))
	}
	return t.save()
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// save writes the state.
func (t *transfer) save() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.whole {
		return nil // never resumed
	}
	data, err := json.Marshal(t.state)
	if err != nil {
		return fmt.Errorf("%s: %w", t.remote.Path, err)
	}
	name := partialName(&t.remote) + ".json"
	if err := t.root.WriteFile(name+".new", data, 0o644); err != nil {
		return fmt.Errorf("%s: keep the state: %w", t.remote.Path, err)
	}
	if err := t.root.Rename(name+".new", name); err != nil {
		return fmt.Errorf("%s: keep the state: %w", t.remote.Path, err)
	}
	return nil
}

// reset discards all bytes.
func (t *transfer) reset() {
	t.mu.Lock()
	defer t.mu.Unlock()
	_ = t.root.Remove(partialName(&t.remote) + ".json") // the digest detects a state that remains
	for i, have := range t.state.Have {
		if have > 0 {
			t.observe(Event{Kind: Received, Path: t.remote.Path, Bytes: -have})
		}
		t.state.Have[i] = 0
	}
	t.state.ETag = ""
	if t.whole {
		t.state.PartBytes, t.state.Have = max(1, t.state.Bytes), make([]int64, min(1, t.state.Bytes))
	}
}

// fetch downloads all parts that are not complete.
func (t *transfer) fetch(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(t.c.o.Connections)
	for i := range t.state.Have {
		if from, to := t.span(i); t.state.Have[i] == to-from {
			continue
		}
		group.Go(func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			err := t.c.retry(ctx, noteRetry(t.observe, t.remote.Path), func() (bool, error) { return t.attempt(ctx, i) })
			if err != nil {
				return err
			}
			return t.save()
		})
	}
	return group.Wait() //nolint:wrapcheck // the parts name the file
}

// attempt requests the missing bytes of part i and writes them. progress reports that new bytes
// arrived, which the next attempt need not request.
func (t *transfer) attempt(ctx context.Context, i int) (progress bool, err error) {
	ctx, watch := t.c.watch(ctx)
	defer watch.stop()
	from, to := t.span(i)
	t.mu.Lock()
	if t.whole && t.state.Have[i] > 0 {
		t.observe(Event{Kind: Received, Path: t.remote.Path, Bytes: -t.state.Have[i]})
		t.state.Have[i] = 0
	}
	start, etag := from+t.state.Have[i], t.state.ETag
	t.mu.Unlock()
	if start == to {
		return true, nil
	}
	header := http.Header{}
	if start > 0 || to < t.state.Bytes {
		header.Set("Range", fmt.Sprintf("bytes=%d-%d", start, to-1))
		if etag != "" {
			header.Set("If-Range", etag)
		}
	}
	r, err := t.c.get(ctx, t.ask, header)
	if status, ok := errors.AsType[*StatusError](err); ok && status.Status == http.StatusRequestedRangeNotSatisfiable {
		return false, errNoRanges
	}
	if err != nil {
		return false, err
	}
	defer func() { _ = r.Body.Close() }()
	if err := t.accept(r, start, to); err != nil {
		return false, err
	}
	n, err := t.copy(i, start, to, watch.reader(r.Body))
	if err != nil {
		return n > 0 && !t.whole, t.readError(ctx, r.Request.URL, err)
	}
	return true, nil
}

// readError distinguishes a full disk from a network failure.
func (t *transfer) readError(ctx context.Context, u *url.URL, err error) error {
	var disk *fs.PathError
	if errors.As(err, &disk) || errors.Is(err, ErrSize) {
		return fmt.Errorf("%v: %w", t.ask, err)
	}
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return &temporaryError{err: fmt.Errorf("%v: the transfer from %s was cut: %w", t.ask, u.Host, bare(err))}
}

// accept checks that a response holds the bytes [start,to) of the listed file.
func (t *transfer) accept(r *reply, start, to int64) error {
	linked := digest(sha256Digest, unquote(r.linked.Get("X-Linked-Etag")))
	if linked != "" && t.remote.SHA256 != "" && linked != t.remote.SHA256 {
		return fmt.Errorf("%v: %w: the hub now links sha256 %s, listed was %s; pull again", t.ask, ErrChanged, linked, t.remote.SHA256)
	}
	if start == 0 && to == t.state.Bytes { // no range was requested
		if r.ContentLength >= 0 && r.ContentLength != t.remote.Bytes {
			return fmt.Errorf("%v: %w: %s sends %d bytes, listed were %d", t.ask, ErrSize, r.Request.URL.Host, r.ContentLength, t.remote.Bytes)
		}
		t.keepETag(r)
		return nil
	}
	if r.StatusCode != http.StatusPartialContent {
		return errNoRanges // ranges are ignored, or If-Range found another file
	}
	first, last, total, ok := parseContentRange(r.Header.Get("Content-Range"))
	switch {
	case !ok || first != start || last >= to || last < first:
		return errNoRanges
	case total >= 0 && total != t.remote.Bytes:
		return fmt.Errorf("%v: %w: %s has %d bytes, listed were %d", t.ask, ErrSize, r.Request.URL.Host, total, t.remote.Bytes)
	}
	if !t.keepETag(r) {
		return errNoRanges
	}
	return nil
}

// keepETag stores the tag of the first response and reports whether this response has the same tag.
// Weak tags do not guarantee equal bytes (RFC 9110, section 8.8.1) and are not stored.
func (t *transfer) keepETag(r *reply) bool {
	etag := r.Header.Get("Etag")
	if !strings.HasPrefix(etag, `"`) {
		return true
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.state.ETag = cmp.Or(t.state.ETag, etag)
	return t.state.ETag == etag
}

// parseContentRange reads "bytes FIRST-LAST/TOTAL" (RFC 9110, section 14.4). total is -1 for "*".
func parseContentRange(s string) (first, last, total int64, ok bool) {
	s, ok = strings.CutPrefix(s, "bytes ")
	if !ok {
		return 0, 0, 0, false
	}
	span, size, ok1 := strings.Cut(s, "/")
	a, b, ok2 := strings.Cut(span, "-")
	first, err1 := strconv.ParseInt(a, 10, 64)
	last, err2 := strconv.ParseInt(b, 10, 64)
	total, err3 := int64(-1), error(nil)
	if size != "*" {
		total, err3 = strconv.ParseInt(size, 10, 64)
	}
	ok = ok1 && ok2 && err1 == nil && err2 == nil && err3 == nil && first >= 0 && total >= -1
	return first, last, total, ok
}

const copyBytes = 128 << 10

// copy writes the bytes of part i from r to the file and counts them. n is the number of bytes
// received.
func (t *transfer) copy(i int, start, to int64, r io.Reader) (n int64, err error) {
	buf := make([]byte, copyBytes)
	for at := start; ; {
		if at == to {
			// All bytes have arrived. A server that sends more has another file.
			if got, _ := io.ReadAtLeast(r, buf[:1], 1); got > 0 {
				return n, fmt.Errorf("%w: more bytes than the %d listed", ErrSize, t.remote.Bytes)
			}
			return n, nil
		}
		got, err := r.Read(buf[:min(int64(len(buf)), to-at)])
		if got > 0 {
			if _, err := t.file.WriteAt(buf[:got], at); err != nil {
				return n, fmt.Errorf("write: %w", err)
			}
			at, n = at+int64(got), n+int64(got)
			t.mu.Lock()
			t.state.Have[i] += int64(got)
			t.mu.Unlock()
			t.observe(Event{Kind: Received, Path: t.remote.Path, Bytes: int64(got)})
		}
		switch {
		case at == to:
		case errors.Is(err, io.EOF):
			return n, io.ErrUnexpectedEOF
		case err != nil:
			return n, err //nolint:wrapcheck // readError wraps
		}
	}
}

// hashes are the digests of a file computed while reading: SHA-256, and git's object id if the hub
// reports that. SHA-1 only detects damage in transit; the connection to the hub is trusted.
type hashes struct{ sha256, blob hash.Hash }

func newHashes(size int64) hashes {
	h := hashes{sha256: sha256.New(), blob: sha1.New()} //nolint:gosec // git's object ids
	_, _ = fmt.Fprintf(h.blob, "blob %d\x00", size)
	return h
}

// check reads the whole file, compares its digest and syncs it to disk.
func (t *transfer) check(ctx context.Context) (string, error) {
	sum, err := verify(ctx, io.NewSectionReader(t.file, 0, t.remote.Bytes), &t.remote)
	if err != nil {
		return "", fmt.Errorf("%v: %w", t.ask, err)
	}
	if err := errors.Join(t.file.Truncate(t.remote.Bytes), t.file.Sync()); err != nil {
		return "", fmt.Errorf("%v: %w", t.ask, err)
	}
	return sum, nil
}

// verify reads the content of a file, compares it with the listing and returns its SHA-256.
func verify(ctx context.Context, content io.Reader, r *Remote) (string, error) {
	h := newHashes(r.Bytes)
	w := io.Writer(h.sha256)
	if r.SHA256 == "" {
		w = io.MultiWriter(h.sha256, h.blob)
	}
	if _, err := io.Copy(w, &local.Reader{Err: ctx.Err, From: content}); err != nil {
		return "", fmt.Errorf("read back: %w", err)
	}
	sum, blob := hex.EncodeToString(h.sha256.Sum(nil)), hex.EncodeToString(h.blob.Sum(nil))
	const advice = "the download was removed; pull again, and if it comes back the hub or a proxy serves another file"
	switch {
	case r.SHA256 != "" && sum != r.SHA256:
		return "", fmt.Errorf("%w: sha256 %s, want %s: %s", ErrChecksum, sum, r.SHA256, advice)
	case r.SHA256 == "" && blob != r.BlobID:
		return "", fmt.Errorf("%w: git object %s, want %s: %s", ErrChecksum, blob, r.BlobID, advice)
	}
	return sum, nil
}
