package outcomes

// hardness tells from the embedding alone how hard a request is for every model: a ridge regression
// of what scores have left over, which reaches further than requests that are near. Its sums take
// rows in and give them back; its weights are brought near their solution by conjugate gradients
// now and then, from where they were.
type hardness struct {
	dims    int
	gram    []float32   // [dims][dims], of unit vectors, weighted; what is above the diagonal is not kept
	mean    []float64   // [dims], sum of vectors, weighted
	byArm   [][]float64 // [arms][2*dims]: vectors times what scores are above priors, then vectors; both weighted
	weight  float64
	weights []float64 // [dims]; nil until there are rows enough
	centre  []float64 // [dims], mean of the vectors that the weights were made for
	stale   int       // rows since then
	offset  float64   // weights times centre
	unit    []float32 // [dims], scratch
}

// The constants of hardness, see the constants of a prediction.
const (
	hardRidge  = 20.0 // penalty of the weights, in outcomes
	hardFewest = 50   // outcomes before it says anything
	hardEvery  = 8    // outcomes between two refits
	hardSteps  = 12   // of conjugate gradients in a refit
)

// count takes a row in, or out with sign -1: above is by how much its score is above the prior.
func (h *hardness) count(arm int, codes []int8, norm float32, weight, above, sign float64) {
	if norm == 0 {
		return
	}
	if h.gram == nil {
		h.dims = len(codes)
		h.gram = make([]float32, h.dims*h.dims)
		h.mean, h.unit = make([]float64, h.dims), make([]float32, h.dims)
	}
	for len(h.byArm) <= arm {
		h.byArm = append(h.byArm, make([]float64, 2*h.dims))
	}
	w, s := sign*weight, h.byArm[arm]
	for i, c := range codes {
		h.unit[i] = float32(c) / norm
	}
	for i, x := range h.unit {
		wx := w * float64(x)
		h.mean[i] += wx
		s[i] += wx * above
		s[h.dims+i] += wx
		axpy(float32(wx), h.unit[:i+1], h.gram[i*h.dims:i*h.dims+i+1])
	}
	h.weight += w
	h.stale++
}

// refit solves for the weights, given by how much the scores of each arm are above its prior
// whatever is asked, and left, the weighted sum of what is over.
func (h *hardness) refit(shift func(arm int) float64, left float64) {
	h.stale = 0
	if h.weight < hardFewest {
		h.weights = nil
		return
	}
	if h.weights == nil {
		h.weights, h.centre = make([]float64, h.dims), make([]float64, h.dims)
	}
	residual, along, image := make([]float64, h.dims), make([]float64, h.dims), make([]float64, h.dims)
	for i := range h.centre {
		h.centre[i] = h.mean[i] / h.weight
	}
	for a, s := range h.byArm {
		by := shift(a)
		for i := range residual {
			residual[i] += s[i] - by*s[h.dims+i]
		}
	}
	h.times(h.weights, image)
	for i := range residual {
		residual[i] -= left*h.centre[i] + image[i]
	}
	copy(along, residual)
	size := dot(residual, residual)
	for range hardSteps {
		if size < 1e-12 {
			break
		}
		h.times(along, image)
		step := size / dot(along, image)
		for i := range residual {
			h.weights[i] += step * along[i]
			residual[i] -= step * image[i]
		}
		next := dot(residual, residual)
		for i := range along {
			along[i] = residual[i] + next/size*along[i]
		}
		size = next
	}
	h.offset = dot(h.weights, h.centre)
}

// times multiplies the centred and penalised matrix with x.
func (h *hardness) times(x, out []float64) {
	off := h.weight * dot(h.centre, x)
	for i := range out {
		out[i] = hardRidge*x[i] - off*h.centre[i]
	}
	for i := range out {
		row := h.gram[i*h.dims : i*h.dims+i]
		sum, xi := float64(h.gram[i*h.dims+i])*x[i], x[i]
		below, above := x[:len(row)], out[:len(row)]
		for j, g := range row {
			f := float64(g)
			sum += f * below[j]
			above[j] += f * xi
		}
		out[i] += sum
	}
}

// axpy adds f times x to y, which are of one length.
func axpy(f float32, x, y []float32) {
	for len(x) >= 4 && len(y) >= 4 {
		a, b := (*[4]float32)(x), (*[4]float32)(y)
		b[0] += f * a[0]
		b[1] += f * a[1]
		b[2] += f * a[2]
		b[3] += f * a[3]
		x, y = x[4:], y[4:]
	}
	y = y[:len(x)]
	for i, a := range x {
		y[i] += f * a
	}
}

// of is by how much answers to a request are better than those to others.
func (h *hardness) of(codes []int8, norm float32) float64 {
	if h.weights == nil || norm == 0 || len(codes) != h.dims {
		return 0
	}
	var s0, s1, s2, s3 float64
	w := h.weights[:len(codes)]
	for len(codes) >= 4 && len(w) >= 4 {
		x, y := (*[4]int8)(codes), (*[4]float64)(w)
		s0 += y[0] * float64(x[0])
		s1 += y[1] * float64(x[1])
		s2 += y[2] * float64(x[2])
		s3 += y[3] * float64(x[3])
		codes, w = codes[4:], w[4:]
	}
	for i, c := range codes {
		s0 += w[i] * float64(c)
	}
	return (s0+s1+s2+s3)/float64(norm) - h.offset
}

func dot(a, b []float64) float64 {
	sum := 0.0
	for i, x := range a {
		sum += x * b[i]
	}
	return sum
}
