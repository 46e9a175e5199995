package hub

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"signalbox/classify/bundle"
	"signalbox/internal/disk"
	"signalbox/internal/hub/local"
)

const (
	// lockPoll is how often a pull checks whether another one has ended.
	lockPoll = 500 * time.Millisecond
	// maxManifest limits the size of a bundle.yaml.
	maxManifest = 1 << 20
	// maxFile limits the size of a file; the largest models are published in files of 50 GB.
	maxFile = 1 << 40
)

// Request is one pull.
type Request struct {
	// Repo is the repository, ORG/NAME.
	Repo string
	// Revision is a branch, a tag or a commit. Default main.
	Revision string
	// ModelsDir is the parent of the model's folder. It is created if it does not exist.
	ModelsDir string
	// Selection selects the files.
	Selection Selection
	// Observe receives every step, one at a time, from goroutines of the pull. Optional. It must
	// not block for long.
	Observe func(Event)
}

// Result is the result of a pull.
type Result struct {
	// Dir is the folder of the model.
	Dir string
	// Record is the record written there.
	Record local.Record
	// Fetched and Kept count the files that were downloaded and those that existed already.
	Fetched, Kept int
	// Removed are files of the previous commit that the new one does not have.
	Removed []string
}

// Pull downloads the selected files of a model into its folder of ModelsDir, and writes a record
// with their digests. Existing files that match are kept, and for the same commit also those of
// earlier pulls. If Pull fails, the files of the folder are unchanged, and the received data is
// kept for the next pull. A second pull of the same model waits for the first.
//
// Errors wrap one of the package's errors, local.ErrName, local.ErrPath or the error of ctx.
func (c *Client) Pull(ctx context.Context, q Request) (*Result, error) {
	dir, err := local.Dir(q.ModelsDir, q.Repo)
	if err != nil {
		return nil, fmt.Errorf("pull: %w", err)
	}
	if err := q.Selection.Validate(); err != nil {
		return nil, fmt.Errorf("pull: %w", err)
	}
	observe := serial(q.Observe)
	listing, err := c.list(ctx, q.Repo, q.Revision, observe)
	if err != nil {
		return nil, err
	}
	lock, err := c.lock(ctx, dir, observe)
	if err != nil {
		return nil, err
	}
	result, err := c.pull(ctx, dir, listing, q.Selection, observe)
	if err != nil {
		tidy(dir)
		return nil, errors.Join(err, lock.Close())
	}
	return result, lock.Close() //nolint:wrapcheck // says what
}

// tidy removes the folders that a failed pull created without storing a file of the model. The
// caller holds the lock.
func tidy(dir string) {
	_ = os.Remove(filepath.Join(dir, local.PartialDir)) // unless something has arrived
	entries, err := os.ReadDir(dir)
	if err == nil && len(entries) == 1 && entries[0].Name() == local.LockFile {
		_ = os.Remove(filepath.Join(dir, local.LockFile))
		_ = os.Remove(dir)
	}
}

// serial wraps a callback so that it receives one event at a time.
func serial(observe func(Event)) func(Event) {
	if observe == nil {
		return func(Event) {}
	}
	var mu sync.Mutex
	return func(e Event) {
		mu.Lock()
		defer mu.Unlock()
		observe(e)
	}
}

func (c *Client) lock(ctx context.Context, dir string, observe func(Event)) (*os.File, error) {
	told := false
	for {
		if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // models are no secret, and a service may run as another user
			return nil, fmt.Errorf("pull: %w", err)
		}
		lock, err := local.TryLock(dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue // a failed pull has just removed the folder
		}
		if !errors.Is(err, disk.ErrHeld) {
			return lock, err //nolint:wrapcheck // names the folder
		}
		if !told {
			told = true
			observe(Event{Kind: Waiting, Path: dir})
		}
		if err := c.o.Sleep(ctx, lockPoll); err != nil {
			return nil, fmt.Errorf("wait for another pull of %s: %w", dir, err)
		}
	}
}

// job is a pull under the lock.
type job struct {
	c       *Client
	dir     string
	root    *os.Root
	listing *Listing
	old     *local.Record // of the previous pull, or nil
	observe func(Event)

	mu   sync.Mutex // guards sums
	sums map[string]string
}

func (c *Client) pull(ctx context.Context, dir string, l *Listing, s Selection, observe func(Event)) (*Result, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("pull: %w", err)
	}
	defer func() { _ = root.Close() }()
	if err := root.MkdirAll(local.PartialDir, 0o755); err != nil {
		return nil, fmt.Errorf("pull: %w", err)
	}
	j := &job{c: c, dir: dir, root: root, listing: l, observe: observe, sums: make(map[string]string)}
	if j.old, err = local.ReadRecord(dir); err != nil {
		j.old = nil // missing or unreadable: everything is checked anyway
	}
	manifest, err := j.manifest(ctx)
	if err != nil {
		return nil, err
	}
	choice, err := Choose(l, s, manifest)
	if err != nil {
		return nil, err
	}
	if err := j.complete(ctx, choice); err != nil {
		return nil, err
	}
	missing, err := j.missing(ctx, choice)
	if err != nil {
		return nil, err
	}
	if err := j.fetch(ctx, missing); err != nil {
		return nil, err
	}
	return j.install(ctx, choice, missing)
}

// complete requests the digests that the listing does not have.
func (j *job) complete(ctx context.Context, choice *Choice) error {
	for i, f := range choice.Files {
		if !f.known() {
			r, err := j.c.inquire(ctx, j.listing, f, j.observe)
			if err != nil {
				return err
			}
			choice.Files[i] = r
		}
		if choice.Files[i].Bytes > maxFile {
			return fmt.Errorf("%s/%s: %w: %d bytes are too many", j.listing.Repo, f.Path, ErrSize, choice.Files[i].Bytes)
		}
	}
	return nil
}

// manifest fetches the bundle.yaml of the commit, nil if it has none.
func (j *job) manifest(ctx context.Context) ([]byte, error) {
	i := slices.IndexFunc(j.listing.Files, func(f Remote) bool { return f.Path == bundle.ManifestFile })
	if i < 0 {
		return nil, nil
	}
	one := &Choice{Files: j.listing.Files[i : i+1]}
	if err := j.complete(ctx, one); err != nil {
		return nil, err
	}
	r := one.Files[0]
	if r.Bytes > maxManifest {
		return nil, fmt.Errorf("%s/%s: %w: %d bytes are too many", j.listing.Repo, r.Path, ErrSize, r.Bytes)
	}
	name := r.Path
	if _, ok := j.have(ctx, &r); !ok {
		if err := j.transfer(ctx, r, func(Event) {}); err != nil {
			return nil, err
		}
		name = partialName(&r)
	}
	data, err := fs.ReadFile(j.root.FS(), name)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", r.Path, err)
	}
	return data, nil
}

// have reports whether the folder already has the listed file, and its SHA-256.
func (j *job) have(ctx context.Context, r *Remote) (string, bool) {
	info, err := j.root.Lstat(r.Path)
	if err != nil || !info.Mode().IsRegular() || info.Size() != r.Bytes {
		return "", false
	}
	f, err := j.root.Open(r.Path)
	if err != nil {
		return "", false
	}
	defer func() { _ = f.Close() }()
	sum, err := verify(ctx, f, r)
	return sum, err == nil
}

// missing returns the files to fetch and checks that there is enough space for them.
func (j *job) missing(ctx context.Context, choice *Choice) ([]Remote, error) {
	var out []Remote
	var bytes, arrived int64
	for _, r := range choice.Files {
		if sum, ok := j.have(ctx, &r); ok {
			j.sums[r.Path] = sum
			j.observe(Event{Kind: Kept, Path: r.Path, Bytes: r.Bytes})
			continue
		}
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("pull: %w", err)
		}
		out = append(out, r)
		bytes += r.Bytes
		if info, err := j.root.Stat(partialName(&r)); err == nil {
			arrived += min(r.Bytes, info.Size())
		}
	}
	j.observe(Event{Kind: Planned, Commit: j.listing.Commit, Files: len(out), Bytes: bytes})
	room, err := j.c.o.Free(j.dir)
	if need := bytes - arrived; err == nil && need > 0 && uint64(need) > room {
		return nil, fmt.Errorf("%w: %s needs %d MB more in %s, %d MB are free", ErrDiskFull, j.listing.Repo, need/1e6, j.dir, room/1e6)
	}
	return out, nil
}

// fetch downloads the files: first those of one part, in parallel, then the large ones one after
// the other, each with parallel parts.
func (j *job) fetch(ctx context.Context, files []Remote) error {
	group, gctx := errgroup.WithContext(ctx)
	group.SetLimit(j.c.o.Connections)
	for _, r := range files {
		if r.Bytes <= j.c.o.PartBytes {
			group.Go(func() error { return j.transfer(gctx, r, j.observe) })
		}
	}
	if err := group.Wait(); err != nil {
		return err //nolint:wrapcheck // names the file
	}
	for _, r := range files {
		if r.Bytes > j.c.o.PartBytes {
			if err := j.transfer(ctx, r, j.observe); err != nil {
				return err
			}
		}
	}
	return nil
}

func (j *job) transfer(ctx context.Context, r Remote, observe func(Event)) error {
	t, err := j.c.newTransfer(j.root, j.listing, r, observe)
	if err != nil {
		return err
	}
	sum, err := t.run(ctx)
	if err != nil {
		return err
	}
	j.mu.Lock()
	j.sums[r.Path] = sum
	j.mu.Unlock()
	observe(Event{Kind: Finished, Path: r.Path, Bytes: r.Bytes})
	return nil
}

// install moves the files into place, writes the record and removes the files of the previous
// commit that the new one does not have. It only renames verified files: a crash in between leaves
// a record that does not match, which verify detects and the next pull repairs.
func (j *job) install(ctx context.Context, choice *Choice, fetched []Remote) (*Result, error) {
	for _, r := range fetched {
		if dir := path.Dir(r.Path); dir != "." {
			if err := j.root.MkdirAll(dir, 0o755); err != nil {
				return nil, fmt.Errorf("install %s: %w", r.Path, err)
			}
		}
		if err := j.root.Rename(partialName(&r), r.Path); err != nil {
			return nil, fmt.Errorf("install %s: %w", r.Path, err)
		}
	}
	now := j.c.o.Now().UTC().Truncate(time.Second)
	rec := local.Record{
		Repo: j.listing.Repo, Revision: j.listing.Revision, Commit: j.listing.Commit, Endpoint: j.c.endpoint.String(),
		License: j.listing.License, Graph: choice.Graph, Precision: choice.Precision, PulledAt: now, VerifiedAt: now,
	}
	for _, r := range choice.Files {
		rec.Files = append(rec.Files, local.File{Path: r.Path, Bytes: r.Bytes, SHA256: j.sums[r.Path]})
	}
	removed := j.carryOver(ctx, &rec)
	if err := rec.Write(j.dir); err != nil {
		return nil, err //nolint:wrapcheck // says what
	}
	for _, name := range removed {
		if err := j.root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("remove %s of the commit before: %w", name, err)
		}
	}
	if err := j.root.RemoveAll(local.PartialDir); err != nil {
		return nil, fmt.Errorf("remove partial downloads: %w", err)
	}
	return &Result{Dir: j.dir, Record: rec, Fetched: len(fetched), Kept: len(choice.Files) - len(fetched), Removed: removed}, nil
}

// carryOver keeps files of earlier pulls of the same commit in the record, for example another
// precision, and returns the files of another commit that are to be removed. Files that no pull has
// written are never touched.
func (j *job) carryOver(ctx context.Context, rec *local.Record) (removed []string) {
	if j.old == nil {
		return nil
	}
	for _, f := range j.old.Files {
		if _, ok := rec.File(f.Path); ok {
			continue
		}
		if j.old.Commit != rec.Commit {
			removed = append(removed, f.Path)
			continue
		}
		if _, err := j.root.Lstat(f.Path); errors.Is(err, fs.ErrNotExist) {
			continue // removed by its owner, on purpose
		}
		rec.Files = append(rec.Files, f)
		if _, ok := j.have(ctx, &Remote{Path: f.Path, Bytes: f.Bytes, SHA256: f.SHA256}); !ok {
			rec.VerifiedAt = time.Time{}
		}
	}
	return removed
}
