package main

import (
	"io"
	"testing"
)

func TestClientsOfRealServersFindWhatTheirPolicyKeepsTogether(t *testing.T) {
	l := &live{seeds: []uint64{1}, repeats: 1, small: 12, log: io.Discard}
	talk := l.usualTalk()
	talk.contextWords = 400
	share := map[string]float64{}
	for _, w := range policies() {
		if w.proxies > 0 {
			continue
		}
		out, err := l.play(t.Context(), talk, w, 1, 0)
		if err != nil {
			t.Fatal(err)
		}
		if n := talk.contexts * talk.agents * talk.turns; len(out.ttft) != n || out.errors+out.cut > 0 {
			t.Errorf("%s: %d answers of %d, %d errors, %d streams cut", w.name, len(out.ttft), n, out.errors, out.cut)
		}
		if out.ideal < out.share() || out.ideal < 0.8 {
			t.Errorf("%s: ideal share %.3f, measured %.3f", w.name, out.ideal, out.share())
		}
		share[w.name] = out.share()
	}
	if share[byContext] <= share[turn] {
		t.Errorf("context hash finds %.3f, round-robin %.3f", share[byContext], share[turn])
	}
}
