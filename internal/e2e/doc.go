// Package e2e has end-to-end tests of the program: its commands, its documentation, its replicas
// and the environments that it starts in. Its tests run in the root of the project.
package e2e
