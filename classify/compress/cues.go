package compress

import (
	_ "embed" // of the words
	"strings"
)

// cueSet is a set of properties that are typical of instructions. Each cue is weighted by how rare
// it is among the pieces of the prompt, so that "must" has little weight in a contract and much in
// a log.
type cueSet uint32

const (
	override cueSet = 1 << iota // disregard earlier instructions
	instruct                    // refers to instructions, rules
	backward                    // refers to earlier text
	disclose                    // disclose something
	secret                      // something that should stay secret
	address                     // addresses someone
	oblige                      // must, must not
	polite                      // please
	role                        // take a role, from now on
	task                        // a verb that asks for work
	asks                        // a question
	boiler                      // legal notices and page furniture
	worded                      // several function words: the sentence was written by a person
	// Pairs of which instructions against the rules consist.
	command // override with instruct or backward
	leak    // disclose with secret, instruct or reach
	order   // address, polite or audience with oblige, role, override, disclose or task
	// Rare words in a prompt may be its subject.
	named    // a name: a capital letter inside a sentence
	figures  // a number
	reach    // a URL or address
	audience // the reader of the prompt: the assistant, the model

	firstOnly = task | asker // only count as the first word of a clause
	asker     = cueSet(1) << 30
	cueCount  = 20
)

// strengthOf is the weight of each cue, in the order of the constants.
//
//nolint:gochecknoglobals // constant table
var strengthOf = [cueCount]float32{
	1.5, 0.4, 0.3, 0.5, 0.6, 0.2, 0.3, 0.5, 1.2, 0.4, 0.4, 0, 0.5,
	1.5, 1.0, 0.7,
	0.1, 0, 0.3, 1.0,
}

// pairs adds the cues that consist of two others.
func (c cueSet) pairs() cueSet {
	if c&override != 0 && c&(instruct|backward) != 0 {
		c |= command
	}
	if c&disclose != 0 && c&(secret|instruct|reach) != 0 {
		c |= leak
	}
	if c&(address|polite|audience) != 0 && c&(oblige|role|override|disclose|task) != 0 {
		c |= order
	}
	return c
}

//go:embed cues.txt
var phraseLists string

// phrases calls each with the words of every cue. They match in a row, regardless of punctuation
// between them; one that ends in * matches every word with its first five letters.
func phrases(each func(phrase string, cue cueSet)) {
	names := map[string]cueSet{
		"override": override, "instruct": instruct, "backward": backward, "disclose": disclose,
		"secret": secret, "address": address, "oblige": oblige, "polite": polite, "role": role,
		"task": task, "asker": asker, "audience": audience, "boiler": boiler,
	}
	var cue cueSet
	for line := range strings.Lines(phraseLists) {
		if name, ok := strings.CutPrefix(line, "= "); ok {
			cue = names[strings.TrimSpace(name)]
		} else if cue != 0 {
			for p := range strings.SplitSeq(strings.TrimSpace(line), ",") {
				if p = strings.TrimSpace(p); p != "" {
					each(p, cue)
				}
			}
		}
	}
}
