package quantity_test

import (
	"math"
	"math/rand/v2"
	"strconv"
	"testing"

	"signalbox/stream/numeric/quantity"
)

// TestWhatAgreesLiesInReach draws pairs of amounts that are close to each other in one of their
// units, and checks every pair that agrees against Reach.
func TestWhatAgreesLiesInReach(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 4))
	pick := func(list ...string) string { return list[r.IntN(len(list))] }
	units := []string{"", "", " m", " km", " ft", " miles", " %", " °C", " °F", " K", "°", " kg", " mg", " g a day", " g", " $", " dollars per hour", " hours", " minutes", " times"}
	one := func(size float64, unit string) (quantity.Value, bool) {
		text := pick("", "", "about ", "nearly ", "over ", "under ", "at least ", "at most ", "-") +
			strconv.FormatFloat(size, 'f', r.IntN(4), 64) + pick("", "", "", "0", " thousand") + unit
		list := quantity.Parse(nil, text)
		if len(list) != 1 || list[0].Kind != quantity.Count || list[0].Range() {
			return quantity.Value{}, false
		}
		return list[0], true
	}
	agreed := 0
	for range 60_000 {
		size := math.Round(math.Exp(12*r.Float64())) / float64(int(1)<<r.IntN(4))
		unit := pick(units...)
		c, ok := one(size, unit)
		if !ok {
			continue
		}
		near := size * (0.95 + 0.1*r.Float64())
		if r.IntN(3) == 0 {
			near = size * (0.4 + 1.2*r.Float64())
		}
		if r.IntN(2) == 0 {
			unit = pick(units...)
		}
		if r.IntN(3) == 0 {
			near = size * []float64{1, 1000, 0.001, 60, 1 / 60.0, 3.2808, 0.3048, 1.609}[r.IntN(8)] * (0.9 + 0.2*r.Float64())
		}
		e, ok := one(near, unit)
		if !ok || quantity.Compare(&c, &e) == quantity.Differs {
			continue
		}
		agreed++
		reach := c.Reach()
		written := math.Abs(c.Raw-e.Raw) <= reach || math.Abs(c.Alt-e.Raw) <= reach
		base := c.Dim == e.Dim && math.Abs((e.Lo-c.Offset)/c.Factor-c.Raw) <= reach
		if !written && !base && math.IsNaN(e.Alt) {
			t.Fatalf("%+v and %+v agree, reach %v", c, e, reach)
		}
	}
	if agreed < 1000 {
		t.Errorf("only %d pairs agree", agreed)
	}
}
