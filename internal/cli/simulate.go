package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"signalbox/internal/simulator"
)

func (c *command) simulate() *cobra.Command {
	o := simulator.DefaultOptions()
	o.KV = simulator.DefaultKV()
	listen, answers := "127.0.0.1:8000", ""
	cmd := &cobra.Command{
		Use:   "simulate --listen ADDR --model NAME",
		Short: "Run one simulated vLLM server",
		Long: "Run one simulated vLLM server. It answers OpenAI-compatible requests with made-up text at\n" +
			"a configurable pace, or with JSON that follows the requested schema, and calls a tool that\n" +
			"the question names. The header X-Simulator shows the request that it received. It also\n" +
			"serves embeddings and vLLM's metrics. With --answers it replies with prepared\n" +
			"texts instead; each line of the file is a JSON object such as\n\n" +
			`  {"match": "part of the last user message", "text": "the answer", "chunk": 4, "tpot": "20ms"}` + "\n\n" +
			"where chunk (code points) and tpot are optional. No response is computed by a model.\n\n" +
			"Prompts are cached in blocks as in vLLM, separately per cache_salt; usage and metrics report cache hits. With\n" +
			"--prefill-per-token, tokens that are not cached take time. --dev adds the paths of vLLM's development mode\n" +
			"(/reset_prefix_cache, /sleep, /wake_up, /is_sleeping) and /sim/restart, which clears all state.",
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.Model == "" {
				return misuse("--model NAME is required")
			}
			var err error
			if o.Answers, err = readAnswers(answers); err != nil {
				return fmt.Errorf("simulate: %w", err)
			}
			if err := o.Validate(); err != nil {
				return misuse("simulate: %v", err)
			}
			s, err := simulator.New(o)
			if err != nil {
				return fmt.Errorf("simulate: %w", err)
			}
			var lc net.ListenConfig
			l, err := lc.Listen(cmd.Context(), "tcp", listen)
			if err != nil {
				return fmt.Errorf("simulate: %w", err)
			}
			p := c.printer()
			p.printf("simulated vLLM server for %s on http://%s/v1\n", p.bold(o.Model), l.Addr())
			return serveHTTP(cmd.Context(), l, s.Handler())
		},
	}
	f := cmd.Flags()
	f.StringVar(&listen, "listen", listen, "address to listen on")
	f.StringVar(&o.Model, "model", o.Model, "name of the served model")
	f.DurationVar(&o.TTFT, "ttft", o.TTFT, "time to the first token")
	f.DurationVar(&o.TPOT, "tpot", o.TPOT, "time per further token")
	f.IntVar(&o.MaxModelLen, "max-model-len", o.MaxModelLen, "context window in tokens")
	f.Uint64Var(&o.Seed, "seed", o.Seed, "seed of ids and filler text")
	f.IntVar(&o.MaxNumSeqs, "max-num-seqs", o.MaxNumSeqs, "maximum number of concurrent requests, others wait; 0: no limit")
	f.IntVar(&o.KV.Blocks, "num-gpu-blocks-override", o.KV.Blocks, "blocks of the prefix cache; 0: no cache")
	f.IntVar(&o.KV.BlockTokens, "block-size", o.KV.BlockTokens, "tokens per block")
	f.IntVar(&o.KV.Lanes, "prefill-lanes", o.KV.Lanes, "number of prompts computed concurrently")
	f.DurationVar(&o.KV.Prefill, "prefill-per-token", o.KV.Prefill, "time per prompt token that is not cached, on top of --ttft")
	f.IntVar(&o.KV.OffloadBlocks, "offload-blocks", o.KV.OffloadBlocks, "blocks of a second tier in main memory; 0: none")
	f.DurationVar(&o.KV.Load, "load-per-token", o.KV.Load, "time per prompt token that comes from main memory")
	f.DurationVar(&o.KV.Crowd, "crowd", o.KV.Crowd, "time that every other running request adds to --tpot")
	f.BoolVar(&o.PriorityScheduling, "priority-scheduling", false, "honour the priority of requests instead of refusing it")
	f.BoolVar(&o.DevMode, "dev", false, "serve the paths of vLLM's development mode, and /sim/restart")
	f.StringVar(&answers, "answers", answers, "JSON lines file of prepared responses")
	f.IntVar(&o.Record, "record", o.Record, "keep the last N requests at GET /sim/requests")
	f.SetNormalizeFunc(vllmFlag)
	return cmd
}

// vllmFlag is the name of a flag: vLLM's own where an older one of ours is given.
func vllmFlag(_ *pflag.FlagSet, name string) pflag.NormalizedName {
	switch name {
	case "seats":
		name = "max-num-seqs"
	case "kv-blocks":
		name = "num-gpu-blocks-override"
	}
	return pflag.NormalizedName(name)
}

// readAnswers reads a script of answers; an empty path is none.
func readAnswers(path string) ([]simulator.Answer, error) {
	if path == "" {
		return nil, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("answers: %w", err)
	}
	defer func() { _ = f.Close() }()
	answers, err := simulator.ReadAnswers(f)
	if err != nil {
		return nil, fmt.Errorf("answers: %s: %w", path, err)
	}
	return answers, nil
}

// serveHTTP serves until ctx ends, then closes at once: a simulator has nothing to drain.
func serveHTTP(ctx context.Context, l net.Listener, h http.Handler) error {
	s := &http.Server{Handler: h, ReadHeaderTimeout: 5 * time.Second}
	stop := context.AfterFunc(ctx, func() { _ = s.Close() })
	defer stop()
	if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve: %w", err)
	}
	return nil
}
