// Package models holds the model bundles of the binary, so that it classifies and checks without a
// download. It is a file system and nothing else: package classify/bundle reads it, and the
// MODEL_CARD.md of each says what the models are, what they were made from and how well they do.
package models

import "embed"

// FS has the bundle of the signals in the folder "default", that of texts in other languages than
// English, which stands beside it, in "foreign", and that of the guard in "grounding". Files that
// tests read are not in it.
//
//go:embed default grounding foreign
var FS embed.FS
