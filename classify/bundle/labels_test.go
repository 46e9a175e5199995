package bundle

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMappingsAreReadInEveryForm(t *testing.T) {
	want := []string{"benign", "jailbreak", "other"}
	for name, file := range map[string]string{
		"label to index":                          `{"label_to_idx": {"benign": 0, "other": 2, "jailbreak": 1}}`,
		"index to label":                          `{"idx_to_label": {"2": "other", "0": "benign", "1": "jailbreak"}}`,
		"category to index, index to category":    `{"category_to_idx": {"benign": 0, "jailbreak": 1, "other": 2}, "idx_to_category": {"0": "benign", "1": "jailbreak", "2": "other"}}`,
		"label to id":                             `{"label_to_id": {"benign": 0, "jailbreak": 1, "other": 2}}`,
		"id to label":                             `{"id_to_label": {"0": "benign", "1": "jailbreak", "2": "other"}}`,
		"the names of config.json":                `{"id2label": {"0": "benign", "1": "jailbreak", "2": "other"}, "label2id": {"benign": 0, "jailbreak": 1, "other": 2}}`,
		"indices as text":                         `{"label_to_id": {"benign": "0", "jailbreak": "1", "other": "2"}}`,
		"a list":                                  `{"idx_to_label": ["benign", "jailbreak", "other"]}`,
		"nothing around it, from label":           `{"benign": 0, "jailbreak": 1, "other": 2}`,
		"nothing around it, from index":           `{"0": "benign", "1": "jailbreak", "2": "other"}`,
		"a null beside":                           `{"label2id": null, "id2label": {"0": "benign", "1": "jailbreak", "2": "other"}}`,
		"other members beside":                    `{"num_labels": 3, "description": {"benign": "fine"}, "label_to_idx": {"benign": 0, "jailbreak": 1, "other": 2}}`,
		"two directions in different orders":      `{"label_to_idx": {"other": 2, "benign": 0, "jailbreak": 1}, "idx_to_label": {"1": "jailbreak", "2": "other", "0": "benign"}}`,
		"two spellings of the same label":         `{"label_to_idx": {"Benign": 0, "JAILBREAK": 1, "other": 2}, "idx_to_label": {"0": "benign", "1": "jailbreak", "2": "other"}}`,
		"generic names, whichever of both first":  `{"id2label": {"0": "LABEL_0", "1": "LABEL_1", "2": "LABEL_2"}, "label_to_idx": {"benign": 0, "jailbreak": 1, "other": 2}}`,
		"real names first, generic names after":   `{"id2label": {"0": "benign", "1": "jailbreak", "2": "other"}, "label2id": {"LABEL_0": 0, "LABEL_1": 1, "LABEL_2": 2}}`,
		"generic names between two of real names": `{"category_to_idx": {"benign": 0, "jailbreak": 1, "other": 2}, "id2label": ["LABEL_0", "LABEL_1", "LABEL_2"], "label2id": {"benign": 0, "jailbreak": 1, "other": 2}}`,
	} {
		t.Run(name, func(t *testing.T) {
			sources, err := readMappingFile("m.json", []byte(file))
			if err != nil {
				t.Fatal(err)
			}
			got, err := mergeLabels(sources)
			if err != nil {
				t.Fatal(err)
			}
			for i := range got {
				got[i] = strings.ToLower(got[i])
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestMappingsThatCannotBeRight(t *testing.T) {
	for name, c := range map[string]struct{ file, want string }{
		"no JSON":                      {`{"label_to_id": `, "m.json: labels"},
		"not an object":                {`[1, 2]`, "m.json: labels"},
		"no mapping at all":            {`{"labels": "benign"}`, "m.json: labels: no mapping"},
		"an empty mapping":             {`{"label_to_id": {}}`, "m.json: label_to_id: labels: 0 labels"},
		"a gap":                        {`{"label_to_id": {"a": 0, "b": 2}}`, "no label has index 1 of 2"},
		"not from zero":                {`{"label_to_id": {"a": 1, "b": 2}}`, "no label has index 0 of 2"},
		"one index for two labels":     {`{"label_to_id": {"b": 0, "a": 0}}`, `index 0 is "a" and "b"`},
		"one label for two indices":    {`{"id_to_label": {"0": "a", "1": "a"}}`, `label 1 "a" is empty or used twice`},
		"one index in two spellings":   {`{"id_to_label": {"0": "a", "00": "b"}}`, `index 0 is "a" and "b"`},
		"a label twice in the text":    {`{"label_to_id": {"a": 0, "a": 1}}`, "duplicate"},
		"an empty label":               {`{"id_to_label": {"0": "", "1": "b"}}`, "is empty"},
		"a negative index":             {`{"label_to_id": {"a": 0, "b": -1}}`, `"-1" is no index`},
		"an index that is no integer":  {`{"label_to_id": {"a": 0, "b": 1.5}}`, `"1.5" is no index`},
		"an index that is a word":      {`{"id_to_label": {"zero": "a", "one": "b"}}`, "is no index"},
		"an index beyond any model":    {`{"label_to_id": {"a": 0, "b": 99999999999}}`, "is no index"},
		"labels that are numbers":      {`{"id_to_label": {"0": 1}}`, "m.json: id_to_label"},
		"an index that is an object":   {`{"label_to_id": {"a": {}}}`, `"{}" is no index`},
		"two directions that disagree": {`{"label_to_id": {"a": 0, "b": 1}, "id_to_label": {"0": "b", "1": "a"}}`, `m.json: label_to_id: labels: label 0 is "a" here and "b" in m.json: id_to_label`},
		"two lengths":                  {`{"label_to_id": {"a": 0, "b": 1}, "id_to_label": ["a", "b", "c"]}`, "m.json: label_to_id: labels: 2 here, 3 in m.json: id_to_label"},
		"generic names of other length": {
			`{"label2id": {"a": 0, "b": 1}, "id2label": ["LABEL_0", "LABEL_1", "LABEL_2"]}`, "m.json: label2id: labels: 2 here, 3 in m.json: id2label",
		},
	} {
		t.Run(name, func(t *testing.T) {
			sources, err := readMappingFile("m.json", []byte(c.file))
			if err == nil {
				_, err = mergeLabels(sources)
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
			if !errors.Is(err, ErrLabels) {
				t.Errorf("%v is no ErrLabels", err)
			}
		})
	}
}

func TestLabelsGetTheMeaningOfTheContract(t *testing.T) {
	for name, c := range map[string]struct {
		task     string
		kind     Kind
		labels   []string
		renames  map[string]string
		positive string
		want     []string
		found    string // the positive label
		bad      string // in the error
	}{
		"domains in the contract's spelling": {task: "domain", kind: Sequence, labels: []string{"Computer_Science", "Math", "Cooking"}, want: []string{"computer science", "math", "Cooking"}},
		"jailbreak":                          {task: "jailbreak", kind: Sequence, labels: []string{"jailbreak", "benign"}, want: []string{"jailbreak", "benign"}, found: "jailbreak"},
		"injection":                          {task: "jailbreak", kind: Sequence, labels: []string{"SAFE", "INJECTION"}, want: []string{"benign", "jailbreak"}, found: "jailbreak"},
		"injection, as a signal of its own": {
			task: "injection", kind: Sequence,
			labels: []string{"SAFE", "INJECTION"}, want: []string{"benign", "injection"},
			found: "injection",
		},
		"injection, from unsafe": {
			task: "injection", kind: Sequence,
			labels: []string{"unsafe", "safe"}, want: []string{"injection", "benign"},
			found: "injection",
		},
		"unsafe":                             {task: "jailbreak", kind: Sequence, labels: []string{"safe", "unsafe"}, want: []string{"benign", "jailbreak"}, found: "jailbreak"},
		"0 and 1":                            {task: "jailbreak", kind: Sequence, labels: []string{"0", "1"}, want: []string{"benign", "jailbreak"}, found: "jailbreak"},
		"generic labels say nothing":         {task: "jailbreak", kind: Sequence, labels: []string{"LABEL_0", "LABEL_1"}, bad: "set positive"},
		"generic labels with an answer":      {task: "jailbreak", kind: Sequence, labels: []string{"LABEL_0", "LABEL_1"}, positive: "LABEL_1", want: []string{"benign", "jailbreak"}, found: "jailbreak"},
		"generic labels renamed":             {task: "jailbreak", kind: Sequence, labels: []string{"LABEL_0", "LABEL_1"}, renames: map[string]string{"LABEL_0": "jailbreak", "LABEL_1": "benign"}, want: []string{"jailbreak", "benign"}, found: "jailbreak"},
		"an answer that was renamed":         {task: "jailbreak", kind: Sequence, labels: []string{"A", "B"}, renames: map[string]string{"A": "bad"}, positive: "A", want: []string{"jailbreak", "benign"}, found: "jailbreak"},
		"two kinds of attack":                {task: "jailbreak", kind: Sequence, labels: []string{"BENIGN", "INJECTION", "JAILBREAK"}, bad: `"INJECTION" and "JAILBREAK" could both be meant`},
		"two kinds of attack with an answer": {task: "jailbreak", kind: Sequence, labels: []string{"BENIGN", "INJECTION", "JAILBREAK"}, positive: "JAILBREAK", want: []string{"BENIGN", "INJECTION", "JAILBREAK"}, found: "JAILBREAK"},
		"an attack and something else":       {task: "jailbreak", kind: Sequence, labels: []string{"spam", "attack"}, bad: `"spam" is not known to be the opposite`},
		"nothing that is known":              {task: "jailbreak", kind: Sequence, labels: []string{"foo", "bar"}, bad: "set positive"},
		"an answer that is no label":         {task: "jailbreak", kind: Sequence, labels: []string{"foo", "bar"}, positive: "baz", bad: `positive: "baz" is not one of [foo bar]`},
		"fact checks in upper case":          {task: "factcheck", kind: Sequence, labels: []string{"NO_FACT_CHECK_NEEDED", "FACT_CHECK_NEEDED"}, want: []string{"no", "needs"}, found: "needs"},
		"complexity":                         {task: "complexity", kind: Sequence, labels: []string{"hard", "easy"}, want: []string{"high", "low"}},
		"complexity in other words":          {task: "complexity", kind: Sequence, labels: []string{"tiny", "huge"}, bad: "[tiny huge] are not low, medium and high"},
		"complexity with two words for one":  {task: "complexity", kind: Sequence, labels: []string{"easy", "simple"}, bad: "are not low, medium and high"},
		"another task":                       {task: "feedback", kind: Sequence, labels: []string{"SAT", "WANT_MORE"}, want: []string{"SAT", "WANT_MORE"}},
		"another task without names":         {task: "feedback", kind: Sequence, labels: []string{"LABEL_0", "LABEL_1"}, bad: "set labels"},
		"entailment":                         {task: "nli", kind: Pair, labels: []string{"ENTAILMENT", "not_entailment"}, want: []string{"entailment", "neutral"}},
		"judged tokens without names":        {task: "grounding", kind: Token, labels: []string{"LABEL_0", "LABEL_1"}, want: []string{"supported", "unsupported"}, found: "unsupported"},
		"judged tokens by number":            {task: "grounding", kind: Token, labels: []string{"0", "1"}, want: []string{"supported", "unsupported"}, found: "unsupported"},
		"judged tokens, the other way round": {task: "grounding", kind: Token, labels: []string{"HALLUCINATED", "SUPPORTED"}, want: []string{"unsupported", "supported"}, found: "unsupported"},
		"judged tokens with an answer":       {task: "grounding", kind: Token, labels: []string{"LABEL_0", "LABEL_1"}, positive: "LABEL_0", want: []string{"unsupported", "supported"}, found: "unsupported"},
		"judged tokens in other words":       {task: "grounding", kind: Token, labels: []string{"good", "bad"}, bad: "set positive"},
		"judged pairs":                       {task: "grounding", kind: Pair, labels: []string{"contradiction", "entailment", "neutral"}, want: []string{"contradiction", "entailment", "neutral"}},
		"BIO":                                {task: "pii", kind: Token, labels: []string{"O", "B-PERSON", "I-PERSON"}, want: []string{"O", "B-PERSON", "I-PERSON"}},
		"BIO in other words":                 {task: "pii", kind: Token, labels: []string{"o", "B-PER", "I-PER", "B-first_name", "B-Email"}, want: []string{"O", "B-PERSON", "I-PERSON", "B-PERSON", "B-EMAIL_ADDRESS"}},
		"BILOU":                              {task: "pii", kind: Token, labels: []string{"O", "B-ORG", "I-ORG", "L-ORG", "U-ORG"}, want: []string{"O", "B-ORGANIZATION", "I-ORGANIZATION", "I-ORGANIZATION", "B-ORGANIZATION"}},
		"types without a scheme":             {task: "pii", kind: Token, labels: []string{"O", "us ssn", "PASSWORD"}, want: []string{"O", "I-US_SSN", "I-PASSWORD"}},
		"tags without an outside":            {task: "pii", kind: Token, labels: []string{"B-PERSON", "I-PERSON"}, bad: "have no O"},
		"tags without names":                 {task: "pii", kind: Token, labels: []string{"O", "LABEL_1"}, bad: "set labels"},
	} {
		t.Run(name, func(t *testing.T) {
			task := &Task{Name: c.task, Kind: c.kind}
			err := meaningOf(task, c.labels, c.renames, c.positive)
			if c.bad != "" {
				if err == nil || !strings.Contains(err.Error(), c.bad) || !errors.Is(err, ErrLabels) {
					t.Errorf("error %v, want one with %q", err, c.bad)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(c.want, task.Labels); d != "" || task.Positive != c.found {
				t.Errorf("positive %q, want %q; labels (-want +got):\n%s", task.Positive, c.found, d)
			}
		})
	}
}

func FuzzMapping(f *testing.F) {
	f.Add([]byte(`{"label_to_id": {"a": 0, "b": "1"}, "id_to_label": {"0": "a", "1": "b"}}`))
	f.Add([]byte(`{"idx_to_category": ["LABEL_0", "LABEL_1"], "category_to_idx": null}`))
	f.Add([]byte(`{"0": "x", "1": "y"}`))
	f.Add([]byte(`{"id2label": {"0": "a", "2": "b"}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		sources, err := readMappingFile("m.json", data)
		if err != nil {
			if !errors.Is(err, ErrLabels) {
				t.Errorf("%v is no ErrLabels", err)
			}
			return
		}
		labels, err := mergeLabels(sources)
		if err != nil {
			return
		}
		if len(labels) == 0 || len(labels) > maxLabels {
			t.Errorf("%d labels", len(labels))
		}
		for _, s := range sources {
			if len(s.labels) != len(labels) {
				t.Errorf("sources of %d and %d labels agree", len(s.labels), len(labels))
			}
		}
		for _, kind := range []Kind{Sequence, Token, Pair} {
			for _, name := range []string{taskDomain, taskJailbreak, taskComplexity, taskFactCheck, taskPII, taskGrounding, "x"} {
				task := &Task{Name: name, Kind: kind}
				if err := meaningOf(task, labels, nil, ""); err == nil && len(task.Labels) != len(labels) {
					t.Errorf("%d labels became %d", len(labels), len(task.Labels))
				}
			}
		}
	})
}
