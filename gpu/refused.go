package gpu

import (
	"fmt"
	"regexp"
	"strings"
)

// The words in which ONNX Runtime 1.30 refuses a graph that is sound, but not for it.
//
//nolint:gochecknoglobals // constant table
var refusals = []struct {
	said *regexp.Regexp
	tell string // format string for the groups
}{
	{
		regexp.MustCompile(`Opset (\d+) is under development.*domain (\S+) is till opset (\d+)`),
		"the graph is of opset %[1]s of %[2]s, this ONNX Runtime knows those up to %[3]s: " +
			"export it with an older opset (--opset of optimum-cli), or take a newer ONNX Runtime",
	},
	{
		regexp.MustCompile(`Unsupported model IR version: (\d+), max supported IR version: (\d+)`),
		"the graph is of IR version %[1]s, this ONNX Runtime knows those up to %[2]s: " +
			"export it with an older version of onnx, or take a newer ONNX Runtime",
	},
	{
		regexp.MustCompile(`(\S+)\(-?\d+\) is not a registered function/op`),
		"the graph has the operator %[1]s, which this ONNX Runtime does not have: take a graph that was exported without it",
	},
	{
		regexp.MustCompile(`Could not find an implementation for (\S+)\(\d+\)`),
		"this ONNX Runtime has no %[1]s for the numbers of the graph: take a graph of another precision",
	},
}

// refused returns why the library does not load a graph, and the remedy if one is known.
func refused(err error) string {
	said := err.Error()
	for _, r := range refusals {
		if found := r.said.FindStringSubmatch(said); found != nil {
			groups := make([]any, len(found)-1)
			for i := range groups {
				groups[i] = found[i+1]
			}
			return fmt.Sprintf(r.tell, groups...)
		}
	}
	return strings.TrimPrefix(brief(err), "Error creating C session: ")
}
