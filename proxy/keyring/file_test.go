package keyring_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"signalbox/proxy/keyring"
)

func TestProcessesThatShareAFileLoseNoChangeAndSeeThemAll(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "keys.json")
	desks := []*desk{newDesk(t, path), newDesk(t, path), newDesk(t, path)}
	const each = 12
	var (
		mu      sync.Mutex
		secrets []string
		wg      sync.WaitGroup
	)
	for i, d := range desks {
		wg.Go(func() {
			for j := range each {
				_, secret, err := d.ring.Create(t.Context(), fmt.Sprintf("key-%d-%d", i, j), &keyring.Grants{}, time.Time{})
				if err != nil {
					t.Errorf("create: %v", err)
					return
				}
				mu.Lock()
				secrets = append(secrets, secret)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	for i, d := range desks {
		if err := d.ring.Look(t.Context()); err != nil {
			t.Fatal(err)
		}
		if list, err := d.ring.List(""); err != nil || len(list) != len(desks)*each {
			t.Errorf("process %d knows %d keys, %v", i, len(list), err)
		}
		for _, secret := range secrets {
			if !admits(t, d.ring, secret) {
				t.Errorf("process %d refuses one", i)
			}
		}
	}
	// Of those who make one name at the same time, one does.
	wins := make(chan error, len(desks))
	for _, d := range desks {
		wg.Go(func() {
			_, _, err := d.ring.Create(t.Context(), "contended", &keyring.Grants{}, time.Time{})
			wins <- err
		})
	}
	wg.Wait()
	close(wins)
	won := 0
	for err := range wins {
		switch {
		case err == nil:
			won++
		case !errors.Is(err, keyring.ErrTaken) && !errors.Is(err, keyring.ErrConflict):
			t.Errorf("create: %v", err)
		}
	}
	if won != 1 {
		t.Errorf("%d made it", won)
	}
}

// A record that this version cannot read must admit nobody and must not be overwritten.
func TestADamagedRecordLetsNobodyIn(t *testing.T) {
	t.Parallel()
	d := newDesk(t, "")
	k := d.well(t, "POST", "", `{"name":"web"}`)
	good := d.well(t, "POST", "", `{"name":"good"}`)
	whole, err := os.ReadFile(d.path)
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string][2]string{
		"a field of a later version": {`"name": "web"`, `"name": "web", "only_on_sundays": true`},
		"another name":               {`"name": "web"`, `"name": "bew"`},
		"a rate below zero":          {`"name": "web"`, `"name": "web", "rate": {"rpm": -1}`},
		"a hash that is cut":         {`"sha256": "`, `"sha256": "0`},
		"no id":                      {`"id": "` + k.ID + `"`, `"id": ""`},
	} {
		at := bytes.Index(whole, []byte(`"web": {`))
		text := string(whole[:at]) + strings.Replace(string(whole[at:]), change[0], change[1], 1)
		if text == string(whole) {
			t.Fatalf("%s: nothing is changed in\n%s", name, whole)
		}
		path := filepath.Join(t.TempDir(), "keys.json")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		next := newDesk(t, path)
		if admits(t, next.ring, k.Secret) || !admits(t, next.ring, good.Secret) {
			t.Errorf("%s: not the good one alone is let in", name)
		}
		if status, _, _ := next.call(t, "POST", "", `{"name":"web"}`); status != 409 {
			t.Errorf("%s: it was written over: %d", name, status)
		}
		if !strings.Contains(next.log.String(), "virtual key ignored") {
			t.Errorf("%s: nobody is told", name)
		}
	}
}

func TestWhatAKilledProcessLeftBesideTheFileIsRemoved(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "keys.json")
	left, old := filepath.Join(filepath.Dir(path), ".keys.json-1.tmp"), time.Now().Add(-2*time.Hour)
	if err := errors.Join(os.WriteFile(left, []byte("{"), 0o600), os.Chtimes(left, old, old)); err != nil {
		t.Fatal(err)
	}
	if _, err := keyring.OpenFile(path); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(left); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it is left: %v", err)
	}
}

func TestADamagedFileIsNoEmptyOne(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"empty": "", "cut": `{"version":1,"keys":{`, "of a later version": `{"version":2,"keys":{}}`, "with more": `{"version":1,"keys":{},"x":1}`,
		"twice": `{"version":1,"keys":{"a":{},"a":{}}}`,
	} {
		path := filepath.Join(t.TempDir(), "keys.json")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := keyring.OpenFile(path); !errors.Is(err, keyring.ErrUnavailable) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// While the process runs, what it knows goes on.
	d := newDesk(t, "")
	k := d.well(t, "POST", "", `{"name":"web"}`)
	whole, err := os.ReadFile(d.path)
	if err != nil {
		t.Fatal(err)
	}
	for _, damage := range []func() error{
		func() error { return os.WriteFile(d.path, whole[:len(whole)/2], 0o600) }, func() error { return os.Remove(d.path) },
	} {
		if err := damage(); err != nil {
			t.Fatal(err)
		}
		if err := d.ring.Look(t.Context()); err == nil {
			t.Error("the file could be read")
		}
		if !admits(t, d.ring, k.Secret) {
			t.Error("a known key is refused")
		}
		if what, blind := d.ring.Lacking(); what == "" || blind {
			t.Errorf("lacking %q, blind %v", what, blind)
		}
		if status, got, text := d.call(t, "POST", "", `{"name":"new"}`); status != 503 || *got.Error.Code != "keys_unavailable" || strings.Contains(text, d.path) {
			t.Errorf("create: %d %s", status, text)
		}
	}
	if err := os.WriteFile(d.path, whole, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := d.ring.Look(t.Context()); err != nil {
		t.Fatal(err)
	}
	if what, _ := d.ring.Lacking(); what != "" {
		t.Errorf("lacking %q", what)
	}
	if n := strings.Count(d.log.String(), "cannot be read: known keys"); n != 1 {
		t.Errorf("told %d times:\n%s", n, d.log)
	}
}
