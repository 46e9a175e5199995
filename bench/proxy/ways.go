package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"signalbox/bench/lab"
)

// way is one variant of access to the model server.
type way struct {
	name string
	base map[string]string // URL of the API by model
	cmd  *exec.Cmd         // nil: direct access
	key  string            // sent with requests; "": none

	product bool // it is signalbox
}

type bench struct {
	dir   string
	ways  []*way
	stops []func() error

	model, program string // address of the model server, and the first program to measure
}

func newBench(ctx context.Context, binary string) (*bench, error) {
	b := &bench{}
	var err error
	if b.dir, err = os.MkdirTemp("", "bench-proxy"); err != nil {
		return b, err
	}
	self, err := os.Executable()
	if err != nil {
		return b, err
	}
	if binary, err = lab.Binary(ctx, binary, b.dir); err != nil {
		return b, err
	}
	_, at, err := b.start(ctx, self, "-role", "model")
	if err != nil {
		return b, err
	}
	model := "http://" + at
	direct := &way{name: "direct", base: bases(model)}
	b.ways = append(b.ways, direct)
	cmd, at, err := b.start(ctx, self, "-role", "bare", "-to", model)
	if err != nil {
		return b, err
	}
	b.ways = append(b.ways, &way{name: bareWay, cmd: cmd, base: bases("http://" + at)})
	if err := b.nginx(ctx, strings.TrimPrefix(model, "http://")); err != nil {
		return b, err
	}
	programs := strings.Split(binary, ",")
	for i, name := range columns(programs) {
		if err := b.signalbox(ctx, name, programs[i], model, ""); err != nil {
			return b, err
		}
	}
	b.model, b.program = model, programs[0]
	return b, nil
}

// addConfigurations adds the first program again for each file, with the text of the file appended
// to its configuration. The key is sent to all programs.
func (b *bench) addConfigurations(ctx context.Context, files, key string) error {
	for file := range strings.SplitSeq(files, ",") {
		if file == "" {
			continue
		}
		more, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if err := b.signalbox(ctx, filepath.Base(file), b.program, b.model, string(more)); err != nil {
			return err
		}
	}
	for _, w := range b.ways {
		if w.product {
			w.key = key
		}
	}
	return nil
}

// columns are the names under which programs are measured, each another one: signalbox for a single
// one, else that of the file, with as many of the folders above it as it takes to tell them apart;
// a file that is measured against itself gets a number.
func columns(programs []string) []string {
	if len(programs) == 1 {
		return []string{productWay}
	}
	names := make([]string, len(programs))
	for depth := 1; ; depth++ {
		seen, cut := map[string]bool{}, false
		for i, p := range programs {
			parts := strings.Split(strings.Trim(filepath.ToSlash(filepath.Clean(p)), "/"), "/")
			cut = cut || len(parts) > depth
			names[i] = strings.Join(parts[max(0, len(parts)-depth):], "/")
			seen[names[i]] = true
		}
		if len(seen) == len(names) {
			return names
		}
		if !cut {
			break
		}
	}
	for i := range names {
		names[i] += "#" + strconv.Itoa(i+1)
	}
	return names
}

// keep removes the variants that are not named, except the one that the others are compared with.
// signalbox names all programs that are measured. An unknown name is an error.
func (b *bench) keep(names string) error {
	if names == "" {
		return nil
	}
	wanted, have := strings.Split(names, ","), []string{productWay}
	for _, w := range b.ways {
		have = append(have, w.name)
	}
	for _, name := range wanted {
		if !slices.Contains(have, name) {
			return fmt.Errorf("-ways: %q is none of %s", name, strings.Join(have, ", "))
		}
	}
	b.ways = slices.DeleteFunc(b.ways, func(w *way) bool {
		return w.name != bareWay && !slices.Contains(wanted, w.name) && (!w.product || !slices.Contains(wanted, productWay))
	})
	return nil
}

// productWay is the variant with signalbox, if one program is measured.
const productWay = "signalbox"

// bareWay is the variant that the others are compared with.
const bareWay = "bare"

// start starts a program that prints its address in one line.
func (b *bench) start(ctx context.Context, program string, args ...string) (*exec.Cmd, string, error) {
	cmd := exec.CommandContext(ctx, program, args...) //nolint:gosec // the benchmark itself, in a role
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, "", err
	}
	if err := b.run(cmd); err != nil {
		return nil, "", err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	return cmd, strings.TrimSpace(line), err
}

// run starts a program that close ends.
func (b *bench) run(cmd *exec.Cmd) error {
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", cmd.Path, err)
	}
	b.stops = append(b.stops, func() error {
		_ = lab.Stop(cmd, stopTime) // if killed, nginx would leave its workers running
		return nil
	})
	return nil
}

// stopTime is the time that a program has to end.
const stopTime = 10 * time.Second

func (b *bench) close() error {
	var errs []error
	for _, stop := range b.stops {
		errs = append(errs, stop())
	}
	return errors.Join(append(errs, os.RemoveAll(b.dir))...)
}

// nginx adds nginx, or prints that it is not installed.
func (b *bench) nginx(ctx context.Context, model string) error {
	program, err := exec.LookPath("nginx")
	switch {
	case errors.Is(err, exec.ErrNotFound):
		fmt.Fprintln(os.Stderr, "nginx is not installed: its column is left out")
		return nil
	case err != nil:
		return err
	}
	free, err := lab.Addresses(ctx, 1)
	if err != nil {
		return err
	}
	at := free[0]
	config := filepath.Join(b.dir, "nginx.conf")
	text := fmt.Sprintf(`daemon off; worker_processes 1; pid %[1]s/nginx.pid; error_log stderr error;
events { worker_connections 4096; }
http {
  access_log off; client_max_body_size 64m; client_body_buffer_size 2m; keepalive_requests 100000000;
  client_body_temp_path %[1]s; proxy_temp_path %[1]s; fastcgi_temp_path %[1]s; uwsgi_temp_path %[1]s; scgi_temp_path %[1]s;
  upstream model { server %[2]s; keepalive 1024; }
  server { listen %[3]s; location / { proxy_pass http://model; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_buffering off; } }
}
`, b.dir, model, at)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, program, "-p", b.dir, "-c", config) //nolint:gosec // a program of the machine
	cmd.Stderr = os.Stderr
	if err := b.run(cmd); err != nil {
		return err
	}
	b.ways = append(b.ways, &way{name: "nginx", cmd: cmd, base: bases("http://" + at)})
	return await(ctx, "http://"+at+"/fast/health")
}

// signalbox adds the product: one rule is evaluated for every request, without reading its text,
// and no model runs. more is appended to its configuration.
func (b *bench) signalbox(ctx context.Context, name, binary, model, more string) error {
	free, err := lab.Addresses(ctx, 2)
	if err != nil {
		return err
	}
	at, admin := free[0], free[1]
	fmt.Fprintf(os.Stderr, "profiles of signalbox: http://%s/debug/pprof/\n", admin)
	config := filepath.Join(b.dir, strconv.Itoa(len(b.ways))+".yaml")
	text := fmt.Sprintf(`server: {listen: %q, admin_listen: %q, pprof: true}
models:
  - {name: fast, price: {input: 1, output: 2}, endpoints: [{name: a, url: "%[3]s/fast/v1"}], health: {path: "off"}}
  - {name: pace, price: {input: 1, output: 2}, endpoints: [{name: a, url: "%[3]s/pace/v1"}], health: {path: "off"}}
  - {name: slow, price: {input: 1, output: 2}, endpoints: [{name: a, url: "%[3]s/slow/v1"}], health: {path: "off"}}
routes: [{name: huge, when: {tokens: {gt: 10000000}}, block: {message: "no"}}]
default: {models: [fast]}
telemetry: {log: error, prometheus: true}
%[4]s`, at, admin, model, more)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil { //nolint:gosec // in a folder of its own
		return err
	}
	cmd := exec.CommandContext(ctx, binary, "serve", "--config", config)   //nolint:gosec // what is measured
	cmd.Env = append(os.Environ(), "XDG_CACHE_HOME="+b.dir, "HOME="+b.dir) // a cache folder without a library of models
	if err := b.run(cmd); err != nil {
		return err
	}
	b.ways = append(b.ways, &way{name: name, product: true, cmd: cmd, base: map[string]string{fastModel: "http://" + at + "/v1", paceModel: "http://" + at + "/v1", slowModel: "http://" + at + "/v1"}})
	return await(ctx, "http://"+at+"/healthz")
}

// await polls until there is a response.
func await(ctx context.Context, url string) error {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	return lab.Wait(ctx, time.Minute, url, func() bool {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
		if err != nil {
			return false
		}
		res, err := client.Do(req)
		return err == nil && res.Body.Close() == nil
	})
}

// tick is the kernel's unit of processor time: USER_HZ, which is 100 on every Linux.
const tick = 10 * time.Millisecond

// cpu returns the processor time of a variant's processes since their start.
func (w *way) cpu() time.Duration {
	var sum time.Duration
	for _, pid := range w.pids() {
		b, err := os.ReadFile("/proc/" + pid + "/stat")
		if err != nil {
			continue
		}
		_, rest, _ := strings.Cut(string(b), ") ")
		fields := strings.Fields(rest)
		for _, i := range []int{11, 12} { // utime and stime, counted from the state (proc(5))
			n, _ := strconv.Atoi(fields[i])
			sum += time.Duration(n) * tick
		}
	}
	return sum
}

// calls returns the number of read and write system calls of a variant's processes since their
// start.
func (w *way) calls() (n int) {
	for _, pid := range w.pids() {
		b, err := os.ReadFile("/proc/" + pid + "/io")
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(b)) {
			if name, count, ok := strings.Cut(line, ":"); ok && (name == "syscr" || name == "syscw") {
				c, _ := strconv.Atoi(strings.TrimSpace(count))
				n += c
			}
		}
	}
	return n
}

// rss returns the resident memory of a variant's processes in bytes.
func (w *way) rss() (sum int64) {
	for _, pid := range w.pids() {
		sum += lab.Memory(pid, "VmRSS")
	}
	return sum
}

// pids returns the process and its children, which nginx has.
func (w *way) pids() []string {
	if w.cmd == nil {
		return nil
	}
	pid := strconv.Itoa(w.cmd.Process.Pid)
	b, _ := os.ReadFile("/proc/" + pid + "/task/" + pid + "/children")
	return append([]string{pid}, strings.Fields(string(b))...)
}
