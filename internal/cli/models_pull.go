package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"

	"signalbox/internal/hub"
	"signalbox/internal/hub/local"
)

func (c *command) modelsPull() *cobra.Command {
	var q hub.Request
	var endpoint string
	cmd := &cobra.Command{
		Use:   "pull ORG/NAME[@REVISION]",
		Short: "Download a model from the Hugging Face hub or a mirror",
		Long: "Download the files of a model that a classifier needs: one graph, the tokenizer, label mappings and the model\n" +
			"card. Every file is verified; an interrupted download resumes. Set HF_TOKEN for private and gated models,\n" +
			"HF_ENDPOINT or --endpoint for a mirror, HTTPS_PROXY for a proxy.",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return misuse("pull takes exactly one repository, ORG/NAME or ORG/NAME@REVISION")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			q.Repo, q.Revision, _ = strings.Cut(args[0], "@")
			if _, err := local.FolderName(q.Repo); err != nil {
				return misuse("%v", err)
			}
			if q.Selection.Precision == "auto" {
				q.Selection.Precision = ""
			}
			if err := q.Selection.Validate(); err != nil {
				return misuse("%v", err)
			}
			client, err := c.hubClient(endpoint)
			if err != nil {
				return err
			}
			if q.ModelsDir, err = c.modelsDir(cmd); err != nil {
				return err
			}
			watch := &pullProgress{command: c, name: q.Repo}
			q.Observe = watch.observe
			result, err := client.Pull(cmd.Context(), q)
			watch.close()
			if errors.Is(err, context.Canceled) {
				return errors.New("interrupted; run the same command again to resume")
			}
			if err != nil {
				return err
			}
			c.printer().pulled(result)
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&q.Selection.Precision, "precision", "auto", "precision of the graph: fp32, fp16 (for a GPU), int8; auto is int8 if available, else fp32")
	f.StringVar(&q.Selection.Graph, "graph", "", "path of the graph, instead of --precision")
	f.StringSliceVar(&q.Selection.Include, "include", nil, "pattern of further files, such as '*.txt' or 'onnx/layer-6/'; may be repeated")
	f.StringVar(&endpoint, "endpoint", "", "URL of the hub or a mirror (default: HF_ENDPOINT, else "+hub.DefaultEndpoint+")")
	return cmd
}

// hubClient makes a client from the flags and the environment.
func (c *command) hubClient(endpoint string) (*hub.Client, error) {
	o := hub.DefaultOptions()
	o.UserAgent = "signalbox/" + c.version
	if v, _ := c.Env("HF_ENDPOINT"); v != "" {
		o.Endpoint = v
	}
	if endpoint != "" {
		o.Endpoint = endpoint
	}
	token, err := hub.FindToken(c.Env)
	if err != nil {
		return nil, fmt.Errorf("hub: %w", err)
	}
	o.Token = token
	client, err := hub.New(o)
	if err != nil {
		return nil, misuse("%v", err)
	}
	return client, nil
}

func (p *printer) pulled(r *hub.Result) {
	var bytes int64
	for _, f := range r.Record.Files {
		bytes += f.Bytes
	}
	rec := &r.Record
	p.printf("%s %s@%s in %s\n", p.good("ready"), rec.Repo, rec.Commit[:min(len(rec.Commit), shortCommit)], r.Dir)
	p.printf("  graph %s (%s), %d files, %s; %d downloaded, %d there already\n",
		rec.Graph, cmp.Or(rec.Precision, "-"), len(rec.Files), sizeText(bytes), r.Fetched, r.Kept)
	for _, name := range r.Removed {
		p.printf("  removed %s, which this commit does not have\n", name)
	}
	p.printf("  licence %s\n", cmp.Or(rec.License, "-"))
	p.printf("use it as classify.tasks[].model: %s\n", rec.Repo)
}

const (
	resumedFrom = 1 << 20  // less is not worth a line
	linesFrom   = 50 << 20 // a smaller download is over before a line of tenths helps anyone
)

// named is a message with the name of what it is about in front, unless it begins with that
// already: errors of the hub name a file with its repository.
func named(name, msg string) string {
	if about, _, _ := strings.Cut(msg, ": "); about == name || strings.HasSuffix(about, "/"+name) {
		return msg
	}
	return name + ": " + msg
}

func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

// pullProgress draws a bar on a terminal and prints lines in a pipe.
type pullProgress struct {
	*command

	name   string
	bar    *progressbar.ProgressBar
	total  int64
	done   int64
	tenths int64 // of the total that a line has told about
}

func (p *pullProgress) printf(format string, args ...any) {
	if p.bar != nil {
		_ = p.bar.Clear() // the next byte draws it again, below the line
	}
	_, _ = fmt.Fprintf(p.Err, format, args...)
}

func (p *pullProgress) observe(e hub.Event) {
	switch e.Kind {
	case hub.Waiting:
		p.printf("%s: another pull of this model is running; waiting for it\n", p.name)
	case hub.Planned:
		p.total = e.Bytes
		p.printf("%s@%s: %d files to download, %s\n", p.name, e.Commit[:min(len(e.Commit), shortCommit)], e.Files, sizeText(e.Bytes))
		if p.Terminal && e.Bytes > 0 {
			p.bar = p.bytesBar(e.Bytes, "downloading")
		}
	case hub.Received, hub.Resumed:
		p.done += e.Bytes
		if e.Kind == hub.Resumed && e.Bytes >= resumedFrom {
			p.printf("%s: %s are there already\n", e.Path, sizeText(e.Bytes))
		}
		p.advance()
	case hub.Retrying:
		why := named(e.Path, firstLine(e.Err))
		p.printf("%s; trying again in %v\n", why, e.Wait.Round(time.Second))
	case hub.Finished:
		if p.bar == nil {
			p.printf("%s: %s, verified\n", e.Path, sizeText(e.Bytes))
		}
	case hub.Kept:
	}
}

func (p *pullProgress) advance() {
	if p.bar != nil {
		_ = p.bar.Set64(min(p.done, p.total))
		return
	}
	if p.total < linesFrom {
		return
	}
	if t := p.done * 10 / p.total; t > p.tenths && t < 10 {
		p.tenths = t
		p.printf("%d%% of %s\n", t*10, sizeText(p.total))
	}
}

func (p *pullProgress) close() {
	if p.bar != nil {
		_ = p.bar.Clear()
	}
}
