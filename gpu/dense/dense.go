package dense

const (
	// Domain is the domain of the operator in a graph. Its inputs, in this order:
	//
	//	x        float32 [..., in]
	//	smooth   float32 [in], factors of x; may be omitted
	//	weights  int8    [in, out], in the order of Pack; constant
	//	step     float32 [], quantization step of x
	//	scale    float32 [out], quantization step of each column's weights
	//	middle   uint8   [], zero point of the quantized x; constant
	//	bias     float32 [out]
	//
	// and its output, float32 [..., out]: with q = clamp(round_to_even(x * smooth / step), -middle,
	// 255 - middle), q . weights * (step * scale) + bias.
	Domain = "signalbox"
	// Op is the operator's name.
	Op = "Dense"
	// Version is the version of the operators in Domain.
	Version = 1
)

const (
	lanes = 16        // 32-bit sums per register
	group = 3 * lanes // columns summed together
	deep  = 4         // products per sum in one instruction
	most  = 4096      // maximum number of inputs; the quantized rows are on the stack
	wide  = 1 << 20   // maximum number of outputs; more than any layer has, and far from overflow
)

// Fits reports whether the operator supports the shape of a layer.
func Fits(in, out int) bool {
	return in > 0 && out > 0 && in <= most && out <= wide && in%lanes == 0 && out%group == 0
}

// Pack returns the weights [in, out] of a layer that Fits in the order in which the kernel reads
// them: groups of 48 columns; within each, groups of four rows; within those by column.
// len(weights) must be in * out.
func Pack(weights []byte, in, out int) []byte {
	packed := make([]byte, 0, len(weights))
	for first := 0; first < out; first += group {
		for i := 0; i < in; i += deep {
			for c := first; c < first+group; c++ {
				for row := i; row < i+deep; row++ {
					packed = append(packed, weights[row*out+c])
				}
			}
		}
	}
	return packed
}
