// Package models holds the default model bundle, so that the binary classifies without a download.
// It is a file system and nothing else: package classify/bundle reads it, and default/MODEL_CARD.md
// says what the models are, what they were made from and how well they do.
package models

import "embed"

// FS has the default bundle in the folder "default". Files that tests read are not in it.
//
//go:embed default
var FS embed.FS
