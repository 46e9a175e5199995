// Package consolecheck drives the console of a running demo in a headless Chromium. It is a
// separate module, so that the product does not depend on browser automation. `make consolecheck`
// runs it.
package consolecheck
