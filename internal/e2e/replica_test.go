package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"signalbox/internal/testkit"
)

// process is the real program in a process of its own.
type process struct {
	cmd *exec.Cmd
	url string
}

// program runs `signalbox serve` on a file until the test ends, and returns when it is ready.
func program(t *testing.T, binary, redis string) *process {
	t.Helper()
	listen := testkit.FreeAddress(t)
	text := fmt.Sprintf("server: {listen: %s, admin_listen: %s}\nmodels: [{name: small, endpoints: [{name: a, url: http://127.0.0.1:9/v1}], health: {path: 'off'}}]\n"+
		"default: {models: [small]}\nmemory: {redis: {url: %q, meta_timeout: 5s, blob_timeout: "+
		"5s}}\n", listen, testkit.FreeAddress(t), redis)
	return start(t, binary, listen, text)
}

// start is program with a configuration of one's own, whose main listener is at listen.
func start(t *testing.T, binary, listen, text string) *process {
	t.Helper()
	file := filepath.Join(t.TempDir(), "signalbox.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	p := &process{cmd: exec.CommandContext(context.WithoutCancel(t.Context()), binary, "serve", "--config", file), url: "http://" + listen}
	var log bytes.Buffer
	p.cmd.Stdout, p.cmd.Stderr = &log, &log
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait()
		if t.Failed() {
			t.Logf("%s", log.String())
		}
	})
	for end := time.Now().Add(readyTimeout); ; {
		if code, _, err := request(t.Context(), http.MethodGet, p.url+"/healthz", nil, nil); err == nil && code == http.StatusOK {
			return p
		}
		if time.Now().After(end) {
			t.Fatal("the program is not ready")
		}
	}
}

// TestNoContextThatWasAcknowledgedIsLostWithItsReplica kills a replica while clients create
// contexts, and looks for those that it had acknowledged on another one.
func TestNoContextThatWasAcknowledgedIsLostWithItsReplica(t *testing.T) {
	redis := testkit.NewRedis(t)
	binary, err := exec.LookPath("signalbox") // TestMain puts it there
	if err != nil {
		t.Fatal(err)
	}
	doomed, other := program(t, binary, redis.URL()), program(t, binary, redis.URL())
	const clients, enough = 4, 40
	var (
		mu   sync.Mutex
		made = map[string]string{} // texts by id
		wg   sync.WaitGroup
	)
	for c := range clients {
		wg.Go(func() {
			for i := 0; ; i++ {
				text := "context " + strconv.Itoa(c) + "." + strconv.Itoa(i) + strings.Repeat(" and so on", 500)
				code, answer, err := request(t.Context(), http.MethodPost, doomed.url+"/v1/contexts", []byte(`{"content":"`+text+`"}`), nil)
				if err != nil {
					return // it was killed
				}
				var created struct{ ID string }
				_, body, _ := strings.Cut(answer, "\n\n")
				if err := json.Unmarshal([]byte(body), &created); err != nil || code != http.StatusOK {
					return // the answer was cut, or did not come from it
				}
				mu.Lock()
				made[created.ID] = text
				if len(made) == enough {
					_ = doomed.cmd.Process.Signal(syscall.SIGKILL)
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if len(made) < enough {
		t.Fatalf("only %d contexts were acknowledged", len(made))
	}
	for id, text := range made {
		code, answer, err := request(t.Context(), http.MethodGet, other.url+"/v1/contexts/"+id+"/content", nil, nil)
		if err != nil || code != http.StatusOK || !strings.HasSuffix(answer, "\n\n"+text) {
			t.Errorf("%s was acknowledged and is gone: %d %v", id, code, err)
		}
	}
	t.Logf("%d contexts acknowledged, all of them on the other replica", len(made))
}
