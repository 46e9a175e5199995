package bundle

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// ErrLabels reports unusable labels: two files that disagree, indices with gaps, none at all, or a
// label whose meaning has to be configured.
var ErrLabels = errors.New("labels")

// maxLabels is the maximum number of labels of one task.
const maxLabels = 4096

// mappingFiles are the names under which published models keep their labels beside config.json.
//
//nolint:gochecknoglobals // constant table
var mappingFiles = []string{
	"label_mapping.json", "category_mapping.json", "jailbreak_type_mapping.json", "pii_type_mapping.json",
	"fact_check_mapping.json", "feedback_mapping.json", "complexity_mapping.json", "intent_mapping.json",
}

// The two directions of a mapping, by its key: label_to_idx, category_to_id, label2id;
// idx_to_label, id_to_category, id2label.
var (
	toIndexKey = regexp.MustCompile(`^[A-Za-z_]+(_to_|2)(id|idx|index)$`)
	toLabelKey = regexp.MustCompile(`^(id|idx|index)(_to_|2)[A-Za-z_]+$`)
	generic    = regexp.MustCompile(`^(?i:LABEL|CLASS)_[0-9]+$|^[0-9]{1,4}$`)
)

// labelSource is one source of the labels, in the order of the logits.
type labelSource struct {
	file, key string
	labels    []string
}

func (s *labelSource) String() string {
	if s.key == "" {
		return s.file
	}
	return s.file + ": " + s.key
}

// isGeneric reports whether the labels are the default names of tools.
func (s *labelSource) isGeneric() bool {
	return !slices.ContainsFunc(s.labels, func(l string) bool { return !generic.MatchString(l) })
}

// readMappings finds every mapping in a JSON object: all members whose name identifies them as one,
// or, if there is none, the object itself. Problems are *Error values.
func readMappings(file string, data []byte) ([]labelSource, error) {
	var members map[string]jsontext.Value
	if err := json.Unmarshal(data, &members); err != nil {
		return nil, &Error{File: file, Err: fmt.Errorf("%w: %w", ErrLabels, err)}
	}
	var out []labelSource
	for _, key := range slices.Sorted(maps.Keys(members)) {
		read := readToIndex
		switch {
		case toIndexKey.MatchString(key):
		case toLabelKey.MatchString(key):
			read = readToLabel
		default:
			continue
		}
		labels, err := read(members[key])
		if err != nil {
			return nil, &Error{File: file, Key: key, Err: fmt.Errorf("%w: %w", ErrLabels, err)}
		}
		if labels != nil {
			out = append(out, labelSource{file, key, labels})
		}
	}
	return out, nil
}

// readMappingFile is readMappings for a file that is nothing but a mapping, so that it must hold
// one.
func readMappingFile(file string, data []byte) ([]labelSource, error) {
	out, err := readMappings(file, data)
	if err != nil || len(out) > 0 {
		return out, err
	}
	labels, err := readToIndex(data)
	if err != nil {
		labels, err = readToLabel(data)
	}
	if err != nil || labels == nil {
		return nil, &Error{File: file, Err: fmt.Errorf("%w: no mapping between labels and indices", ErrLabels)}
	}
	return []labelSource{{file, "", labels}}, nil
}

// readToIndex reads {"label": index}; an index may be a number or its text. Null means none.
func readToIndex(data []byte) ([]string, error) {
	var byLabel map[string]jsontext.Value
	if err := json.Unmarshal(data, &byLabel); err != nil || byLabel == nil {
		return nil, err
	}
	byIndex := make(map[int]string, len(byLabel))
	for label, raw := range byLabel {
		text := string(raw)
		if raw.Kind() == '"' {
			if err := json.Unmarshal(raw, &text); err != nil {
				return nil, err
			}
		}
		if err := place(byIndex, text, label); err != nil {
			return nil, err
		}
	}
	return inOrder(byIndex)
}

// readToLabel reads {"index": "label"}, or a list of labels. Null means none.
func readToLabel(data []byte) ([]string, error) {
	if jsontext.Value(data).Kind() == '[' {
		var labels []string
		if err := json.Unmarshal(data, &labels); err != nil {
			return nil, err
		}
		byIndex := make(map[int]string, len(labels))
		for i, l := range labels {
			byIndex[i] = l
		}
		return inOrder(byIndex)
	}
	var byText map[string]string
	if err := json.Unmarshal(data, &byText); err != nil || byText == nil {
		return nil, err
	}
	byIndex := make(map[int]string, len(byText))
	for text, label := range byText {
		if err := place(byIndex, text, label); err != nil {
			return nil, err
		}
	}
	return inOrder(byIndex)
}

func place(byIndex map[int]string, text, label string) error {
	i, err := strconv.ParseUint(text, 10, 31)
	if err != nil {
		return fmt.Errorf("%q is no index", text)
	}
	if other, ok := byIndex[int(i)]; ok {
		return fmt.Errorf("index %d is %q and %q", i, min(label, other), max(label, other))
	}
	byIndex[int(i)] = label
	return nil
}

// inOrder lists labels by index, which must run from 0 without a gap.
func inOrder(byIndex map[int]string) ([]string, error) {
	if len(byIndex) == 0 || len(byIndex) > maxLabels {
		return nil, fmt.Errorf("%d labels", len(byIndex))
	}
	labels := make([]string, len(byIndex))
	for i := range labels {
		l, ok := byIndex[i]
		if !ok {
			return nil, fmt.Errorf("no label has index %d of %d", i, len(labels))
		}
		if l == "" || slices.Contains(labels[:i], l) {
			return nil, fmt.Errorf("label %d %q is empty or used twice", i, l)
		}
		labels[i] = l
	}
	return labels, nil
}

// mergeLabels returns the labels on which all sources agree. Real names take precedence over
// generic ones. It returns nil if there is no source.
func mergeLabels(sources []labelSource) ([]string, error) {
	var found *labelSource
	for i := range sources {
		s := &sources[i]
		if found == nil || found.isGeneric() && !s.isGeneric() && len(found.labels) == len(s.labels) {
			found = s
			continue
		}
		if s.isGeneric() && len(found.labels) == len(s.labels) {
			continue
		}
		if err := disagree(found, s); err != nil {
			return nil, err
		}
	}
	if found == nil {
		return nil, nil
	}
	return found.labels, nil
}

// disagree compares two sources, ignoring the case and the separators of their labels. Its error is
// about b and names a too.
func disagree(a, b *labelSource) error {
	bad := func(format string, args ...any) error {
		return &Error{File: b.file, Key: b.key, Err: fmt.Errorf("%w: %s", ErrLabels, fmt.Sprintf(format, args...))}
	}
	if len(a.labels) != len(b.labels) {
		return bad("%d here, %d in %s", len(b.labels), len(a.labels), a)
	}
	for i := range a.labels {
		if fold(a.labels[i]) != fold(b.labels[i]) {
			return bad("label %d is %q here and %q in %s", i, b.labels[i], a.labels[i], a)
		}
	}
	return nil
}

// fold makes spellings of one label equal: computer_science, Computer Science.
func fold(label string) string {
	return strings.Join(strings.FieldsFunc(strings.ToLower(label), func(r rune) bool {
		return r == ' ' || r == '_' || r == '-'
	}), " ")
}
