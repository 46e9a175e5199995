package rules

import (
	"bufio"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/signal"
	"signalbox/rules/internal/signaltest"
)

// Scripts in testdata/*.test say what a rule set does. A script is read line by line; empty lines
// and lines that start with # count for nothing.
//
//	absent KIND...             nothing provides these signals to the programs below; without kinds everything is provided
//	rules                      the following lines, up to `end`, are the configuration of the cases below
//	when YAML                  the cases below have one route with this condition
//	true|false|unknown KEY=VALUE ...  its value must be this when only these are given; !KIND is a failed signal
//	case NAME                  starts a case with nothing known
//	named                      the case uses the program of requests that name a model
//	given KEY=VALUE ...        adds facts and signals, where KEY is
//	                             role, tenant, model, session, tokens, context_tokens, turns,
//	                             tool_results, tool_loop (true), has (a,b), header.NAME;
//	                             keyword, pii: names, each with an optional :score, or - for none;
//	                             domain, intent, complexity, language: LABEL[:score],...;
//	                             factcheck (P(needs)), cache: a score;
//	                             jailbreak, injection: a score, or SCORE/ORIGIN:SCORE,... with what is said of origins, where a
//	                             score may end in ? for an origin that could not all be read
//	fail KIND=REASON ...       marks signals as failed
//	need KIND ...              Step must ask for exactly these
//	route NAME OUTCOME KIND... Step must decide for NAME; OUTCOME is matched, fail_closed, unavailable
//	                             or defaulted; the kinds are those that failed on the way
//	path ROUTE VALUE           the trace of ROUTE must have VALUE, and its leaves must be exactly the
//	  LEAF -> VALUE [REASON]     indented lines that follow
//	blocked ROUTE VALUE        the trace of ROUTE must have VALUE, and what kept it from being taken must be
//	  LEAF                       exactly the indented lines that follow, of which there may be none
func TestScripts(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.test")
	if err != nil || len(files) == 0 {
		t.Fatalf("found no scripts: %v", err)
	}
	for _, file := range files {
		s := &script{t: t, file: file}
		sc := bufio.NewScanner(strings.NewReader(readFile(t, file)))
		for sc.Scan() {
			s.line++
			s.read(sc.Text())
		}
		s.finish()
		if s.cases == 0 {
			t.Errorf("%s: no cases", file)
		}
	}
}

type script struct {
	t       *testing.T
	file    string
	line    int
	cases   int
	name    string
	program *Program
	used    *Program // program or its Named
	set     *signal.Set
	config  *strings.Builder // not nil while rules are read
	path    *expectedPath
	checks  int
	absent  signal.Mask
}

type expectedPath struct {
	route, value string
	line         int
	blockers     bool // leaves are the blockers, not the path
	leaves       []string
}

// compile makes the program of the cases below.
func (s *script) compile(text string) *Program {
	env := testEnv()
	env.Signals &^= s.absent
	p, problems := Compile(sourceOf(s.t, text), env)
	if p == nil {
		s.t.Fatalf("%s:%d: %v", s.file, s.line, problems)
	}
	return p
}

func (s *script) errorf(format string, args ...any) {
	s.t.Helper()
	s.t.Errorf("%s:%d: case %q: %s", s.file, s.line, s.name, fmt.Sprintf(format, args...))
}

func (s *script) read(line string) {
	switch {
	case s.config != nil && line == "end":
		s.program = s.compile(s.config.String())
		s.config = nil
		return
	case s.config != nil:
		s.config.WriteString(line + "\n")
		return
	case strings.HasPrefix(line, "  ") && s.path != nil:
		s.path.leaves = append(s.path.leaves, strings.TrimSpace(line))
		return
	}
	s.checkPath()
	verb, args := fields(line)
	switch {
	case verb == "" || strings.HasPrefix(verb, "#"):
	case verb == "absent":
		s.absent = s.kinds(args)
	case verb == "rules":
		s.config = &strings.Builder{}
	case verb == "case":
		s.finish()
		s.cases++
		s.name, s.checks = strings.Join(args, " "), 0
		s.used, s.set = s.program, &signal.Set{Facts: signal.Facts{Model: "auto"}}
	case verb == "when":
		s.name, s.cases = line, s.cases+1
		s.program = s.compile("routes: [{name: r, use: {models: [qwen-7b]}, " + line[:4] + ": " + line[5:] + "}]\ndefault: {models: [qwen-7b]}\n")
	case verb == "true", verb == "false", verb == "unknown":
		s.valueIs(verb, args)
	case verb == "named":
		s.used = s.program.Named()
	default:
		s.check(verb, args)
	}
}

// valueIs evaluates the condition of the one route.
func (s *script) valueIs(want string, args []string) {
	s.checks++
	s.set = &signal.Set{}
	for _, a := range args {
		if k, failed := strings.CutPrefix(a, "!"); failed {
			s.set.Fail(signal.MaskOf(s.kind(k)), signal.ReasonTimeout)
		} else {
			s.given(a)
		}
	}
	if got := s.program.Trace(s.set)[0].Value; got != want {
		s.errorf("with %v the condition is %s, want %s", args, got, want)
	}
}

func (s *script) finish() {
	s.checkPath()
	if s.cases > 0 && s.checks == 0 {
		s.errorf("the case checks nothing")
	}
}

func (s *script) check(verb string, args []string) {
	switch verb {
	case "given":
		for _, a := range args {
			s.given(a)
		}
	case "fail":
		for _, a := range args {
			k, reason, _ := strings.Cut(a, "=")
			s.set.Put(s.kind(k), signal.Value{State: signal.Unknown, Reason: signal.Reason(reason)})
		}
	case "need":
		s.checks++
		_, need := s.used.Step(s.set)
		if diff := cmp.Diff(s.kinds(args).Kinds(), need.Kinds()); diff != "" {
			s.errorf("needed signals (-want +got):\n%s", diff)
		}
	case "route":
		s.checks++
		s.decision(args)
	case "path", "blocked":
		s.checks++
		s.path = &expectedPath{route: args[0], value: args[1], line: s.line, blockers: verb == "blocked"}
	default:
		s.t.Fatalf("%s:%d: unknown line %q", s.file, s.line, verb)
	}
}

func (s *script) decision(args []string) {
	d, need := s.used.Step(s.set)
	if need != 0 {
		s.errorf("wants %v instead of deciding", need.Kinds())
		return
	}
	outcome := map[Outcome]string{Matched: "matched", FailClosed: "fail_closed", Unavailable: "unavailable", Defaulted: "defaulted"}
	got := []string{d.Route, outcome[d.Outcome]}
	for _, k := range d.Failed.Kinds() {
		got = append(got, k.String())
	}
	if diff := cmp.Diff(args, got); diff != "" {
		s.errorf("decision (-want +got):\n%s", diff)
	}
}

func (s *script) checkPath() {
	want := s.path
	s.path = nil
	if want == nil {
		return
	}
	for _, r := range s.used.Trace(s.set) {
		if r.Name != want.route {
			continue
		}
		var got []string
		for _, v := range r.Path {
			got = append(got, strings.TrimSpace(v.Leaf+" -> "+v.Value+" "+v.Reason))
		}
		if want.blockers {
			got = r.Blockers
		}
		if diff := cmp.Diff(want.leaves, got); diff != "" || r.Value != want.value {
			s.errorf("path of line %d: value %s, want %s; leaves (-want +got):\n%s", want.line, r.Value, want.value, diff)
		}
		return
	}
	s.errorf("no route %q in the trace", want.route)
}

func (s *script) kind(name string) signal.Kind {
	k, ok := signal.Names{"toxicity", "team", "tags"}.Parse(name)
	if !ok {
		s.t.Fatalf("%s:%d: unknown signal %q", s.file, s.line, name)
	}
	return k
}

func (s *script) kinds(names []string) signal.Mask {
	var m signal.Mask
	for _, n := range names {
		m |= signal.MaskOf(s.kind(n))
	}
	return m
}

func (s *script) given(arg string) {
	key, value, _ := strings.Cut(arg, "=")
	f := &s.set.Facts
	switch key {
	case "role":
		f.Role = value
	case "tenant":
		f.Tenant = value
	case "model":
		f.Model = value
	case "session":
		f.Session = value
	case "tokens":
		f.Tokens = int(s.number(value))
	case "context_tokens":
		f.Context = int(s.number(value))
	case "turns":
		f.Turns = int(s.number(value))
	case "tool_results":
		f.Results = int(s.number(value))
	case "tool_loop":
		f.ToolLoop = value == "true"
	case "has":
		bits := map[string]signal.Features{
			"tools": signal.HasTools, "images": signal.HasImages, "context": signal.HasContext, "facts": signal.HasFacts,
		}
		for n := range strings.SplitSeq(value, ",") {
			f.Features |= bits[n]
		}
	default:
		if name, ok := strings.CutPrefix(key, "header."); ok {
			f.Header = signaltest.Headers(name, value)
			return
		}
		s.set.Put(s.kind(key), s.value(s.kind(key), value))
	}
}

// ownValue reads the probabilities of a classifier of one's own, which need not add up to 1.
func (s *script) ownValue(text string) signal.Value {
	v := signal.Value{State: signal.Known}
	for n := range strings.SplitSeq(text, ",") {
		name, score, _ := strings.Cut(n, ":")
		p := s.number(score)
		v.Labels, v.Probs = append(v.Labels, name), append(v.Probs, float32(p))
		if p > v.Score {
			v.Label, v.Score = name, p
		}
	}
	return v
}

func (s *script) value(k signal.Kind, text string) signal.Value {
	switch k { //nolint:exhaustive // the rest are labels
	case signal.Cache:
		return signal.Value{State: signal.Known, Score: s.number(text)}
	case signal.Jailbreak, signal.Injection:
		return s.attack(text)
	case signal.FactCheck:
		return signaltest.Labelled([]string{"no", "needs"}, map[string]float64{"needs": s.number(text)})
	case signal.Keyword, signal.PII:
		v := signal.Value{State: signal.Known}
		for n := range strings.SplitSeq(text, ",") {
			name, score, scored := strings.Cut(n, ":")
			if name == "-" {
				continue
			}
			v.Labels = append(v.Labels, name)
			if scored {
				v.Probs = append(v.Probs, float32(s.number(score)))
			}
		}
		return v
	}
	if k >= signal.Own {
		return s.ownValue(text)
	}
	scores := map[string]float64{}
	first := ""
	for n := range strings.SplitSeq(text, ",") {
		name, score, scored := strings.Cut(n, ":")
		if first == "" {
			first = name
		}
		scores[name] = 1
		if scored {
			scores[name] = s.number(score)
		}
	}
	labels := testEnv().Labels[k]
	if labels == nil {
		return signal.Value{State: signal.Known, Label: first, Score: scores[first]}
	}
	return signaltest.Labelled(labels, scores)
}

// attack reads SCORE or SCORE/ORIGIN:SCORE,...
func (s *script) attack(text string) signal.Value {
	score, rest, told := strings.Cut(text, "/")
	v := signal.Value{State: signal.Known, Score: s.number(score)}
	for n := range strings.SplitSeq(rest, ",") {
		if !told {
			break
		}
		name, score, _ := strings.Cut(n, ":")
		origin, known := signal.ParseOrigin(name)
		if !known && name != signal.OriginAny.String() {
			s.t.Fatalf("%s:%d: unknown origin %q", s.file, s.line, name)
		}
		score, partial := strings.CutSuffix(score, "?")
		v.Verdicts = append(v.Verdicts, signal.Verdict{
			Origin: origin, Score: s.number(score),
			Partial: partial,
		})
	}
	return v
}

func (s *script) number(text string) float64 {
	x, err := strconv.ParseFloat(text, 64)
	if err != nil {
		s.t.Fatalf("%s:%d: %v", s.file, s.line, err)
	}
	return x
}
