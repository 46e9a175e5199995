// Package models holds the model bundles of the binary, so that it classifies and checks without a
// download. It is a file system and nothing else: package classify/bundle reads it, and the
// MODEL_CARD.md of each says what the models are, what they were made from and how well they do.
package models

import (
	"embed"
	"io/fs"
)

// FS has the bundle of the signals in the folder "default", that of texts in other languages than
// English, which stands beside it, in "foreign", and that of the guard in "grounding". Files that
// tests read are not in it.
//
//nolint:gochecknoglobals // the binary's files
var FS fs.ReadFileFS = bundles{files}

//go:embed default foreign grounding/bundle.yaml grounding/model_int8.onnx grounding/fusion.json
var files embed.FS

// bundles has the tokenizer that two bundles share once; on disk it is a symbolic link, which the
// compiler does not embed.
type bundles struct{ embed.FS }

func shared(name string) string {
	if name == "grounding/tokenizer.json" {
		return "default/tokenizer.json"
	}
	return name
}

// Open opens a file.
func (b bundles) Open(name string) (fs.File, error) {
	return b.FS.Open(shared(name)) //nolint:wrapcheck // a file system's own error
}

// ReadFile returns what is in a file.
func (b bundles) ReadFile(name string) ([]byte, error) {
	return b.FS.ReadFile(shared(name)) //nolint:wrapcheck // a file system's own error
}
