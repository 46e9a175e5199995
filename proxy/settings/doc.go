// Package settings holds the sections `server`, `limits` and `prompts` of the configuration: their
// fields, defaults and checks. What they mean is for the packages that take them. Values are plain:
// nothing here changes once it was read, so they are safe for concurrent use.
package settings
