package cli

import (
	"cmp"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"signalbox/internal/config"
	"signalbox/internal/hub/local"
	"signalbox/models"
)

func (c *command) models() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "models",
		Short: "List, download and verify models",
		Long: "List, download and verify models. Models are folders in models_dir, by default " +
			"~/.cache/signalbox/models. classify.tasks[].model selects one, ORG/NAME for a downloaded model.",
		RunE: onlyHelp,
	}
	cmd.PersistentFlags().String("dir", "", "folder of models, the same as models_dir in the configuration (default: signalbox/models in the user's cache directory)")
	cmd.AddCommand(c.modelsList(), c.modelsPull(), c.modelsVerify())
	return cmd
}

// modelsDir returns the folder that --dir names, or the default.
func (c *command) modelsDir(cmd *cobra.Command) (string, error) {
	dir, err := cmd.Flags().GetString("dir")
	if err != nil {
		return "", fmt.Errorf("read --dir: %w", err)
	}
	if dir != "" {
		home, _ := c.Env("HOME")
		return local.Expand(dir, home), nil
	}
	settings, err := config.ReadSettings(cmd.Flags())
	if err != nil {
		return "", err
	}
	if dir = local.DefaultDir(settings.CacheDir); dir == "" {
		return "", misuse("there is no cache directory (neither XDG_CACHE_HOME nor HOME is set): name a folder with --dir")
	}
	return dir, nil
}

// embeddedBundle is one bundle in the binary.
type embeddedBundle struct {
	name  string
	files fs.FS
}

// embedded returns the bundles in the binary: the default one, then the others.
func embedded() ([]embeddedBundle, error) {
	out := []embeddedBundle{{name: config.EmbeddedModel}}
	folders, err := fs.ReadDir(models.FS, ".")
	if err != nil {
		return nil, fmt.Errorf("embedded bundles: %w", err)
	}
	for _, f := range folders {
		files, err := fs.Sub(models.FS, f.Name())
		switch {
		case err != nil:
			return nil, fmt.Errorf("embedded bundle %s: %w", f.Name(), err)
		case f.Name() == "default":
			out[0].files = files
		default:
			out = append(out, embeddedBundle{config.EmbeddedModel + " " + f.Name(), files})
		}
	}
	return out, nil
}

func (c *command) modelsList() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "Print the embedded bundles and the downloaded models",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir, err := c.modelsDir(cmd)
			if err != nil {
				return err
			}
			own, err := embedded()
			if err != nil {
				return err
			}
			found, err := local.List(dir)
			if err != nil {
				return err
			}
			p := c.printer()
			all := make([]local.Model, 0, len(own)+len(found))
			for _, b := range own {
				m := local.Describe(b.files)
				m.Name = b.name
				all = append(all, m)
			}
			all = append(all, found...)
			if asJSON {
				return p.json(modelList{Dir: dir, Models: all})
			}
			p.models(all)
			return nil
		},
	}
	addJSON(cmd, &asJSON)
	return cmd
}

// modelList is what list --json prints.
type modelList struct {
	Dir    string        `json:"models_dir"`
	Models []local.Model `json:"models"`
}

// mostNamed is how many labels of a classifier a list names.
const mostNamed = 6

func (p *printer) models(all []local.Model) {
	rows := make([][]string, 0, len(all))
	for _, m := range all {
		kind := string(m.Kind)
		if m.Kind == local.Broken || m.Kind == local.Incomplete {
			kind = p.bad(kind)
		}
		verified := p.faint("never")
		switch {
		case m.Dir == "":
			verified = "built in"
		case !m.VerifiedAt.IsZero():
			verified = m.VerifiedAt.UTC().Format(time.DateOnly)
		}
		tasks := strings.Join(m.Tasks, ", ")
		if n := len(m.Tasks); n > mostNamed && (m.Kind == local.Classifier || m.Kind == local.Adapter) {
			tasks = fmt.Sprintf("%d labels", n)
		}
		rows = append(rows, []string{
			m.Name, kind, cmp.Or(tasks, "-"), cmp.Or(strings.Join(m.Precisions, ", "), "-"), sizeText(m.Bytes),
			cmp.Or(m.License, "-"), cmp.Or(m.Version, m.Commit[:min(len(m.Commit), shortCommit)], "-"), verified,
		})
	}
	p.table([]string{"name", "kind", "tasks", "precision", "size", "licence", "version", "verified"}, rows)
	for _, m := range all {
		if m.Problem != "" {
			p.printf("%s: %s\n", m.Name, p.bad(m.Problem))
		}
	}
}

// shortCommit is how much of a commit is shown: enough to be unique, as git shows it.
const shortCommit = 12

// sizeText prints a size in decimal units.
func sizeText(n int64) string {
	switch {
	case n >= 1e9:
		return fmt.Sprintf("%.2f GB", float64(n)/1e9)
	case n >= 1e6:
		return fmt.Sprintf("%.1f MB", float64(n)/1e6)
	case n >= 1e3:
		return fmt.Sprintf("%.1f kB", float64(n)/1e3)
	}
	return fmt.Sprintf("%d B", n)
}
