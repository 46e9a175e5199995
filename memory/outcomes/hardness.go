package outcomes

// hardness estimates from the embedding alone how hard a request is, by ridge regressions on the
// residuals of scores: for all models, and in addition for each model with enough data. They apply
// farther than similar requests do.
type hardness struct {
	all *ridge   // of all rows; nil until it is fitted
	own []*tried // by arm, of its rows only; nil if there are too few
	// [arms][2*dims]: vectors times scores above priors, then vectors; both weighted
	byArm [][]float64
	owns  int       // number of entries in own
	unit  []float32 // scratch
}

// tried is a regression with a measure of how well it predicted outcomes before they were known:
// the sums of its predictions times the residuals, and of the squares of its predictions. Its
// weight follows from these, which for some models is zero.
type tried struct {
	*ridge

	told, said float64
}

// trust returns the factor for its predictions.
func (g *tried) trust() float64 { return min(max(g.told/(g.said+doubtTold), 0), 1) }

// The constants of hardness, see the constants of a prediction.
const (
	hardRidge  = 20.0 // penalty of the weights, in outcomes
	hardFewest = 50   // minimum number of outcomes before all is used
	hardEvery  = 8    // minimum number of outcomes between two fits
	hardShare  = 64   // the same, as a share of the known outcomes
	// minimum number of outcomes of an arm for a regression of its own; half of them keep it.
	ownFewest = 100
	mostOwn   = 16  // maximum number of arms with a regression of their own, each 0.3 MB
	doubtTold = 1.0 // prior sum of squares against the predictions of an arm's own regression
	toldLast  = 500 // number of outcomes of an arm over which trust is measured, roughly
)

// count adds a row, or removes it if sign is -1; above is its score minus the prior.
func (h *hardness) count(arm int, codes []int8, norm float32, weight, above, sign float64) {
	if norm == 0 {
		return
	}
	dims := len(codes)
	if h.all == nil {
		h.all, h.unit = newRidge(dims), make([]float32, dims)
	}
	for len(h.byArm) <= arm {
		h.byArm, h.own = append(h.byArm, make([]float64, 2*dims)), append(h.own, nil)
	}
	w, s := sign*weight, h.byArm[arm]
	for i, c := range codes {
		x := float32(c) / norm
		h.unit[i] = x
		s[i] += w * float64(x) * above
		s[dims+i] += w * float64(x)
	}
	h.all.count(h.unit, w)
	if g := h.own[arm]; g != nil {
		g.count(h.unit, w)
	}
}

// ofAll returns by how much responses to a request are better than average, for all models.
func (h *hardness) ofAll(codes []int8, norm float32) float64 { return h.all.of(codes, norm) }

// ofArm returns the same for one arm, in addition to ofAll.
func (h *hardness) ofArm(arm int, codes []int8, norm float32) float64 {
	if arm >= len(h.own) {
		return 0
	}
	if g := h.own[arm]; g != nil {
		return g.of(codes, norm)
	}
	return 0
}

// trust returns the factor for the result of ofArm.
func (h *hardness) trust(arm int) float64 {
	if arm >= len(h.own) || h.own[arm] == nil {
		return 0
	}
	return h.own[arm].trust()
}

// try records the prediction of an arm's own regression for an outcome that it had not seen, and
// the residual.
func (h *hardness) try(arm int, said, left, weight float64) {
	if said == 0 || arm >= len(h.own) || h.own[arm] == nil {
		return
	}
	g := h.own[arm]
	g.told += weight*said*left - g.told/toldLast
	g.said += weight*said*said - g.said/toldLast
}

// refit fits the weights for all arms again, and those of the arms with enough new outcomes.
func (h *hardness) refit(t *table) {
	if h.all == nil {
		return
	}
	if h.all.stale >= max(hardEvery, len(t.rows)/hardShare) {
		h.refitAll(t)
		for i := range t.rows {
			t.easy[i] = float32(h.ofAll(t.codes[i*t.dims:(i+1)*t.dims], t.rows[i].norm))
		}
	}
	for arm := range h.own {
		if h.due(t, arm) {
			h.refitOwn(t, arm)
			for i := range t.rows {
				if t.rows[i].arm == arm {
					t.own[i] = float32(h.ofArm(arm, t.codes[i*t.dims:(i+1)*t.dims], t.rows[i].norm))
				}
			}
		}
	}
}

// due reports whether the regression of an arm has to be fitted again. It starts regressions for
// arms with enough data, as long as there are not too many, and drops those of arms most of whose
// outcomes were removed.
func (h *hardness) due(t *table, arm int) bool {
	g := h.own[arm]
	switch {
	case g == nil && (t.arms[arm].weight < ownFewest || h.owns == mostOwn):
		return false
	case g == nil:
		h.owns++
		g = h.begin(t, arm)
	case g.weight < ownFewest/2:
		h.owns--
		h.own[arm] = nil
		return true
	}
	return g.stale >= max(hardEvery, int(g.weight)/hardShare)
}

func (h *hardness) refitAll(t *table) {
	if h.all.weight < hardFewest {
		h.all.weights, h.all.stale = nil, 0
		return
	}
	target, left := make([]float64, t.dims), 0.0
	for a, s := range h.byArm {
		by := t.shift(a)
		left += t.arms[a].left - t.arms[a].weight*by
		for i := range target {
			target[i] += s[i] - by*s[t.dims+i]
		}
	}
	h.all.solve(target, left, hardRidge)
}

// begin makes the regression of an arm from the existing rows.
func (h *hardness) begin(t *table, arm int) *tried {
	g := &tried{ridge: newRidge(t.dims)}
	for i := range t.rows {
		r := &t.rows[i]
		if r.arm != arm || r.norm == 0 {
			continue
		}
		for j, c := range t.codes[i*t.dims : (i+1)*t.dims] {
			h.unit[j] = float32(c) / r.norm
		}
		g.count(h.unit, float64(r.weight))
	}
	h.own[arm] = g
	return g
}

// refitOwn fits the residuals of an arm's scores after what is hard for all.
func (h *hardness) refitOwn(t *table, arm int) {
	g, s := h.own[arm], h.byArm[arm]
	if g == nil {
		return
	}
	by := t.shift(arm)
	target := make([]float64, t.dims)
	left := t.arms[arm].left - t.arms[arm].weight*by
	if w := h.all.weights; w != nil {
		g.addTimes(w, target)
		by -= h.all.offset
		left -= dot(w, g.mean) - g.weight*h.all.offset
	}
	for i := range target {
		target[i] = s[i] - by*s[t.dims+i] - target[i]
	}
	g.solve(target, left, hardRidge)
}
