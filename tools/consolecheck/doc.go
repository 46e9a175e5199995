// Package consolecheck drives the console of a running demo in a headless Chromium. It is a module
// of its own, so that the product needs none of what drives a browser. `make consolecheck` runs it.
package consolecheck
