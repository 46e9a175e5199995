// Package configs embeds the shipped configuration files, their JSON Schema, and nothing else.
package configs

import "embed"

// FS holds every shipped *.yaml at its root, and signalbox.schema.json, which `make generate`
// writes.
//
//go:embed *.yaml signalbox.schema.json
var FS embed.FS
