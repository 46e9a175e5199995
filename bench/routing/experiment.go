package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"

	"signalbox/bench/lab"
	"signalbox/proxy/choose"
)

// contender is a model that an experiment can choose.
type contender struct {
	name   string
	price  choose.Price       // an assumption
	skills map[string]float64 // share of right answers by category, on questions that are not evaluated
	mean   float64            // over all of these questions
}

// question is an evaluated question.
type question struct {
	text     string
	category string
	worth    []float64 // of each contender's answer: 1 if correct, 0 if wrong, or the share of correct answers
}

// experiment is a pool of models and questions to send to it.
type experiment struct {
	title, note  string
	pool         []contender // the small model first, the large one last
	samePrice    bool        // prices are ignored
	questions    []question
	similar      map[string][]outcome // by category: if worth is a share, the outcomes it was counted from
	policies     []policy
	agreed, seen int // questions for which the classifier and the data set agree on the domain, and all questions
}

// policy is a selection method with its choice for each question; hedge marks a uniform draw, which
// is evaluated in expectation.
type policy struct {
	name   string
	chosen []int
}

const hedge = -1

// The margins in the report. They are not tuned: the report shows all of them.
var margins = []float64{0.02, 0.05, 0.10, 0.15, 0.20, 0.30} //nolint:gochecknoglobals // constant

var sevens = []string{"Mistral-7B-Instruct-v0.2", "gemma-7b", "Qwen1.5-7B-Chat", "mathstral-7B", "Meta-Llama-3_1-8B-Instruct"} //nolint:gochecknoglobals // constant

// Prices are assumptions, USD per million tokens, in the range that hosts of such models asked in
// 2024; those of GPT-4 Turbo are its list prices of November 2023.
var prices = map[string]choose.Price{ //nolint:gochecknoglobals // constant
	"Meta-Llama-3_1-8B-Instruct":  {Input: 0.2, Output: 0.2},
	"mathstral-7B":                {Input: 0.2, Output: 0.2},
	"Meta-Llama-3_1-70B-Instruct": {Input: 0.9, Output: 0.9},
	"Mixtral-8x7B":                {Input: 0.6, Output: 0.6},
	"GPT-4-1106":                  {Input: 10, Output: 30},
}

// experiments prepares the experiments; limit limits the questions of each.
func (d *dataset) experiments(limit int) ([]experiment, error) {
	mixed := []string{"Meta-Llama-3_1-8B-Instruct", "mathstral-7B", "Meta-Llama-3_1-70B-Instruct"}
	exact := "The questions of MMLU-Pro that the classifier was not trained on and whose answers by each model are known one by one; they were kept out of its training, but half of them took part in setting its temperature and in weighing its two parts. Skills come from all other questions."
	shares := "The questions of the development set, whose ids are not known: an answer is worth the share of right answers that the model gave to questions of the same category, over all that the classifier was not trained on. Skills come from the questions that it was trained on. This takes for granted that, inside a category, a question that is hard to classify is no harder to answer."
	var out []experiment
	for _, p := range []struct {
		title string
		names []string
		same  bool
	}{{"Five models of 7 to 8 billion parameters", sevens, true}, {"A small model, a specialist and a large model", mixed, false}} {
		e, err := d.exact(p.names, limit)
		if err != nil {
			return nil, err
		}
		e.title, e.note, e.samePrice = p.title+", MMLU-Pro, exact outcomes", exact, p.same
		s, err := d.shares(p.names, limit)
		if err != nil {
			return nil, err
		}
		s.title, s.note, s.samePrice = p.title+", MMLU-Pro development set", shares, p.same
		out = append(out, e, s)
	}
	r := d.routellm(limit)
	for i := range out {
		if len(out[i].questions) == 0 {
			return nil, errors.New("the data sets do not fit together: no question has both a text and outcomes")
		}
	}
	return append(out, r), nil
}

// contenders derives skills from outcomes.
func contenders(names []string, from []outcome) ([]contender, error) {
	out := make([]contender, len(names))
	for i, name := range names {
		c := contender{name: name, price: prices[name], skills: map[string]float64{}}
		if c.price == (choose.Price{}) {
			c.price = choose.Price{Input: 0.2, Output: 0.2}
		}
		right, n := map[string]float64{}, map[string]float64{}
		for _, o := range from {
			ok, has := o.Correct[name]
			if !has {
				return nil, fmt.Errorf("question %s has no outcome of %s", o.ID, name)
			}
			right[o.Category] += float64(ok)
			n[o.Category]++
			c.mean += float64(ok) / float64(len(from))
		}
		for category := range n {
			c.skills[category] = right[category] / n[category]
		}
		out[i] = c
	}
	return out, nil
}

// exact evaluates held-out questions on their own outcomes.
func (d *dataset) exact(names []string, limit int) (experiment, error) {
	text := make(map[string]string, len(d.held))
	for _, q := range d.held {
		text[q.ID.String()] = q.Text
	}
	var rest, eval []outcome
	for _, o := range d.matrix {
		if _, ok := text[o.ID]; ok {
			eval = append(eval, o)
		} else {
			rest = append(rest, o)
		}
	}
	pool, err := contenders(names, rest)
	if err != nil {
		return experiment{}, err
	}
	e := experiment{pool: pool}
	for _, o := range lab.Spread(eval, limit) {
		q := question{text: text[o.ID], category: o.Category}
		for _, name := range names {
			q.worth = append(q.worth, float64(o.Correct[name]))
		}
		e.questions = append(e.questions, q)
	}
	return e, nil
}

// shares evaluates the development set on shares of correct answers.
func (d *dataset) shares(names []string, limit int) (experiment, error) {
	var rest []outcome
	similar := map[string][]outcome{}
	for _, o := range d.matrix {
		if d.trained[o.ID] {
			rest = append(rest, o)
		} else {
			similar[o.Category] = append(similar[o.Category], o)
		}
	}
	pool, err := contenders(names, rest)
	if err != nil {
		return experiment{}, err
	}
	e := experiment{pool: pool, similar: similar}
	for _, q := range lab.Spread(d.dev, limit) {
		if len(similar[q.Label]) == 0 {
			return e, fmt.Errorf("no outcome in category %q", q.Label)
		}
		e.questions = append(e.questions, question{text: q.Text, category: q.Label, worth: e.worth(similar[q.Label])})
	}
	return e, nil
}

// worth returns the share of correct answers of each contender.
func (e *experiment) worth(from []outcome) []float64 {
	out := make([]float64, len(e.pool))
	for _, o := range from {
		for m := range e.pool {
			out[m] += float64(o.Correct[e.pool[m].name]) / float64(len(from))
		}
	}
	return out
}

// routellm evaluates the questions of RouteLLM's own evaluation that the classifier was not trained
// on.
func (d *dataset) routellm(limit int) experiment {
	as := func(ok bool) float64 {
		if ok {
			return 1
		}
		return 0
	}
	small := contender{name: "Mixtral-8x7B", price: prices["Mixtral-8x7B"], skills: map[string]float64{}}
	large := contender{name: "GPT-4-1106", price: prices["GPT-4-1106"], skills: map[string]float64{}}
	n := map[string]float64{}
	for _, p := range d.known {
		n[p.Category]++
		small.skills[p.Category] += as(p.Mixtral)
		large.skills[p.Category] += as(p.GPT4)
	}
	for c, count := range n {
		small.mean += small.skills[c] / float64(len(d.known))
		large.mean += large.skills[c] / float64(len(d.known))
		small.skills[c] /= count
		large.skills[c] /= count
	}
	e := experiment{
		title: "Mixtral-8x7B and GPT-4 Turbo, MMLU",
		note:  "The questions of RouteLLM's evaluation on MMLU that the classifier was not trained on, with their options; skills come from the others.",
		pool:  []contender{small, large},
	}
	for _, p := range lab.Spread(d.pairs, limit) {
		e.questions = append(e.questions, question{p.Text, p.Category, []float64{as(p.Mixtral), as(p.GPT4)}})
	}
	return e
}

// decide computes the choices of every policy.
func (e *experiment) decide(ctx context.Context, c *classifier, log io.Writer) error {
	same := func(m int) []int { return slices.Repeat([]int{m}, len(e.questions)) }
	best := 0
	for m := range e.pool {
		if e.pool[m].mean > e.pool[best].mean {
			best = m
		}
	}
	if e.samePrice {
		for m := range e.pool {
			e.policies = append(e.policies, policy{"always " + e.pool[m].name, same(m)})
		}
	} else {
		e.policies = append(e.policies, policy{"always small (" + e.pool[0].name + ")", same(0)},
			policy{"always large (" + e.pool[len(e.pool)-1].name + ")", same(len(e.pool) - 1)})
	}
	e.policies = append(e.policies, policy{"random", same(hedge)},
		policy{singleBest, same(best)}, policy{"best of the true domain", e.oracle()})
	product, err := openProduct(ctx, e.config(), c)
	if err != nil {
		return err
	}
	defer product.close()
	for _, name := range slices.Sorted(maps.Keys(product.policies)) {
		p := policy{name: product.policies[name]}
		for i := range e.questions {
			headers, err := product.ask(ctx, e.questions[i].text, name)
			if err != nil {
				return err
			}
			m := slices.IndexFunc(e.pool, func(c contender) bool { return c.name == headers.Get("X-Signalbox-Model") })
			if m < 0 {
				return fmt.Errorf("question %d went to %q", i, headers.Get("X-Signalbox-Model"))
			}
			p.chosen = append(p.chosen, m)
		}
		e.policies = append(e.policies, p)
		_, _ = fmt.Fprintf(log, "%s: %s: %d questions\n", e.title, p.name, len(p.chosen))
	}
	for i := range e.questions {
		e.seen++
		if c.domain(e.questions[i].text) == e.questions[i].category {
			e.agreed++
		}
	}
	return nil
}

// singleBest is the policy that the others are compared with.
const singleBest = "best single model"

// oracle chooses by the category in the data set.
func (e *experiment) oracle() []int {
	out := make([]int, len(e.questions))
	for i := range e.questions {
		for m := range e.pool {
			if e.pool[m].skills[e.questions[i].category] > e.pool[out[i]].skills[e.questions[i].category] {
				out[i] = m
			}
		}
	}
	return out
}

// answerTokens is the assumed length of every answer, which the data does not include.
const answerTokens = 256

// cost is the price in USD of an answer to a question, by a model or in expectation over all.
func (e *experiment) cost(q *question, m int) float64 {
	if m == hedge {
		sum := 0.0
		for m := range e.pool {
			sum += e.cost(q, m) / float64(len(e.pool))
		}
		return sum
	}
	p := e.pool[m].price
	return (math.Ceil(float64(len(q.text))/4)*p.Input + answerTokens*p.Output) / 1e6
}

// right returns the worth of an answer.
func (q *question) right(m int) float64 {
	if m == hedge {
		sum := 0.0
		for _, w := range q.worth {
			sum += w / float64(len(q.worth))
		}
		return sum
	}
	return q.worth[m]
}
