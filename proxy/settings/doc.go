// Package settings holds the sections `server`, `limits` and `prompts` of the configuration: their
// fields, defaults and checks. The packages that use a section define what its values do. Values do
// not change after they are read, so they are safe for concurrent use.
package settings
