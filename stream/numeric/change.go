package numeric

import (
	"slices"
	"strings"

	"signalbox/stream/evidence/words"
	"signalbox/stream/numeric/quantity"
)

// phase says which value of a change a number is: the former one or the present one.
type phase uint8

const (
	always phase = iota // no change is stated, or the text is about the past
	former              // "from 2 GiB to 8 GiB", "(was 8443)", "formerly 10 s", "bisher 9 Euro"
	since               // the new value; in a claim, a statement about the present
)

// turn is a bit set of what a word says about a change.
type turn uint16

const (
	turnFrom   turn = 1 << iota // precedes the former value
	turnTo                      // precedes the present value
	turnAuf                     // same, but never used for a range
	turnVerb                    // a verb of change
	turnFormer                  // a value beside it is a former one
	turnWas                     // same, if it has a clause of its own
	turnLink                    // may occur between such a word and the number
	turnPast                    // a claim with it is not about the present
	turnNow                     // a claim with it is, whatever its verb ends in
	turnRise                    // something increased
	turnFall                    // something decreased
	turnNoun                    // a noun of change if "from" follows: "the drop from 4 to 3"
	turnUndone                  // the sentence plans or denies a change, or describes a course
	turnWidens                  // a change after which the first place or day still holds: expanded
	turnOwn                     // the clause has a verb or a subject of its own
)

// turnWords are the English and German words of change. Verbs of change are in past forms only:
// something that "rises from 300 m to 900 m" has both values.
//
//nolint:gochecknoglobals // constant table
var turnWords = func() map[string]turn {
	m := map[string]turn{}
	add := func(t turn, list string) {
		for w := range strings.FieldsSeq(list) {
			m[w] |= t
		}
	}
	add(turnFrom, "from von vom")
	add(turnTo, "to zu zum")
	add(turnAuf, "auf into")
	add(
		turnVerb,
		`raised increased reduced lowered cut dropped fell fallen rose risen extended shortened
		postponed moved shifted pushed rescheduled renamed changed upgraded upgrades bumps migrates downgraded grew grown
		shrank shrunk declined climbed jumped slipped lifted bumped doubled halved tripled
		expanded relocated transferred switched migrated converted adjusted revised amended
		updated corrected gone brought delayed advanced trimmed slashed boosted widened narrowed
		tightened relaxed promoted demoted hiked soared plunged plummeted tumbled surged eased
		edged swapped replaced modified rebranded scaled decreased deferred diminished dwindled
		strengthened weakened sank sunk slid cut gesenkt erhöht angehoben verschoben verlegt
		verlängert verkürzt gekürzt reduziert geändert verringert gestiegen gesunken gefallen
		gewachsen umbenannt umgezogen versetzt umgestellt herabgesetzt heraufgesetzt aufgestockt
		vergrößert verkleinert angepasst korrigiert stieg sank fiel wuchs zog wechselte`)
	add(turnNoun, "change increase reduction extension rise drop decrease growth decline upgrade move shift went")
	add(turnWidens, "extended expanded widened erweitert ausgeweitet")
	add(turnUndone, `will would shall should could might planned plan plans planning proposed if unless not
		never no nor cannot considered considering wasn't weren't didn't hasn't haven't won't isn't
		wird werden würde würden soll sollen sollte sollten könnte geplant falls wenn nicht nie kein
		keine keinen vorgeschlagen steigt sinkt fällt führt geht reicht verläuft`)
	add(turnFormer, `previously formerly former previous bisher bislang bisherige früher vormals ehemals zuvor
		vorher anstatt instead originally ursprünglich vorherige`)
	add(turnWas, "was were war waren betrug lag used")
	add(
		turnLink,
		`it es only of by at on in the a an be just nur bei der die das dem den am um than about
		rund etwa mal originally previously still noch`,
	)
	add(
		turnPast,
		`was were had before earlier originally initially until once ago then past prior old older
		historically began begins begin starts started start starting initial first yesterday no
		longer instead war waren hatte hatten betrug lag galt wurde wurden anfangs zunächst damals
		alt alte alten alter beginnt begann startet nicht mehr était avant antes era
		took stood held sold paid ran kept gave got lay sat spent
		kostete kosteten dauerte dauerten zahlte zahlten brauchte brauchten standen hielt hielten`)
	add(turnNow, `is are am has have can may must will now currently today does do jetzt nun ist sind hat
		haben beträgt liegt`)
	add(turnOwn, `is are am was were be has have had can may must it he she they which that who runs run goes go ranges
		range costs cost takes take lasts last opens open closes close valid available applies apply stands reads
		ist sind war waren hat haben hatte kann darf es er sie kostet kosten dauert dauern gilt gelten geöffnet öffnet`)
	add(turnRise, `rise rises rose risen rising increase increases increased increasing grow grows grew grown
		growing growth gain gains gained climb climbs climbed climbing surge surged jump jumped
		soar soared up boosted raised expanded steigt steigen stieg stiegen gestiegen steigerte
		gesteigert wächst wuchs wuchsen gewachsen wachstum zugenommen zunahme anstieg erhöht
		erhöhte zulegte zugelegt augmenté augmentation hausse progressé subió aumentó creció`)
	add(turnFall, `fall falls fell falling decrease decreases decreased decreasing decline declines declined
		declining drop drops dropped dropping shrink shrinks shrank shrunk shrinking reduced
		reduction lowered sank sunk sinking slipped slumped plunged dipped tumbled diminished
		dwindled lost down cut slashed sinkt sinken sank sanken gesunken fällt fiel fielen
		gefallen abgenommen abnahme rückgang verringert verringerte gesenkt senkte reduziert
		reduzierte schrumpfte geschrumpft verlor verloren baisse baissé diminué bajó cayó
		disminuyó`)
	return m
}()

// turnOf returns what a word says about a change, or 0.
func turnOf(word string) turn {
	var form [24]byte
	if len(word) > len(form)-4 {
		return 0
	}
	return turnWords[string(appendLower(form[:0], word))]
}

// phasesOf records, for each value of the reading, which value of a change it is.
func (r *reading) phasesOf(text string) {
	r.phases = slices.Grow(r.phases[:0], len(r.values))[:len(r.values)]
	clear(r.phases)
	r.partners = r.partners[:0]
	for range r.values {
		r.partners = append(r.partners, -1)
	}
	r.noteTurns(text)
	r.noteCourses()
	r.past = -1
	if r.allTurns&(turnFrom|turnFormer|turnWas) == 0 {
		return
	}
	if r.allTurns&turnWas != 0 {
		defer r.byNow(text)
	}
	if len(r.values) < 2 {
		return
	}
	at := 0
	for i := range r.values {
		for at < len(r.words) && r.words[at].End <= r.values[i].Start {
			at++
		}
		switch {
		case r.fromTo(i, at):
		case r.formerly(text, i, at):
			r.follow(i)
		}
	}
}

// noteTurns records what each word of the reading says about a change.
func (r *reading) noteTurns(text string) {
	r.turns, r.allTurns = slices.Grow(r.turns[:0], len(r.words)), 0
	for _, w := range r.words {
		t := turn(0)
		if !w.Has(words.Number) {
			t = turnOf(text[w.Start:w.End])
			if t&(turnRise|turnFall) != 0 && upOrDown(text[w.Start:w.End]) && !moves(text[w.End:]) {
				t &^= turnRise | turnFall
			}
		}
		r.turns, r.allTurns = append(r.turns, t), r.allTurns|t
	}
}

// Maximum distance, in numbers and in words, between the parts of a change; our choice.
const (
	nearValues = 3
	nearWords  = 12
)

// fromTo reports whether value i is the former one of two values introduced by "from" and "to", and
// records both. The words of the reading before index at precede the value.
func (r *reading) fromTo(i, at int) bool {
	if r.lead(at)&turnFrom == 0 {
		return false
	}
	for j := max(0, i-1); j < min(len(r.values), i+1+nearValues); j++ {
		if j == i || !oneKind(&r.values[i], &r.values[j]) {
			continue
		}
		other, _ := slices.BinarySearchFunc(
			r.words,
			r.values[j].Start,
			func(w words.Word, at int) int { return w.End - at },
		)
		for other < len(r.words) && r.words[other].End <= r.values[j].Start {
			other++
		}
		to := r.lead(other)
		if r.undone(min(at, other), max(at, other)) {
			return false
		}
		if to&turnAuf != 0 || to&turnTo != 0 && r.told(min(at, other), r.values[i].Kind == quantity.Clock) {
			r.replace(i, j)
			if v, o := &r.values[i], &r.values[j]; v.Dim == quantity.Plain && v.Kind == quantity.Count {
				v.MeasureAs(o)
			}
			return true
		}
	}
	return false
}

// lead returns what the word before word at says about a change, skipping linking words.
func (r *reading) lead(at int) turn {
	for k := at - 1; k >= max(0, at-2); k-- {
		if t := r.turns[k]; t&(turnFrom|turnTo|turnAuf) != 0 || t&turnLink == 0 {
			return t
		}
	}
	return 0
}

// told reports whether a word before word at states a change from one value or place to another, in
// a clause that continues up to that word. A noun counts only if "from" follows directly, and not
// for times of day (times): a meeting that went from 9 to 5 did not change.
func (r *reading) told(at int, times bool) bool { //nolint:revive // a fact about the values
	own := false
	for k := min(at, len(r.turns)-1) - 1; k >= max(0, at-nearWords); k-- {
		t := r.turns[k]
		if own && r.clause(r.words[k].Start) != r.clause(r.words[k+1].Start) {
			return false // "was moved to the park, and it is open from 8:00 to 20:00"
		}
		own = own || t&turnOwn != 0
		if k == 0 && !r.words[1].Has(words.Stop) && r.turns[1]&turnFrom == 0 {
			continue // an adjective: "Reduced tickets"
		}
		if t&turnVerb != 0 || !times && t&turnNoun != 0 && r.turns[k+1]&turnFrom != 0 {
			return true
		}
	}
	return false
}

// undone reports whether a change between or near words from and to is only planned, denied or
// supposed, or is a course that has both values: "steigt von 300 m auf 900 m".
func (r *reading) undone(from, to int) bool {
	near := r.turns[max(0, from-nearWords):min(len(r.turns), to+nearWords)]
	return slices.ContainsFunc(near, func(t turn) bool { return t&turnUndone != 0 })
}

// formerly reports whether the words next to value i mark it as a former value: "previously 8443",
// "it used to be 10 s", "was 20 before". The words before index at precede the value.
func (r *reading) formerly(text string, i, at int) bool {
	v := &r.values[i]
	home, was := r.clause(v.Start), false
	k := at - 1
	for ; k >= 0 && r.clause(r.words[k].Start) == home && r.words[k].End <= v.Start; k-- {
		t := r.turns[k]
		switch {
		case t&turnFormer != 0:
			return v.Dim != quantity.Duration || !strings.HasPrefix(text[r.words[k].Start:], "previous ")
		case t&turnFrom != 0 && k > 0 && upDown(text[r.words[k-1].Start:r.words[k].Start]):
			return true // "up from 12 million"
		case t&turnWas != 0:
			was = true
		case t&turnLink == 0 && t&turnTo == 0:
			return false
		}
	}
	return was && home > 0 && (k < 0 || r.words[k].End <= v.Start)
}

// upDown reports whether the word before "from" states a direction: up or down.
func upDown(word string) bool {
	switch word {
	case "up ", "Up ", "down ", "Down ":
		return true
	}
	return false
}

// upOrDown reports whether a word states a direction only next to a number: "up 20 percent", "down
// by 3".
func upOrDown(word string) bool {
	switch word {
	case "up", "Up", "down", "Down":
		return true
	}
	return false
}

// moves reports whether the text after "up" or "down" says how far or from where.
func moves(tail string) bool {
	tail = strings.TrimLeft(tail, " ~$€£")
	return strings.HasPrefix(tail, "by ") || strings.HasPrefix(tail, "from ") ||
		tail != "" && tail[0] >= '0' && tail[0] <= '9'
}

// follow records the nearest other value of the same kind as the one that replaced value i, a
// former value. Without such a value, nothing is recorded.
func (r *reading) follow(i int) {
	for step := 1; step <= nearValues; step++ {
		for _, j := range [...]int{i - step, i + step} {
			if j >= 0 && j < len(r.values) && r.phases[j] != former && oneKind(&r.values[i], &r.values[j]) {
				r.replace(i, j)
				return
			}
		}
	}
}

// replace records that value j replaced value i.
func (r *reading) replace(i, j int) {
	r.phases[i], r.phases[j] = former, since
	r.partners[i], r.partners[j] = int32(j), int32(i)
}

// oneKind reports whether one of two numbers can replace the other.
func oneKind(a, b *quantity.Value) bool {
	return a.Kind == b.Kind && (a.Dim.Top() == b.Dim.Top() || a.Dim == quantity.Plain || b.Dim == quantity.Plain)
}

// tense returns the phase of value i of a claim. It needs the results of present and datesOf. A
// value without a stated change is about the present, unless a word refers to the past or a date is
// next to it.
func (r *reading) tense(i int, present bool, dates int) phase {
	if r.phases[i] != always {
		return r.phases[i]
	}
	v := &r.values[i]
	at := r.wordFrom(v.Start)
	switch lead := r.lead(at); {
	case lead&turnFrom != 0:
		return always
	case lead&(turnTo|turnAuf) != 0 && r.told(at, v.Kind == quantity.Clock):
		return since
	case !present || dates > 1 || dates == 1 && v.Kind != quantity.Date:
		return always
	}
	return since
}

// present reports whether no word of a text refers to the past or to a change. noteTurns must have
// run.
func (r *reading) present(text string) bool {
	if r.allTurns&(turnVerb|turnPast|turnFormer|turnWas) != 0 {
		return false
	}
	past := func(w words.Word) bool { return strings.HasSuffix(text[w.Start:w.End], "ed") }
	return r.allTurns&turnNow != 0 || !slices.ContainsFunc(r.words, past)
}

// denies reports whether number k of the evidence says something different from the claim's number
// v although the two are equal. It does if k is the other value of a change, moved in the other
// direction, or is a bound to the other side of the same subject.
func (c *checker) denies(v *quantity.Value, k *known) bool {
	switch {
	case c.replaced(k), c.own == 0 && apartOf(v.Side, k.value.Side) && c.speaksOf(k):
		return true
	}
	return k.trend != 0 && c.trend != 0 && k.trend != c.trend
}

// replaced reports whether number k is the wrong value of a change: the former value if the claim
// is about the present, or the present value if the claim is about the past. A claim with both
// values of a change must have them swapped, because the value that ends one change may begin
// another.
func (c *checker) replaced(k *known) bool {
	if c.tense == since && k.stale && c.partners[c.at] < 0 {
		return true
	}
	if c.tense == always || k.phase == always || k.phase == c.tense {
		return false
	}
	if p := c.partners[c.at]; p >= 0 && k.partner >= 0 {
		return quantity.Compare(&c.values[p], &c.x.known[k.partner].value) != quantity.Differs
	}
	return true
}

// speaksOf reports whether every word of the claim occurs with number k of the evidence, and not
// elsewhere or with another number.
func (c *checker) speaksOf(k *known) bool {
	for i := range c.terms {
		t := &c.terms[i]
		if c.left < 0 {
			return false
		}
		if t.clause >= 0 && !t.date && !t.side && c.place(t, k) < inSentence && c.place(t, k) != meant &&
			c.place(t, k) != ahead {
			return false
		}
	}
	return true
}
