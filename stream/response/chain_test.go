package response_test

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"signalbox/internal/openai"
	"signalbox/internal/signal"
	"signalbox/internal/testkit"
	"signalbox/proxy/redact"
	"signalbox/stream/check"
	"signalbox/stream/evidence"
	"signalbox/stream/guard"
	"signalbox/stream/response"
	"signalbox/stream/sse"
)

// source provides the data of events as chunks whose bytes are not server-sent events, so that a
// parser would find none.
type source struct {
	data   [][]byte
	vault  *redact.Vault
	to     response.Sink
	reader response.Reader
	tally  response.Tally
	ending response.Ending
}

func (*source) Read()   {}
func (*source) Cancel() {}

func (s *source) Deliver(to response.Sink) error {
	if s.to == nil {
		s.to = s.vault.Stream(to)
	}
	data := s.data[0]
	s.data = s.data[1:]
	var c response.Chunk
	raw := slices.Concat([]byte("<"), data, []byte(">"))
	c.Reset(sse.Event{Raw: raw, Data: raw[1 : len(raw)-1], At: 1}, &s.reader)
	if c.IsMessage() {
		s.tally.Note(c.Content())
	}
	s.ending.Put(&c)
	s.to.Put(&c)
	if len(s.data) == 0 {
		return io.EOF
	}
	return nil
}

// saving is a Sink that reads what it receives, like a filter that saves an answer.
type saving struct {
	said response.Collector
	out  bytes.Buffer
	seen int
}

func (s *saving) Put(c *response.Chunk) {
	s.seen++
	if c.IsMessage() {
		s.said.Add(c.Content())
	}
	s.out.Write(c.Raw)
}

func (*saving) Flush() error { return nil }

// guardOf returns a guard of numbers, and the job for an answer checked against one fact.
func guardOf(tb testing.TB, mode guard.Mode) (*guard.Guard, guard.Job) {
	tb.Helper()
	numbers, err := check.New(check.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	g := guard.New(numbers, guard.Options{Workers: 1})
	tb.Cleanup(g.Close)
	e, err := evidence.New(tb.Context(), []evidence.Source{{Text: "The tower is 330 m high.", Fact: true}}, evidence.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	return g, guard.Job{Evidence: e, Policy: guard.Policy{Mode: mode}, MayAnnotate: true}
}

func vaultOf(tb testing.TB) *redact.Vault {
	tb.Helper()
	const mail = "ann@example.com"
	req, err := openai.ParseChat([]byte(`{"model":"m","messages":[{"role":"user","content":"`+mail+`"}]}`), openai.Limits{})
	if err != nil {
		tb.Fatal(err)
	}
	_, v, err := redact.Hide(tb.Context(), req, []signal.Span{{Type: "EMAIL_ADDRESS", End: len(mail), Score: 1}}, nil, nil)
	if err != nil {
		tb.Fatal(err)
	}
	return v
}

// TestAChunkIsParsedAndReadOnce checks that a chunk is parsed only where it arrives: usage,
// redaction, guard, saving and keeping use the result. Its JSON is read once, and once more if a
// filter has changed it.
func TestAChunkIsParsedAndReadOnce(t *testing.T) {
	t.Parallel()
	text := func(s string) []byte {
		b, _ := json.Marshal(s)
		return []byte(`{"id":"c","choices":[{"index":0,"delta":{"content":` + string(b) + `},"finish_reason":null}]}`)
	}
	data := [][]byte{
		text("The tower "), text("is 330 m high"), text(". Write to [EMA"), text("IL_1]"), text(" or to [me]. It is well known"),
		[]byte(`{"id":"c","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`), []byte("[DONE]"),
	}
	changed := 2 // chunks with a part of the placeholder
	for _, mode := range []guard.Mode{guard.Observe, guard.Annotate, guard.Terminate} {
		g, job := guardOf(t, mode)
		src, dst := &source{data: slices.Clone(data), vault: vaultOf(t)}, &saving{}
		out, err := g.Copy(t.Context(), src, dst, job)
		if err != nil || out.Verdict != check.Supported || src.ending.Err() != nil || src.tally.Finish != response.FinishStop {
			t.Fatalf("%v: %v, %+v, %v, ended by %q", mode, err, out, src.ending.Err(), src.tally.Finish)
		}
		summed := 0
		if mode > guard.Observe { // the end contains the verdict
			summed = 1
		}
		if want := len(data) - 1 + changed + summed; src.reader.Reads() != want || dst.seen != len(data) {
			t.Errorf("%v: %d chunks left, JSON was read %d times, want %d", mode, dst.seen, src.reader.Reads(), want)
		}
		if m, _, finish := dst.said.Message(0); *m.Content != "The tower is 330 m high. Write to ann@example.com or to [me]. It is well known" || finish != "stop" {
			t.Errorf("%v: said %q", mode, *m.Content)
		}
		got := dst.out.String()
		if n := strings.Count(got, "<") + strings.Count(got, ">"); n != 2*len(data) || !strings.HasPrefix(got, "<"+string(data[0])+">") {
			t.Errorf("%v: the bytes around the data are not theirs: %s", mode, got)
		}
	}
}

// TestOneParserIsMade checks that the event parser is created in one place.
func TestOneParserIsMade(t *testing.T) {
	t.Parallel()
	var made []string
	for _, dir := range []string{"../../proxy", "../../stream", "../../memory"} {
		err := filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			b, err := os.ReadFile(path)
			if bytes.Contains(b, []byte("sse.NewParser(")) {
				made = append(made, filepath.ToSlash(path))
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(made) != 1 || made[0] != "../../stream/response/stream.go" {
		t.Errorf("parsers are made in %v", made)
	}
}

// FuzzStream checks that a stream returns the same units for any pieces, and that they equal the
// input apart from corrections by package sse.
func FuzzStream(f *testing.F) {
	names, err := filepath.Glob("testdata/*.sse")
	if err != nil || len(names) == 0 {
		f.Fatalf("no streams, %v", err)
	}
	for _, name := range names {
		f.Add(fixture(f, name[len("testdata/"):]), uint8(3), uint8(1))
	}
	f.Add([]byte(testkit.Event("a")+": x\r\n\r"+testkit.Finish), uint8(1), uint8(7))
	f.Fuzz(func(t *testing.T, stream []byte, step, how uint8) {
		o := response.StreamOptions{Choices: int(how >> 6), Quiet: how&1 != 0}
		if how&2 != 0 {
			o.API = openai.Response
		}
		pass := func(size int) (out []byte, read []string, err error) {
			s := response.NewStream()
			s.Reset(o)
			rest := stream
			for {
				for c := s.Next(); c != nil; c = s.Next() {
					out = append(out, c.Raw...)
					if c.IsMessage() {
						if e := c.Content(); e.Shape != response.Opaque && !json.Valid(c.Data) {
							t.Fatalf("%v, which is no JSON: %q", e.Shape, c.Data)
						}
						read = append(read, dump(c.Content()))
					}
				}
				if ended, err := s.Ended(); ended {
					return out, read, err
				}
				piece := bytes.Clone(rest[:min(size, len(rest))])
				if rest = rest[len(piece):]; len(piece) == 0 {
					s.End(io.EOF)
				}
				s.Feed(piece)
			}
		}
		want, wantRead, wantErr := pass(len(stream) + 1)
		got, gotRead, err := pass(int(step) + 1)
		if !bytes.Equal(got, want) || !slices.Equal(gotRead, wantRead) || (err == nil) != (wantErr == nil) {
			t.Fatalf("%q in pieces of %d: %v, %q; whole: %v, %q", stream, int(step)+1, err, got, wantErr, want)
		}
	})
}
