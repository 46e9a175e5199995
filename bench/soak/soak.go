package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"signalbox/bench/lab"
)

// options are the parameters of a run.
type options struct {
	duration, every time.Duration
	binary          string
	clients         int
	log             io.Writer
}

// report is the result of a run.
type report struct {
	notes    []note // the first was taken before the load, the last at the end
	done     map[string]int
	failures map[string]int
	first    map[string]error // by kind
	took     time.Duration
}

// maxSlope is the permitted growth of memory over a run, in bytes.
const maxSlope = 1 << 20

// soak runs the load.
func soak(ctx context.Context, o options) (*report, error) {
	s, err := newStand(ctx, o)
	if err != nil {
		return nil, err
	}
	defer s.close()
	l := &load{testbed: s, done: map[string]int{}, failures: map[string]int{}, first: map[string]error{}}
	// After this, objects that are created once and kept exist: reusable connections, buffers and
	// the values of metrics.
	l.period(ctx, min(o.every, 5*time.Second), o.clients)
	base, err := s.idle(ctx, 0)
	if err != nil {
		return nil, err
	}
	r := &report{notes: []note{base}, done: l.done, failures: l.failures, first: l.first}
	for begun := time.Now(); time.Since(begun) < o.duration; {
		l.period(ctx, o.every, o.clients)
		n, err := s.settled(ctx, base, time.Since(begun))
		if err != nil {
			return nil, err
		}
		r.notes = append(r.notes, n)
		_, _ = fmt.Fprintf(o.log, "%6s  %.1f MB, %d goroutines, %d descriptors, failures %v\n", n.at.Round(time.Second), mb(n.rss), n.goroutines, n.descriptor, l.failures)
	}
	r.took = r.notes[len(r.notes)-1].at
	return r, ctx.Err()
}

// rest is how long the process is observed before the load: idle connections to model servers stay
// open for 4 s of it.
const rest = 8 * time.Second

// idle observes the process until it is at rest, and returns the minimum: an observation itself
// needs goroutines.
func (s *testbed) idle(ctx context.Context, at time.Duration) (least note, err error) {
	since := time.Now()
	late := lab.Wait(ctx, time.Minute, "the process to come to rest", func() bool {
		s.client.CloseIdleConnections()
		var n note
		if n, err = s.look(ctx, at); err != nil {
			return true
		}
		if least.rss == 0 || n.goroutines < least.goroutines {
			least.goroutines = n.goroutines
		}
		if least.rss == 0 || n.descriptor < least.descriptor {
			least.descriptor = n.descriptor
		}
		least.at, least.rss = n.at, n.rss
		return time.Since(since) > rest
	})
	return least, errors.Join(err, late)
}

// settled observes the process when it has no more goroutines and descriptors than at the base, or
// after a minute.
func (s *testbed) settled(ctx context.Context, base note, at time.Duration) (n note, err error) {
	late := lab.Wait(ctx, time.Minute, "what the load left", func() bool {
		s.client.CloseIdleConnections()
		n, err = s.look(ctx, at)
		return err != nil || n.goroutines <= base.goroutines && n.descriptor <= base.descriptor
	})
	if err == nil && ctx.Err() == nil && errors.Is(late, context.DeadlineExceeded) {
		late = nil // reported by the verdict
	}
	return n, errors.Join(err, late)
}

func mb(n int64) float64 { return float64(n) / (1 << 20) }

// slope returns the growth of memory over the run in bytes, by least squares, without the first
// third.
func (r *report) slope() float64 {
	late := r.notes[len(r.notes)/3:]
	var t, y, tt, ty float64
	for _, n := range late {
		t += n.at.Seconds()
		y += float64(n.rss)
	}
	k := float64(len(late))
	t, y = t/k, y/k
	for _, n := range late {
		d := n.at.Seconds() - t
		tt += d * d
		ty += d * (float64(n.rss) - y)
	}
	if tt == 0 {
		return 0
	}
	return ty / tt * (late[len(late)-1].at - late[0].at).Seconds()
}

func (r *report) print(out io.Writer) {
	base, last := r.notes[0], r.notes[len(r.notes)-1]
	for _, name := range slices.Sorted(maps.Keys(r.done)) {
		_, _ = fmt.Fprintf(out, "%-20s %d\n", name, r.done[name])
	}
	_, _ = fmt.Fprintf(out, "%-20s %v\n", "failures", r.failures)
	_, _ = fmt.Fprintf(out, "%-20s %.1f MB at the start, %.1f MB at the end, slope %+.2f MB\n", "resident memory", mb(base.rss), mb(last.rss), r.slope()/(1<<20))
	_, _ = fmt.Fprintf(out, "%-20s %d at the start, %d at the end\n", "goroutines", base.goroutines, last.goroutines)
	_, _ = fmt.Fprintf(out, "%-20s %d at the start, %d at the end\n", "descriptors", base.descriptor, last.descriptor)
	_, _ = fmt.Fprintf(out, "%-20s %s\n", "time", r.took.Round(time.Second))
}

// verdict returns the failed requirements.
func (r *report) verdict() error {
	var errs []error
	base, last := r.notes[0], r.notes[len(r.notes)-1]
	if last.goroutines > base.goroutines {
		errs = append(errs, fmt.Errorf("%d goroutines are left", last.goroutines-base.goroutines))
	}
	if last.descriptor > base.descriptor {
		errs = append(errs, fmt.Errorf("%d descriptors are left", last.descriptor-base.descriptor))
	}
	if s := r.slope(); s >= maxSlope {
		errs = append(errs, fmt.Errorf("memory grew by %.2f MB", s/(1<<20)))
	}
	for _, name := range slices.Sorted(maps.Keys(r.failures)) {
		errs = append(errs, fmt.Errorf("%d requests failed, the first: %w", r.failures[name], r.first[name]))
	}
	return errors.Join(errs...)
}
