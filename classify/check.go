package classify

import (
	"context"
	"fmt"
	"slices"
	"time"

	"signalbox/internal/signal"
	"signalbox/internal/tensor"
)

// canaryTimeout bounds the first run of a graph, which may compile kernels.
const canaryTimeout = 2 * time.Minute

// GraphError says that a graph is not the one that the manifest describes.
type GraphError struct {
	Bundle string
	Tensor string // name of the input or output at fault
	Msg    string
}

// Error returns the bundle, the tensor and what is wrong with it.
func (e *GraphError) Error() string {
	return fmt.Sprintf("bundle %q: graph: %q %s", e.Bundle, e.Tensor, e.Msg)
}

// CanaryError says that a bundle gave a wrong or no answer to its own canary text.
type CanaryError struct {
	Bundle string
	Task   string
	Want   string        // the label of the manifest; empty for tasks without labels
	Got    string        // the label of the graph; empty when there was none
	Reason signal.Reason // why there was none
	Err    error         // the error of the run, if that failed
}

// Error returns the bundle, the task and both answers.
func (e *CanaryError) Error() string {
	msg := fmt.Sprintf("bundle %q: canary: task %q", e.Bundle, e.Task)
	switch {
	case e.Err != nil:
		return fmt.Sprintf("%s is unknown (%s): %v", msg, e.Reason, e.Err)
	case e.Got == "":
		return fmt.Sprintf("%s is unknown (%s)", msg, e.Reason)
	}
	return fmt.Sprintf("%s gives %q, want %q", msg, e.Got, e.Want)
}

// Unwrap returns the error of the run.
func (e *CanaryError) Unwrap() error { return e.Err }

func (c *Classifier) graphError(name, format string, args ...any) error {
	return &GraphError{Bundle: c.manifest.Name, Tensor: name, Msg: fmt.Sprintf(format, args...)}
}

// checkGraph compares the session's inputs and outputs with the manifest.
func (c *Classifier) checkGraph() error {
	want := []string{c.manifest.Inputs.IDs, c.manifest.Inputs.Mask}
	if c.manifest.Inputs.Types != "" {
		want = append(want, c.manifest.Inputs.Types)
	}
	inputs := c.session.Inputs()
	for _, name := range want {
		s, ok := spec(inputs, name)
		if !ok {
			return c.graphError(name, "is an input of the manifest, not of the graph")
		}
		if s.DType != tensor.Int64 || s.Shape != nil && len(s.Shape) != 2 {
			return c.graphError(name, "is %s %v, want int64 [batch, sequence]", s.DType, s.Shape)
		}
	}
	for _, s := range inputs {
		if !slices.Contains(want, s.Name) {
			return c.graphError(s.Name, "is an input of the graph, not of the manifest")
		}
	}
	outputs := c.session.Outputs()
	for i := range c.tasks {
		if err := c.checkOutput(&c.tasks[i], outputs); err != nil {
			return err
		}
	}
	return nil
}

func (c *Classifier) checkOutput(t *task, outputs []tensor.Spec) error {
	s, ok := spec(outputs, t.Output)
	switch {
	case !ok:
		return c.graphError(t.Output, "is an output of the manifest, not of the graph")
	case s.DType != tensor.Float32:
		return c.graphError(t.Output, "is %s, want float32", s.DType)
	case s.Shape == nil:
		return nil
	case len(s.Shape) != 2 || s.Shape[1] != tensor.Dynamic && s.Shape[1] != int64(t.width()):
		return c.graphError(t.Output, "has shape %v, want [batch, %d]", s.Shape, t.width())
	}
	return nil
}

func spec(specs []tensor.Spec, name string) (tensor.Spec, bool) {
	i := slices.IndexFunc(specs, func(s tensor.Spec) bool { return s.Name == name })
	if i < 0 {
		return tensor.Spec{}, false
	}
	return specs[i], true
}

// runCanary classifies the manifest's canary with every task. It also proves that outputs are
// finite and have the right length, which a graph with open shapes does not tell.
func (c *Classifier) runCanary() error {
	ctx, cancel := context.WithTimeout(context.Background(), canaryTimeout)
	defer cancel()
	probe := &Classifier{manifest: c.manifest, tokens: c.tokens, session: c.session, tasks: c.tasks, opts: c.opts}
	probe.opts.Timeout = 0
	text := &signal.Text{
		LastUser: c.manifest.Canary.Text,
		Segments: []signal.Segment{{Role: "user", Text: c.manifest.Canary.Text}},
	}
	set := new(signal.Set)
	err := probe.extractNeural(ctx, text, c.neural, set)
	for i := range c.tasks {
		t := &c.tasks[i]
		v := &set.Values[t.kind]
		want := c.manifest.Canary.Expect[t.Name]
		if v.State != signal.Known || want != "" && v.Label != want {
			return &CanaryError{Bundle: c.manifest.Name, Task: t.Name, Want: want, Got: v.Label, Reason: v.Reason, Err: err}
		}
	}
	return nil
}
