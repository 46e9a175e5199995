package head

import (
	"context"
	"math"
	"sync"

	"github.com/viterin/vek/vek32"
)

// problem is the training of one head: rows of features, the target of every output, and a weight
// for every row and output.
type problem struct {
	dims    int // of the dense features
	sparse  int // features of the vocabulary
	outputs int
	softmax bool      // outputs exclude each other; else each is an independent yes or no
	dense   []float32 // [rows, dims]
	blocks  [][]entry // by chunk of rows, in the order of features
	target  []float32 // [rows, outputs], 0 or 1
	weight  []float32 // [rows, outputs]; of softmax [rows]
	decay   float64   // factor of 1/2 |weights|^2, relative to the mean loss
	workers int
}

// entry is a feature of one of the rows of a chunk. A chunk is processed feature by feature: the
// weights of a feature are read once for all its rows, and those of the next follow in memory.
// Processed by rows, the processor would wait for memory at each feature.
type entry struct {
	cell

	row int32 // index in the chunk
}

// size returns the number of weights of a head: [dims+sparse+1, outputs], row-major; the last row
// is the bias.
func (p *problem) size() int { return (p.dims + p.sparse + 1) * p.outputs }

func (p *problem) rows() int { return len(p.target) / p.outputs }

// chunk is the number of rows that a goroutine processes at once.
const chunk = 256

// part is the working memory of one goroutine.
type part struct {
	grad   []float32 // of the sparse and bias weights and the dense ones
	scores []float32 // [chunk, outputs]
	turned []float32 // [dims, chunk]: the transpose of a chunk's dense features
	dense  []float32 // [dims, outputs]
	loss   float64
}

func (p *problem) part() *part {
	return &part{
		grad: make([]float32, p.size()), scores: make([]float32, chunk*p.outputs),
		turned: make([]float32, chunk*p.dims), dense: make([]float32, p.dims*p.outputs),
	}
}

// slope returns the objective at w and writes its gradient to grad. parts, one per worker, is
// scratch space.
func (p *problem) slope(w, grad []float32, parts []*part) float64 {
	var wg sync.WaitGroup
	for i, s := range parts {
		wg.Go(func() {
			s.loss = 0
			clear(s.grad)
			for from := i * chunk; from < p.rows(); from += chunk * len(parts) {
				p.add(w, from, min(from+chunk, p.rows()), s)
			}
		})
	}
	wg.Wait()
	loss, n := 0.0, 1/float64(p.rows())
	clear(grad)
	for _, s := range parts {
		loss += s.loss * n
		vek32.Add_Inplace(grad, s.grad)
	}
	vek32.MulNumber_Inplace(grad, float32(n))
	body := p.size() - p.outputs // the bias is not regularised
	square := 0.0
	for i, x := range w[:body] {
		square += float64(x) * float64(x)
		grad[i] += float32(p.decay) * x
	}
	return loss + p.decay*square/2
}

// score sets s.scores to the logits of rows [from,to), which are one chunk.
func (p *problem) score(w []float32, from, to int, s *part) []float32 {
	k, n := p.outputs, to-from
	out := s.scores[:n*k]
	clear(out)
	if p.dims > 0 {
		vek32.MatMul_Into(out, p.dense[from*p.dims:to*p.dims], w[:p.dims*k], p.dims)
	}
	bias := w[p.size()-k:]
	for r := range n {
		y := out[r*k : (r+1)*k]
		for j := range y {
			y[j] += bias[j]
		}
	}
	for _, c := range p.blocks[from/chunk] {
		at, r := (p.dims+int(c.at))*k, int(c.row)*k
		axpy(out[r:r+k], c.value, w[at:at+k])
	}
	return out
}

// axpy adds a*x to y, of equal length.
func axpy(y []float32, a float32, x []float32) {
	for len(y) >= 8 && len(x) >= 8 { // conversion to arrays avoids bounds checks
		to, from := (*[8]float32)(y), (*[8]float32)(x)
		to[0] += a * from[0]
		to[1] += a * from[1]
		to[2] += a * from[2]
		to[3] += a * from[3]
		to[4] += a * from[4]
		to[5] += a * from[5]
		to[6] += a * from[6]
		to[7] += a * from[7]
		y, x = y[8:], x[8:]
	}
	for i, v := range x {
		y[i] += a * v
	}
}

// add adds the loss and the gradient of rows [from,to), which are one chunk, to s.
func (p *problem) add(w []float32, from, to int, s *part) {
	k, n := p.outputs, to-from
	out := p.score(w, from, to, s)
	for r := range n {
		y := out[r*k : (r+1)*k]
		s.loss += p.residual(y, from+r)
		for j, d := range y {
			s.grad[len(s.grad)-k+j] += d
		}
	}
	for _, c := range p.blocks[from/chunk] {
		at, r := (p.dims+int(c.at))*k, int(c.row)*k
		axpy(s.grad[at:at+k], c.value, out[r:r+k])
	}
	if p.dims == 0 {
		return
	}
	turned := s.turned[:n*p.dims]
	for r := range n {
		for i, x := range p.dense[(from+r)*p.dims : (from+r+1)*p.dims] {
			turned[i*n+r] = x
		}
	}
	clear(s.dense)
	vek32.MatMul_Into(s.dense, turned, out, n)
	vek32.Add_Inplace(s.grad[:len(s.dense)], s.dense)
}

// residual replaces the logits y of a row by the derivative of its loss, and returns the loss.
func (p *problem) residual(y []float32, row int) float64 {
	k := p.outputs
	target := p.target[row*k : (row+1)*k]
	loss := 0.0
	if !p.softmax {
		weight := p.weight[row*k : (row+1)*k]
		for j, z := range y {
			// log(1+exp(-z)) for a yes, log(1+exp(z)) for a no, without overflow
			x := float64(z)
			t, w := float64(target[j]), float64(weight[j])
			loss += w * (max(x, 0) - x*t + math.Log1p(math.Exp(-math.Abs(x))))
			y[j] = float32(w * (sigmoid(x) - t))
		}
		return loss
	}
	top := y[0]
	for _, z := range y {
		top = max(top, z)
	}
	sum, truth := 0.0, 0.0
	for j, z := range y {
		e := math.Exp(float64(z - top))
		truth += float64(target[j]) * float64(z-top)
		y[j] = float32(e)
		sum += e
	}
	w := float64(p.weight[row])
	for j := range y {
		y[j] = float32(w * (float64(y[j])/sum - float64(target[j])))
	}
	return w * (math.Log(sum) - truth)
}

func sigmoid(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

const (
	history   = 10   // number of steps from which the inverse Hessian is estimated
	tolerance = 1e-4 // of the gradient's largest number, as that of scikit-learn's lbfgs
	decrease  = 1e-4 // the minimum share of the predicted decrease that a step must achieve
	// Training also ends after idleSteps steps without a relative gain of leastGain in the
	// objective; the remaining gradient is then in features of few rows.
	leastGain = 2e-4
	idleSteps = 3
)

// solve minimises the problem in place, starting at w, by L-BFGS (Nocedal and Wright, "Numerical
// Optimization", algorithm 7.5), with scale as the initial inverse Hessian and steps shortened by a
// parabola until they achieve a decrease (section 3.5 there). The objective is convex. Its error is
// that of ctx.
func (p *problem) solve(ctx context.Context, w []float32, steps int) error {
	parts := make([]*part, p.workers)
	for i := range parts {
		parts[i] = p.part()
	}
	n := p.size()
	grad, next, other, dir := make([]float32, n), make([]float32, n), make([]float32, n), make([]float32, n)
	past := memory{scale: p.scale()}
	value, idle := p.slope(w, grad, parts), 0
	for step := range steps {
		if err := ctx.Err(); err != nil {
			return err
		}
		if largest(grad) < tolerance || idle == idleSteps {
			return nil
		}
		past.direction(dir, grad)
		promise := float64(vek32.Dot(dir, grad))
		if promise >= 0 { // the estimate is spoilt by rounding
			past = memory{scale: past.scale}
			past.direction(dir, grad)
			promise = float64(vek32.Dot(dir, grad))
		}
		length := 1.0
		if step == 0 {
			length = min(1, 1/math.Sqrt(-promise))
		}
		reach := func(length float64) float64 {
			vek32.MulNumber_Into(next, dir, float32(length))
			vek32.Add_Inplace(next, w)
			return p.slope(next, other, parts)
		}
		v, ok := lower(reach, value, promise, length)
		if !ok {
			return nil // the minimum in single precision
		}
		past.record(next, w, other, grad)
		if idle++; value-v > leastGain*value {
			idle = 0
		}
		value = v
		copy(w, next)
		grad, other = other, grad
	}
	return nil
}

// lower takes a step of the given length, or a shorter one, to a point where f is lower than value.
// slope is that of f at 0. The next length is the minimum of the parabola through value, slope and
// f, limited to a tenth up to half of the previous one.
func lower(f func(length float64) float64, value, slope, length float64) (v float64, ok bool) {
	for {
		if v = f(length); v <= value+decrease*length*slope {
			return v, true
		}
		if length < 1e-6 {
			return v, false
		}
		lowest := -slope * length * length / (2 * (v - value - slope*length))
		if lowest > length/10 {
			length = min(lowest, length/2)
		} else { // also if v is NaN
			length /= 10
		}
	}
}

// scale returns the inverse of the Hessian's diagonal for equal outputs, by weight.
func (p *problem) scale() []float32 {
	k, n := p.outputs, float32(p.rows())
	curve := float32(0.25)
	if p.softmax {
		curve = float32(k-1) / float32(k*k)
	}
	square := make([]float32, p.dims+p.sparse+1)
	for i, x := range p.dense {
		square[i%p.dims] += x * x
	}
	for _, block := range p.blocks {
		for _, c := range block {
			square[p.dims+int(c.at)] += c.value * c.value
		}
	}
	square[len(square)-1] = n
	out := make([]float32, p.size())
	for i, x := range square {
		for j := range k {
			out[i*k+j] = 1 / (curve*x/n + float32(p.decay))
		}
	}
	return out
}

func largest(x []float32) float64 { return float64(max(vek32.Max(x), -vek32.Min(x))) }

// memory holds the last steps and the resulting changes of the gradient.
type memory struct {
	scale          []float32 // the initial inverse Hessian, a diagonal
	stretch        float32   // factor of scale, from the last step; 0 before the first
	steps, changes [][]float32
	rho            []float64
}

func (m *memory) record(w, before, grad, gradBefore []float32) {
	var s, y []float32
	if len(m.rho) == history {
		s, y = m.steps[0], m.changes[0]
		m.steps, m.changes, m.rho = m.steps[1:], m.changes[1:], m.rho[1:]
	} else {
		s, y = make([]float32, len(w)), make([]float32, len(w))
	}
	vek32.Sub_Into(s, w, before)
	vek32.Sub_Into(y, grad, gradBefore)
	curve := float64(vek32.Dot(s, y))
	if curve <= 1e-12 {
		return
	}
	m.steps, m.changes, m.rho = append(m.steps, s), append(m.changes, y), append(m.rho, 1/curve)
	m.stretch = float32(curve / float64(vek32.Dot(y, vek32.Mul(y, m.scale))))
}

// direction sets dir to minus the estimated inverse Hessian times grad.
func (m *memory) direction(dir, grad []float32) {
	copy(dir, grad)
	alpha := make([]float64, len(m.rho))
	for i := len(m.rho) - 1; i >= 0; i-- {
		alpha[i] = m.rho[i] * float64(vek32.Dot(m.steps[i], dir))
		axpy(dir, float32(-alpha[i]), m.changes[i])
	}
	vek32.Mul_Inplace(dir, m.scale)
	if m.stretch > 0 {
		vek32.MulNumber_Inplace(dir, m.stretch)
	}
	for i := range m.rho {
		beta := m.rho[i] * float64(vek32.Dot(m.changes[i], dir))
		axpy(dir, float32(alpha[i]-beta), m.steps[i])
	}
	vek32.MulNumber_Inplace(dir, -1)
}
