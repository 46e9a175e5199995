package outcomes

// hardness tells from the embedding alone how hard a request is: for every model, and beyond that
// for each of which enough is known, by ridge regressions of what scores have left over. They reach
// further than requests that are near.
type hardness struct {
	all   *ridge      // of all rows; nil until there is one
	own   []*tried    // by arm, of its rows alone; nil where they are too few
	byArm [][]float64 // [arms][2*dims]: vectors times what scores are above priors, then vectors; both weighted
	owns  int         // how many of own there are
	unit  []float32   // scratch
}

// tried is a regression with how well it told outcomes before it knew them: the sums of what it said
// times what was left over, and of the squares of what it said. So it counts for as much as it has
// proved to be worth, which of some models is nothing.
type tried struct {
	*ridge

	told, said float64
}

// trust is by how much what it says is to be multiplied.
func (g *tried) trust() float64 { return min(max(g.told/(g.said+doubtTold), 0), 1) }

// The constants of hardness, see the constants of a prediction.
const (
	hardRidge  = 20.0 // penalty of the weights, in outcomes
	hardFewest = 50   // outcomes before all says anything
	hardEvery  = 8    // outcomes between two refits, at least
	hardShare  = 64   // the same, as a share of those that are known
	ownFewest  = 100  // outcomes of an arm before its own says anything; half of them keep it
	mostOwn    = 16   // arms that have their own, each of 0.3 MB
	doubtTold  = 1.0  // sum of squares that stands against what an arm's own has told
	toldLast   = 500  // outcomes of an arm that what it has told is made of, by and large
)

// count takes a row in, or out with sign -1: above is by how much its score is above the prior.
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

// ofAll is by how much answers to a request are better than those to others, whoever gives them.
func (h *hardness) ofAll(codes []int8, norm float32) float64 { return h.all.of(codes, norm) }

// ofArm is the same of one arm, beyond that.
func (h *hardness) ofArm(arm int, codes []int8, norm float32) float64 {
	if arm >= len(h.own) {
		return 0
	}
	if g := h.own[arm]; g != nil {
		return g.of(codes, norm)
	}
	return 0
}

// trust is by how much what ofArm says is to be multiplied.
func (h *hardness) trust(arm int) float64 {
	if arm >= len(h.own) || h.own[arm] == nil {
		return 0
	}
	return h.own[arm].trust()
}

// try notes what an arm's own said of an outcome that it did not know, and what was left over.
func (h *hardness) try(arm int, said, left, weight float64) {
	if said == 0 || arm >= len(h.own) || h.own[arm] == nil {
		return
	}
	g := h.own[arm]
	g.told += weight*said*left - g.told/toldLast
	g.said += weight*said*said - g.said/toldLast
}

// refit makes the weights for all arms anew, and those of the arms of which enough is new.
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

// due reports whether the regression of an arm has to be made anew. It begins those of which enough
// is known, while there are not too many, and ends those of which most was forgotten.
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

// begin makes the regression of an arm from the rows that there are.
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

// refitOwn fits what the scores of an arm leave over beyond what is hard for all.
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
