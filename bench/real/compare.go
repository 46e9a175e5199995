package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"sort"
	"strings"
	"time"
)

// answer is a complete response.
type answer struct {
	status int
	header http.Header
	body   []byte
	first  time.Duration // to the first byte of the body
}

// send sends a request and reads the whole response. An error means that the response was
// incomplete.
func send(ctx context.Context, base string, c testCase) (*answer, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute) // a busy machine, and 4,096 tokens
	defer cancel()
	began := time.Now()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, base+c.path, strings.NewReader(c.body))
	if err != nil {
		return nil, fmt.Errorf("make a request: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	if c.header[0] != "" {
		req.Header.Set(c.header[0], c.header[1])
	}
	res, err := client().Do(req)
	if err != nil {
		return nil, fmt.Errorf("send: %w", err)
	}
	defer func() { _ = res.Body.Close() }()
	var one [1]byte
	n, err := res.Body.Read(one[:])
	a := &answer{status: res.StatusCode, header: res.Header, first: time.Since(began)}
	if err == nil || n > 0 {
		var rest []byte
		rest, err = io.ReadAll(res.Body)
		a.body = append(slices.Clone(one[:n]), rest...)
	}
	if err != nil && err != io.EOF { //nolint:errorlint // io.Reader returns it as it is
		return a, fmt.Errorf("read: %w", err)
	}
	return a, nil
}

// get requests a page, optionally with a header given as name and value.
func get(ctx context.Context, url string, header ...string) (status int, body []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, nil, fmt.Errorf("make a request: %w", err)
	}
	if len(header) == 2 {
		req.Header.Set(header[0], header[1])
	}
	res, err := client().Do(req)
	if err != nil {
		return 0, nil, fmt.Errorf("get: %w", err)
	}
	defer func() { _ = res.Body.Close() }()
	body, err = io.ReadAll(res.Body)
	return res.StatusCode, body, err
}

// events returns the events of a body: each event of a stream, or the body itself. They are JSON
// values without members that always differ between responses.
func (a *answer) events() ([]any, error) {
	if !strings.HasPrefix(a.header.Get("Content-Type"), "text/event-stream") {
		return decodeAll([][]byte{a.body})
	}
	var list [][]byte
	for event := range bytes.SplitSeq(a.body, []byte("\n\n")) {
		var data []byte
		for line := range bytes.SplitSeq(event, []byte("\n")) {
			if rest, ok := bytes.CutPrefix(line, []byte("data:")); ok {
				data = append(data, bytes.TrimSpace(rest)...)
			}
		}
		if len(data) > 0 {
			list = append(list, data)
		}
	}
	return decodeAll(list)
}

func decodeAll(list [][]byte) ([]any, error) {
	out := make([]any, 0, len(list))
	for _, data := range list {
		if string(data) == "[DONE]" {
			out = append(out, "[DONE]")
			continue
		}
		var v any
		if err := json.Unmarshal(data, &v); err != nil {
			return nil, fmt.Errorf("%.80q is no JSON: %w", data, err)
		}
		out = append(out, own(v))
	}
	return out, nil
}

// own removes values that always differ between responses: ids and times, and the members that the
// product adds under its own name.
func own(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for name, inner := range v {
			switch name {
			case "x_signalbox":
				delete(v, name)
			case "timings": // of llama.cpp: how fast it was
				v[name] = "timings"
			case "id", "item_id", "call_id", "request_id", "created", "created_at", "completed_at":
				v[name] = fmt.Sprintf("%T", inner)
			default:
				v[name] = own(inner)
			}
		}
	case []any:
		for i := range v {
			v[i] = own(v[i])
		}
	}
	return v
}

// grows reports whether a member of an event is a fragment of a longer value.
func grows(name string) bool {
	return slices.Contains([]string{
		"content", "reasoning", "reasoning_content", "text", "arguments", "delta", "token_ids",
		"tokens", "token_logprobs", "top_logprobs", "text_offset", "logprobs",
	}, name)
}

// joined merges consecutive events that differ only in fragments: servers send as many tokens in an
// event as are available at the time.
//
// The order of choices depends on the server's scheduling too, so the events of each choice are
// grouped.
func joined(events []any) []any {
	var out []any
	split := make([]any, 0, len(events))
	before := map[int]any{} // the last event of a choice
	for _, e := range events {
		e = without(e)
		split = append(split, ended(e, before[choiceOf(e)])...)
		before[choiceOf(e)] = e
	}
	events = split
	for from := 0; from < len(events); {
		to := from
		for to < len(events) && choiceOf(events[to]) >= 0 {
			to++
		}
		slices.SortStableFunc(events[from:to], func(a, b any) int {
			return cmp.Compare(choiceOf(a), choiceOf(b))
		})
		from = to + 1
	}
	for _, e := range events {
		if n := len(out); n > 0 {
			if both, ok := join(out[n-1], e, false); ok {
				out[n-1] = both
				continue
			}
		}
		out = append(out, e)
	}
	return out
}

// ended splits an event that ends a choice: into the last tokens of the choice, with the members of
// the previous event, and its end.
func ended(v, before any) []any {
	if choiceOf(v) < 0 {
		return []any{v}
	}
	choice := func(v any) map[string]any {
		return v.(map[string]any)["choices"].([]any)[0].(map[string]any) //nolint:errcheck,forcetypeassert // it has one
	}
	if choice(v)["finish_reason"] == nil {
		return []any{v}
	}
	last, end := copyOf(v), copyOf(v)
	for _, name := range []string{"finish_reason", "stop_reason"} {
		delete(choice(last), name)
	}
	if choiceOf(before) >= 0 {
		keep(last.(map[string]any), before.(map[string]any)) //nolint:errcheck,forcetypeassert // they have choices
		keep(choice(last), choice(before))
	}
	blank(choice(end))
	return []any{last, end}
}

// keep removes the members of m that like lacks.
func keep(m, like map[string]any) {
	for name := range m {
		if _, ok := like[name]; !ok {
			delete(m, name)
		}
	}
}

// copyOf copies a JSON value.
func copyOf(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, inner := range v {
			out[name] = copyOf(inner)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = copyOf(v[i])
		}
		return out
	}
	return v
}

// blank empties the fragments in an object.
func blank(m map[string]any) {
	for name, v := range m {
		switch inner := v.(type) {
		case map[string]any:
			blank(inner)
		case string:
			if grows(name) {
				m[name] = ""
			}
		case []any:
			if grows(name) {
				m[name] = []any{}
			}
		}
	}
}

// choiceOf returns the index of the only choice of an event; -1 if there is none.
func choiceOf(v any) int {
	m, _ := v.(map[string]any)
	list, ok := m["choices"].([]any)
	if !ok || len(list) != 1 {
		return -1
	}
	choice, _ := list[0].(map[string]any)
	index, ok := choice["index"].(float64)
	if !ok {
		return -1
	}
	return int(index)
}

// unset removes null members from the choices of events: whether a server writes them depends on
// the number of tokens in an event. vLLM's event with the role has no token_ids, its events with
// text have null.
func unset(events []any) []any {
	for _, e := range events {
		if choiceOf(e) < 0 {
			continue
		}
		choice := e.(map[string]any)["choices"].([]any)[0].(map[string]any) //nolint:errcheck,forcetypeassert // it has one
		maps.DeleteFunc(choice, func(_ string, inner any) bool { return inner == nil })
	}
	return events
}

// without removes counts of events and progress values.
func without(v any) any {
	if m, ok := v.(map[string]any); ok {
		delete(m, "sequence_number")
		if u, ok := m["usage"].(map[string]any); ok && len(m) > 1 {
			if list, ok := m["choices"].([]any); ok && len(list) > 0 {
				m["usage"] = slices.Sorted(maps.Keys(u))
			}
		}
	}
	return v
}

// join merges two values that are equal except for fragments; piece reports that they are fragments
// themselves.
func join(a, b any, piece bool) (any, bool) { //nolint:gocognit,revive // one case a kind of value; a fact about them
	switch x := a.(type) {
	case map[string]any:
		y, ok := b.(map[string]any)
		if !ok || len(x) != len(y) {
			return nil, false
		}
		out := make(map[string]any, len(x))
		for name := range x {
			if _, there := y[name]; !there {
				return nil, false
			}
			if out[name], ok = join(x[name], y[name], grows(name)); !ok {
				return nil, false
			}
		}
		return out, true
	case []any:
		y, ok := b.([]any)
		switch {
		case !ok:
			return nil, false
		case piece:
			return append(slices.Clone(x), y...), true
		case len(x) != len(y):
			return nil, false
		}
		out := make([]any, len(x))
		for i := range x {
			if out[i], ok = join(x[i], y[i], false); !ok {
				return nil, false
			}
		}
		return out, true
	case string:
		if y, ok := b.(string); ok && piece {
			return x + y, true
		}
	}
	return a, reflect.DeepEqual(a, b)
}

// difference is a place where two responses differ.
type difference struct {
	at              string // such as [3].choices[0].delta.content
	direct, through string
}

// differences compares two values.
func differences(at string, direct, through any) (out []difference) {
	switch x := direct.(type) {
	case map[string]any:
		y, ok := through.(map[string]any)
		if !ok {
			break
		}
		names := slices.Collect(maps.Keys(x))
		for name := range y {
			if _, ok := x[name]; !ok {
				names = append(names, name)
			}
		}
		sort.Strings(names)
		for _, name := range names {
			a, inX := x[name]
			b, inY := y[name]
			switch {
			case !inX:
				out = append(out, difference{at + "." + name, "absent", brief(b)})
			case !inY:
				out = append(out, difference{at + "." + name, brief(a), "absent"})
			default:
				out = append(out, differences(at+"."+name, a, b)...)
			}
		}
		return out
	case []any:
		y, ok := through.([]any)
		if !ok || len(x) != len(y) {
			break
		}
		for i := range x {
			out = append(out, differences(fmt.Sprintf("%s[%d]", at, i), x[i], y[i])...)
		}
		return out
	}
	if reflect.DeepEqual(direct, through) {
		return nil
	}
	return []difference{{at, brief(direct), brief(through)}}
}

func brief(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	if len(b) > 90 {
		return strings.ToValidUTF8(string(b[:90]), "") + "..."
	}
	return string(b)
}

// compare lists the differences of two responses to one request. pieces: they differ only in the
// division of a stream into events.
func compare(direct, through *answer) (out []difference, pieces bool, err error) {
	if direct.status != through.status {
		return []difference{{
			"status", fmt.Sprint(direct.status, " ", brief(string(direct.body))),
			fmt.Sprint(through.status, " ", brief(string(through.body))),
		}}, false, nil
	}
	kind := func(a *answer) string {
		kind, _, _ := strings.Cut(a.header.Get("Content-Type"), ";")
		return kind
	}
	if kind(direct) != kind(through) {
		out = append(out, difference{"Content-Type", kind(direct), kind(through)})
	}
	a, err := direct.events()
	if err != nil {
		return nil, false, fmt.Errorf("direct: %w", err)
	}
	b, err := through.events()
	if err != nil {
		return nil, false, fmt.Errorf("through: %w", err)
	}
	if found := differences("", a, b); len(found) > 0 {
		a, b = unset(a), unset(b)
		if len(differences("", a, b)) == 0 { // divided in the same places: null is not absent
			return append(out, found...), false, nil
		}
		x, y := joined(a), joined(b)
		if found = differences("", x, y); len(found) == 0 {
			return out, true, nil
		}
		out = append(out, found...)
	}
	return out, false, nil
}
