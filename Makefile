# CI runs .ci/run; `make check` runs the same steps except setup. `make` prints each target's help.

GO ?= go
PREFIX ?= /usr/local

.DEFAULT_GOAL := help
.PHONY: help build image install quic test race lint vet tidy check house fuzz sim interop bench bench-quick bench-conns \
	bench-profile microbench golden rfcs lab lab-mutants playground web web-test cover man clean FORCE

help: ## print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-13s %s\n", $$1, $$2}' Makefile

build: ## build bin/node
	$(GO) build -trimpath -o bin/node ./cmd/node

image: ## build the container image with podman, buildah or docker; IMAGE=NAME:TAG
	GOOS=linux CGO_ENABLED=0 $(GO) build -trimpath -o bin/image/node ./cmd/node
	mkdir -p bin/image/run/tidepool
	@set -e; tool=$$(command -v podman || command -v buildah || command -v docker) || tool=; \
	[ -n "$$tool" ] || { echo "make image needs podman, buildah or docker" >&2; exit 1; }; \
	tag=$$(bin/image/node version | sed -n '1s/^node \([^ ]*\).*/\1/p' | tr + -); \
	[ "$$tag" != unknown ] || tag=latest; \
	BUILDAH_FORMAT=docker "$$tool" build -t "$(or $(IMAGE),tidepool:$$tag)" -f packaging/Containerfile bin/image

quic: ## build bin/node-quic, which runs QUIC for `node lab run --real`
	cd quic && $(GO) build -trimpath -o ../bin/node-quic .

install: ## install the program as tidepool, its manual and its systemd unit: PREFIX, DESTDIR
	$(GO) build -trimpath -o bin/tidepool ./cmd/node
	rm -rf bin/man && bin/tidepool man bin/man
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/share/man/man1 \
		$(DESTDIR)$(PREFIX)/lib/systemd/system
	install -m 755 bin/tidepool $(DESTDIR)$(PREFIX)/bin/tidepool
	install -m 644 bin/man/tidepool*.1 $(DESTDIR)$(PREFIX)/share/man/man1
	sed 's|/usr/bin/tidepool|$(PREFIX)/bin/tidepool|' packaging/tidepool@.service \
		> $(DESTDIR)$(PREFIX)/lib/systemd/system/tidepool@.service

test: ## run every test (the README's command)
	$(GO) test ./...

race: ## run every test under the race detector (needs a C compiler)
	$(GO) test -race ./...

lint: ## run golangci-lint
	.ci/run lint

vet: ## vet and build for linux (amd64 and arm64), darwin (arm64) and windows (amd64)
	.ci/run vet

tidy: ## check the formatting, and that go.mod lists the modules in use
	.ci/run format modules

check: ## run what CI runs: all steps of .ci/run except setup
	.ci/run format modules house rfcs vet lint race fuzz sim lab web test

house: ## print the measures of the tree and their limits
	$(GO) run ./internal/ci/house

fuzz: ## run every fuzzer for FUZZTIME each (default 30s)
	FUZZTIME=$(or $(FUZZTIME),30s) .ci/run fuzz

sim: ## run two stacks on links with every fault; SEEDS=10000 stops after 10,000 runs
	$(GO) test -count 1 -v -timeout 0 -run '^TestChaos$$' ./internal/sim/chaos -seeds $(or $(SEEDS),-1)

golden: ## rewrite the golden files of the tests; read the diff before you commit it
	$(GO) test $$(grep -rl 'flag.Bool("update"' --include='*_test.go' . | xargs -n1 dirname | sort -u) -update

rfcs: ## write docs/rfcs.md: each section of an RFC, its code and its tests; fails if a test is missing
	$(GO) run ./internal/ci/house -rfcs

lab: ## write docs/lab.md: the laboratory's experiments and their expectations
	$(GO) run ./cmd/node lab check --markdown > docs/lab.md

lab-mutants: ## write docs/lab-mutants.md: planted faults and the checks that detect them (half an hour)
	$(GO) run ./judge/mutants > docs/lab-mutants.md

web: ## build the page into internal/api/dist (needs npm); commit the result
	cd web && npm ci --no-audit --no-fund --loglevel=error && npm run --silent check && npm run --silent build

playground: ## build the page that runs networks in the browser into bin/playground
	$(GO) run ./playground/build

web-test: ## test the page in headless Chromium; T="slider|cut" selects by name (many tests need earlier ones)
	@[ -d web/node_modules/playwright-core ] || (cd web && npm ci --no-audit --no-fund --loglevel=error)
	@node web/test/run.mjs '$(T)'

interop: ## test against Linux, curl, nmap, hping3, scapy, BIRD, FRR and others (as root); MB=10 transfers less
	cd test/interop && TIDEPOOL_LONG=1 $(GO) test -count=1 -timeout 60m -table -mb $(or $(MB),100)

bench: bin/bench ## compare with the peers and write docs/performance.md; BENCH=loss2 selects cases by name
	@bin/bench all -root . -only '$(BENCH)'

bench-quick: bin/bench ## compare with the peers for a minute; print a line of JSON for each case
	@bin/bench quick

bench-conns: bin/bench ## open 100,000 connections to one node; print its memory and goroutines
	@bin/bench conns -root .

bench-profile: bin/bench ## write flame graphs of both ends of a stream and of a router to bin/
	@bin/bench profile -out bin

bin/bench: FORCE
	@cd bench && $(GO) build -o ../bin/bench .

microbench: ## run every Go benchmark once; BENCH=Sum selects by name
	$(GO) test -run '^$$' -bench '$(or $(BENCH),.)' -benchmem ./...

cover: ## print the total coverage by the tests of all packages
	$(GO) test -coverpkg=./... -coverprofile=cover.prof ./... >/dev/null
	$(GO) tool cover -func=cover.prof | tail -1

man: ## write the manual pages to bin/man, from the commands' help
	$(GO) run ./cmd/node man bin/man

clean: ## remove the files that these targets make
	rm -rf bin cover.prof
