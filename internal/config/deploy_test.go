package config_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"signalbox/internal/config"
)

// What deploy/ starts with is a configuration that serves, and fits the schema.
func TestConfigurationsOfDeploymentsAreValid(t *testing.T) {
	t.Parallel()
	var values struct {
		Config string `yaml:"config"`
	}
	if err := yaml.Unmarshal(read(t, "../../deploy/helm/signalbox/values.yaml"), &values); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{
		"deploy/helm/signalbox/values.yaml": []byte(values.Config),
		"deploy/compose/signalbox.yaml":     read(t, "../../deploy/compose/signalbox.yaml"),
	} {
		env := func(string) (string, bool) { return "redis://h:6379", true }
		cfg, warnings, err := config.Parse(name, text, env, catalog)
		if err != nil || len(warnings) > 0 {
			t.Errorf("%s: %v %v", name, err, warnings)
			continue
		}
		cfg.Server.Listen = "0.0.0.0:8080" // as the chart sets it
		if err := config.Open(cfg); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := fits(t, schema(t), text); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A claim belongs to root where no group is named, and signalbox is not root.
func TestTheChartCanWriteToVolumes(t *testing.T) {
	t.Parallel()
	text := string(read(t, "../../deploy/helm/signalbox/templates/deployment.yaml"))
	user := regexp.MustCompile(`runAsUser: (\d+)`).FindStringSubmatch(text)
	if user == nil || !strings.Contains(text, "fsGroup: "+user[1]) {
		t.Errorf("volumes do not belong to the user %q", user)
	}
}

// What the documentation says of the chart is what the chart does.
func TestTheDocumentationNamesWhatTheChartHas(t *testing.T) {
	t.Parallel()
	var values struct {
		Image   struct{ Repository string }
		Service struct{ Port int }
	}
	if err := yaml.Unmarshal(read(t, "../../deploy/helm/signalbox/values.yaml"), &values); err != nil {
		t.Fatal(err)
	}
	var chart struct {
		AppVersion string `yaml:"appVersion"`
	}
	if err := yaml.Unmarshal(read(t, "../../deploy/helm/signalbox/Chart.yaml"), &chart); err != nil {
		t.Fatal(err)
	}
	image := "-t " + values.Image.Repository + ":" + chart.AppVersion + " "
	if !strings.Contains(string(read(t, "../../docs/deploy.md")), image) {
		t.Errorf("docs/deploy.md builds no image %q", image)
	}
	forward := fmt.Sprintf("port-forward svc/signalbox 8080:%d ", values.Service.Port)
	if !strings.Contains(string(read(t, "../../docs/kubernetes.md")), forward) {
		t.Errorf("docs/kubernetes.md does not say %q", forward)
	}
	behind := fmt.Sprintf("backendRefs: [{name: signalbox, port: %d}]", values.Service.Port)
	if !strings.Contains(string(read(t, "../../deploy/gateway/gateway.yaml")), behind) {
		t.Errorf("deploy/gateway/gateway.yaml does not say %q", behind)
	}
}
