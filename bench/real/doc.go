// Command real runs the product in front of real model servers and prints the differences from
// direct access: vLLM's build for CPUs with a tiny model of random weights, and llama.cpp's server
// with Gemma 3 270M. bench/real/install.sh installs both; see README.md in this folder.
//
// Usage: go run ./bench/real [-cache DIR] [-only SECTION,...] [-out FILE]
//
// It exits with 1 if a difference is not explained or a required property does not hold. All
// processes that it starts end with it.
package main
