package check

import "io"

// Fusion turns the features of a claim into its support. It is data that comes with a model.
type Fusion struct{}

// ReadFusion reads a Fusion.
func ReadFusion(io.Reader) (*Fusion, error) { return nil, errNotBuilt }
