package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"

	"signalbox/internal/app"
	"signalbox/internal/config"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	switch {
	case errors.Is(err, flag.ErrHelp):
		os.Exit(2)
	case err != nil:
		_, _ = fmt.Fprintf(os.Stderr, "bench/stick: %v\n", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out, log io.Writer) error {
	flags := flag.NewFlagSet("stick", flag.ContinueOnError)
	flags.SetOutput(log)
	data := flags.String("data", "", "folder with conversations")
	limit := flags.Int("limit", 0, "second turns and changes that are measured at most, 0 for all")
	seed := flags.Uint64("seed", 1, "of the changes of subject that are made")
	stick := flags.Bool("stick", true, "let conversations stick to their model")
	show := flags.Bool("show", false, "print the turns that went wrong")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *data == "" {
		return errors.New("--data: a folder is required")
	}
	all, err := load(*data)
	if err != nil {
		return err
	}
	r := rand.New(rand.NewPCG(*seed, 0)) //nolint:gosec // reproducible, not secret
	m := measure{log: log, out: out, stick: *stick, limit: *limit, show: *show, rand: r}
	return m.run(ctx, part(all, false))
}

// withApp builds the product with its embedded models.
func withApp(ctx context.Context, text string, log io.Writer, use func(*app.App) error) error {
	env := func(string) (string, bool) { return "", false }
	cfg, _, err := config.Parse("bench.yaml", []byte(text), env, app.Catalog)
	if err != nil {
		return err
	}
	cfg.Telemetry.Log = "error"
	settings := config.Settings{Library: os.Getenv("SIGNALBOX_ONNXRUNTIME")}
	if settings.CacheDir, err = os.UserCacheDir(); err != nil {
		settings.CacheDir = ""
	}
	a, err := app.Build(ctx, cfg, app.Options{
		Version: "bench", Settings: settings, RequireModels: true, Log: log, Env: env,
	})
	if err != nil {
		return fmt.Errorf("build the product: %w", err)
	}
	err = use(a)
	return errors.Join(err, a.Close(context.WithoutCancel(ctx)))
}
