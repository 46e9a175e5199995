package dense

const (
	// Domain is that of the operator in a graph. Its inputs, in this order:
	//
	//	x        float32 [..., in]
	//	smooth   float32 [in], factors of x; may be left out
	//	weights  int8    [in, out], in the order of Pack; constant
	//	step     float32 [], what one step of the rounded x is worth
	//	scale    float32 [out], what one step of a column's weights is worth
	//	middle   uint8   [], the rounded zero; constant
	//	bias     float32 [out]
	//
	// and its output, float32 [..., out]: with q = clamp(round_to_even(x * smooth / step), -middle,
	// 255 - middle), q . weights * (step * scale) + bias.
	Domain = "signalbox"
	// Op is its name.
	Op = "Dense"
	// Version is that of Domain's operators.
	Version = 1
)

const (
	lanes = 16        // sums of 32 bits in a register
	group = 3 * lanes // columns that are summed up together
	deep  = 4         // products in one sum of one instruction
	most  = 4096      // inputs; the rounded rows are on the stack
	wide  = 1 << 20   // outputs; more than any layer has, and far from overflowing
)

// Fits reports whether a layer has a shape that the operator can do.
func Fits(in, out int) bool {
	return in > 0 && out > 0 && in <= most && out <= wide && in%lanes == 0 && out%group == 0
}

// Pack returns the weights [in, out] of a layer that Fits in the order in which the kernel reads
// them: by groups of 48 columns, in each by four rows, in those by column. len(weights) is in *
// out.
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
