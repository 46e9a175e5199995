package simulator_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	sashabaranov "github.com/sashabaranov/go-openai"

	"signalbox/internal/simulator"
	"signalbox/internal/testkit"
)

// listen serves s on a loopback port until the test ends.
func listen(tb testing.TB, s *simulator.Server) *httptest.Server {
	tb.Helper()
	server := httptest.NewServer(s.Handler())
	tb.Cleanup(server.Close)
	return server
}

const answerToHi = "This text is simulated. "

func TestSashabaranovGoClient(t *testing.T) {
	server := listen(t, newServer(t, nil))
	config := sashabaranov.DefaultConfig("none")
	config.BaseURL, config.HTTPClient = server.URL+"/v1", server.Client()
	client := sashabaranov.NewClientWithConfig(config)
	req := sashabaranov.ChatCompletionRequest{
		Model: "llama-70b", ReasoningEffort: "low", MaxCompletionTokens: 60,
		Messages: []sashabaranov.ChatCompletionMessage{{Role: "system", Content: "Be brief."}, {Role: "user", Content: "Hi"}},
	}
	whole, err := client.CreateChatCompletion(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	if got := whole.Choices[0].Message; !strings.HasPrefix(got.Content, answerToHi) || !strings.HasPrefix(got.ReasoningContent, `I am llama-70b. The user asks: "Hi"`) {
		t.Errorf("message %+v", got)
	}
	stream, err := client.CreateChatCompletionStream(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	var content, thought strings.Builder
	var finish sashabaranov.FinishReason
	for {
		chunk, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		content.WriteString(chunk.Choices[0].Delta.Content)
		thought.WriteString(chunk.Choices[0].Delta.ReasoningContent)
		finish = chunk.Choices[0].FinishReason
	}
	got := whole.Choices[0]
	got.Message.Content, got.Message.ReasoningContent, got.FinishReason = content.String(), thought.String(), finish
	if diff := cmp.Diff(whole.Choices[0], got); diff != "" {
		t.Errorf("streamed choice (-whole +stream):\n%s", diff)
	}
}

// The client leaves while the server waits for the first token, and while it streams. Scheduling on
// a busy machine may delay one notice; the median of several is what a client sees.
func TestServerNoticesThatItsClientLeft(t *testing.T) {
	const trials, bound = 5, 100 * time.Millisecond
	for _, c := range []struct {
		name       string
		ttft, tpot time.Duration
		body       string
		read       int // lines of the answer that arrive first
	}{
		{"before the first token of an answer", time.Hour, 0, `{"messages":[{"role":"user","content":"Hi"}]}`, 0},
		{"before the first token of a stream", time.Hour, 0, `{"stream":true,"messages":[{"role":"user","content":"Hi"}]}`, 0},
		{"between two tokens", 0, time.Hour, `{"stream":true,"messages":[{"role":"user","content":"Hi"}]}`, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			noticed := make(chan time.Time, 1)
			s := newServer(t, func(o *simulator.Options) {
				o.TTFT, o.TPOT = c.ttft, c.tpot
				o.OnCancel = func(string) { noticed <- time.Now() }
			})
			arrived := make(chan struct{}, 1)
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				r.Body = &announcedBody{r.Body, arrived}
				s.Handler().ServeHTTP(w, r)
			}))
			t.Cleanup(server.Close)
			var delays []time.Duration
			for range trials {
				left := leave(t, server, c.body, c.read, arrived)
				select {
				case at := <-noticed:
					delays = append(delays, at.Sub(left))
				case <-time.After(testkit.Patience):
					t.Fatal("the server did not notice")
				}
			}
			slices.Sort(delays)
			if median := delays[trials/2]; testkit.Timed() && median > bound {
				t.Errorf("noticed after %v, want at most %v (all: %v)", median, bound, delays)
			}
			page := get(t, s.Handler(), "/metrics").Body.String()
			for _, line := range []string{
				"signalbox_sim_cancelled_total{engine=\"0\",model_name=\"llama-70b\"} 5\n",
				"vllm:request_success_total{engine=\"0\",finished_reason=\"abort\",model_name=\"llama-70b\"} 5\n",
			} {
				if !strings.Contains(page, line) {
					t.Errorf("metrics lack %s in:\n%s", line, page)
				}
			}
		})
	}
}

// leave sends a request, waits until the server has read it, reads some lines of its answer, closes
// the connection and returns when it did so.
func leave(t *testing.T, server *httptest.Server, body string, lines int, arrived <-chan struct{}) time.Time {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL+"/v1/chat/completions", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	read, done := make(chan struct{}), make(chan error, 1)
	go func() {
		resp, err := server.Client().Do(req)
		if err == nil {
			scanner := bufio.NewScanner(resp.Body)
			for n := 0; scanner.Scan(); n++ {
				if n == lines-1 {
					close(read)
				}
			}
			err = errors.Join(scanner.Err(), resp.Body.Close())
		}
		done <- err
	}()
	<-arrived
	if lines > 0 {
		<-read
	}
	left := time.Now()
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Fatalf("the answer ended with %v, want it cut by the client", err)
	}
	return left
}

// announcedBody tells when the server has read all of a request.
type announcedBody struct {
	io.ReadCloser
	arrived chan<- struct{}
}

func (b *announcedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF {
		b.arrived <- struct{}{}
	}
	return n, err
}
