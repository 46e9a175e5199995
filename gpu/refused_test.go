package gpu

import (
	"errors"
	"testing"
)

func TestARefusalSaysWhatToDo(t *testing.T) {
	t.Parallel()
	for said, want := range map[string]string{
		"Error creating C session: /ort/core/graph/model_load_utils.h:46 void f(const std::string&, int) ONNX Runtime only " +
			"*guarantees* support for models stamped with official released onnx opset versions. Opset 99 is under " +
			"development and " +
			"support for this is limited. Current official support for domain ai.onnx is till " +
			"opset 26.": "the graph is of opset 99 of " +
			"ai.onnx, this ONNX Runtime knows those up to 26: export it with an older opset (--opset of optimum-cli), or " +
			"take a newer " +
			"ONNX Runtime",
		"Error creating C session: /ort/core/graph/model.cc:202 f(int) Unsupported model IR version: 99, max supported " +
			"IR version: 13": "the " +
			"graph is of IR version 99, this ONNX Runtime knows those up to 13: export it with an older version of onnx, " +
			"or take a newer " +
			"ONNX Runtime",
		"Error creating C session: Fatal error: com.ck:Squeeze(-1) is not a registered " +
			"function/op": "the graph has the operator " +
			"com.ck:Squeeze, which this ONNX Runtime does not have: take a graph that was exported without it",
		"Error creating C session: Could not find an implementation for ConvInteger(10) node with " +
			"name 'c'": "this ONNX Runtime has no " +
			"ConvInteger for the numbers of the graph: take a graph of another precision",
		"Error creating C session: [ONNXRuntimeError] : 1 : FAIL : it is\nbroken": "it is broken",
	} {
		if got := refused(errors.New(said)); got != want {
			t.Errorf("%s\nis told as %s\nwant %s", said, got, want)
		}
	}
}
