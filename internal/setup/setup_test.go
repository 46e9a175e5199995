package setup

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"signalbox/internal/modelserver"
)

func server(base string, kind modelserver.Kind, models ...modelserver.Model) Found {
	return Found{Server: &modelserver.Server{Base: base, Kind: kind, Models: models}}
}

func TestAModelOfSeveralServersIsOne(t *testing.T) {
	t.Parallel()
	big := modelserver.Model{ID: "meta/Llama-3.3-70B-Instruct", Window: 131072}
	less := big
	less.Window = 32768
	p, err := FromServers([]Found{
		server("http://a:8000/v1", modelserver.VLLM, big),
		server("http://127.0.0.1:8080/v1", modelserver.LlamaCPP, modelserver.Model{ID: "/models/Gemma-270M.gguf"}),
		server("http://b:8000/v1", modelserver.VLLM, less),
		server("http://c/v1", modelserver.Other, modelserver.Model{ID: "e5-small", Embedding: true}),
	})
	if err != nil {
		t.Fatal(err)
	}
	if n := len(p.Models); n != 3 {
		t.Fatalf("%d models", n)
	}
	if m := p.Models[0]; len(m.Endpoints) != 2 || m.Window != 32768 || m.Endpoints[1].Name != "b" {
		t.Errorf("%+v", m)
	}
	if !slices.Equal(p.Default, []string{"gemma-270m", "llama-3.3-70b-instruct"}) ||
		!slices.Equal(p.Hard, []string{"llama-3.3-70b-instruct", "gemma-270m"}) {
		t.Errorf("default %v, hard %v", p.Default, p.Hard)
	}
	if p.Listen != "127.0.0.1:8081" || p.AdminListen != "127.0.0.1:9090" {
		t.Errorf("it listens on %s and %s, where a model server is", p.Listen, p.AdminListen)
	}
}

func TestNothingIsPlannedOfNothing(t *testing.T) {
	t.Parallel()
	if _, err := FromServers([]Found{server("http://a/v1", modelserver.VLLM)}); !errors.Is(err, ErrNothing) {
		t.Errorf("%v", err)
	}
	_, err := FromServers([]Found{server("http://a/v1", modelserver.Signalbox, modelserver.Model{ID: "auto"})})
	if err == nil || !strings.Contains(err.Error(), "itself") {
		t.Errorf("%v", err)
	}
}

func TestSizesAreReadFromNames(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]float64{
		"Qwen2.5-7B-Instruct": 7, "mixtral-8x7b": 56, "gemma-3-270m": 0.27, "qwen3:8b": 8,
		"Qwen3-30B-A3B": 30, "gpt-4.1": 0, "nomic-embed": 0, "llama-3.2-1.5b": 1.5,
	} {
		if got := billions(name); got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}
