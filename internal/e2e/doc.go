// Package e2e tests the program as its users meet it: its commands, its documentation, its replicas
// and the machines that it starts on. Its tests run in the root of the project.
package e2e
