package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"signalbox/bench/lab"
)

// process is a server that runs until stop or kill. It leads a process group, so its children end
// with it.
type process struct {
	name  string
	url   string // without a path
	admin string // the same for the product's admin listener
	cmd   *exec.Cmd
	gone  chan struct{} // closed when it has ended
	log   string        // file
}

// start runs a program that listens at an address. Its output goes to a file in dir.
func start(
	ctx context.Context, dir, name, at string, env []string, program string, args ...string,
) (*process, error) {
	p := &process{
		name: name, url: "http://" + at, gone: make(chan struct{}),
		log: filepath.Join(dir, name+".log"),
	}
	out, err := os.OpenFile(p.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	defer func() { _ = out.Close() }()
	p.cmd = exec.CommandContext(context.WithoutCancel(ctx), program, args...) //nolint:gosec // what was installed
	p.cmd.Env = append(os.Environ(), env...)
	p.cmd.Stdout, p.cmd.Stderr = out, out
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	go func() {
		_ = p.cmd.Wait()
		close(p.gone)
	}()
	return p, nil
}

// ready waits until path returns 200.
func (p *process) ready(ctx context.Context, path string) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Minute) // importing PyTorch on a busy machine
	defer cancel()
	for {
		if status, _, err := get(ctx, p.url+path); err == nil && status == http.StatusOK {
			return nil
		}
		select {
		case <-p.gone:
			return fmt.Errorf("%s ended before it was ready: see %s", p.name, p.log)
		case <-ctx.Done():
			return fmt.Errorf("%s is not ready: see %s", p.name, p.log)
		case <-time.After(500 * time.Millisecond):
		}
	}
}

// end sends s to the process and its children, and waits until it has ended.
func (p *process) end(s syscall.Signal) {
	_ = syscall.Kill(-p.cmd.Process.Pid, s)
	select {
	case <-p.gone:
	case <-time.After(20 * time.Second):
	}
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) // the remaining children
}

// vllm starts a vLLM with the tiny model. args are appended to the common arguments.
func vllm(ctx context.Context, cache, dir, name, port string, args ...string) (*process, error) {
	p, err := start(ctx, dir, name, "127.0.0.1:"+port, []string{
		"VLLM_CPU_KVCACHE_SPACE=1", "VLLM_CPU_OMP_THREADS_BIND=nobind", "OMP_NUM_THREADS=1",
		"TORCHDYNAMO_DISABLE=1", "VLLM_SERVER_DEV_MODE=1", "VLLM_CPU_SGL_KERNEL=0",
		"VLLM_NO_USAGE_STATS=1", "DO_NOT_TRACK=1", "HF_HUB_OFFLINE=1",
	}, filepath.Join(cache, "vllm/bin/python"), append([]string{
		"-m", "vllm.entrypoints.cli.main",
		"serve", filepath.Join(cache, "tiny"), "--host", "127.0.0.1", "--port", port,
		"--load-format", "dummy", "--dtype", "bfloat16", "--enforce-eager",
		"--max-model-len", strconv.Itoa(window), "--served-model-name", tiny, "--max-num-seqs", "16",
	}, args...)...)
	if err != nil {
		return nil, err
	}
	return p, p.ready(ctx, "/health")
}

// chats are the arguments of a vLLM that generates text.
func chats() []string {
	return []string{
		"--enable-prefix-caching", "--enable-prompt-tokens-details", "--reasoning-parser", "qwen3",
		"--tool-call-parser", "hermes", "--enable-auto-tool-choice",
	}
}

const (
	llamaServer = "llama/bin/llama-server" // below the cache
	llamaWindow = 4096
)

// qwenFile is Qwen2.5-Coder 1.5B, below the cache.
const qwenFile = "qwen.gguf"

// llama starts a llama.cpp server with Gemma 3 270M.
func llama(ctx context.Context, cache, dir, port string) (*process, error) {
	return llamaOf(ctx, cache, dir, "llama", port, "gemma.gguf", "-np", "1", "--alias", gemma)
}

// llamaOf starts a llama.cpp server with a model in the cache.
func llamaOf(ctx context.Context, cache, dir, name, port, model string, args ...string) (*process, error) {
	p, err := start(ctx, dir, name, "127.0.0.1:"+port, nil, filepath.Join(cache, llamaServer), append([]string{
		"-m", filepath.Join(cache, model), "--host", "127.0.0.1", "--port", port,
		"-c", strconv.Itoa(llamaWindow), "-t", "2", "--metrics",
	}, args...)...)
	if err != nil {
		return nil, err
	}
	return p, p.ready(ctx, "/health")
}

// serveOwn starts the product with a separate configuration, whose first two verbs are the
// addresses of the proxy and of its admin listener.
func (b *bench) serveOwn(ctx context.Context, name, configuration string, args ...any) (*process, error) {
	at, err := lab.Addresses(ctx, 2)
	if err != nil {
		return nil, err
	}
	file := filepath.Join(b.dir, name+".yaml")
	text := fmt.Sprintf(configuration, append([]any{at[0], at[1]}, args...)...)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return nil, fmt.Errorf("write the configuration: %w", err)
	}
	p, err := start(ctx, b.dir, name, at[0], []string{"SALT=0123456789abcdef0123456789abcdef"},
		b.program, "serve", "--config", file)
	if err != nil {
		return nil, err
	}
	p.admin = "http://" + at[1]
	return p, p.ready(ctx, "/readyz")
}
