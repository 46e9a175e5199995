// Command deploycheck checks the files in deploy/ with the tools that read them. The helm program
// lints and renders the chart, and every object is decoded strictly into the types of Kubernetes
// and of the Prometheus operator; those of deploy/gateway and of the documentation into the types
// of the Gateway API and its inference extension. Prometheus's own parser reads the alert rules and
// every expression of the dashboard, whose metrics must exist in signalbox. If systemd-analyze and
// promtool are installed, they check the unit and the rules.
//
// Usage: deploycheck DIR, where DIR holds the product's go.mod.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/kubernetes/scheme"
	inference "sigs.k8s.io/gateway-api-inference-extension/api/v1"
	gateway "sigs.k8s.io/gateway-api/apis/v1"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: deploycheck DIR")
		os.Exit(2)
	}
	dir := os.Args[1]
	known, err := metrics(filepath.Join(dir, "internal", "telemetry"))
	if err == nil {
		err = errors.Join(chart(filepath.Join(dir, "deploy", "helm", "signalbox")),
			rules(filepath.Join(dir, "deploy", "prometheus", "rules.yaml"), known),
			dashboard(filepath.Join(dir, "deploy", "grafana", "signalbox.json"), known),
			unit(filepath.Join(dir, "deploy", "systemd", "signalbox.service")),
			promtool(filepath.Join(dir, "deploy", "prometheus", "rules.yaml")),
			manifests(filepath.Join(dir, "deploy", "gateway")), pages(filepath.Join(dir, "docs")))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "deploycheck:", err)
		os.Exit(1)
	}
}

// metric is the set of labels of a metric; nil if its definition does not contain them.
type metric map[string]bool

var (
	name     = regexp.MustCompile(`"(signalbox_[a-z0-9_]+)"`)
	quotedIn = regexp.MustCompile(`"([a-z_]+)"`)
)

// metrics reads the names of all metrics from the package that defines them.
func metrics(dir string) (map[string]metric, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	out := map[string]metric{}
	for _, f := range files {
		if strings.HasSuffix(f, "_test.go") {
			continue
		}
		b, err := os.ReadFile(f)
		if err != nil {
			return nil, err
		}
		for line := range strings.Lines(string(b)) {
			m := name.FindStringSubmatch(line)
			if m == nil {
				continue
			}
			var of metric
			if at := strings.LastIndex(line, `.", "`); at >= 0 { // the labels follow the text
				of = metric{}
				for _, l := range quotedIn.FindAllStringSubmatch(line[at+2:], -1) {
					of[l[1]] = true
				}
			}
			out[m[1]] = of
		}
	}
	if err == nil && len(out) < 30 {
		err = fmt.Errorf("%s defines %d metrics", dir, len(out))
	}
	return out, err
}

// chart lints and renders the chart with the helm program, and decodes the objects strictly. The
// program is built from its module, which go.mod pins.
func chart(dir string) error {
	build := exec.Command("go", "tool", "-n", "helm")
	build.Stderr = os.Stderr
	path, err := build.Output()
	if err != nil {
		return fmt.Errorf("build helm: %w", err)
	}
	h := helm{program: strings.TrimSpace(string(path)), chart: dir, kinds: map[string]int{}}
	sets := []map[string]any{
		{},
		{"autoscaling": on(), "serviceMonitor": on(), "networkPolicy": on(), "redis": map[string]any{"bundled": true}},
		{"endpointSlices": on()},
		{"endpointSlices": map[string]any{"enabled": true, "namespaces": []any{"a", "b"}}},
		{
			"redis": map[string]any{"existingSecret": "r"}, "envFromSecrets": []any{"keys"},
			"env":            []any{map[string]any{"name": "A", "value": "b"}},
			"volumes":        []any{map[string]any{"name": "models", "emptyDir": map[string]any{}}},
			"volumeMounts":   []any{map[string]any{"name": "models", "mountPath": "/models"}},
			"networkPolicy":  map[string]any{"enabled": true, "clients": peers(), "admin": peers()},
			"podAnnotations": map[string]any{"a": "b"}, "nodeSelector": map[string]any{"a": "b"},
			"podDisruptionBudget": map[string]any{"enabled": false},
		},
	}
	var errs []error
	for _, values := range sets {
		_, err := h.run(values, "lint", "--strict", "--quiet", "--kube-version", kubernetes)
		errs = append(errs, err, h.render(values))
	}
	two := map[string]any{"redis": map[string]any{"bundled": true, "existingSecret": "r"}}
	switch _, err = h.run(two, "template", "--kube-version", kubernetes); {
	case err == nil:
		errs = append(errs, errors.New("helm takes two Redis at once"))
	case !strings.Contains(err.Error(), "exclude each other"):
		errs = append(errs, fmt.Errorf("of two Redis at once helm says: %w", err))
	}
	fmt.Printf("chart: %d value sets, objects %v\n", len(sets), h.kinds)
	return errors.Join(errs...)
}

// kubernetes is the version that the chart is linted and rendered for.
const kubernetes = "1.34.0"

// helm is the program, a chart, and the number of rendered objects.
type helm struct {
	program, chart string
	kinds          map[string]int
}

// run runs a helm command on the chart with values.
func (h *helm) run(values map[string]any, args ...string) (string, error) {
	in, err := json.Marshal(values)
	if err != nil {
		return "", err
	}
	var out, problem strings.Builder
	cmd := exec.Command(h.program, append(args, h.chart, "--values", "-")...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(in), &out, &problem
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("helm %s with %s: %w: %s%s", args[0], in, err, out.String(), problem.String())
	}
	return out.String(), nil
}

// render renders the chart and decodes its objects.
func (h *helm) render(values map[string]any) error {
	text, err := h.run(values, "template", "--kube-version", kubernetes)
	if err != nil {
		return err
	}
	return objects(h.chart, text, h.kinds)
}

func on() map[string]any { return map[string]any{"enabled": true} }

func peers() []any {
	return []any{map[string]any{"namespaceSelector": map[string]any{"matchLabels": map[string]any{"a": "b"}}}}
}

// types are those of Kubernetes, of the Gateway API and its inference extension, and of the
// Prometheus operator, from their own packages.
var types = sync.OnceValues(func() (serializer.CodecFactory, error) {
	s := runtime.NewScheme()
	err := errors.Join(scheme.AddToScheme(s), gateway.Install(s), inference.Install(s), monitoring.AddToScheme(s))
	return serializer.NewCodecFactory(s, serializer.EnableStrict), err
})

// objects decodes the objects of a text strictly: unknown keys are an error.
func objects(file, text string, kinds map[string]int) error {
	codecs, err := types()
	if err != nil {
		return err
	}
	var errs []error
	for _, doc := range regexp.MustCompile(`(?m)^---\s*$`).Split(text, -1) {
		if strings.TrimSpace(doc) == "" {
			continue
		}
		_, kind, err := codecs.UniversalDeserializer().Decode([]byte(doc), nil, nil)
		if kind != nil {
			kinds[kind.Kind]++
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", file, err))
		}
	}
	return errors.Join(errs...)
}

// manifests decodes the files of a folder.
func manifests(dir string) error {
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	errs := []error{err}
	kinds := map[string]int{}
	for _, f := range files {
		b, err := os.ReadFile(f)
		errs = append(errs, err, objects(f, string(b), kinds))
	}
	if len(kinds) < 3 {
		errs = append(errs, fmt.Errorf("%s holds %v", dir, kinds))
	}
	fmt.Printf("gateway: objects %v\n", kinds)
	return errors.Join(errs...)
}

// pages decodes the code blocks of the documentation that contain Kubernetes objects.
func pages(dir string) error {
	files, err := filepath.Glob(filepath.Join(dir, "*.md"))
	errs := []error{err}
	kinds := map[string]int{}
	for _, f := range files {
		b, err := os.ReadFile(f)
		errs = append(errs, err)
		for _, m := range block.FindAllStringSubmatch(string(b), -1) {
			errs = append(errs, objects(f, m[1], kinds))
		}
	}
	if len(kinds) == 0 {
		errs = append(errs, fmt.Errorf("%s shows no objects", dir))
	}
	fmt.Printf("documentation: objects %v\n", kinds)
	return errors.Join(errs...)
}

var block = regexp.MustCompile("(?s)```yaml kubernetes\n(.*?)```")

func rules(file string, known map[string]metric) error {
	groups, errs := rulefmt.ParseFile(file, false, model.UTF8Validation, parser.NewParser(parser.Options{}), slog.New(slog.DiscardHandler))
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	n := 0
	for _, g := range groups.Groups {
		for _, r := range g.Rules {
			n++
			if err := expression(r.Expr, known); err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", r.Alert, err))
			}
		}
	}
	fmt.Printf("rules: %d\n", n)
	return errors.Join(errs...)
}

// unit verifies the unit with systemd, if it is installed. Another program replaces the one that
// the unit starts, which need not be installed.
func unit(file string) error {
	const started = "/usr/local/bin/signalbox"
	b, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "deploycheck")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if !strings.Contains(string(b), started) {
		return fmt.Errorf("%s starts no %s", file, started)
	}
	copied := filepath.Join(dir, filepath.Base(file))
	text := strings.ReplaceAll(string(b), started, "/bin/true")
	if err := os.WriteFile(copied, []byte(text), 0o600); err != nil {
		return err
	}
	return ask("unit", "systemd-analyze", "verify", copied)
}

// promtool checks the rules with Prometheus's own program, if it is installed.
func promtool(file string) error { return ask("rules", "promtool", "check", "rules", file) }

// ask runs a program that checks a file, or prints that the program is missing.
func ask(what, program string, args ...string) error {
	if _, err := exec.LookPath(program); err != nil {
		fmt.Printf("%s: %s is not installed, not asked\n", what, program)
		return nil
	}
	if out, err := exec.Command(program, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w: %s", program, strings.Join(args, " "), err, out)
	}
	fmt.Printf("%s: %s has nothing to say\n", what, program)
	return nil
}

func dashboard(file string, known map[string]metric) error {
	b, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var d struct {
		Panels []struct {
			Title   string `json:"title"`
			Targets []struct {
				Expr string `json:"expr"`
			} `json:"targets"`
		} `json:"panels"`
	}
	if err := json.Unmarshal(b, &d); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	n := 0
	var errs []error
	for _, p := range d.Panels {
		for _, t := range p.Targets {
			n++
			if err := expression(strings.ReplaceAll(t.Expr, "$__rate_interval", "5m"), known); err != nil {
				errs = append(errs, fmt.Errorf("panel %q: %w", p.Title, err))
			}
		}
	}
	if n < 20 {
		errs = append(errs, fmt.Errorf("%s has %d expressions", file, n))
	}
	fmt.Printf("dashboard: %d expressions\n", n)
	return errors.Join(errs...)
}

// expression parses PromQL and checks its metrics and labels.
func expression(text string, known map[string]metric) error {
	e, err := parser.NewParser(parser.Options{}).ParseExpr(text)
	if err != nil {
		return fmt.Errorf("%s: %w", text, err)
	}
	var errs []error
	parser.Inspect(e, func(n parser.Node, _ []parser.Node) error {
		v, ok := n.(*parser.VectorSelector)
		if !ok {
			return nil
		}
		base := v.Name
		of, ok := known[base]
		for _, suffix := range []string{"_bucket", "_sum", "_count"} {
			if cut, has := strings.CutSuffix(v.Name, suffix); has && !ok {
				of, ok = known[cut]
			}
		}
		switch {
		case strings.HasPrefix(base, "process_"):
			return nil
		case !ok:
			errs = append(errs, fmt.Errorf("there is no metric %s", v.Name))
		}
		for _, m := range v.LabelMatchers {
			if of != nil && m.Name != labels.MetricName && !of[m.Name] && !slices.Contains([]string{"instance", "le"}, m.Name) {
				errs = append(errs, fmt.Errorf("%s has no label %s", v.Name, m.Name))
			}
		}
		return nil
	})
	return errors.Join(errs...)
}
