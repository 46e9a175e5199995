package guard_test

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"signalbox/stream/check"
	"signalbox/stream/evidence"
	"signalbox/stream/guard"
)

// quick is a judge that never needs a model, so that its verdicts are available at once for any
// pieces.
type quick struct{ judge }

func (*quick) Quick(_ *evidence.Evidence, c check.Claim) (check.Result, bool) {
	return verdictOf(c.Text), true
}

func FuzzPiecesChangeNothing(f *testing.F) {
	list, _ := filepath.Glob("../response/testdata/*.sse")
	if len(list) == 0 {
		f.Fatal("no streams to begin with")
	}
	for i, name := range list {
		b, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(b), uint64(i), uint8(i))
	}
	for seed := range uint64(8) {
		gen := generator{r: rand.New(rand.NewPCG(seed, 4))}
		f.Add(gen.stream(), seed, uint8(seed))
	}
	g := guard.New(&quick{}, guard.Options{Workers: 1})
	f.Cleanup(g.Close)
	f.Fuzz(func(t *testing.T, stream string, seed uint64, how uint8) {
		for m := guard.Off; m <= guard.Hold; m++ {
			job := jobOf(t, m)
			job.MayAnnotate = how&1 == 0
			job.Policy.Summary = how&2 == 0
			job.Policy.Reasoning = how&4 != 0
			job.Policy.Failures = int(how >> 6)
			if how&8 != 0 {
				job.Policy.MarkerAs = guard.Field
			}
			if how&16 != 0 {
				job.Policy.OnUnchecked = guard.Block
			}
			gen := generator{r: rand.New(rand.NewPCG(seed, 5))}
			want, wantOut, wantErr := pass(t, g, job, stream)
			got, gotOut, gotErr := pass(t, g, job, gen.pieces(stream, 1+gen.r.IntN(100))...)
			if got != want || gotOut != wantOut || (gotErr == nil) != (wantErr == nil) {
				t.Fatalf("%v: %v %+v\n%q\nin pieces: %v %+v\n%q", m, wantErr, wantOut, want, gotErr, gotOut, got)
			}
		}
	})
}
