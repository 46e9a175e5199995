package claims_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"signalbox/stream/claims"
)

// said returns the claims except code.
func said(list []claims.Claim) []string {
	var out []string
	for _, c := range list {
		if c.Kind != claims.Code {
			out = append(out, c.Text)
		}
	}
	return out
}

// blocks are texts with code that agents write for programs; the code ends where its block does.
var blocks = []struct {
	name, text string
	want       []string // what is not code
}{
	{
		"a file of Cline", "I write it. Port is 1.\n<write_to_file>\n<path>a/b.md</path>\n<content>\n# A tower\n\nThe " +
			"tower is 5 m. It is old.\n```go\nx\n" +
			"```\n<task_progress> is 5.\n</content>\n</write_to_file>\nIt is done.",
		[]string{"I write it.", "Port is 1.", "It is done."},
	},
	{
		"in one line", "So <execute_command><command>ls; echo 5</command></execute_command> It is 5.",
		[]string{"So", "It is 5."},
	},
	{
		"behind a sentence", "It is 5.<write_to_file>\n<path>x</path><content>It is 6.</content>\n</write_to_file>It " +
			"is 7.\n- It is 8.",
		[]string{"It is 5.", "It is 7.", "It is 8."},
	},
	{
		"an edit of Cline", "Fix.\n<replace_in_file>\n<path>x</path>\n<diff>\n------- SEARCH\nIt is 5.\n=======\nIt is " +
			"6.\n+++++++ REPLACE\n</diff>\n</replace_in_file>\nIt is 7.",
		[]string{"Fix.", "It is 7."},
	},
	{
		"a tag without a child in it", "<list_files>\n<path>.</path>\n<recursive/>\n</list_files>\nIt is 7.",
		[]string{"It is 7."},
	},
	{
		"two calls of Hermes", "So.\n<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": \"It is \\\"5}. " +
			"No.\"}}\n</tool_call>\n<tool_call>{\"name\":\"g\"}</tool_call>\nIt is 7.",
		[]string{"So.", "It is 7."},
	},
	{
		"a call of Qwen", "<tool_call>\n<function=edit>\n<parameter=path>\nx\n</parameter>\n<parameter=text>\nIt is " +
			"5.\n\nIt is 6.\n</parameter>\n</function>\n</tool_call>\nIt is 7.",
		[]string{"It is 7."},
	},
	{
		"a call of OpenHands", "Look.\n\n<function=bash>\n<parameter=command>echo It is " +
			"5.</parameter>\n</function>", []string{"Look."},
	},
	{
		"an invocation with a prefix", "<x:function_calls>\n<x:invoke name=\"f\">\n<x:parameter name=\"a\">It is 5. " +
			"So.</x:parameter>\n</x:invoke>\n</x:function_calls>\nIt is 7.",
		[]string{"It is 7."},
	},
	{
		"a project of Bolt", "Here.\n<boltArtifact id=\"a\" title=\"It is 5.\">\n<boltAction type=\"file\" " +
			"filePath=\"x.html\">\n<p>It is 5. It is 6.</p>\n</boltAction>\n" +
			"<boltAction type=\"shell\">npm i</boltAction>\n</boltArtifact>\n\nIt is 7.",
		[]string{"Here.", "It is 7."},
	},
	{
		"an artifact", "<antArtifact identifier=\"a\" type=\"text/html\" title=\"b\">\n<p>It is 5. It is " +
			"6.</p>\n</antArtifact>\nIt is 7.", []string{"It is 7."},
	},
	{
		"a document is text", "<antArtifact identifier=\"a\" type=\"text/markdown\" title=\"b\">\nIt is " +
			"5.\n</antArtifact>\nIt is 7.",
		[]string{"It is 5.", "</antArtifact>", "It is 7."},
	},
	{
		"what speaks to the user is text", "<attempt_completion>\n<result>\nIt is 5.\n</result>\n</attempt_completion>",
		[]string{"<attempt_completion>", "<result>", "It is 5.", "</result>", "</attempt_completion>"},
	},
	{
		"a tag that a text speaks of", "<tool_call> is 5. It is 6.\n<tool_call>\nIt is 7.\n<write_to_file>, <invoke> " +
			"and <function> are 8.\n<tool_call", []string{
			"<tool_call> is 5.", "It is 6.", "<tool_call>", "It is 7.", "<write_to_file>, <invoke> and <function> " +
				"are 8.", "<tool_call",
		},
	},
	{
		"code of smolagents", "Thought: It is 4.\n<code>\nx = f(\"It is 5. So\") # <b>6</b>\nprint(x, 7)\n</code>\nIt is 8.",
		[]string{"Thought: It is 4.", "It is 8."},
	},
	{
		"code that a stop sequence ends", "It is 4. <code> \nprint(\"It is 5.\", 6)\n", []string{"It is 4."},
	},
	{
		"code behind a word that is not closed ends with its paragraph",
		"Mark it up by <code>\nIt is 5.\n \nIt is 6. Then: <code>\nx = 7\n\nIt is 8.",
		[]string{"Mark it up by", "It is 6.", "Then:"},
	},
	{
		"code in a line of text is text", "<code>It is 5</code>. It is 6.\n<code class=\"x\">\nIt is 7.",
		[]string{"<code>It is 5</code>.", "It is 6.", "<code class=\"x\">", "It is 7."},
	},
	{
		"a call that is not closed ends with its JSON", "<tool_call>\n{\"name\": \"f\", \"a\": " +
			"[{}]}\n\nIt is 7.", []string{"It is 7."},
	},
	{
		"a file that is not closed ends with its content", "<write_to_file>\n<path>x</path>\n<content>\nIt is " +
			"5.\n</content>\nIt is 7.", []string{"It is 7."},
	},
	{
		"tags in inline code", "Call `<tool_call>{` then. It is 7.", []string{"Call `<tool_call>{` then.", "It is 7."},
	},
	{
		"edits of aider", "Port is 1.\n\na/b.py\n<<<<<<< SEARCH\nIt is 5.\n```\n=======\n>>>>>>> REPLACE it\nIt is " +
			"6.\n>>>>>>> REPLACE\n\nIt is 7.\n<<<<<<< SEARCH\n=======\nIt is 8.\n>>>>>>> REPLACE",
		[]string{"Port is 1.", "a/b.py", "It is 7."},
	},
	{
		"an edit of Cline without tags", "------- SEARCH\nIt is 5.\n=======\nIt is 6.\n+++++++ " +
			"REPLACE\nIt is 7.", []string{"It is 7."},
	},
	{
		"what begins like an edit", "<<<<<<< HEAD\n<<<<<<< SEARCH for it\n------- \n--- " +
			"\nIt is 7.", []string{"<<<<<<< HEAD", "<<<<<<< SEARCH for it", "It is 7."},
	},
	{
		"a patch", "Port is 1.\n*** Begin Patch\n*** Update File: a.py\n@@ def f():\n It is 5.\n-It is 6.\n+It is " +
			"7.\n\n*** End Patch\nIt is 8.", []string{"Port is 1.", "It is 8."},
	},
	{
		"a patch that is not ended", "*** Begin Patch\n*** Add File: a.py\n+It is 5.\n\nIt is 8.", []string{"It is 8."},
	},
	{
		"a patch that a text speaks of", "*** Begin Patch is 5.\n*** Begin " +
			"Patch\nIt is 6.", []string{"*** Begin Patch is 5.", "It is 6."},
	},
	{
		"a diff of git", "Port is 1.\ndiff --git a/x b/x\nindex 1..2 100644\n--- a/x\n+++ b/x\n@@ -1,3 +1,3 @@ It is " +
			"4.\n It is 5.\n-It is 6.\n+It is 7.\n\n" +
			"\\ No newline at end of file\n\n- It is 8.\nIt is 9.",
		[]string{"Port is 1.", "It is 8.", "It is 9."},
	},
	{
		"a diff of two files", "--- x.py\n+++ x.py\n@@ -1 +1 @@\n-It is 5.\n+It is 6.\n--- a/y.py\n+++ b/y.py\n@@ -1,2 " +
			"+1,2 @@\n-It is 5.\n+It is 6.\n\nIt is 9.", []string{"It is 9."},
	},
	{
		"a hunk", "So:\n@@ -10,2 +10,2 @@\n-It is 5.\n+It is 6.\n\nIt is 9.", []string{"So:", "It is 9."},
	},
	{
		"what begins like a diff", "--- It is 5.\n@@ -1 is 6.\ndiff --git a b\n- It is 7.\n\n+ " +
			"It is 8.", []string{"--- It is 5.", "@@ -1 is 6.", "It is 7.", "It is 8."},
	},
	{
		"a tag without an end that a text speaks of", "As <function=x is 5. It is 6.\n<function=> and <invoke name= or " +
			"<boltAction type=x> are 7. It is 8.", []string{
			"As <function=x is 5.", "It is 6.", "<function=> and <invoke name= or <boltAction type=x> are 7.", "It is 8.",
		},
	},
	{
		"a call of a long name", "<function=mcp__github__create_pull_request_review>\n<parameter=a>It is 5. " +
			"So.</parameter>\n</function>\nIt is 7.", []string{"It is 7."},
	},
	{
		"a document whose tag has several lines", "<antArtifact identifier=\"a\"\n  type=\"text/markdown\"\n  " +
			"title=\"b\">\nIt is 5.\n</antArtifact>\nIt is 7.",
		[]string{"It is 5.", "</antArtifact>", "It is 7."},
	},
	{
		"a tag behind a formula that is not closed", "$$x\n    <boltAction type=\"x\">", []string{"$$x"},
	},
	{
		"a fence holds what it holds", "```xml\n<tool_call>\n{\n```\nIt is 7.", []string{"It is 7."},
	},
}

func TestBlocksThatNoFenceBegins(t *testing.T) {
	t.Parallel()
	for _, tt := range blocks {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			for _, ends := range []string{"\n", "\r\n"} {
				text := strings.ReplaceAll(tt.text, "\n", ends)
				got := split(t, claims.Options{Blocks: true}, text)
				checkCover(t, text, got)
				if diff := cmp.Diff(tt.want, said(got)); diff != "" {
					t.Errorf("with %q (-want +got):\n%s", ends, diff)
				}
				s := splitter(t, claims.Options{Blocks: true})
				for n := 1; n < 9; n++ {
					checkChunks(t, s, text, got, func(int) int { return n })
				}
			}
		})
	}
}

func TestPlacesBehindWhichNothingMayStand(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		text   string
		inside []string
	}{
		"an object": {
			"It is 5. Input: {\"a\": \"It is 6. So\"}\nIt is {7}.",
			[]string{"Input: {\"a\": \"It is 6.", "So\"}"},
		},
		"a broken object": {"{\"a\": 5\n\nIt is 6.", []string{"{\"a\": 5"}},
		"indented code":   {"Run:\n\n    curl 5. Now\n\n\tCall\nIt is 6.\n    It is 7.", []string{"curl 5.", "Now", "Call"}},
		"below a list":    {"- It is 5.\n\n    It is 6.\n\nSo.\n\n    It is 7.", []string{"It is 7."}},
		"an item in code": {"Run:\n\n    - x: 5\n    - Y\n\nSo.", []string{"x: 5", "Y"}},
		"prose":           {"It is 5.\n\n   It is 6.\n\nIt is {7}, {\"8\"} or so; it is 9.", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			list := split(t, claims.Options{Blocks: true}, tt.text)
			var got []string
			for _, c := range list {
				if c.Place != claims.Free {
					got = append(got, c.Text)
				}
			}
			if diff := cmp.Diff(tt.inside, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			s := splitter(t, claims.Options{Blocks: true})
			checkChunks(t, s, tt.text, list, func(int) int { return 1 })
		})
	}
}

func TestABlockWithoutAnEndIsBounded(t *testing.T) {
	t.Parallel()
	for name, begin := range map[string]string{
		"a tag":   "<write_to_file>\n<path>x</path>\n<content>\n",
		"JSON":    "<tool_call>{\"a\": \"",
		"an edit": "<<<<<<< SEARCH\n",
	} {
		for _, line := range []string{"It is false.\n", "It is false. "} {
			s := splitter(t, claims.Options{Blocks: true})
			s.Feed(begin)
			code, fed := 0, len(begin)
			for ; fed < 200<<10; fed += len(line) {
				for _, c := range s.Feed(line) {
					if c.Kind == claims.Code {
						code = c.Bytes.End
					}
				}
				if s.Pending() > 4<<10 {
					t.Fatalf("%s: %d bytes pending", name, s.Pending())
				}
			}
			if code < 100<<10 || code > 140<<10 {
				t.Errorf("%s: code ends at %d of %d", name, code, fed)
			}
		}
	}
}

func TestATagWithoutAnEndIsBounded(t *testing.T) {
	t.Parallel()
	for _, begin := range []string{
		"<invoke name=\"f. ", "<tool_call><a ", "<boltAction type=\"file\" ", "<tool_call>{}</ ",
	} {
		for _, line := range []string{"It is false.\n", "It is false. "} {
			text := begin + strings.Repeat(line, 500)
			list := split(t, claims.Options{Blocks: true}, text)
			last := 0
			for _, c := range list {
				if c.Kind == claims.Code {
					last = c.Bytes.End
				}
			}
			if last > 2<<10 {
				t.Errorf("%q, %q: code ends at %d of %d", begin, line, last, len(text))
			}
			s := splitter(t, claims.Options{Blocks: true})
			checkChunks(t, s, text, list, func(int) int { return 7 })
		}
	}
}

// agents are the parts of random texts with blocks.
var agents = []string{
	"<write_to_file>", "<path>", "</path>", "<content>\n", "</content>", "</write_to_file>", "<tool_call>",
	"</tool_call>\n", "{\"a\": \"b. C\"}", "{\"", "\\\"", "}",
	"<function=f>", "<parameter=x>", "</parameter>", "</function>", "<invoke name=\"f\">", "</invoke>",
	"<a/>", "<boltAction type=\"x\">", "</boltAction>", "<", "</", ">",
	"<antArtifact identifier=\"a\" " +
		"type=\"text/markdown\">", "</antArtifact>", "<<<<<<< SEARCH\n", "=======\n",
	">>>>>>> REPLACE\n", "------- SEARCH\n", "+++++++ REPLACE",
	"*** Begin Patch\n", "*** Update File: x\n", "*** End Patch\n", "diff --git a/x b/x\n", "--- a/x\n",
	"+++ b/x\n", "@@ -1,2 +1 @@\n", "@@ -1 ", "-It is. So\n", "+x\n", " x\n", "\\ No\n",
	"    ", "{\n \"a\": [", "]}", "\"", "\n", "\n\n", "It is tall. ", "It is old.\n", "`", "```\n", "$$",
	"| a |\n", "- x. Y\n", "\r\n", "é", "\xe5",
}

func TestPiecesNeverChangeTheClaimsOfAgents(t *testing.T) {
	t.Parallel()
	checkPieces(t, agents, claims.Options{MaxWords: 12, Stride: 8, MaxBytes: 256, Blocks: true})
}

func FuzzBlocks(f *testing.F) {
	for _, tt := range blocks {
		f.Add(tt.text, uint64(1))
	}
	f.Add("<<<<<<< SEARCH\n   >>>>>>> REPLACE\nx", uint64(1))
	f.Fuzz(func(t *testing.T, text string, seed uint64) {
		s := splitter(t, claims.Options{MaxWords: 12, Stride: 8, MaxBytes: 256, Blocks: true})
		want := append([]claims.Claim(nil), s.Feed(text)...)
		want = append(want, s.Flush()...)
		checkCover(t, text, want)
		rnd := rand.New(rand.NewPCG(seed, 1))
		checkChunks(t, s, text, want, func(int) int { return 1 + rnd.IntN(7) })
		checkChunks(t, s, text, want, func(int) int { return 1 })
	})
}
