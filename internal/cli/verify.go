package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"signalbox/internal/config"
	"signalbox/internal/hub/local"
)

func (c *command) modelsVerify() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "verify [NAME]",
		Short: "Check every file against its checksum",
		Long: "Compare every file of a model with the checksums in its bundle.yaml and in the record that pull wrote.\n" +
			"Without NAME, verify the embedded bundles and all downloaded models. The exit code is 1, with a line for every\n" +
			"problem.",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return misuse("verify takes at most one model")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			dir, err := c.modelsDir(cmd)
			if err != nil {
				return err
			}
			p := c.printer()
			v := &verification{Dir: dir, OK: true, tell: p.verified}
			if asJSON {
				v.tell = func(*verified) {}
			}
			switch {
			case len(args) == 0:
				err = v.all(cmd.Context())
			case args[0] == config.EmbeddedModel:
				err = v.embedded()
			default:
				err = v.one(cmd.Context(), args[0])
			}
			if err == nil && asJSON {
				err = p.json(v)
			}
			if err == nil && !v.OK {
				return errSilent
			}
			return err
		},
	}
	addJSON(cmd, &asJSON)
	return cmd
}

// verification is a check of models, and what verify --json prints.
type verification struct {
	Dir    string     `json:"models_dir"`
	OK     bool       `json:"ok"`
	Models []verified `json:"models"`

	tell func(*verified) // of each model when it has been checked
}

// verified is what a check of one model found.
type verified struct {
	Name     string   `json:"name"`
	OK       bool     `json:"ok"`
	Problems []string `json:"problems"`
}

func (v *verification) add(name string, problems []error) {
	m := verified{Name: name, OK: len(problems) == 0, Problems: make([]string, len(problems))}
	for i, err := range problems {
		m.Problems[i] = err.Error()
	}
	v.OK = v.OK && m.OK
	v.Models = append(v.Models, m)
	v.tell(&m)
}

// embedded checks the bundles in the binary.
func (v *verification) embedded() error {
	own, err := embedded()
	if err != nil {
		return err
	}
	for _, b := range own {
		v.add(b.name, local.VerifyBundle(b.files))
	}
	return nil
}

// all checks the bundles in the binary and the models of the folder.
func (v *verification) all(ctx context.Context) error {
	if err := v.embedded(); err != nil {
		return err
	}
	found, err := local.List(v.Dir)
	if err != nil {
		return err
	}
	for _, m := range found {
		if err := v.folder(ctx, m.Name, m.Dir); err != nil {
			return err
		}
	}
	return nil
}

func (v *verification) one(ctx context.Context, name string) error {
	dir, err := local.Dir(v.Dir, name)
	if err != nil {
		return misuse("%v", err)
	}
	if of, ok := strings.CutPrefix(name, local.HalfModels+"/"); ok {
		dir = filepath.Join(v.Dir, local.HalfModels, of)
	}
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		if info, err := os.Stat(dir + ".onnx"); err == nil && info.Mode().IsRegular() {
			return v.folder(ctx, name, dir+".onnx") // an adapter
		}
		return fmt.Errorf("no model %q in %s; `signalbox models list` prints what is there", name, v.Dir)
	}
	return v.folder(ctx, name, dir)
}

func (v *verification) folder(ctx context.Context, name, dir string) error {
	rec, recErr := local.ReadRecord(dir)
	problems := local.Verify(ctx, dir)
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("verify: %w", err)
	}
	v.add(name, problems)
	if recErr != nil {
		return nil //nolint:nilerr // Verify says what is wrong with a record
	}
	at := time.Now().UTC().Truncate(time.Second)
	if len(problems) > 0 {
		at = time.Time{}
	}
	return local.MarkVerified(dir, rec, at)
}

// verified prints what a check of one model found.
func (p *printer) verified(m *verified) {
	if m.OK {
		p.printf("%s: %s\n", m.Name, p.good("ok"))
	}
	for _, problem := range m.Problems {
		p.printf("%s: %s\n", m.Name, p.bad(problem))
	}
}
