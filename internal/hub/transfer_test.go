package hub

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/hub/hubtest"
	"signalbox/internal/hub/local"
)

// cut answers with the head and the first n bytes of an answer and closes the connection.
func cut(t *testing.T, w http.ResponseWriter, size, n int, data []byte) {
	t.Helper()
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		t.Error(err)
		return
	}
	_, _ = fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\nEtag: \"tag\"\r\n\r\n", size)
	_, _ = conn.Write(data[:n])
	_ = conn.Close()
}

func TestACutTransferGoesOnWhereItStopped(t *testing.T) {
	repo := classifier()
	f := newFixture(t, nil, repo)
	tokenizer := repo.Files[5].Data
	var asked atomic.Int32
	f.hub.Intercept = func(host string, w http.ResponseWriter, r *http.Request) bool {
		if host != hubtest.CDNHost || !strings.HasSuffix(r.URL.Path, hubtest.Digest(tokenizer)) {
			return false
		}
		w.Header().Set("Etag", `"tag"`)
		if asked.Add(1) == 1 {
			cut(t, w, len(tokenizer), 250, tokenizer)
			return true
		}
		if got := r.Header.Get("Range"); got != "bytes=250-699" {
			t.Errorf("range %q", got)
		}
		if got := r.Header.Get("If-Range"); got != `"tag"` {
			t.Errorf("if-range %q", got)
		}
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(tokenizer))
		return true
	}
	f.mustPull(t)
	if asked.Load() != 2 {
		t.Errorf("asked %d times, want 2", asked.Load())
	}
	checkContent(t, filepath.Join(f.dir, "org--intent"), repo)
}

func TestAPullThatWasStoppedGoesOnInTheNext(t *testing.T) {
	repo := classifier()
	f := newFixture(t, func(o *Options) { o.Connections = 1 }, repo)
	data := repo.Files[12].Data // onnx/model.onnx.data, five parts
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	f.hub.Intercept = func(host string, w http.ResponseWriter, r *http.Request) bool {
		if host != hubtest.CDNHost || r.Header.Get("Range") != "bytes=2000-2999" {
			return false
		}
		w.Header().Set("Content-Range", "bytes 2000-2999/4500")
		w.Header().Set("Content-Length", "1000")
		w.WriteHeader(http.StatusPartialContent)
		_, _ = w.Write(data[2000:2100])
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done() // slow for ever; the client goes away
		return true
	}
	q := f.request()
	var received int64
	q.Observe = func(e Event) {
		if e.Kind == Received && e.Path == "onnx/model.onnx.data" {
			if received += e.Bytes; received == 2100 {
				stop()
			}
		}
	}
	_, err := f.client.Pull(ctx, q)
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("error %v, want cancelled", err)
	}
	dir := filepath.Join(f.dir, "org--intent")
	if _, err := os.Stat(filepath.Join(dir, "config.json")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file was installed by a pull that did not end: %v", err)
	}
	f.hub.Intercept = nil
	before := len(f.hub.Requests())
	f.mustPull(t)
	var ranges []string
	for _, r := range f.hub.Requests()[before:] {
		if r.Host == hubtest.CDNHost {
			ranges = append(ranges, r.Range)
		}
	}
	if d := cmp.Diff([]string{"bytes=2100-2999", "bytes=3000-3999", "bytes=4000-4499"}, ranges); d != "" {
		t.Errorf("ranges of the second pull (-want +got):\n%s", d)
	}
	checkContent(t, dir, repo)
	for _, name := range folder(t, dir) {
		if strings.HasPrefix(name, local.PartialDir) {
			t.Errorf("%s was left behind", name)
		}
	}
}

func TestDamagedLeftoversOfAnEarlierPullAreDropped(t *testing.T) {
	repo := classifier()
	f := newFixture(t, nil, repo)
	listing, err := f.client.list(t.Context(), "org/intent", "", func(Event) {})
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(f.dir, "org--intent")
	if err := os.MkdirAll(filepath.Join(dir, local.PartialDir), 0o755); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, partialName(&listing.Files[12]))
	for file, content := range map[string][]byte{name: make([]byte, 4500), name + ".json": []byte(`{"bytes":4500,"part_bytes":1000,"have":[1000,0,0,0,0]}`)} {
		if err := os.WriteFile(file, content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	f.mustPull(t)
	checkContent(t, dir, repo)
}

func TestServersThatDoNotDoRangesServeAnyway(t *testing.T) {
	for name, intercept := range map[string]func(data []byte, w http.ResponseWriter, r *http.Request){
		"ranges are ignored": func(data []byte, w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", strconv.Itoa(len(data)))
			_, _ = w.Write(data)
		},
		"ranges are refused": func(data []byte, w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Range") != "" {
				w.WriteHeader(http.StatusRequestedRangeNotSatisfiable)
				return
			}
			_, _ = w.Write(data)
		},
		"another range comes than was asked for": func(data []byte, w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Range") != "" {
				w.Header().Set("Content-Range", "bytes 5-10/4500")
				w.WriteHeader(http.StatusPartialContent)
				_, _ = w.Write(data[5:11])
				return
			}
			_, _ = w.Write(data)
		},
		"the file has another tag for every range": func(data []byte, w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Etag", `"`+r.Header.Get("Range")+`"`)
			r.Header.Del("If-Range")
			http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(data))
		},
	} {
		t.Run(name, func(t *testing.T) {
			repo := classifier()
			f := newFixture(t, nil, repo)
			f.hub.Intercept = func(host string, w http.ResponseWriter, r *http.Request) bool {
				for _, file := range repo.Files {
					if host == hubtest.CDNHost && strings.HasSuffix(r.URL.Path, hubtest.Digest(file.Data)) {
						intercept(file.Data, w, r)
						return true
					}
				}
				return false
			}
			f.mustPull(t)
			checkContent(t, filepath.Join(f.dir, "org--intent"), repo)
		})
	}
}

func TestAWrongFileIsRemovedAndNamed(t *testing.T) {
	wrong := strings.Repeat("0f", 32)
	tests := map[string]struct {
		edit func(*hubtest.Repo)
		want error
		text []string
	}{
		"a large file whose sha256 differs": {
			func(r *hubtest.Repo) { r.Files[12].Digest = wrong },
			ErrChecksum,
			[]string{"org/intent/onnx/model.onnx.data", "want " + wrong, "pull again"},
		},
		"a plain file whose git object differs": {
			func(r *hubtest.Repo) { r.Files[3].Digest = wrong[:40] },
			ErrChecksum,
			[]string{"org/intent/config.json", "want " + wrong[:40]},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			repo := classifier()
			tt.edit(repo)
			f := newFixture(t, nil, repo)
			_, err := f.pull(t)
			if !errors.Is(err, tt.want) {
				t.Fatalf("error %v, want %v", err, tt.want)
			}
			for _, s := range tt.text {
				if !strings.Contains(err.Error(), s) {
					t.Errorf("error %q does not say %q", err, s)
				}
			}
			dir := filepath.Join(f.dir, "org--intent")
			listing, err := f.client.list(t.Context(), "org/intent", "", func(Event) {})
			if err != nil {
				t.Fatal(err)
			}
			for _, file := range listing.Files {
				if file.SHA256 == wrong || file.BlobID == wrong[:40] {
					for _, left := range []string{file.Path, partialName(&file), partialName(&file) + ".json"} {
						if _, err := os.Stat(filepath.Join(dir, left)); !errors.Is(err, os.ErrNotExist) {
							t.Errorf("%s was left behind: %v", left, err)
						}
					}
				}
			}
			if _, err := local.ReadRecord(dir); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("a record was written: %v", err)
			}
		})
	}
}

func TestWrongSizesEndAPull(t *testing.T) {
	for name, send := range map[string]func(w http.ResponseWriter, r *http.Request){
		"an answer that says another length": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte("<html>log in to the network</html>"))
		},
		"an answer without end": func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				if _, err := w.Write(noise(4096)); err != nil {
					return
				}
			}
		},
		"a range of a file of another length": func(w http.ResponseWriter, r *http.Request) {
			http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(noise(4501)))
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, nil, classifier())
			f.hub.Intercept = func(host string, w http.ResponseWriter, r *http.Request) bool {
				if host != hubtest.CDNHost {
					return false
				}
				send(w, r)
				return true
			}
			if _, err := f.pull(t); !errors.Is(err, ErrSize) {
				t.Fatalf("error %v, want ErrSize", err)
			}
		})
	}
}

func TestAFileThatChangesAfterTheListingEndsThePull(t *testing.T) {
	repo := classifier()
	f := newFixture(t, nil, repo)
	f.hub.Intercept = func(_ string, w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.URL.Path, "/onnx/model.onnx.data") {
			return false
		}
		w.Header().Set("X-Linked-Etag", `"`+strings.Repeat("ab", 32)+`"`)
		http.Redirect(w, r, f.hub.CDN()+"/lfs/"+hubtest.Digest(repo.Files[12].Data)+"?"+f.hub.Signature(), http.StatusFound)
		return true
	}
	_, err := f.pull(t)
	if !errors.Is(err, ErrChanged) || !strings.Contains(err.Error(), "onnx/model.onnx.data") {
		t.Fatalf("error %v, want ErrChanged with the name of the file", err)
	}
}

func TestFullDisks(t *testing.T) {
	t.Run("too little room is noticed before the first byte", func(t *testing.T) {
		f := newFixture(t, func(o *Options) { o.Free = func(string) (uint64, error) { return 5000, nil } }, classifier())
		_, err := f.pull(t)
		if !errors.Is(err, ErrDiskFull) {
			t.Fatalf("error %v, want ErrDiskFull", err)
		}
		for _, r := range f.hub.Requests() {
			if strings.Contains(r.Path, "/resolve/") {
				t.Errorf("%s was asked for", r.Path)
			}
		}
		if _, err := os.Stat(filepath.Join(f.dir, "org--intent")); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("an empty folder was left behind: %v", err)
		}
	})
	t.Run("a write that finds no room says what to do", func(t *testing.T) {
		f := newFixture(t, nil, classifier())
		full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
		if err != nil {
			t.Skipf("no /dev/full on this system: %v", err)
		}
		defer full.Close()
		tr := &transfer{c: f.client, remote: Remote{Path: "x", Bytes: 3}, file: full, observe: func(Event) {}}
		tr.state = partial{Bytes: 3, PartBytes: 3, Have: []int64{0}}
		_, err = tr.copy(0, 0, 3, strings.NewReader("abc"))
		if !errors.Is(err, syscall.ENOSPC) {
			t.Fatalf("error %v, want ENOSPC", err)
		}
		if err = explainDisk(tr.readError(t.Context(), nil, err)); !errors.Is(err, ErrDiskFull) || !strings.Contains(err.Error(), "make room") {
			t.Errorf("error %v", err)
		}
	})
}

func TestTwoPullsOfOneModelFetchItOnce(t *testing.T) {
	repo := classifier()
	f := newFixture(t, nil, repo)
	asked, proceed := make(chan struct{}), make(chan struct{})
	var once sync.Once
	f.hub.Intercept = func(host string, _ http.ResponseWriter, _ *http.Request) bool {
		if host == hubtest.CDNHost {
			once.Do(func() { close(asked) })
			<-proceed
		}
		return false
	}
	firstDone := make(chan error, 1)
	go func() {
		_, err := f.client.Pull(context.WithoutCancel(t.Context()), Request{Repo: "org/intent", ModelsDir: f.dir})
		firstDone <- err
	}()
	<-asked
	var first error
	waited := 0
	second := f.newClient(t, func(o *Options) {
		o.Sleep = func(context.Context, time.Duration) error {
			if waited++; waited == 1 { // the first pull is under way: let it end
				close(proceed)
				first = <-firstDone
			}
			return nil
		}
	})
	var told []EventKind
	got, err := second.Pull(t.Context(), Request{Repo: "org/intent", ModelsDir: f.dir, Observe: func(e Event) { told = append(told, e.Kind) }})
	if err != nil || first != nil {
		t.Fatalf("first %v, second %v", first, err)
	}
	if waited != 1 || len(told) == 0 || told[0] != Waiting {
		t.Errorf("waited %d times, told %v", waited, told)
	}
	if got.Fetched != 0 || got.Kept != len(fp32Files) {
		t.Errorf("the second pull fetched %d and kept %d", got.Fetched, got.Kept)
	}
	checkContent(t, got.Dir, repo)
}

func TestAWaitForAnotherPullEndsWithItsContext(t *testing.T) {
	f := newFixture(t, nil, classifier())
	dir := filepath.Join(f.dir, "org--intent")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	lock, err := local.TryLock(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	ctx, stop := context.WithCancel(t.Context())
	f.client.o.Sleep = func(ctx context.Context, _ time.Duration) error { stop(); return ctx.Err() }
	if _, err := f.client.Pull(ctx, f.request()); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want cancelled", err)
	}
}

func TestNamesThatLeadOutOfTheFolderAreRefused(t *testing.T) {
	for _, name := range []string{"../evil.json", "/etc/passwd", "onnx/../../x", "a//b", `..\evil`, "x\x00y", "./config.json"} {
		t.Run(name, func(t *testing.T) {
			repo := classifier()
			repo.Files = append(repo.Files, hubtest.File{Path: name, Data: []byte("evil")})
			f := newFixture(t, nil, repo)
			if _, err := f.pull(t); !errors.Is(err, local.ErrPath) {
				t.Fatalf("error %v, want ErrPath", err)
			}
			if got := folder(t, f.dir); got != nil {
				t.Errorf("files were written: %v", got)
			}
		})
	}
	for _, name := range []string{local.RecordFile, local.LockFile, ".Signalbox-partial/x"} {
		t.Run("taken by a pattern: "+name, func(t *testing.T) {
			repo := classifier()
			repo.Files = append(repo.Files, hubtest.File{Path: name, Data: []byte("evil")})
			f := newFixture(t, nil, repo)
			q := f.request()
			q.Selection.Include = []string{name}
			if _, err := f.client.Pull(t.Context(), q); !errors.Is(err, local.ErrPath) {
				t.Fatalf("error %v, want ErrPath", err)
			}
		})
	}
}

func TestALinkInTheFolderIsNotFollowedOut(t *testing.T) {
	f := newFixture(t, nil, classifier())
	outside := t.TempDir()
	dir := filepath.Join(f.dir, "org--intent")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(dir, "onnx")); err != nil {
		t.Fatal(err)
	}
	if _, err := f.pull(t); err == nil {
		t.Error("a pull wrote through a link")
	}
	if got := folder(t, outside); got != nil {
		t.Errorf("files were written outside: %v", got)
	}
}

func TestAnAttemptThatBringsBytesDoesNotCount(t *testing.T) {
	repo := classifier()
	f := newFixture(t, func(o *Options) { o.Attempts = 2 }, repo)
	tokenizer := repo.Files[5].Data
	var asked atomic.Int32
	f.hub.Intercept = func(host string, w http.ResponseWriter, r *http.Request) bool {
		if host != hubtest.CDNHost || !strings.HasSuffix(r.URL.Path, hubtest.Digest(tokenizer)) {
			return false
		}
		start := int(asked.Add(1)-1) * 100
		w.Header().Set("Content-Length", strconv.Itoa(len(tokenizer)-start))
		if start > 0 {
			w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-699/700", start))
			w.WriteHeader(http.StatusPartialContent)
		}
		_, _ = w.Write(tokenizer[start : start+100])
		_ = http.NewResponseController(w).Flush()
		if start+100 < len(tokenizer) {
			panic(http.ErrAbortHandler) // ends the connection
		}
		return true
	}
	f.mustPull(t)
	if asked.Load() != 7 {
		t.Errorf("asked %d times, want 7", asked.Load())
	}
	checkContent(t, filepath.Join(f.dir, "org--intent"), repo)
}

func TestAServerWithoutRangesThatAlwaysCutsIsGivenUp(t *testing.T) {
	repo := classifier()
	f := newFixture(t, func(o *Options) { o.Attempts = 3 }, repo)
	tokenizer := repo.Files[5].Data
	f.hub.Intercept = func(host string, w http.ResponseWriter, r *http.Request) bool {
		if host != hubtest.CDNHost || !strings.HasSuffix(r.URL.Path, hubtest.Digest(tokenizer)) {
			return false
		}
		cut(t, w, len(tokenizer), 250, tokenizer)
		return true
	}
	_, err := f.pull(t)
	if err == nil || !strings.Contains(err.Error(), "tokenizer.json") || !strings.Contains(err.Error(), "gave up after 3 attempts") {
		t.Errorf("error %v", err)
	}
}

// drip gives one byte whenever its timer ends, n times, and then nothing until it is closed.
type drip struct {
	every time.Duration
	n     int
	ctx   context.Context
}

func (d *drip) Read(p []byte) (int, error) {
	if d.n--; d.n < 0 {
		<-d.ctx.Done()
		return 0, context.Cause(d.ctx)
	}
	if err := sleep(d.ctx, d.every); err != nil {
		return 0, context.Cause(d.ctx)
	}
	return copy(p, "x"), nil
}

func TestTheWatchdogWaitsForSilenceOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := New(DefaultOptions())
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		ctx, watch := c.watch(t.Context())
		defer watch.stop()
		data, err := io.ReadAll(watch.reader(&drip{every: 20 * time.Second, n: 6, ctx: ctx}))
		if len(data) != 6 || !errors.Is(err, errStalled) {
			t.Errorf("%d bytes, error %v", len(data), err)
		}
		if took := time.Since(began); took != 150*time.Second {
			t.Errorf("ended after %v, want 30s after the last byte at 2m", took)
		}
	})
}
