package evidence

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDiffsTellTheFileAsItIsNow(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		text string
		want []string
	}{
		"a value": {
			"Raise it.\n\n@@ -3,4 +3,4 @@ server:\n port: 80\n-timeout: 30\n+timeout: 60\n workers: 8\n\nDone in one go.",
			[]string{"port: 80", "timeout: 60 (was 30)", "workers: 8", "Raise it.", "Done in one go."},
		},
		"lines that only come or go": {
			"@@ -1,3 +1,3 @@\n a = 1\n-b = 2\n+c = 3\n d = 4\n",
			[]string{"a = 1", "c = 3", "removed: b = 2", "d = 4"},
		},
		"each takes the place of its own": {
			"@@ -1,3 +1,3 @@\n-max: 100\n-name: x\n-idle: 5\n+max: 250\n+idle: 15\n+more: 7\n",
			[]string{"max: 250 (was 100)", "removed: name: x", "idle: 15 (was 5)", "more: 7"},
		},
		"two files": {
			"--- a/x\n+++ b/x\n@@ -1 +1 @@\n-v: 1\n+v: 2\n--- a/y\n+++ b/y\n@@ -1,2 +1 @@\n-w: 3\n-u: 5\n+w: 4\n",
			[]string{"v: 2 (was 1)", "w: 4 (was 3)", "removed: u: 5", "--- a/x", "+++ b/x", "--- a/y", "+++ b/y"},
		},
		"a list behind it is no part of it": {
			"@@ -1 +1 @@\n-v: 1\n+v: 2\n- Checked by hand.\n",
			[]string{"v: 2 (was 1)", "Checked by hand."},
		},
		"an indentation alone": {
			"@@ -1 +1 @@\n-  v: 1\n+    v: 1\n\\ No newline at end of file\n", []string{"v: 1"},
		},
		"no diff": {"The mail of @@ -1 is new.", []string{"The mail of @@ -1 is new."}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wantSentences(t, tt.text, tt.want)
		})
	}
}

// wantSentences checks the sentences that a source is split into.
func wantSentences(t *testing.T, text string, want []string) {
	t.Helper()
	e, err := New(t.Context(), []Source{{Text: text}}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range e.sentences {
		got = append(got, s.text)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}
