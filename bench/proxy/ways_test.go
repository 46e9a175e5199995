package main

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestEveryProgramHasAColumnOfItsOwn(t *testing.T) {
	t.Parallel()
	for programs, want := range map[string]string{
		"/a/bin/signalbox":                        "signalbox",
		"/tmp/old,/tmp/new":                       "old,new",
		"/old/bin/signalbox,/new/bin/signalbox":   "old/bin/signalbox,new/bin/signalbox",
		"bin/signalbox,other/bin/signalbox":       "bin/signalbox,other/bin/signalbox",
		"/tmp/one,/tmp/one":                       "tmp/one#1,tmp/one#2",
		"./signalbox,signalbox,/x/signalbox":      "signalbox#1,signalbox#2,x/signalbox#3",
		"/a/old/signalbox,/b/old/signalbox,/c/d":  "a/old/signalbox,b/old/signalbox,c/d",
		"/tmp/signalbox-old,/tmp/w/signalbox-new": "signalbox-old,signalbox-new",
	} {
		if got := strings.Join(columns(strings.Split(programs, ",")), ","); got != want {
			t.Errorf("%s: %s, want %s", programs, got, want)
		}
	}
}

func TestWaysThatAreKept(t *testing.T) {
	t.Parallel()
	for names, want := range map[string]string{
		"":             "direct bare nginx old new",
		"signalbox":    "bare old new",
		"new":          "bare new",
		"direct,nginx": "direct bare nginx",
	} {
		b := &bench{ways: []*way{{name: "direct"}, {name: bareWay}, {name: "nginx"}, {name: "old", product: true}, {name: "new", product: true}}}
		if err := b.keep(names); err != nil {
			t.Error(err)
		}
		var got []string
		for _, w := range b.ways {
			got = append(got, w.name)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q keeps %v, want %s", names, got, want)
		}
	}
	if err := (&bench{ways: []*way{{name: bareWay}}}).keep("nginks"); err == nil || !strings.Contains(err.Error(), "nginks") {
		t.Errorf("a way that is none: %v", err)
	}
}

func TestFurtherProgramsAreComparedWithTheFirst(t *testing.T) {
	t.Parallel()
	sampleOf := func(cpu time.Duration) sample {
		return sample{requests: 100, took: time.Second, cpu: cpu, first: []time.Duration{1}}
	}
	r := &results{
		loads: []workload{{name: "plain", each: true}}, ways: []string{bareWay, "old", "new"}, first: 1, others: 1,
		all: [][][]sample{{
			{sampleOf(100), sampleOf(100), sampleOf(100)}, {sampleOf(200), sampleOf(400), sampleOf(100)}, {sampleOf(206), sampleOf(404), sampleOf(105)},
		}},
	}
	var out bytes.Buffer
	r.print(&out)
	if fields := strings.Fields(out.String()); !slices.Contains(fields, "1.030") || !slices.Contains(fields, "(1.01-1.05)") {
		t.Errorf("the ratios of new to old are not told:\n%s", out.String())
	}
}
