// Package bundle reads models: folders of files that together turn text into signals. It knows what
// the files say, not what a model computes, and it needs no ONNX Runtime.
//
// # Bundles
//
// A bundle is a folder with a manifest (bundle.yaml), one or more ONNX graphs and a tokenizer.json.
// The manifest is decoded strictly, and every file is checked against the size and SHA-256 that the
// manifest gives before anyone reads it. See [Load].
//
// A bundle for a guard may bring a fusion, a file that says how what its models find is weighed:
//
//	fusion: {file: fusion.json, sha256: ..., bytes: 1234}
//
// A token task with a positive label judges answers by evidence, see [Task.Positive]:
//
//	tasks:
//	  - {name: grounding, kind: token, output: logits, labels: [supported, unsupported], positive: unsupported,
//	     template: passages, temperature: 1, threshold: 0.5, window: {tokens: 4096, stride: 3072, combine: mean}}
//
// # Hugging Face folders
//
// [Open] also takes a folder as published models have it, without a change to it, and makes a
// manifest from what lies there:
//
//   - graphs: model.onnx (fp32), model_quantized.onnx, model_int8.onnx and model_uint8.onnx (int8),
//     model_sdpa_fp16.onnx and model_fp16.onnx (fp16), at the root, else in onnx/. The precision is told
//     by the name. Graphs that need operators of one vendor (model_fa_fp16.onnx) are never used.
//     Two-dimensional Matryoshka models keep a graph for each exit in onnx/layer-N/ and list the exits in
//     model_config.json.
//   - weights beside a graph (model.onnx.data, model.onnx_data): [Bundle.Graph] puts them inside.
//   - labels: id2label and label2id of config.json and the mapping files (label_mapping.json,
//     category_mapping.json, pii_type_mapping.json and their kin) in either direction, with indices as
//     numbers or text. They must run from 0 and agree; LABEL_0 and the like count for nothing
//     beside real names, and are what a model has that names none: as many as its graph has outputs,
//     else num_labels, else 2.
//   - what it computes: the architectures of config.json, a pooling module (1_Pooling/config.json,
//     modules.json), else the outputs of the graph, read from the file itself.
//   - rows: the shortest of max_position_embeddings, model_max_length and max_seq_length, at most
//     32768.
//   - sums: those of .signalbox.json, which `signalbox models pull` writes; a folder without it has
//     none, and its files are taken as they are.
//
// The labels of models with a task of signalbox are translated to its own: see [OpenOptions].
//
// A Bundle is immutable and safe for concurrent use as long as its file system is, [Bundle.Resolve]
// aside.
package bundle
