package config

import (
	"cmp"
	"encoding"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/agnivade/levenshtein"
	"go.yaml.in/yaml/v3"

	"signalbox/rules"
)

// decoder copies a YAML tree into Go structs and keeps every problem with its place. It differs
// from yaml.Unmarshal in three ways: it never stops at the first problem, it names the path and
// the nearest known key, and it resolves secrets, which may only be references.
type decoder struct {
	dir      string // relative paths resolve against it
	env      func(string) (string, bool)
	files    []string // that secrets are read from, those that cannot be read too
	problems []rules.Problem
	unset    bool // secrets may be missing
	secrets  map[*yaml.Node]bool
	missing  []string // paths of secrets that could not be read
}

func (d *decoder) report(n *yaml.Node, path, format string, args ...any) {
	if n.Kind == yaml.ScalarNode && holdsRef.MatchString(n.Value) && !d.secrets[n] {
		format += "; references such as ${NAME} are only supported for secrets"
	}
	d.problems = append(d.problems, rules.Problem{Line: n.Line, Col: n.Column, Path: path, Msg: fmt.Sprintf(format, args...)})
}

// unmarshaler is what a scalar type with a notation of its own implements, such as a duration.
type unmarshaler interface{ UnmarshalYAML(node *yaml.Node) error }

// decode fills v, an addressable value, from n. path names n in messages.
func (d *decoder) decode(n *yaml.Node, v reflect.Value, path string) {
	if n.Kind == yaml.AliasNode {
		d.report(n, path, "aliases are not supported here: write the value out")
		return
	}
	if isNull(n) {
		return
	}
	if v.Type() == reflect.TypeFor[yaml.Node]() {
		v.Set(reflect.ValueOf(*n))
		return
	}
	if u, ok := reflect.TypeAssert[unmarshaler](v.Addr()); ok {
		if err := u.UnmarshalYAML(n); err != nil {
			d.report(n, path, "%s", clean(err))
		}
		return
	}
	if u, ok := reflect.TypeAssert[encoding.TextUnmarshaler](v.Addr()); ok && n.Kind == yaml.ScalarNode {
		if err := u.UnmarshalText([]byte(n.Value)); err != nil {
			d.report(n, path, "%s", clean(err))
		}
		return
	}
	switch v.Kind() { //nolint:exhaustive // the kinds that options are made of; the rest falls through to the default
	case reflect.Struct:
		d.mapping(n, v, path)
	case reflect.Slice:
		d.sequence(n, v, path)
	case reflect.Pointer:
		p := reflect.New(v.Type().Elem())
		d.decode(n, p.Elem(), path)
		v.Set(p)
	case reflect.Map:
		d.table(n, v, path)
	case reflect.Interface:
		if err := n.Decode(v.Addr().Interface()); err != nil {
			d.report(n, path, "%s", clean(err))
		}
	default:
		d.scalar(n, v, path)
	}
}

// noMerge is said of a key <<, in rules too.
const noMerge = "YAML merge keys are not accepted here; write the keys out"

func (d *decoder) mapping(n *yaml.Node, v reflect.Value, path string) {
	if n.Kind != yaml.MappingNode {
		d.report(n, path, "found %s, expected a mapping with keys such as %s", describe(n), example(v.Type()))
		return
	}
	fields := fieldsOf(v.Type())
	seen := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, val := n.Content[i], n.Content[i+1]
		p := join(path, key.Value)
		if key.Kind != yaml.ScalarNode {
			d.report(key, path, "found %s as a key, expected a word", describe(key))
			continue
		}
		if line, dup := seen[key.Value]; dup {
			d.report(key, p, "this key is already set in line %d", line)
			continue
		}
		seen[key.Value] = key.Line
		if key.Tag == "!!merge" {
			d.report(key, path, noMerge)
			continue
		}
		f, ok := fields[key.Value]
		if !ok {
			d.report(key, p, "unknown key %q%s%s", key.Value, nearest(key.Value, fields), elsewhere(path, key.Value))
			continue
		}
		switch to := v.FieldByIndex(f.index); f.secret {
		case "true":
			d.secret(val, to, p)
		case "may":
			d.address(val, to, p)
		default:
			d.decode(val, to, p)
			d.noZero(val, to, &f, p)
			if f.path {
				to.SetString(d.locate(to.String()))
			}
		}
	}
}

// noZero reports a 0 that is written out where it is no value and would be taken for the default.
func (d *decoder) noZero(n *yaml.Node, v reflect.Value, f *field, path string) {
	if f.zero != "" && n.Tag == "!!int" && v.IsZero() {
		d.report(n, path, "%s %s", n.Value, f.zero)
	}
}

// locate resolves a relative path against the folder of the file; an empty one stays empty.
func (d *decoder) locate(path string) string {
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(d.dir, path)
}

// table fills a map whose keys are words of the user.
func (d *decoder) table(n *yaml.Node, v reflect.Value, path string) {
	if n.Kind != yaml.MappingNode {
		d.report(n, path, "found %s, expected a mapping", describe(n))
		return
	}
	v.Set(reflect.MakeMap(v.Type()))
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, val := n.Content[i], n.Content[i+1]
		p := join(path, key.Value)
		k := reflect.ValueOf(key.Value)
		switch {
		case key.Kind != yaml.ScalarNode:
			d.report(key, path, "found %s as a key, expected a word", describe(key))
		case key.Tag == "!!merge":
			d.report(key, path, noMerge)
		case v.MapIndex(k).IsValid():
			d.report(key, p, "this key is set twice")
		default:
			e := reflect.New(v.Type().Elem()).Elem()
			d.decode(val, e, p)
			v.SetMapIndex(k, e)
		}
	}
}

func (d *decoder) sequence(n *yaml.Node, v reflect.Value, path string) {
	if n.Kind == yaml.ScalarNode && n.Tag == "!!str" && v.Type().Elem().Kind() == reflect.String {
		one := reflect.MakeSlice(v.Type(), 1, 1) // a word where a list of words may stand, as in rules
		d.decode(n, one.Index(0), path)
		v.Set(one)
		return
	}
	if n.Kind != yaml.SequenceNode {
		hint := ""
		if n.Kind == yaml.MappingNode && v.Type().Elem().Kind() == reflect.Struct {
			hint = " of items that each have a name"
		}
		d.report(n, path, "found %s, expected a list%s", describe(n), hint)
		return
	}
	out := reflect.MakeSlice(v.Type(), len(n.Content), len(n.Content))
	for i, item := range n.Content {
		if isNull(item) {
			d.report(item, fmt.Sprintf("%s[%d]", path, i), "this list item is empty")
			continue
		}
		d.decode(item, out.Index(i), fmt.Sprintf("%s[%d]", path, i))
	}
	v.Set(out)
}

func (d *decoder) scalar(n *yaml.Node, v reflect.Value, path string) {
	want := "a number"
	switch {
	case v.Kind() == reflect.String:
		want = "text"
	case v.Kind() == reflect.Bool:
		want = "true or false"
	case v.CanInt() || v.CanUint():
		want = "a whole number"
	}
	if n.Kind != yaml.ScalarNode {
		d.report(n, path, "found %s, expected %s", describe(n), want)
		return
	}
	if v.Kind() == reflect.String {
		if n.Tag != "!!str" && n.Tag != "!!int" && n.Tag != "!!float" { // a model may be called 7 or 4.1
			d.report(n, path, "found %s, expected text: put it in quotes", describe(n))
			return
		}
		if envRef.MatchString(n.Value) {
			d.report(n, path, "found a reference, expected text")
			return
		}
		v.SetString(n.Value)
		return
	}
	// The YAML library would cut 1.5 to the whole number 1.
	fraction := (v.CanInt() || v.CanUint()) && n.Tag != "!!int"
	if err := n.Decode(v.Addr().Interface()); err != nil || fraction {
		d.report(n, path, "found %s, expected %s", describe(n), want)
	}
}

var (
	envRef   = regexp.MustCompile(`^\$\{([A-Za-z_][A-Za-z0-9_]*)\}$`)
	holdsRef = regexp.MustCompile(`\$\{[A-Za-z_][A-Za-z0-9_]*\}`)
)

// secret resolves a reference. The value itself is never part of a message.
func (d *decoder) secret(n *yaml.Node, v reflect.Value, path string) {
	if d.secrets == nil {
		d.secrets = map[*yaml.Node]bool{}
	}
	d.secrets[n] = true
	if n.Kind != yaml.ScalarNode || isNull(n) {
		d.report(n, path, "found %s, expected a reference such as ${NAME} or file:PATH", describe(n))
		return
	}
	value, problem := d.resolve(n.Value)
	if problem != "" {
		d.missing = append(d.missing, path)
	}
	switch {
	case problem == "":
	case d.unset && isReference(n.Value):
		d.report(n, path, "%s; the rest was checked as if it were set", problem)
		d.problems[len(d.problems)-1].Warning = true
		value = placeholder
	default:
		d.report(n, path, "%s", problem)
		return
	}
	v.SetString(value)
}

// placeholder stands for a secret that may be missing: long enough for every one, and a URL of
// none.
const placeholder = "a-secret-that-was-not-set-when-the-file-was-checked"

func isReference(s string) bool { return envRef.MatchString(s) || strings.HasPrefix(s, "file:") }

// resolve reads what a reference points to, or says why it cannot.
func (d *decoder) resolve(ref string) (value, problem string) {
	if m := envRef.FindStringSubmatch(ref); m != nil {
		got, ok := d.env(m[1])
		if !ok || got == "" {
			return "", "the environment variable " + m[1] + " is not set"
		}
		return got, ""
	}
	file, ok := strings.CutPrefix(ref, "file:")
	if !ok {
		return "", "a secret must be a reference such as ${NAME} or file:PATH, not the value itself"
	}
	file = d.locate(cmp.Or(file, "."))
	d.files = append(d.files, file)
	b, err := os.ReadFile(file) //nolint:gosec // the operator's own file names the path
	if err != nil {
		return "", clean(err)
	}
	if value = strings.TrimSpace(string(b)); value == "" {
		return "", "the file with the secret is empty"
	}
	return value, ""
}

// address reads a URL, or a reference to one. One with a password must be a reference.
func (d *decoder) address(n *yaml.Node, v reflect.Value, path string) {
	if n.Kind == yaml.ScalarNode && isReference(n.Value) {
		d.secret(n, v, path)
		if v.String() == placeholder {
			v.SetString("")
		}
		return
	}
	d.scalar(n, v, path)
	if u, err := url.Parse(v.String()); err == nil && u.User != nil {
		v.SetString("")
		d.report(n, path, "the URL contains a user or a password: replace the whole URL with a reference such as ${REDIS_URL} or file:PATH")
	}
}

type field struct {
	index  []int
	secret string // how the tag says that it is one: "true", or "may" for a URL that may hold one
	path   bool   // of a file
	zero   string // what is said of a 0 that is written out; empty where it is a value
}

// fieldsOf maps the YAML keys of a struct to its fields, embedded structs included.
func fieldsOf(t reflect.Type) map[string]field {
	out := map[string]field{}
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		if name == "" || name == "-" || !f.IsExported() {
			continue
		}
		out[name] = field{
			index: f.Index, secret: f.Tag.Get("secret"), path: f.Tag.Get("path") == "true", zero: f.Tag.Get("zero"),
		}
	}
	return out
}

// nearest suggests the known key that a word is a slip of, or lists the known keys.
func nearest(word string, known map[string]field) string {
	return cmp.Or(meant(", ", word, slices.Collect(maps.Keys(known))), ", expected one of "+keys(known))
}

// elsewhere says where else there is what an unknown key of a mapping at path asks for; mostly
// nothing.
func elsewhere(path, key string) string {
	if strings.HasPrefix(path, "auth.keys[") && (key == "ttl" || key == "expires_at") {
		return "; only virtual keys expire: see auth.virtual (docs/keys.md)"
	}
	return ""
}

// meant asks, behind sep, whether the known word was meant that a word is a slip of; empty without
// one.
func meant(sep, word string, known []string) string {
	if best := Nearest(word, known); best != "" {
		return fmt.Sprintf("%sdid you mean %q?", sep, best)
	}
	return ""
}

// Nearest returns the known word that a word is a slip of, the one with the least edit distance, two
// letters that changed places being one edit; empty when none is close enough.
func Nearest(word string, known []string) string {
	best, dist := "", len(word)/3+2
	for _, k := range known {
		if n := edits(word, k); n < dist || n == dist && best != "" && k < best {
			best, dist = k, n
		}
	}
	return best
}

// edits is the edit distance of two words, 1 where two letters beside each other changed places.
func edits(a, b string) int {
	i := 0
	for i < min(len(a), len(b)) && a[i] == b[i] {
		i++
	}
	if i+1 < min(len(a), len(b)) && a[i] == b[i+1] && a[i+1] == b[i] && a[i+2:] == b[i+2:] {
		return 1
	}
	return levenshtein.ComputeDistance(a, b)
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!null" }

// describe says in a reader's words what a node is.
func describe(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	case yaml.ScalarNode:
		if isNull(n) {
			return "nothing"
		}
		return strconv.Quote(n.Value)
	case yaml.AliasNode:
		return "an alias"
	case yaml.DocumentNode:
	}
	return "a document"
}

// clean drops the prefix that the YAML library puts before messages; the place is reported already.
func clean(err error) string {
	if te, ok := errors.AsType[*yaml.TypeError](err); ok && len(te.Errors) > 0 {
		return te.Errors[0]
	}
	return strings.TrimPrefix(err.Error(), "yaml: ")
}
