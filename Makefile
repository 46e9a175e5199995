# Targets: see docs/CONTRIBUTING.md. Everything a target needs beyond Go, a C compiler, make and
# npm (or curl) it fetches itself, verified, once.
SHELL := /bin/bash
.DEFAULT_GOAL := build

GO       ?= go
VERSION  ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
ORT_DIR  ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/signalbox/onnxruntime/1.30.0
FUZZTIME ?= 30s

# default.pgo is for the program alone: with it all packages are compiled once more.
export GOFLAGS := -mod=readonly -pgo=off

# ALL are the packages of the modules in go.work: the program, bench and training/features. Each of
# tools is a module apart, with versions of its own, and -modfile is not for workspaces.
ALL  := ./... ./bench/... ./training/features/...
TOOL := GOWORK=off $(GO) tool -modfile=tools/go.mod
LINT := "$$($(TOOL) -n golangci-lint)"

# ROOMY lets the Go compiler, the linker and the tests collect garbage less often, up to a size: a
# fifth less processor time to compile. It is not for what runs afterwards.
ROOMY := GOGC=$${GOGC:-400} GOMEMLIMIT=$${GOMEMLIMIT:-2GiB}

.PHONY: build run pgo module test test-fast test-openai test-programs test-timed release check bench examples fuzz vuln onnxruntime deploycheck otelcheck consolecheck fmt lint vet test-nocgo generate generated licences h2spec format tidy clean help

## help: what the targets do
help:
	@sed -n 's/^## //p' $(firstword $(MAKEFILE_LIST))

## build: everything needed, then bin/signalbox
build: onnxruntime
	@test -e bin/signalbox || echo "The first build compiles everything, which takes one to three minutes."
	$(ROOMY) $(GO) build -pgo=auto -trimpath -ldflags "-X main.version=$(VERSION)" -o bin/signalbox .

## run: build, then the demo with embedded models and simulated backends
run: build
	bin/signalbox demo

# PACKAGES are tested at a time, one more than there are processors, for tests also wait. LONGEST
# begin first, so that none of them is left for the end.
PACKAGES ?= $(shell expr $$(getconf _NPROCESSORS_ONLN) + 1)
LONGEST  := ./internal/app ./internal/e2e ./proxy ./stream/check ./classify/pii

# TESTED lists the packages that have tests. go test would compile the others too, one of them the
# example of the official Go client, and would begin no later package until that is done.
TESTED   := $(GO) list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}' $(ALL)

# WAIT ends what hangs. It is no bound for what is slow: beside eight busy loops on two cores
# internal/app took 28 minutes once, and more than 30 once.
WAIT     := 90m

# RACE is how tests are compiled. Some 90 test binaries are linked. What debuggers read is left out,
# a tenth of the compiler's time and a third of the linker's; stack traces and race reports do not
# need it. No package may be built without the race detector to save time: the linker takes one copy
# of a generic function, and with that of sync.Map from such a package every use of it is reported.
RACE     := -race -gcflags=all=-dwarf=false -ldflags=-s

## test: everything needed, then the Go tests; go vet is a step of its own of check
test: onnxruntime
	@$(ROOMY) $(GO) run $(RACE) ./tools/progress/main.go $(RACE) -shuffle=on -vet=off \
	  -timeout $(WAIT) -p $(PACKAGES) $(LONGEST) $$($(TESTED))

## test-programs: scripts, replicas and kills, of a program that has the race detector
test-programs: onnxruntime
	$(ROOMY) GORACE=atexit_sleep_ms=0 SIGNALBOX_TEST_BUILD="-race -pgo=off" $(GO) test -count=1 -timeout 30m -run "TestScripts|TestNo.*IsLost" ./internal/e2e

## test-openai: the tests with the official Go client; a step of its own of check
# The client takes two minutes of a processor to compile with the race detector, about as long as
# all of ours: test has the other Go client, and this goes without the detector.
test-openai: onnxruntime
	$(ROOMY) $(GO) test -tags openai -count=1 -shuffle=on -ldflags=-w -timeout 30m -run Official ./proxy ./internal/simulator

## test-timed: the tests that judge time on the wall, on a machine with nothing else to do
test-timed: onnxruntime
	@GO="$(GO)" tools/test-timed.sh

## test-fast: in under a minute, without ONNX Runtime, cgo, Redis and the race detector
test-fast:
	CGO_ENABLED=0 $(GO) test -short $$($(GO) list ./... ./training/features/... | grep -vE '^signalbox/internal/(app|e2e)$$')

## check: what CI runs
check: fmt lint vet test test-openai test-nocgo generated licences h2spec deploycheck test-programs

onnxruntime:
	@tools/fetch-onnxruntime.sh "$(ORT_DIR)"

fmt:
	@out=$$($(LINT) fmt --diff 2>&1) || { echo "$$out"; echo "run: make format"; exit 1; }

## format: rewrite the files that fmt complains about
format:
	$(LINT) fmt

lint:
	$(LINT) run $(ALL)

vet:
	$(GO) vet -tags openai $(ALL)

test-nocgo:
	CGO_ENABLED=0 $(GO) test -ldflags=-w -timeout 30m $(ALL)

## tidy: go.mod and go.sum of the program, and after them those of what goes with it
tidy:
	@for m in . bench training/features; do (cd $$m && GOWORK=off $(GO) mod tidy) || exit; done

## generate: rewrite generated files (config reference, its schema, OpenAPI)
generate:
	$(GO) generate ./...

generated: generate
	@git diff --exit-code -- docs/config.md configs/signalbox.schema.json internal/app/openapi.json || { echo "generated files changed: commit them"; exit 1; }

licences:
	@cd tools && GOWORK=off GOFLAGS=-mod=mod $(GO) run ./licences ..

## deploycheck: chart, alert rules and dashboard of deploy/, with the tools of those who read them
deploycheck:
	@cd tools/deploycheck && GOWORK=off $(GO) run . ../..

## otelcheck: what a real OpenTelemetry Collector, built from its modules, gets to see of requests
otelcheck: build
	@cd tools/otelcheck && GOWORK=off $(GO) run . "$(CURDIR)/bin/signalbox"

## consolecheck: the console in a headless Chromium (apt-get install chromium); without one it is skipped, in CI it fails
consolecheck: build
	@cd tools/consolecheck && GOWORK=off SIGNALBOX_BIN="$(CURDIR)/bin/signalbox" $(GO) test -count=1 -v .

## h2spec: how the main listener speaks HTTP/2, compared with the list in docs/security.md
h2spec: build
	@cd tools && GOWORK=off GOFLAGS=-mod=mod $(GO) run ./h2spec ../bin/signalbox

## pgo: profile the program under load, for the compiler (default.pgo); before a release
pgo:
	GO="$(GO)" tools/pgo.sh

## module: give the module an importable path, as in make module MODULE=example.org/signalbox
module:
	GO="$(GO)" tools/module.sh "$(MODULE)"

## bench: the benchmarks of the decision path, the rules and the proxy
bench: onnxruntime
	$(GO) test -run '^$$' -bench . -benchmem $(ALL)

## release: archive, SBOM, checksums and notes in dist/, for VERSION
release: onnxruntime
	GO="$(GO)" tools/release.sh "$(VERSION)" "$(ORT_DIR)"

## examples: the official SDKs, and other clients that people use, against the demo
examples: build
	examples/run.sh

## fuzz: every fuzz target for FUZZTIME, of which no input takes more than a second to be made smaller
fuzz: onnxruntime
	@set -e; for p in $$($(GO) list ./...); do \
	  for f in $$($(GO) test -list '^Fuzz' $$p | grep '^Fuzz' || true); do \
	    echo "== $$p $$f"; $(GO) test -run '^$$' -fuzz "^$$f$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 1s $$p; done; done

## vuln: known vulnerabilities in dependencies
vuln:
	@"$$($(TOOL) -n govulncheck)" $(ALL) || { \
	  rc=$$?; [ $$rc -eq 3 ] && exit 3; echo "govulncheck could not finish (rc $$rc); is its database reachable?"; }

clean:
	rm -rf bin dist
