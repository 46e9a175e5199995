package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"signalbox/internal/testkit"
)

// TestNoChangeOfAKeyThatWasAcknowledgedIsLostWithItsProcess kills the program while operators make
// and revoke keys, and looks at what it does when it is back.
func TestNoChangeOfAKeyThatWasAcknowledgedIsLostWithItsProcess(t *testing.T) {
	binary, err := exec.LookPath("signalbox") // TestMain puts it there
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "keys.json")
	serve := func() (*process, string) {
		listen, admin := testkit.FreeAddress(t), testkit.FreeAddress(t)
		return start(t, binary, listen, fmt.Sprintf("server: {listen: %s, admin_listen: %s}\n"+
			"models: [{name: m, endpoints: [{name: a, url: http://127.0.0.1:9/v1}], health: {path: 'off'}}]\n"+
			"default: {models: [m]}\nauth: {mode: keys, virtual: {file: %q}}\n", listen, admin, file)), "http://" + admin + "/-/keys"
	}
	doomed, admin := serve()
	const operators, enough = 4, 60
	var (
		mu      sync.Mutex
		holds   = map[string]bool{} // by secret: whether it is to be let in
		changes int
		wg      sync.WaitGroup
	)
	note := func(secret string, in bool) {
		mu.Lock()
		defer mu.Unlock()
		holds[secret] = in
		if changes++; changes == enough {
			_ = doomed.cmd.Process.Signal(syscall.SIGKILL)
		}
	}
	for o := range operators {
		wg.Go(func() {
			for i := 0; ; i++ {
				code, answer, err := request(t.Context(), http.MethodPost, admin, fmt.Appendf(nil, `{"name":"key-%d-%d"}`, o, i), nil)
				var made struct{ ID, Secret string }
				_, body, _ := strings.Cut(answer, "\n\n")
				if err != nil || code != http.StatusCreated || json.Unmarshal([]byte(body), &made) != nil {
					return // it was killed
				}
				note(made.Secret, true)
				if i%2 == 0 {
					continue
				}
				mu.Lock()
				delete(holds, made.Secret) // until it is acknowledged it may be either
				mu.Unlock()
				if code, _, err := request(t.Context(), http.MethodDelete, admin+"/"+made.ID, nil, nil); err != nil || code != http.StatusOK {
					return
				}
				note(made.Secret, false)
			}
		})
	}
	wg.Wait()
	if changes < enough {
		t.Fatalf("only %d changes were acknowledged", changes)
	}
	again, _ := serve()
	in := 0
	for secret, want := range holds {
		code, answer, err := request(t.Context(), http.MethodGet, again.url+"/v1/models", nil, []string{"Authorization=Bearer " + secret})
		if err != nil || want != (code == http.StatusOK) || !want && code != http.StatusUnauthorized {
			t.Errorf("it is let in: %d %v, want %v: %s", code, err, want, answer)
		}
		if want {
			in++
		}
	}
	t.Logf("%d changes acknowledged, %d keys hold", changes, in)
}
