package outcomes

// ridge is a ridge regression on unit vectors. Rows can be added to and removed from its sums. Its
// weights are updated now and then by conjugate gradients, starting from the previous ones.
type ridge struct {
	gram    []float32 // of unit vectors, weighted: the rows of the lower triangle
	mean    []float64 // sum of vectors, weighted
	weight  float64
	weights []float64 // nil until there are enough rows
	centre  []float64 // mean of the vectors for which the weights were fitted
	offset  float64   // weights times centre
	stale   int       // rows since the last fit
}

// ridgeSteps is the number of conjugate gradient steps per fit.
const ridgeSteps = 12

func newRidge(dims int) *ridge {
	return &ridge{gram: make([]float32, dims*(dims+1)/2), mean: make([]float64, dims)}
}

// row returns a row of the triangle.
func (g *ridge) row(i int) []float32 { return g.gram[i*(i+1)/2 : (i+1)*(i+2)/2] }

// count adds a vector, or removes it if w is negative.
func (g *ridge) count(unit []float32, w float64) {
	for i, x := range unit {
		wx := w * float64(x)
		g.mean[i] += wx
		axpy(float32(wx), unit[:i+1], g.row(i))
	}
	g.weight += w
	g.stale++
}

// solve updates the weights for target, the weighted sum of vectors times the values to predict, of
// which left is the weighted sum. It overwrites target.
func (g *ridge) solve(target []float64, left, penalty float64) {
	n := len(target)
	if g.weights == nil {
		g.weights, g.centre = make([]float64, n), make([]float64, n)
	}
	residual, along, image := target, make([]float64, n), make([]float64, n)
	for i := range g.centre {
		g.centre[i] = g.mean[i] / g.weight
	}
	g.times(g.weights, image, penalty)
	for i := range residual {
		residual[i] -= left*g.centre[i] + image[i]
	}
	copy(along, residual)
	size := dot(residual, residual)
	for range ridgeSteps {
		if size < 1e-12 {
			break
		}
		g.times(along, image, penalty)
		step := size / dot(along, image)
		for i := range residual {
			g.weights[i] += step * along[i]
			residual[i] -= step * image[i]
		}
		next := dot(residual, residual)
		for i := range along {
			along[i] = residual[i] + next/size*along[i]
		}
		size = next
	}
	g.offset, g.stale = dot(g.weights, g.centre), 0
}

// times computes the product of the centred and penalised matrix with x.
func (g *ridge) times(x, out []float64, penalty float64) {
	off := g.weight * dot(g.centre, x)
	for i := range out {
		out[i] = penalty*x[i] - off*g.centre[i]
	}
	g.addTimes(x, out)
}

// addTimes adds the product of the uncentred matrix with x to out.
func (g *ridge) addTimes(x, out []float64) {
	for i := range out {
		row := g.row(i)
		sum, xi := float64(row[i])*x[i], x[i]
		row = row[:i]
		below, above := x[:len(row)], out[:len(row)]
		for j, e := range row {
			f := float64(e)
			sum += f * below[j]
			above[j] += f * xi
		}
		out[i] += sum
	}
}

// axpy adds f times x to y; both must have equal length.
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

// of returns the prediction for a quantised vector, relative to the mean of the fitted vectors.
func (g *ridge) of(codes []int8, norm float32) float64 {
	if g == nil || g.weights == nil || norm == 0 || len(codes) != len(g.weights) {
		return 0
	}
	var s0, s1, s2, s3 float64
	w := g.weights[:len(codes)]
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
	return (s0+s1+s2+s3)/float64(norm) - g.offset
}

func dot(a, b []float64) float64 {
	sum := 0.0
	for i, x := range a {
		sum += x * b[i]
	}
	return sum
}
