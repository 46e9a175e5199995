package app

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"signalbox/gpu"
	"signalbox/internal/config"
	"signalbox/internal/disk"
	"signalbox/internal/modelserver"
	"signalbox/internal/option"
	"signalbox/memory/redis"
	"signalbox/proxy/backend"
	"signalbox/proxy/pool"
	"signalbox/rules"
)

// Level is how much a finding matters.
type Level string

// The levels of findings.
const (
	LevelOK      Level = "ok"      // it is as it should be
	LevelWarning Level = "warning" // it works, but not as well as it could
	LevelProblem Level = "problem" // requests fail, or the process does not start
)

// Finding is one thing that was looked at.
type Finding struct {
	// Area is what it is about: configuration, runtime, models, ports, endpoints, redis, clock or
	// files.
	Area string `json:"area"`
	// Level is ok, warning or problem.
	Level Level `json:"level"`
	// Subject names it, such as the path of an endpoint in the configuration.
	Subject string `json:"subject"`
	// Text says what was found.
	Text string `json:"text"`
	// Do says what to do about it; empty when nothing has to be done.
	Do string `json:"do,omitempty"`
}

// examination is one run of the doctor.
type examination struct {
	cfg  *config.Config
	opts Options
	runs bool // a signalbox has one of the listeners, and the files with it

	mu    sync.Mutex
	found []Finding
	ahead map[string]time.Duration // clocks of others against this one's
}

// Examine looks at everything that a configuration needs, and changes nothing. A file that is not
// valid is a finding; what can be looked at without one is looked at. file names it in findings.
// Listeners are opened for a moment.
func Examine(ctx context.Context, file string, o Options) []Finding {
	x := &examination{opts: o, ahead: map[string]time.Duration{}}
	valid := x.configuration(file)
	x.runtime(ctx)
	if valid {
		x.models(ctx)
		x.refusals()
		x.ports(ctx)
		x.endpoints(ctx)
		x.remotes(ctx)
		x.redis(ctx)
		x.clock()
	}
	x.files(valid)
	return x.found
}

func (x *examination) say(area string, level Level, subject, do, format string, args ...any) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.found = append(x.found, Finding{area, level, subject, fmt.Sprintf(format, args...), do})
}

// configuration reads the file, and reports whether it is valid.
func (x *examination) configuration(file string) bool {
	const area = "configuration"
	d := config.Default()
	x.cfg = &d
	cfg, warnings, err := config.Load(file, x.opts.Env, Catalog)
	var invalid *config.Error
	switch {
	case errors.As(err, &invalid):
		for _, p := range invalid.Problems {
			x.complain(file, &p)
		}
		return false
	case err != nil:
		x.say(area, LevelProblem, file, "write one with `signalbox init`, or name another file", "%v", err)
		return false
	}
	for i := range warnings {
		if !strings.HasSuffix(warnings[i].Path, "].url") { // the endpoint itself is asked below
			x.complain(file, &warnings[i])
		}
	}
	cfg.Override(x.opts.Settings)
	x.cfg = cfg
	x.say(area, LevelOK, file, "", "valid, models: %d, routes: %d", len(cfg.Models), len(cfg.Routes.Content))
	return true
}

func (x *examination) complain(file string, p *rules.Problem) {
	level := LevelProblem
	if p.Warning {
		level = LevelWarning
	}
	do := "correct this line of the file"
	if strings.Contains(p.Msg, "environment variable") {
		do = "set the variable in the environment that signalbox is started from"
	}
	if strings.HasPrefix(p.Path, "classify.tasks") && strings.HasSuffix(p.Path, ".model") {
		do = "fix the folder of the model, or configure another model"
	}
	subject := fmt.Sprintf("%s:%d:%d", file, p.Line, p.Col)
	if p.Path != "" {
		subject += " " + p.Path
	}
	x.say("configuration", level, subject, do, "%s", p.Msg)
}

// runtime opens ONNX Runtime and tries the execution provider that is configured.
func (x *examination) runtime(ctx context.Context) {
	const area = "runtime"
	rt, err := gpu.Open(x.cfg.Classify.GPU(x.opts.Settings))
	if err != nil {
		x.say(area, LevelProblem, "ONNX Runtime",
			"run `make onnxruntime`, or set the library path in classify.library or SIGNALBOX_ONNXRUNTIME; "+
				"without it neural signals are unknown, and routes that fail closed return 503",
			"%v", err)
		return
	}
	version, library := rt.Version(), rt.Library()
	auto, _ := rt.Provider()
	_ = rt.Close()
	x.say(area, LevelOK, "ONNX Runtime", "", "%s at %s", version, library)
	wanted := x.cfg.Classify.Provider
	if wanted == "" || wanted == gpu.ProviderAuto {
		x.say(area, LevelOK, "provider", "", "auto selects %s", auto)
		return
	}
	for _, p := range Probes(ctx, x.opts).Providers {
		if p.Name != wanted {
			continue
		}
		if p.State == gpu.SupportYes {
			x.say(area, LevelOK, "provider", "", "%s works", wanted)
			return
		}
		x.say(area, LevelProblem, "classify.provider", "see docs/gpu.md, or set it to auto, which selects "+auto,
			"%s is not available: %s", wanted, p.Detail)
		return
	}
	x.say(area, LevelProblem, "classify.provider", "install a build of ONNX Runtime that has it, or set it to auto",
		"this ONNX Runtime has no provider %s", wanted)
}

// models opens the bundles.
func (x *examination) models(ctx context.Context) {
	found := probeModels(ctx, x.cfg, x.opts)
	for _, p := range found[1:] {
		x.say("models", LevelProblem, p.Name,
			"configure another model under classify.tasks, or fix this one; until then its signals are unknown", "%v", p.Err)
	}
	switch p := &found[0]; {
	case p.Err != nil:
		x.say("models", LevelProblem, "bundles", "`signalbox models list` shows the available models, `signalbox models pull` downloads one",
			"%v", p.Err)
	case len(found) == 1:
		x.say("models", LevelOK, "bundles", "", "%s", p.Detail)
	}
}

// refusals finds routes that would refuse everything for want of a model.
func (x *examination) refusals() {
	for _, r := range x.cfg.Program.Routes() {
		lacking := r.Kinds &^ x.cfg.Catalog.Signals
		if closed := r.Verb == rules.Block && r.OnUnknown == rules.Match || r.OnUnknown == rules.Error; lacking != 0 && closed {
			x.say("models", LevelProblem, "route "+r.Name, "configure a model for it under classify.tasks",
				"it returns 503 for every request: no model computes a signal that it reads")
		}
	}
}

// ports opens the listeners for a moment.
func (x *examination) ports(ctx context.Context) {
	scheme := "http"
	if x.cfg.Server.TLS.CertFile != "" {
		scheme = "https"
	}
	for _, l := range []struct{ path, scheme, addr string }{
		{"server.listen", scheme, x.cfg.Server.Listen}, {"server.admin_listen", "http", x.cfg.Server.AdminListen},
	} {
		open, err := listen(ctx, l.addr)
		if err == nil {
			_ = open.Close()
			x.say("ports", LevelOK, l.path, "", "%s is free", l.addr)
			continue
		}
		if runs(ctx, l.scheme, l.addr) {
			x.runs = true
			x.say("ports", LevelOK, l.path, "", "signalbox is running on %s", l.addr)
			continue
		}
		if asked := x.cfg.Server.TLS.ClientCAFile != "" && l.scheme == "https"; asked && runs(ctx, "http", x.cfg.Server.AdminListen) {
			x.runs = true
			x.say("ports", LevelOK, l.path, "", "%s is in use, and signalbox is running on %s; the listener requires client "+
				"certificates, so it was not asked", l.addr, x.cfg.Server.AdminListen)
			continue
		}
		x.say("ports", LevelProblem, l.path, "stop the process that listens there, or choose another address", "%v", err)
	}
}

// runs reports a signalbox at an address.
func runs(ctx context.Context, scheme, addr string) bool {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return false
	}
	if ip := net.ParseIP(host); host == "" || ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, scheme+"://"+net.JoinHostPort(host, port)+"/readyz", nil)
	if err != nil {
		return false
	}
	way := &http.Transport{
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // nothing is sent
		DisableKeepAlives: true,
	}
	res, err := (&http.Client{Transport: way}).Do(req)
	if err != nil {
		return false
	}
	defer func() { _ = res.Body.Close() }()
	b := make([]byte, 4<<10)
	n, _ := res.Body.Read(b)
	return strings.Contains(string(b[:n]), `"generation"`)
}

// lookers is how many endpoints are asked at a time.
const lookers = 8

// endpoints asks every server what it is.
func (x *examination) endpoints(ctx context.Context) {
	var g errgroup.Group
	g.SetLimit(lookers)
	before := len(x.found)
	for i := range x.cfg.Models {
		m := &x.cfg.Models[i]
		for j := range m.Endpoints {
			g.Go(func() error {
				x.endpoint(ctx, m, &m.Endpoints[j])
				return nil
			})
		}
	}
	_ = g.Wait() // none fails
	slices.SortStableFunc(x.found[before:], func(a, b Finding) int { return strings.Compare(a.Subject, b.Subject) })
}

func (x *examination) endpoint(ctx context.Context, m *backend.ModelOptions, e *pool.EndpointOptions) {
	const area = "endpoints"
	subject := m.Name + "/" + e.Name
	if e.Resolve != "" && e.Resolve != pool.ResolveOff {
		x.say(area, LevelOK, subject, "", "resolved from %s: `check --online` and /readyz report on its servers", e.URL)
		return
	}
	client, err := e.Client(probeTimeout)
	if err != nil {
		x.say(area, LevelProblem, subject, "correct the files listed under tls", "%v", err)
		return
	}
	defer client.CloseIdleConnections()
	s, err := modelserver.Look(ctx, client, e.URL, e.APIKey)
	if err != nil {
		x.unseen(subject, e, err)
		return
	}
	x.mu.Lock()
	x.ahead[subject+" at "+e.URL] = s.Clock
	x.mu.Unlock()
	before := x.problems(subject)
	x.compare(m, e, s, subject)
	if x.problems(subject) == before {
		what := strings.TrimSpace(string(s.Kind) + " " + s.Version)
		x.say(area, LevelOK, subject, "", "%s at %s", what, e.URL)
	}
}

// problems counts the findings about an endpoint.
func (x *examination) problems(subject string) (n int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for i := range x.found {
		if x.found[i].Subject == subject {
			n++
		}
	}
	return n
}

// unseen says why a server could not be asked.
func (x *examination) unseen(subject string, e *pool.EndpointOptions, err error) {
	do := "check that the server is running and reachable from this machine"
	switch {
	case errors.Is(err, modelserver.ErrKey) && e.ForwardAuth:
		x.say("endpoints", LevelOK, subject, "", "%s requires the API key of the caller (forward_auth)", e.URL)
		return
	case errors.Is(err, modelserver.ErrKey) && e.APIKey == "":
		do = "set api_key: \"${NAME}\" in the configuration, and set the variable"
	case errors.Is(err, modelserver.ErrKey):
		do = "set the variable or file that api_key references to the key of this server"
	case errors.Is(err, modelserver.ErrNotReady):
		do = "wait until it has loaded its model; if it does not, see its log"
	case errors.Is(err, modelserver.ErrOtherScheme):
		do = "correct the scheme of url: http:// or https://"
	case errors.Is(err, modelserver.ErrNoModels):
		do = "url must be the base URL of an OpenAI-compatible API, usually http://HOST:PORT/v1"
	}
	x.say("endpoints", LevelProblem, subject, do, "%v", err)
}

// compare says where a server is not what the configuration takes it for.
func (x *examination) compare(m *backend.ModelOptions, e *pool.EndpointOptions, s *modelserver.Server, subject string) {
	const area = "endpoints"
	if base := strings.TrimSuffix(e.URL, "/"); s.Base != base {
		level := LevelProblem
		if s.Kind == modelserver.LlamaCPP { // answers there as well
			level = LevelWarning
		}
		x.say(area, level, subject, fmt.Sprintf("set url to %s", s.Base),
			"its API is at %s, but requests would go to %s/chat/completions", s.Base, base)
	}
	served := cmp.Or(m.ServedAs, m.Name)
	if at := s.Find(served); at < 0 {
		do := "start the server with that model, or correct served_as"
		if len(s.Models) == 1 {
			do = fmt.Sprintf("set served_as to %q", s.Models[0].ID)
		}
		x.say(area, LevelProblem, subject, do, "it serves %s, not %q", s.Names(), served)
	} else if window := s.Models[at].Window; window > 0 && m.ContextWindow > window {
		x.say(area, LevelProblem, subject,
			fmt.Sprintf("set context_window to %d, or start the server with a longer one", window),
			"context_window is %d, but the server rejects prompts longer than %d", m.ContextWindow, window)
	} else if window > 0 && m.ContextWindow > 0 && m.ContextWindow < window {
		x.say(area, LevelWarning, subject, fmt.Sprintf("set context_window to %d, unless this is intended", window),
			"context_window is %d, but the server accepts %d: signalbox rejects longer prompts", m.ContextWindow, window)
	}
	if s.Asleep {
		x.say(area, LevelProblem, subject, "wake it up: POST /wake_up, or /resume if it is paused",
			"the server is asleep or paused and does not respond")
	}
	if s.Kind == modelserver.Signalbox {
		x.say(area, LevelProblem, subject, "set url to the model server behind it", "this is a signalbox, not a model server")
	}
}

// remotes asks the servers of remote models.
func (x *examination) remotes(ctx context.Context) {
	for _, p := range probeRemotes(ctx, x.cfg) {
		if p.Err != nil {
			x.say("models", LevelProblem, p.Name, "check that the server is running and serves the model; until then its signals are unknown", "%v", p.Err)
			continue
		}
		x.say("models", LevelOK, p.Name, "", "%s", p.Detail)
	}
}

// maxSkew is by how much clocks may differ before it matters: tokens and shared times to live are
// compared across machines, tokens with a leeway of 30 s (auth.jwt.leeway).
const maxSkew = 5 * time.Second

func (x *examination) redis(ctx context.Context) {
	const area, subject = "redis", "memory.redis"
	o := &x.cfg.Memory.Redis
	if o.URL == "" {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	c, err := redis.Examine(ctx, redis.Options{URL: o.URL, Prefix: o.Prefix})
	if err != nil {
		x.say(area, LevelProblem, subject, "check that it is running, reachable from this machine, and accepts this user and password", "%v", err)
		return
	}
	x.ahead["Redis"] = c.Clock
	sound := true
	worse := func(level Level, do, format string, args ...any) {
		sound = false
		x.say(area, level, subject, do, format, args...)
	}
	if c.Silent != nil {
		worse(LevelWarning, "permit the command: ACL SETUSER NAME +info",
			"it responds in %s, but does not report its version, memory and role: %v", c.Took.Round(time.Microsecond), c.Silent)
	}
	if c.Old() {
		worse(LevelProblem, "run Redis 7 or newer", "version %s does not support the scripts", c.Version)
	}
	if c.Replica {
		worse(LevelProblem, "use the primary", "it is a replica, which does not accept writes")
	}
	if c.Policy != "" && c.Policy != "noeviction" {
		worse(LevelWarning, "CONFIG SET maxmemory-policy noeviction", "it may evict contexts: maxmemory-policy is %s", c.Policy)
	}
	if x.cfg.Auth.Virtual.Redis && c.Persists != redis.PersistsYes {
		text := "it does not persist to disk: virtual keys and the spending of budgets are lost when it restarts"
		if c.Persists == redis.PersistsUntold {
			text = "whether it persists to disk is not known (CONFIG is not permitted): without it, virtual keys are lost when it restarts"
		}
		worse(LevelWarning, "set appendonly yes, here and in redis.conf", "%s", text)
	}
	if c.MaxMemory > 0 && c.Used > c.MaxMemory/10*9 {
		worse(LevelWarning, "give it more memory, or store less", "%d of %d MiB are used", c.Used>>20, c.MaxMemory>>20)
	}
	if budget := time.Duration(o.MetaTimeout); budget > 0 && c.Took > budget/2 {
		worse(LevelWarning, "move it closer, or raise memory.redis.meta_timeout", "a query takes %s, and requests wait at most %s", c.Took.Round(time.Microsecond), budget)
	}
	if sound {
		x.say(area, LevelOK, subject, "", "Redis %s, %s, responds in %s", c.Version, c.Policy, c.Took.Round(time.Microsecond))
	}
}

// clock compares this machine's with those of the others.
func (x *examination) clock() {
	worst, whose := time.Duration(0), ""
	for name, d := range x.ahead {
		if d.Abs() > worst.Abs() {
			worst, whose = d, name
		}
	}
	switch {
	case worst.Abs() > maxSkew:
		way := "behind"
		if worst < 0 {
			way = "ahead of"
		}
		x.say("clock", LevelWarning, "this machine", "synchronise the clocks (chrony, systemd-timesyncd)",
			"its clock is %s %s that of %s", worst.Abs().Round(time.Second), way, whose)
	case len(x.ahead) > 0:
		others := "another"
		if n := len(x.ahead); n > 1 {
			others = fmt.Sprintf("%d others", n)
		}
		x.say("clock", LevelOK, "this machine", "", "its clock agrees with that of %s", others)
	}
}

// few is how many open files are too few for a server.
const few = 4096

func (x *examination) files(valid bool) { //nolint:revive // whether there is a configuration to look at
	n := openFiles()
	limit := x.cfg.Limits.MaxConnections
	switch {
	case n == 0:
	case valid && limit > 0 && uint64(limit)*filesOfARequest+otherFiles > n:
		x.say("files", LevelProblem, "limits.max_connections",
			fmt.Sprintf("raise the limit of open files (ulimit -n %d; systemd: LimitNOFILE), or lower max_connections to %d",
				uint64(limit)*filesOfARequest+otherFiles, defaultConnections(n)),
			"%d connections need more files than the limit of %d", limit, n)
	case n < few:
		x.say("files", LevelWarning, "open files", "raise the limit: ulimit -n 65536; systemd: LimitNOFILE",
			"the limit is %d, which is enough for %d concurrent clients", n, defaultConnections(n))
	default:
		x.say("files", LevelOK, "open files", "", "the limit is %d, enough for %d concurrent clients", n, defaultConnections(n))
	}
	if !valid {
		return
	}
	if f := x.cfg.Telemetry.Decisions.File; f != "" {
		x.decisions(f)
	}
	x.replaceable("outcomes.path", x.cfg.Outcomes.Path, true)
	x.replaceable("auth.virtual.file", x.cfg.Auth.Virtual.File, false)
	if host, _, err := net.SplitHostPort(x.cfg.Server.AdminListen); err == nil && !option.Loopback(host) && x.cfg.Server.AdminToken == "" {
		x.say("configuration", LevelWarning, "server.admin_token", "set it, or listen on a loopback address",
			"the admin listener is reachable from other machines and has no token: "+
				"reload, profiles and console data are refused")
	}
}

// decisions tries whether the decision log can be written.
func (x *examination) decisions(file string) {
	_, err := os.Stat(file)
	isNew := errors.Is(err, os.ErrNotExist)
	f, err := os.OpenFile(file, os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		x.say("files", LevelProblem, "telemetry.decisions.file", letWrite(file), "%v", err)
		return
	}
	taken := x.taken("telemetry.decisions.file", file, f)
	_ = f.Close()
	if isNew {
		_ = os.Remove(file)
	}
	if !taken {
		x.say("files", LevelOK, "telemetry.decisions.file", "", "%s is writable", file)
	}
}

// taken reports whether another process than a signalbox of this configuration holds the lock of a
// file, and says so.
func (x *examination) taken(subject, file string, lock *os.File) bool {
	if x.runs || !errors.Is(disk.Try(lock), disk.ErrHeld) {
		return false
	}
	x.say("files", LevelWarning, subject, "use a separate file for each process", "another process is writing %s", file)
	return true
}

// replaceable tries whether a file that is kept, and replaced as a whole, can be read and written,
// and, where one process alone may write it, whether another one does.
func (x *examination) replaceable(subject, file string, alone bool) { //nolint:revive // a fact about the file
	if file == "" {
		return
	}
	_, err := os.ReadFile(file)
	var f *os.File
	if err == nil || errors.Is(err, os.ErrNotExist) {
		f, err = os.CreateTemp(filepath.Dir(file), ".doctor-*")
	}
	if err != nil {
		x.say("files", LevelProblem, subject, letWrite(file), "%v", err)
		return
	}
	_ = f.Close()
	_ = os.Remove(f.Name())
	if lock, err := os.Open(file + ".lock"); alone && err == nil {
		taken := x.taken(subject, file, lock)
		if _ = lock.Close(); taken {
			return
		}
	}
	x.say("files", LevelOK, subject, "", "%s is writable", file)
}

// letWrite says what to do about a file that cannot be written.
func letWrite(file string) string {
	todo := "permit the user of the process to write there"
	if _, err := os.Stat(filepath.Dir(file)); errors.Is(err, os.ErrNotExist) {
		todo = "create the folder " + filepath.Dir(file) + " and " + todo
	}
	return todo
}
