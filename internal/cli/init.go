package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"signalbox/internal/app"
	"signalbox/internal/config"
	"signalbox/internal/disk"
	"signalbox/internal/modelserver"
	"signalbox/internal/setup"
)

func (c *command) init() *cobra.Command {
	i := &initiation{command: c, usual: usual()}
	cmd := &cobra.Command{
		Use:   "init [--endpoint URL]... [--from FILE] [--out FILE]",
		Short: "Write a first configuration for your model servers",
		Long: "Write a first configuration for your model servers. Each server is asked what\n" +
			"it is (vLLM, SGLang, llama.cpp, Ollama, TGI, or another OpenAI-compatible server), which\n" +
			"models it serves and how large their context windows are. On a terminal, without --endpoint, init\n" +
			"probes the usual ports of this machine and asks for more URLs.\n\n" +
			"API keys are referenced and never written to the file: --api-key-env NAME, or URL=NAME for one of\n" +
			"several servers.\n\n" +
			"With --from, init converts a configuration of LiteLLM or vLLM Semantic Router instead, and lists\n" +
			"what it could not convert.",
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return i.run(cmd.Context()) },
	}
	f := cmd.Flags()
	f.StringArrayVar(&i.endpoints, "endpoint", nil, "URL of a model server; may be repeated")
	f.StringArrayVar(&i.keys, "api-key-env", nil, "environment variable that holds the API key of all servers, or URL=NAME for one server")
	f.StringVar(&i.out, "out", "signalbox.yaml", "file to write; - writes to standard output")
	f.StringVar(&i.from, "from", "", "configuration of LiteLLM or vLLM Semantic Router to convert")
	f.BoolVar(&i.force, "force", false, "overwrite an existing file")
	return cmd
}

// initiation is one run of init.
type initiation struct {
	*command

	endpoints, keys []string
	out, from       string
	force           bool
	usual           []string       // addresses to look at
	lines           *bufio.Scanner // of answers
}

// usual are the addresses at which model servers listen unless they are told otherwise.
func usual() []string {
	return []string{
		"http://127.0.0.1:8000",  // vLLM
		"http://127.0.0.1:8080",  // llama.cpp, TGI in its container
		"http://127.0.0.1:11434", // Ollama
		"http://127.0.0.1:30000", // SGLang
		"http://127.0.0.1:3000",  // TGI
		"http://127.0.0.1:1234",  // LM Studio
	}
}

// lookTimeout bounds one question to a server that somebody named.
const lookTimeout = 10 * time.Second

func (i *initiation) run(ctx context.Context) error {
	if err := i.mayWrite(); err != nil {
		return err
	}
	asking := i.Asks && len(i.endpoints) == 0
	if i.from != "" {
		return i.migrate()
	}
	if !asking && len(i.endpoints) == 0 {
		return misuse("missing model server: signalbox init --endpoint http://HOST:8000")
	}
	var found []setup.Found
	var err error
	if asking {
		found, err = i.ask(ctx)
	} else {
		found, err = i.look(ctx)
	}
	if err != nil {
		return err
	}
	plan, err := setup.FromServers(found)
	if err != nil {
		return fmt.Errorf("init: %w", err)
	}
	return i.write(plan)
}

// migrate goes over from another router.
func (i *initiation) migrate() error {
	if len(i.endpoints) > 0 {
		return misuse("--from and --endpoint are mutually exclusive")
	}
	b, err := os.ReadFile(i.from)
	if err != nil {
		return fmt.Errorf("init: %w", err)
	}
	plan, err := setup.FromFile(i.from, b)
	if err != nil {
		return fmt.Errorf("init: %w", err)
	}
	return i.write(plan)
}

func (i *initiation) mayWrite() error {
	if i.out == "-" || i.force {
		return nil
	}
	if _, err := os.Lstat(i.out); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s already exists: choose another file with --out, or overwrite it with --force", i.out)
	}
	return nil
}

// talk is where init says what it does: beside the configuration, where that is printed.
func (i *initiation) talk() *printer {
	p := i.printer()
	if i.out == "-" {
		p.w = i.Err
	}
	return p
}

// look asks the servers that were named. One that cannot be used is an error: a file without it
// would be another one than was asked for.
func (i *initiation) look(ctx context.Context) ([]setup.Found, error) {
	var found []setup.Found
	var errs []error
	for _, address := range i.endpoints {
		f, err := i.one(ctx, address, lookTimeout, i.keyOf(address))
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w%s", address, err, remedy(err)))
			continue
		}
		i.show(f)
		found = append(found, f)
	}
	return found, errors.Join(errs...)
}

// keyOf names the environment variable with the key of a server; empty for none.
func (i *initiation) keyOf(address string) string {
	name := ""
	for _, k := range i.keys {
		of, variable, one := cutLast(k, "=")
		switch {
		case !one:
			name = k
		case of == address:
			return variable
		}
	}
	return name
}

func cutLast(s, sep string) (before, after string, found bool) {
	if at := strings.LastIndex(s, sep); at >= 0 {
		return s[:at], s[at+len(sep):], true
	}
	return s, "", false
}

func (i *initiation) one(ctx context.Context, address string, patience time.Duration, keyEnv string) (setup.Found, error) {
	key := ""
	if keyEnv != "" {
		var ok bool
		if key, ok = i.Env(keyEnv); !ok || key == "" {
			return setup.Found{}, fmt.Errorf("the environment variable %s is not set", keyEnv)
		}
	}
	client := &http.Client{Timeout: patience}
	defer client.CloseIdleConnections()
	s, err := modelserver.Look(ctx, client, address, key)
	if err != nil {
		return setup.Found{}, err //nolint:wrapcheck // it names the address
	}
	return setup.Found{Server: s, KeyEnv: keyEnv}, nil
}

// remedy says what to do about a server that cannot be looked at.
func remedy(err error) string {
	switch {
	case errors.Is(err, modelserver.ErrKey):
		return "; pass the variable that holds its API key: --api-key-env NAME"
	case errors.Is(err, modelserver.ErrNotReady):
		return "; wait until it has loaded its model"
	case errors.Is(err, modelserver.ErrOtherScheme):
		return "; name it with http:// or https://"
	case errors.Is(err, modelserver.ErrNoModels):
		return "; name the base URL of its OpenAI-compatible API"
	case errors.Is(err, modelserver.ErrUnreachable):
		return "; is it running, and is this its address?"
	}
	return ""
}

func (i *initiation) show(f setup.Found) {
	p := i.talk()
	s := f.Server
	p.printf("%s %s %s\n", p.good("found"), p.bold(strings.TrimSpace(string(s.Kind)+" "+s.Version)), s.Base)
	for _, m := range s.Models {
		about := []string{}
		if m.Window > 0 {
			about = append(about, fmt.Sprintf("%d tokens", m.Window))
		}
		if m.Embedding {
			about = append(about, "embeddings")
		}
		if m.Thinking != "" {
			about = append(about, "reasoning by "+m.Thinking)
		}
		p.printf("  %s  %s\n", m.ID, p.faint(strings.Join(about, ", ")))
	}
	if s.Asleep {
		p.printf("  %s\n", p.warn("it is asleep or paused and does not respond until it is woken up"))
	}
}

// ask looks at the usual ports and asks a person for more.
func (i *initiation) ask(ctx context.Context) ([]setup.Found, error) {
	p := i.talk()
	i.lines = bufio.NewScanner(i.In)
	p.printf("Looking for model servers on this machine ...\n")
	var found []setup.Found
	for _, address := range i.usual {
		f, err := i.one(ctx, address, time.Second, "")
		if err != nil || f.Server.Kind == modelserver.Signalbox {
			continue
		}
		i.show(f)
		if yes, err := i.yes("  Use it?"); err != nil {
			return nil, err
		} else if yes {
			found = append(found, f)
		}
	}
	if len(found) == 0 {
		p.printf("No server has been added so far.\n")
	}
	for {
		address, err := i.line("URL of a model server, empty to finish: ")
		switch {
		case err != nil:
			return nil, err
		case address == "" && len(found) == 0:
			return nil, errors.New("init: no model server was given; `signalbox demo` runs with simulated ones")
		case address == "":
			return found, nil
		}
		f, err := i.named(ctx, address)
		if err != nil {
			p.printf("%s %v%s\n", p.bad("no:"), err, remedy(err))
			continue
		}
		i.show(f)
		found = append(found, f)
	}
}

// named asks a server that a person named, and the person for its key where it wants one.
func (i *initiation) named(ctx context.Context, address string) (setup.Found, error) {
	f, err := i.one(ctx, address, lookTimeout, "")
	if !errors.Is(err, modelserver.ErrKey) {
		return f, err
	}
	name, err := i.line("It requires an API key. Name of the environment variable that holds it: ")
	if err != nil || name == "" {
		return f, errors.Join(err, modelserver.ErrKey)
	}
	return i.one(ctx, address, lookTimeout, name)
}

func (i *initiation) line(question string) (string, error) {
	i.talk().printf("%s", question)
	if !i.lines.Scan() {
		if err := i.lines.Err(); err != nil {
			return "", fmt.Errorf("read answer: %w", err)
		}
		return "", fmt.Errorf("read answer: %w", io.ErrUnexpectedEOF)
	}
	return strings.TrimSpace(i.lines.Text()), nil
}

func (i *initiation) yes(question string) (bool, error) {
	answer, err := i.line(question + " [Y/n] ")
	return answer == "" || strings.EqualFold(answer, "y") || strings.EqualFold(answer, "yes"), err
}

// write checks the plan as `check` would, and writes it.
func (i *initiation) write(plan *setup.Plan) error {
	b, err := plan.YAML()
	if err != nil {
		return fmt.Errorf("init: %w", err)
	}
	cfg, warnings, err := config.Check(i.out, b, i.Env, app.Catalog)
	if err != nil {
		return fmt.Errorf("init produced an invalid configuration, which is a bug in signalbox: %w\n%s", err, b)
	}
	p := i.talk()
	if i.out == "-" {
		i.printer().printf("%s", b)
	} else if err := disk.Replace(i.out, 0o600, b); err != nil {
		return fmt.Errorf("init: write %s: %w", i.out, err)
	}
	for _, w := range warnings {
		p.printf("%s\n", p.warn(config.Format(i.out, w)))
	}
	if i.out == "-" {
		return nil
	}
	p.printf("%s %s: %s, %s\n", p.good("wrote"), i.out, count(len(cfg.Models), "model"), count(len(cfg.Routes.Content), "route"))
	for _, n := range plan.Notes {
		p.printf("%s %s\n", p.warn("look at:"), n)
	}
	self := os.Args[0]
	p.printf("\nNext:  %s doctor %s\n       %s serve %s\n", self, i.out, self, i.out)
	return nil
}
