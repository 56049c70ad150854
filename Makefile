# make help lists the targets by tier. Everything that is built lies in bin/ and in $EGRET_CACHE (default /var/cache/egret).
# A target's comment "## TIER: TEXT" says what it does, and how long that takes on two cores.

GOLANGCI := github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0

export CGO_ENABLED := 0
# -v names each package as it is compiled, which is the heartbeat of a cold build.
FLAGS := -buildvcs=false -trimpath -v
STRIP := -s -w
# With another version programs are linked again, and nothing is compiled.
VERSION := $(shell hack/version)
REVISION := $(or $(shell git -c safe.directory='*' rev-parse HEAD 2>/dev/null),unknown)
# Seconds since 1970. Images and documents of a commit carry its time, so that two builds are equal.
COMMITTED := $(or $(shell git -c safe.directory='*' log -1 --format=%ct 2>/dev/null),0)
STAMP := $(STRIP) -X github.com/egret-net/egret/internal/version.described=$(VERSION)

CONTROLPLANE := $(wildcard sandbox/controlplane/*.go) sandbox/controlplane/go.mod sandbox/controlplane/go.sum
COREDNS      := $(wildcard sandbox/images/coredns/*)
METALLB      := sandbox/images/metallb/go.mod sandbox/images/metallb/go.sum

# Without these, kubectl version and the nodes would say v0.0.0.
K8S       := $(shell awk '$$1 == "k8s.io/kubernetes" {print $$2; exit}' sandbox/controlplane/go.mod)
K8S_PARTS := $(subst ., ,$(K8S:v%=%))
K8S_FLAGS := $(foreach p,k8s.io/component-base/version k8s.io/client-go/pkg/version,\
	-X $(p).gitVersion=$(K8S) -X $(p).gitMajor=$(word 1,$(K8S_PARTS)) -X $(p).gitMinor=$(word 2,$(K8S_PARTS)) \
	-X $(p).gitTreeState=archive -X $(p).gitCommit=unknown)

.PHONY: help
help:
	@hack/help $(MAKEFILE_LIST)

.PHONY: deps
deps: ## build: install the Debian packages that building and running need, if any is missing
	@hack/step 'packages of this machine' hack/deps

# The root folder is mostly waiting for the network: it is built beside the binaries.
.PHONY: build
build: deps ## build: build all binaries, the nodes' root folder and the images (9 to 14 min with empty caches)
	@$(MAKE) --no-print-directory -j2 images

.PHONY: images
images: root-folder binaries
	@hack/step 'container images' go run -trimpath ./hack/prepare images bin

.PHONY: root-folder
root-folder:
	@hack/step 'root folder of the nodes' go run -trimpath ./hack/prepare root

# One go build after the other, by order-only prerequisites: each uses all cores.
.PHONY: binaries
binaries: product bin/pause bin/egret-controlplane bin/agnhost bin/coredns bin/metallb.yaml

.PHONY: product
product:
	@mkdir -p bin
	@hack/step 'egret binaries' go build $(FLAGS) -ldflags '$(STAMP)' -o bin/ ./cmd/...

bin/pause: sandbox/images/pause/main.go | product
	@hack/step pause go build $(FLAGS) -ldflags '$(STRIP)' -o $@ ./sandbox/images/pause

bin/egret-controlplane: $(CONTROLPLANE) | bin/pause
	@hack/step 'Kubernetes $(K8S) (8 minutes when cold)' go build -C sandbox/controlplane $(FLAGS) -ldflags '$(STRIP) $(strip $(K8S_FLAGS))' -o $(CURDIR)/$@ .

bin/agnhost: sandbox/controlplane/go.mod sandbox/controlplane/go.sum | bin/egret-controlplane
	@hack/step 'Kubernetes test server' go build -C sandbox/controlplane $(FLAGS) -ldflags '$(STRIP)' -o $(CURDIR)/$@ k8s.io/kubernetes/test/images/agnhost

bin/coredns: $(COREDNS) | bin/agnhost
	@hack/step CoreDNS go build -C sandbox/images/coredns $(FLAGS) -ldflags '$(STRIP)' -o $(CURDIR)/$@ .

bin/metallb-controller: $(METALLB) | bin/coredns
	@hack/step 'MetalLB' go build -C sandbox/images/metallb $(FLAGS) -ldflags '$(STRIP)' -o $(CURDIR)/$@ go.universe.tf/metallb/controller

bin/metallb-speaker: $(METALLB) | bin/metallb-controller
	@hack/step "MetalLB's speaker" go build -C sandbox/images/metallb $(FLAGS) -ldflags '$(STRIP)' -o $(CURDIR)/$@ go.universe.tf/metallb/speaker

# What an installation of MetalLB applies, from the module that its programs are built from.
bin/metallb.yaml: $(METALLB) | bin/metallb-speaker
	@install -m 644 "$$(go list -C sandbox/images/metallb -m -f '{{.Dir}}' go.universe.tf/metallb)/config/manifests/metallb-native.yaml" $@

.PHONY: sandbox
sandbox: build ## try: bring up a cluster of three nodes on this machine (20 s)
	@bin/egret-sandbox up

.PHONY: demo
demo: build ## try: bring up a cluster and show EgressIPs with real packets, one on a network of its own; MODE=shared|local FAMILY=ipv4|ipv6|dual (1 min)
	@bin/egret-sandbox demo $(if $(MODE),--gateway-mode $(MODE)) $(if $(FAMILY),--ip-family $(FAMILY))

# The suite of the version that the sandbox runs, from the same module.
bin/e2e.test: sandbox/controlplane/go.mod sandbox/controlplane/go.sum | bin/agnhost
	@hack/step 'Kubernetes $(K8S) end-to-end suite (8 minutes when cold)' go test -C sandbox/controlplane -c -vet=off $(FLAGS) -ldflags '$(STRIP) $(strip $(K8S_FLAGS))' -o $(CURDIR)/$@ k8s.io/kubernetes/test/e2e

# A server that sends invalid TCP segments, for the spec about them.
bin/regression-issue-74839: sandbox/controlplane/go.mod sandbox/controlplane/go.sum | bin/agnhost
	@hack/step 'server of a spec' go build -C sandbox/controlplane $(FLAGS) -ldflags '$(STRIP)' -o $(CURDIR)/$@ k8s.io/kubernetes/test/images/regression-issue-74839

bin/ginkgo: sandbox/controlplane/go.mod sandbox/controlplane/go.sum | bin/agnhost
	@hack/step 'test runner' go build -C sandbox/controlplane $(FLAGS) -ldflags '$(STRIP)' -o $(CURDIR)/$@ github.com/onsi/ginkgo/v2/ginkgo

# docs/conformance.md has the result and what cannot run here.
.PHONY: test-conformance
test-conformance: build bin/e2e.test bin/ginkgo bin/regression-issue-74839 ## more: Kubernetes' own tests of sig-network (37 min after the build); CONFORMANCE='-focus Services -gateway-mode local' chooses
	go run -trimpath ./test/conformance $(CONFORMANCE)

# Lint, compiling for the race detector and the long tests of pure code use what the clusters leave of the processors.
# What passed there is remembered: unit does not run it again.
.PHONY: test
test: build race-deps ## check: build, lint, unit and e2e: what CI runs (65 min with empty caches)
	hack/beside $(MAKE) --no-print-directory lint unit-long unit-compile -- $(MAKE) --no-print-directory e2e
	$(MAKE) --no-print-directory unit

# SKIPS RUN COMMAND fails on tests that skip and are not on the list of hack/skips for this run. unit-long asks first
# about those that start clusters, for unit comes an hour later.
SKIPS := go run -trimpath ./hack/skips
RACE := env CGO_ENABLED=1 go test -json -race -trimpath -timeout 50m

# What CI says of a commit follows from the commit: property tests draw from a seed that is the commit's here, and from
# new ones in test-all, where what they find does not stop somebody else's change. RAPID_SEED=N repeats another's.
RAPID_SEED ?= $(shell hack/seed)

# Drawn stories, for which the race detector would be too slow.
STORIES := go test -trimpath -run '^TestNoWrongSource$$' ./test/simulate

.PHONY: unit
unit: export RAPID_SEED := $(RAPID_SEED)
unit: race-deps ## check: the tests that need no cluster, with the race detector; what passed is remembered
	@echo 'property tests draw from RAPID_SEED=$(RAPID_SEED)'
	$(SKIPS) unit $(RACE) ./... github.com/egret-net/egret/api/...
	$(STORIES)
	$(SKIPS) budget go test -json -trimpath -run '^TestBudget' ./internal/compile ./internal/controller

.PHONY: race-deps
race-deps:
	@hack/step 'packages of unit tests: race detector, promtool' hack/deps gcc libc6-dev prometheus

.PHONY: unit-long
unit-long: export RAPID_SEED := $(RAPID_SEED)
unit-long: race-deps
	@echo 'property tests draw from RAPID_SEED=$(RAPID_SEED)'
	$(SKIPS) unit go test -json -trimpath -run . ./test/e2e ./test/manifests
	$(SKIPS) unit-long $(RACE) ./internal/feature/... ./internal/compile ./internal/trace ./test/simulate
	$(STORIES)

.PHONY: unit-compile
unit-compile: race-deps
	CGO_ENABLED=1 go build -race -trimpath ./internal/... ./test/...

# The corpora run in the unit tests, too.
FUZZTIME ?= 1m
.PHONY: fuzz
fuzz: ## more: look for inputs that break parsers and mirrors (FUZZTIME=1m each); what is found stays in testdata/fuzz
	hack/fuzz $(FUZZTIME)

# One dual-stack sandbox a gateway mode serves all tests there but those of MetalLB, which gives every Service of type
# LoadBalancer its address, or takes it.
.PHONY: e2e
e2e: ## check: real packets between real pods, in shared gateway mode (nodes probed at port 9), then in local (agents asked)
	@hack/step 'packages of e2e' hack/deps frr prometheus
	hack/e2e shared
	EGRET_E2E_HEALTHCHECK_PORT=9107 hack/e2e local
	EGRET_E2E_METALLB=1 hack/e2e shared -run TestMetalLB
	$(if $(EGRET_E2E_MATRIX),EGRET_E2E_METALLB=1 hack/e2e local -run TestMetalLB)

# Emulated, so many times slower than this machine: it shows behaviour, never time.
.PHONY: test-kernel
test-kernel: deps root-folder images ## more: OVS' kernel datapath, VRF and cgroup v2 under qemu (40 min); KERNEL='-package vm -run TestVRF' chooses
	@hack/step 'packages of test-kernel' hack/deps qemu-system-x86
	go run -trimpath ./test/kernel $(KERNEL)

.PHONY: image
image: root-folder product ## build: bin/egret-image.tar: the container image localhost/egret:VERSION, with OVS and OVN
	@hack/step 'container image of the product' go run -trimpath ./hack/prepare egret bin '$(or $(VERSION),unknown)' '$(REVISION)' '$(COMMITTED)'

# Systems that kubectl-egret is built for.
PLATFORMS ?= linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64
RELEASE ?= bin/release

.PHONY: release
release: image chart ## build: bin/release: image, SBOM, chart, kubectl-egret for six systems, and SHA256SUMS (15 min with empty caches)
	@hack/step 'files of the release' hack/release '$(RELEASE)' '$(VERSION)' '$(STAMP)' $(PLATFORMS)

.PHONY: test-release
test-release: deps root-folder ## more: whether two releases of the last commit, made in two folders, are equal; of one system
	hack/release-twice linux/amd64

# A module of its own, for Helm has as many packages as all of Egret.
.PHONY: chart
chart: ## build: render deploy/ from the chart deploy/helm/egret, and package the chart as bin/egret-VERSION.tgz (2 min with empty caches)
	@rm -f bin/egret-*.tgz
	@hack/step 'manifests and package of the chart' go run -C deploy/helm/tools -trimpath . -package $(CURDIR)/bin -version '$(VERSION)'

# Go would remember what passed: it does not know files outside of a module.
.PHONY: test-chart
test-chart: ## more: whether deploy/ is what Helm makes of the chart, and what the chart refuses
	go test -C deploy/helm/tools -trimpath -count=1 ./...

.PHONY: test-manifests
test-manifests: build image ## more: deploy/ and deploy/cluster, installed with kubectl on a cluster of its own
	EGRET_MANIFESTS=1 go test -trimpath -count=1 -timeout 30m -v -run '^TestManifests$$' ./test/manifests

bin/helm: deploy/helm/tools/go.mod deploy/helm/tools/go.sum
	@hack/step 'Helm (3 minutes when cold)' go build -C deploy/helm/tools $(FLAGS) -ldflags '$(STRIP)' -o $(CURDIR)/$@ helm.sh/helm/v4/cmd/helm

.PHONY: test-helm
test-helm: build image chart bin/helm ## more: helm install of the commit before, and helm upgrade to this one, on a cluster of its own; on one of one node; the quickstart
	EGRET_MANIFESTS=1 EGRET_CHART=$(CURDIR)/bin/egret-$(VERSION:v%=%).tgz go test -trimpath -count=1 -timeout 30m -v -run '^TestManifestsByHelm$$|^TestManifestsOnOneNode$$|^TestQuickstart$$' ./test/manifests

# docs/contributing.md says how to read what it finds. The unit tests tell 100 stories, drawn by the commit's seed.
SIMULATE_TIME ?= 1h
.PHONY: simulate
simulate: ## more: tell random stories of faults to the whole protocol in virtual time (SIMULATE_TIME=1h)
	SIMULATE_TIME=$(SIMULATE_TIME) go test -trimpath -count=1 -timeout 0 -v -run '^TestNoWrongSource$$' ./test/simulate

# docs/chaos.md says what is done and what is judged.
.PHONY: chaos
chaos: build ## more: disturb a cluster by a seeded schedule and judge every packet (30 min); CHAOS='-for 3m -seed 7' chooses
	go run -trimpath ./test/chaos $(CHAOS)

# Of one family each, with other ranges, MTU and port of tunnels than the defaults; and a cluster of two nodes.
.PHONY: test-families
test-families: build ## more: the core of e2e in IPv4-only and IPv6-only clusters with other settings, and two nodes
	for family in ipv4 ipv6; do export EGRET_E2E_FAMILY=$$family; \
		hack/e2e shared -run "$$(hack/e2e-core)" && \
		EGRET_E2E_MATRIX=1 EGRET_E2E_HEALTHCHECK_PORT=9107 hack/e2e local -run "$$(hack/e2e-core)" && \
		EGRET_E2E_METALLB=1 hack/e2e local -run 'TestMetalLB(OnLink|Example)$$' || exit; \
	done
	EGRET_E2E_NODES=2 hack/e2e shared -run TestTwoNodes

.PHONY: test-all
test-all: export EGRET_E2E_MATRIX := 1
test-all: test test-chart test-release test-families test-manifests test-helm test-kernel ## more: test, test-chart, test-release, test-families, test-manifests, test-helm, test-kernel, 3 min of chaos, the control plane's tests, and more runs of the property tests
	$(MAKE) --no-print-directory chaos CHAOS='-for 3m $(CHAOS)'
	go test -C sandbox/controlplane -trimpath -vet=off ./...
	RAPID_CHECKS=1000 go test -trimpath -count=1 -timeout 2h ./internal/...

.PHONY: bench
bench: build ## measure: speed and memory, one line a figure; BENCH='-run join -runs 10' chooses (docs/benchmarks.md)
	@hack/step 'bench' go build $(FLAGS) -ldflags '$(STRIP)' -o bin/egret-bench ./test/bench
	@bin/egret-bench $(BENCH)

# docs/scale.md says what is real in it and what is simulated.
.PHONY: scale
scale: build ## measure: what a cluster's size costs the API server and all programs (15 min); SCALE='-sizes 100,200,300 -pods 0' chooses
	@hack/step 'scale' go build $(FLAGS) -ldflags '$(STRIP)' -o bin/egret-scale ./test/scale
	@bin/egret-scale $(SCALE)

# Without -trimpath it would compile all dependencies a second time.
.PHONY: lint
lint: ## check: gofmt, words (hack/words), and golangci-lint with errcheck, govet, ineffassign, staticcheck and unused (3 min with empty caches)
	@test -z "$$(gofmt -l . | tee /dev/stderr)" || { echo 'run gofmt -w on these' >&2; exit 1; }
	GOFLAGS=-trimpath go run ./hack/words
	GOFLAGS=-trimpath go run $(GOLANGCI) run ./...
	cd api && GOFLAGS=-trimpath go run $(GOLANGCI) run ./...

.PHONY: clean
clean: ## build: remove bin/; the cache folder stays
	rm -rf bin
