// Command real runs the product in front of real model servers and prints what is different from
// talking to them directly: vLLM's build for CPUs with a tiny model of random weights, and
// llama.cpp's server with Gemma 3 270M. bench/real/install.sh installs both; see README.md beside
// this file.
//
// Usage: go run ./bench/real [-cache DIR] [-only SECTION,...] [-out FILE]
//
// It exits with 1 when a difference is not explained or a promise does not hold. Every process that
// it starts ends with it.
package main
