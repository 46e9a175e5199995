// Package bundle reads models: folders of files that together turn text into signals. It interprets
// the files but computes nothing, and needs no ONNX Runtime.
//
// # Bundles
//
// A bundle is a folder with a manifest (bundle.yaml), one or more ONNX graphs and a tokenizer.json.
// The manifest is decoded strictly, and every file is checked against the size and SHA-256 in the
// manifest before it is used. See [Load].
//
// A bundle for a guard may contain a fusion, a file with the weights for combining the findings of
// its models:
//
//	fusion: {file: fusion.json, sha256: ..., bytes: 1234}
//
// A token task with a positive label judges answers by evidence, see [Task.Positive]:
//
//	tasks:
//	  - {name: grounding, kind: token, output: logits, labels: [supported, unsupported],
//	     positive: unsupported, template: passages, temperature: 1, threshold: 0.5,
//	     window: {tokens: 4096, stride: 3072, combine: mean}}
//
// # Hugging Face folders
//
// [Open] also accepts an unmodified folder of a published model, and derives a manifest from its
// contents:
//
//   - graphs: model.onnx (fp32), model_quantized.onnx, model_int8.onnx and model_uint8.onnx (int8),
//     model_sdpa_fp16.onnx and model_fp16.onnx (fp16), at the root, else in onnx/. The precision is
//     derived from the name. Graphs that need operators of one vendor (model_fa_fp16.onnx) are
//     never used. Two-dimensional Matryoshka models have a graph for each exit in onnx/layer-N/ and
//     list the exits in model_config.json.
//   - weights next to a graph (model.onnx.data, model.onnx_data): [Bundle.Graph] moves them inside.
//   - labels: id2label and label2id of config.json and the mapping files (label_mapping.json,
//     category_mapping.json, pii_type_mapping.json and similar) in either direction, with indices
//     as numbers or text. They must run from 0 and agree. Names like LABEL_0 are ignored if there
//     are real names, and are used for a model without names: as many as its graph has outputs,
//     else num_labels, else 2.
//   - the kind of model: the architectures of config.json, a pooling module (1_Pooling/config.json,
//     modules.json), else the outputs of the graph, read from the file itself.
//   - row length: the shortest of max_position_embeddings, model_max_length and max_seq_length, at
//     most 32768.
//   - sums: those of .signalbox.json, which `signalbox models pull` writes; without it files are
//     not verified.
//
// The labels of models with a task of signalbox are translated to its own: see [OpenOptions].
//
// A Bundle is immutable and safe for concurrent use if its file system is, except for
// [Bundle.Resolve].
package bundle
