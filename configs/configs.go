// Package configs embeds the shipped configuration files and nothing else.
package configs

import "embed"

// FS holds every shipped *.yaml at its root.
//
//go:embed *.yaml
var FS embed.FS
