package classify

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"signalbox/classify/bundle"
	"signalbox/internal/signal"
	"signalbox/internal/tensor"
)

// canaryTimeout limits the first run of a graph, which may have to compile kernels.
const canaryTimeout = 2 * time.Minute

// canaryText is the canary of a bundle that has none. Its label is not known in advance; there only
// has to be a valid answer.
const canaryText = "What is the derivative of x squared?"

// GraphError reports a graph that does not match its manifest.
type GraphError struct {
	Bundle string
	Tensor string // name of the input or output at fault
	Msg    string
}

// Error returns the bundle, the tensor and the mismatch.
func (e *GraphError) Error() string {
	return fmt.Sprintf("bundle %q: graph: %q %s", e.Bundle, e.Tensor, e.Msg)
}

// CanaryError reports a bundle that classified its own canary text wrongly or not at all.
type CanaryError struct {
	Bundle string
	Task   string
	Want   string        // the label in the manifest; empty for tasks without labels
	Got    string        // the label that the graph returned; empty if there was none
	Reason signal.Reason // why there was none
	Err    error         // the error of the run, if it failed
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

func (e *Engine) graphError(name, format string, args ...any) error {
	return &GraphError{Bundle: e.name, Tensor: name, Msg: fmt.Sprintf(format, args...)}
}

// checkGraph compares the session's inputs and outputs with the manifest.
func (e *Engine) checkGraph() error {
	m := &e.manifest.Inputs
	want := slices.DeleteFunc([]string{m.IDs, m.Mask, m.Types, m.Positions}, func(s string) bool { return s == "" })
	inputs := e.session.Inputs()
	for _, name := range want {
		s, ok := spec(inputs, name)
		if !ok {
			return e.graphError(name, "is an input of the manifest, not of the graph")
		}
		if s.DType != tensor.Int64 || s.Shape != nil && len(s.Shape) != 2 {
			return e.graphError(name, "is %s %v, want int64 [batch, sequence]", s.DType, s.Shape)
		}
	}
	for _, s := range inputs {
		if !slices.Contains(want, s.Name) {
			return e.graphError(s.Name, "is an input of the graph, not of the manifest")
		}
	}
	outputs := e.session.Outputs()
	for i := range e.tasks {
		if err := e.checkOutput(&e.tasks[i], outputs); err != nil {
			return err
		}
	}
	return nil
}

func (e *Engine) checkOutput(t *task, outputs []tensor.Spec) error {
	s, ok := spec(outputs, t.Output)
	want := []int64{tensor.Dynamic, int64(t.width())}
	form := "[batch, %d]"
	if t.perToken() {
		want = []int64{tensor.Dynamic, tensor.Dynamic, int64(t.width())}
		form = "[batch, sequence, %d]"
	}
	switch {
	case !ok:
		return e.graphError(t.Output, "is an output of the manifest, not of the graph")
	case s.DType != tensor.Float32:
		return e.graphError(t.Output, "is %s, want float32", s.DType)
	case s.Shape == nil || agree(s.Shape, want) || agree(s.Shape, want[1:]):
		return nil
	}
	return e.graphError(t.Output, "has shape %v, want "+form, s.Shape, t.width())
}

// agree reports whether the shape of a graph is compatible with the shape wanted.
func agree(shape, want []int64) bool {
	return slices.EqualFunc(shape, want, func(have, want int64) bool {
		return have == tensor.Dynamic || want == tensor.Dynamic || have == want
	})
}

func spec(specs []tensor.Spec, name string) (tensor.Spec, bool) {
	i := slices.IndexFunc(specs, func(s tensor.Spec) bool { return s.Name == name })
	if i < 0 {
		return tensor.Spec{}, false
	}
	return specs[i], true
}

// runCanary classifies the manifest's canary with every task. This also verifies that outputs are
// finite and have the right length, which the declared shapes do not show if dimensions are open.
func (e *Engine) runCanary() error {
	ctx, cancel := context.WithTimeout(context.Background(), canaryTimeout)
	defer cancel()
	o := DefaultOptions()
	o.Memo = 0
	text := singleText(cmp.Or(e.manifest.Canary.Text, canaryText))
	req := newRequest(&text, everyWindow, &o)
	set := new(signal.Set)
	err := req.prepare(ctx, e.signals)
	if err != nil {
		return &CanaryError{Bundle: e.name, Reason: reasonOf(ctx, err), Err: err}
	}
	if e.signals != 0 {
		err = e.extract(ctx, newGather(nil, req, e.signals, set, nil, nil), e.signals, false, &o)
	}
	for i := range e.tasks {
		t := &e.tasks[i]
		if t.Kind == bundle.Pair || t.Judges() {
			if err := e.pairCanary(ctx, t, &o); err != nil {
				return err
			}
			continue
		}
		v := set.Value(t.kind)
		want := e.manifest.Canary.Expect[t.Name]
		if v.State != signal.Known || want != "" && v.Label != want {
			return &CanaryError{Bundle: e.name, Task: t.Name, Want: want, Got: v.Label, Reason: v.Reason, Err: err}
		}
	}
	return nil
}

// pairCanary is runCanary for a task over pairs of texts.
func (e *Engine) pairCanary(ctx context.Context, t *task, o *Options) error {
	c := &e.manifest.Canary
	first := cmp.Or(c.Text, canaryText)
	second := cmp.Or(c.Second, first)
	if t.Judges() {
		if _, err := e.markTokens(ctx, t, []string{first}, "", second, o); err != nil {
			return &CanaryError{Bundle: e.name, Task: t.Name, Reason: reasonOf(ctx, err), Err: err}
		}
		return nil
	}
	probs, err := e.classifyPairs(ctx, t, []Pair{{first, second}}, o)
	if err != nil {
		return &CanaryError{Bundle: e.name, Task: t.Name, Reason: reasonOf(ctx, err), Err: err}
	}
	got := t.Labels[slices.Index(probs[0], slices.Max(probs[0]))]
	if want := c.Expect[t.Name]; want != "" && got != want {
		return &CanaryError{Bundle: e.name, Task: t.Name, Want: want, Got: got}
	}
	return nil
}
