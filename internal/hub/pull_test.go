package hub

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"signalbox/internal/hub/hubtest"
	"signalbox/internal/hub/local"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// now is what every client of the tests takes the time to be.
var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

const partBytes = 1000 // of the clients of the tests

// noise returns n bytes that no part of repeats another.
func noise(n int) []byte {
	r := rand.New(rand.NewPCG(1, uint64(n)))
	out := make([]byte, n)
	for i := range out {
		out[i] = byte(r.Uint32())
	}
	return out
}

// classifier is a repository as published: several graphs, one that cannot run, weights of another
// framework, and one file of 4,500 bytes that takes five parts.
func classifier() *hubtest.Repo {
	return &hubtest.Repo{Name: "org/intent", License: "apache-2.0", Files: []hubtest.File{
		{Path: ".gitattributes", Data: []byte("*.onnx filter=lfs")},
		{Path: "README.md", Data: []byte("# intent")},
		{Path: "LICENSE", Data: []byte("Apache")},
		{Path: "config.json", Data: []byte(`{"architectures": ["ModernBertForSequenceClassification"]}`)},
		{Path: "category_mapping.json", Data: []byte(`{"category_to_idx": {"law": 0}}`)},
		{Path: "tokenizer.json", Data: noise(700), LFS: true},
		{Path: "tokenizer_config.json", Data: []byte("{}")},
		{Path: "special_tokens_map.json", Data: []byte("{}")},
		{Path: "training_args.bin", Data: noise(90), LFS: true},
		{Path: "model.safetensors", Data: noise(5000), LFS: true},
		{Path: "onnx/config.json", Data: []byte("{ }")},
		{Path: "onnx/model.onnx", Data: noise(300), LFS: true},
		{Path: "onnx/model.onnx.data", Data: noise(4500), LFS: true},
		{Path: "onnx/model_sdpa_fp16.onnx", Data: noise(2200), LFS: true},
		{Path: "onnx/model_fa_fp16.onnx", Data: noise(2100), LFS: true},
	}}
}

var fp32Files = []string{
	"LICENSE", "README.md", "category_mapping.json", "config.json", "onnx/config.json", "onnx/model.onnx", "onnx/model.onnx.data",
	"special_tokens_map.json", "tokenizer.json", "tokenizer_config.json",
}

// fixture is a hub, a client of it and a folder of models.
type fixture struct {
	hub    *hubtest.Hub
	client *Client
	dir    string

	mu     sync.Mutex
	waits  []time.Duration
	events []Event
}

func newFixture(t *testing.T, edit func(*Options), repos ...*hubtest.Repo) *fixture {
	t.Helper()
	f := &fixture{hub: hubtest.New(t, repos...), dir: t.TempDir()}
	f.client = f.newClient(t, edit)
	return f
}

func (f *fixture) newClient(t *testing.T, edit func(*Options)) *Client {
	t.Helper()
	transport := newTransport()
	t.Cleanup(transport.CloseIdleConnections)
	o := DefaultOptions()
	o.Endpoint, o.Transport, o.PartBytes = f.hub.URL(), transport, partBytes
	o.Now = func() time.Time { return now }
	o.Random = func() float64 { return 0 }
	o.Sleep = func(ctx context.Context, d time.Duration) error {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.waits = append(f.waits, d)
		return ctx.Err()
	}
	if edit != nil {
		edit(&o)
	}
	c, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (f *fixture) request() Request {
	return Request{Repo: "org/intent", ModelsDir: f.dir, Observe: func(e Event) { f.events = append(f.events, e) }}
}

func (f *fixture) pull(t *testing.T) (*Result, error) {
	t.Helper()
	return f.client.Pull(t.Context(), f.request())
}

func (f *fixture) mustPull(t *testing.T) *Result {
	t.Helper()
	r, err := f.pull(t)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// folder lists the files of a model folder, the lock apart.
func folder(t *testing.T, dir string) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(dir, func(name string, e os.DirEntry, err error) error {
		if err == nil && !e.IsDir() && e.Name() != local.LockFile {
			rel, _ := filepath.Rel(dir, name)
			out = append(out, filepath.ToSlash(rel))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// checkContent compares every file of a folder with the repository's.
func checkContent(t *testing.T, dir string, repo *hubtest.Repo) {
	t.Helper()
	for _, name := range folder(t, dir) {
		if name == local.RecordFile {
			continue
		}
		got, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		found := false
		for _, f := range repo.Files {
			if f.Path == name {
				found = true
				if !bytes.Equal(got, f.Data) {
					t.Errorf("%s has other bytes than the hub's", name)
				}
			}
		}
		if !found {
			t.Errorf("%s is not a file of the repository", name)
		}
	}
}

func TestPullTakesWhatAClassifierNeedsAndRecordsIt(t *testing.T) {
	repo := classifier()
	f := newFixture(t, nil, repo)
	got := f.mustPull(t)
	dir := filepath.Join(f.dir, "org--intent")
	if d := cmp.Diff(append([]string{local.RecordFile}, fp32Files...), folder(t, dir)); d != "" {
		t.Errorf("files (-want +got):\n%s", d)
	}
	checkContent(t, dir, repo)
	rec, err := local.ReadRecord(dir)
	if err != nil {
		t.Fatal(err)
	}
	want := local.Record{
		Format: 1, Repo: "org/intent", Revision: "main", Commit: repo.Commit, Endpoint: f.hub.URL(), License: "apache-2.0",
		Graph: "onnx/model.onnx", Precision: "fp32", PulledAt: now, VerifiedAt: now,
	}
	for _, name := range fp32Files {
		for _, file := range repo.Files {
			if file.Path == name {
				want.Files = append(want.Files, local.File{Path: name, Bytes: int64(len(file.Data)), SHA256: hubtest.Digest(file.Data)})
			}
		}
	}
	if d := cmp.Diff(want, *rec); d != "" {
		t.Errorf("record (-want +got):\n%s", d)
	}
	if d := cmp.Diff(*rec, got.Record); d != "" {
		t.Errorf("result (-want +got):\n%s", d)
	}
	if problems := local.Verify(t.Context(), dir); problems != nil {
		t.Errorf("verify: %v", problems)
	}
	if got.Fetched != len(fp32Files) || got.Kept != 0 {
		t.Errorf("%d fetched, %d kept", got.Fetched, got.Kept)
	}
}

func TestAFileLargerThanAPartComesInRangesThatCoverItOnce(t *testing.T) {
	f := newFixture(t, nil, classifier())
	f.mustPull(t)
	got := map[string]int{}
	for _, r := range f.hub.Requests() {
		if r.Host == hubtest.CDNHost && r.Range != "" {
			got[r.Range]++
		}
	}
	want := map[string]int{"bytes=0-999": 1, "bytes=1000-1999": 1, "bytes=2000-2999": 1, "bytes=3000-3999": 1, "bytes=4000-4499": 1}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("ranges (-want +got):\n%s", d)
	}
}

func TestASecondPullFetchesNothing(t *testing.T) {
	f := newFixture(t, nil, classifier())
	f.mustPull(t)
	before := len(f.hub.Requests())
	got := f.mustPull(t)
	if got.Fetched != 0 || got.Kept != len(fp32Files) {
		t.Errorf("%d fetched, %d kept", got.Fetched, got.Kept)
	}
	if n := len(f.hub.Requests()) - before; n != 1 {
		t.Errorf("%d requests, want only the listing", n)
	}
}

func TestAnotherPrecisionOfTheSameCommitStaysBesideTheFirst(t *testing.T) {
	f := newFixture(t, nil, classifier())
	f.mustPull(t)
	q := f.request()
	q.Selection.Precision = "fp16"
	got, err := f.client.Pull(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	if got.Record.Graph != "onnx/model_sdpa_fp16.onnx" || got.Fetched != 1 || len(got.Record.Files) != len(fp32Files)+1 || got.Removed != nil {
		t.Errorf("graph %s, %d fetched, %d files, removed %v", got.Record.Graph, got.Fetched, len(got.Record.Files), got.Removed)
	}
	if !got.Record.VerifiedAt.Equal(now) {
		t.Errorf("verified at %v", got.Record.VerifiedAt)
	}
}

func TestANewCommitReplacesFilesAndLeavesThoseOfTheOwner(t *testing.T) {
	repo := classifier()
	f := newFixture(t, nil, repo)
	f.mustPull(t)
	dir := filepath.Join(f.dir, "org--intent")
	if err := os.WriteFile(filepath.Join(dir, "notes.txt"), []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	repo.Commit = strings.Repeat("ab", 20)
	repo.Files[2] = hubtest.File{Path: "NOTICE", Data: []byte("new")} // LICENSE goes
	repo.Files[5].Data = noise(800)                                   // tokenizer.json
	got := f.mustPull(t)
	if d := cmp.Diff([]string{"LICENSE"}, got.Removed); d != "" {
		t.Errorf("removed (-want +got):\n%s", d)
	}
	if got.Fetched != 2 || got.Record.Commit != repo.Commit {
		t.Errorf("%d fetched, commit %s", got.Fetched, got.Record.Commit)
	}
	if _, err := os.Stat(filepath.Join(dir, "LICENSE")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("LICENSE is still there: %v", err)
	}
	if data, err := os.ReadFile(filepath.Join(dir, "notes.txt")); string(data) != "mine" || err != nil {
		t.Errorf("notes.txt: %q, %v", data, err)
	}
	if problems := local.Verify(t.Context(), dir); problems != nil {
		t.Errorf("verify: %v", problems)
	}
}

func TestADamagedFileIsFetchedAgain(t *testing.T) {
	repo := classifier()
	f := newFixture(t, nil, repo)
	f.mustPull(t)
	dir := filepath.Join(f.dir, "org--intent")
	if err := os.WriteFile(filepath.Join(dir, "tokenizer.json"), noise(701)[:700], 0o644); err != nil {
		t.Fatal(err)
	}
	if got := f.mustPull(t); got.Fetched != 1 {
		t.Errorf("%d fetched, want 1", got.Fetched)
	}
	checkContent(t, dir, repo)
}

func TestMirrorsThatTellLessAreAskedMore(t *testing.T) {
	for name, edit := range map[string]func(*hubtest.Hub){
		"sizes and digests are in the tree only":           func(h *hubtest.Hub) { h.Bare = true },
		"the tree has pages":                               func(h *hubtest.Hub) { h.Bare, h.PageSize = true, 3 },
		"sizes and digests are in the file headers only":   func(h *hubtest.Hub) { h.Bare, h.NoTree = true, true },
		"the hub is below a path that everything shares":   nil,
		"a plain file is redirected within the hub itself": func(h *hubtest.Hub) { h.Intercept = withinHub },
	} {
		t.Run(name, func(t *testing.T) {
			repo := classifier()
			f := newFixture(t, nil, repo)
			if edit != nil {
				edit(f.hub)
			} else {
				f.hub.Intercept = func(host string, _ http.ResponseWriter, r *http.Request) bool {
					if host == hubtest.HubHost {
						r.URL.Path, r.URL.RawPath = strings.TrimPrefix(r.URL.Path, "/mirror"), ""
					}
					return false
				}
				f.client = f.newClient(t, func(o *Options) { o.Endpoint += "/mirror/" })
			}
			f.mustPull(t)
			dir := filepath.Join(f.dir, "org--intent")
			checkContent(t, dir, repo)
			if problems := local.Verify(t.Context(), dir); problems != nil {
				t.Errorf("verify: %v", problems)
			}
		})
	}
}

// withinHub redirects plain files once, with a relative address.
func withinHub(_ string, w http.ResponseWriter, r *http.Request) bool {
	if strings.HasSuffix(r.URL.Path, "/config.json") && r.URL.RawQuery == "" {
		http.Redirect(w, r, r.URL.Path+"?cache=1", http.StatusTemporaryRedirect)
		return true
	}
	return false
}

func TestABundleBringsWhatItsManifestNames(t *testing.T) {
	repo := &hubtest.Repo{Name: "org/bundle", Files: []hubtest.File{
		{Path: "bundle.yaml", Data: []byte("graphs:\n- {file: m_int8.onnx, precision: int8}\n- {file: m_fp16.onnx, precision: fp16}\ntokenizer: {file: tokenizer.json}\nscan: {file: scan.bin}\n")},
		{Path: "m_int8.onnx", Data: noise(1500), LFS: true},
		{Path: "m_fp16.onnx", Data: noise(2500), LFS: true},
		{Path: "tokenizer.json", Data: []byte("{}")},
		{Path: "scan.bin", Data: noise(50), LFS: true},
		{Path: "config.json", Data: []byte("{}")},
	}}
	f := newFixture(t, nil, repo)
	q := f.request()
	q.Repo, q.Selection.Precision = "org/bundle", "fp16"
	got, err := f.client.Pull(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{local.RecordFile, "bundle.yaml", "m_fp16.onnx", "scan.bin", "tokenizer.json"}
	if d := cmp.Diff(want, folder(t, got.Dir)); d != "" {
		t.Errorf("files (-want +got):\n%s", d)
	}
	checkContent(t, got.Dir, repo)
	asked := 0
	for _, r := range f.hub.Requests() {
		if strings.HasSuffix(r.Path, "/bundle.yaml") {
			asked++
		}
	}
	if asked != 1 {
		t.Errorf("bundle.yaml was asked for %d times, want once", asked)
	}
}

func TestARevisionWithSlashesIsAskedForEscaped(t *testing.T) {
	f := newFixture(t, nil, classifier())
	q := f.request()
	q.Revision = "refs/pr/1"
	got, err := f.client.Pull(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	if got.Record.Revision != "refs/pr/1" || got.Record.Commit == "" {
		t.Errorf("revision %q, commit %q", got.Record.Revision, got.Record.Commit)
	}
}
