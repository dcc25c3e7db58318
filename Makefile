# make help lists the targets. All need nothing but Go and git: the tools and
# upstream's programs are built from the Go module proxy, at pinned versions.
.DEFAULT_GOAL := build
SHELL := bash

# PKG narrows test, lint and bench: make test PKG=./disk/...
PKG ?= ./...
GO ?= go

LINT = $(GO) tool -modfile=internal/tools/golangci-lint.mod golangci-lint
VERSION ?= $(shell git describe --tags --dirty 2>/dev/null || echo devel-$$(git rev-parse --short HEAD 2>/dev/null))
LDFLAGS = -s -w -X github.com/etcdkit/etcdkit/internal/version.stamped=$(VERSION)

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: build
build: ## build bin/etcdkit, one static binary
	CGO_ENABLED=0 $(GO) build -trimpath -buildvcs=false -ldflags='$(LDFLAGS)' -o bin/etcdkit ./cmd/etcdkit

.PHONY: demo
demo: build ## run the main job against a throwaway cluster and S3 server
	./demo/run

.PHONY: reference
reference: ## build upstream's programs, which tests compare with
	@$(GO) run ./internal/testing/reference/build >/dev/null

.PHONY: test
test: reference ## run all tests
	$(GO) test -timeout 15m $(PKG)

.PHONY: test-full
test-full: reference ## run the long tests too, and those that need other programs
	$(GO) test -timeout 60m -tags full $(PKG)

.PHONY: test-race
test-race: reference ## run all tests under the race detector (needs a C compiler)
	CGO_ENABLED=1 $(GO) test -timeout 30m -race $(PKG)

# Packages in which goroutines share data, for the race step of CI. The parity
# tests are left out: there it is other processes that work.
SHARING = ./disk/... ./health/... ./secrets/... ./snapshot/... $(shell $(GO) list ./internal/... | grep -v /internal/testing/parity)

.PHONY: test-race-sharing
test-race-sharing: ## run test-race for the packages in which goroutines share data
	$(MAKE) test-race PKG="$(SHARING)"

# RUNS is how often test-stress runs the tests.
RUNS ?= 5

.PHONY: test-stress
test-stress: reference ## run all tests RUNS times beside a load on processors and disk (takes hours)
	$(GO) build -o bin/stress ./internal/testing/stress
	bin/stress -runs $(RUNS) -cpu 8 -within 2h -- $(GO) test -count=1 -timeout 60m $(PKG)

.PHONY: bench
bench: build reference ## measure, side by side with upstream's programs
	$(GO) test -timeout 60m -tags bench -run '^$$' -bench . $(PKG)

.PHONY: lint
lint: ## run the linters
	$(LINT) run --allow-parallel-runners $(PKG)

.PHONY: fmt
fmt: ## format the code
	$(LINT) fmt

.PHONY: fmt-check
fmt-check: ## show what make fmt would change, and fail then
	$(LINT) fmt --diff

.PHONY: gen
gen: ## write the generated docs and completions anew
	$(GO) run ./internal/gen

.PHONY: gen-kube
gen-kube: ## write the table of Kubernetes' resources anew (downloads k8s.io/kubernetes)
	cd internal/kube/gen && $(GO) run . ../resources_generated.go

.PHONY: gen-check
gen-check: ## fail where generated docs and completions are out of date
	$(GO) run ./internal/gen -check

.PHONY: cross
cross: ## vet for the other systems that releases are built for
	GOOS=darwin CGO_ENABLED=0 $(GO) vet ./...
	GOOS=windows CGO_ENABLED=0 $(GO) vet ./...
	GOOS=linux GOARCH=s390x CGO_ENABLED=0 $(GO) build -trimpath -o /dev/null ./cmd/etcdkit

.PHONY: vuln
vuln: ## look for known vulnerabilities in what the program uses
	internal/tools/vuln

.PHONY: check
check: lint fmt-check gen-check test ## what a change must pass

.PHONY: clean
clean: ## remove what was built here
	rm -rf bin dist

.PHONY: release-check
release-check: ## build a release without publishing it, and try it (takes long)
	internal/tools/release-check

.PHONY: release-files
release-files: ## write what a release holds beside the program
	mkdir -p .release
	$(GO) run ./internal/gen/notices >.release/THIRD_PARTY_NOTICES.md
	$(GO) run ./cmd/etcdkit config example >.release/config.yaml
