# The gate, in one place. `make check` is what a change has to pass.

.DEFAULT_GOAL := help

.PHONY: help
help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "%-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: tools
tools: ## Get a C compiler and a PostgreSQL for the tests, if there are none
	@scripts/ensure-tools
	@scripts/ensure-postgres

.PHONY: sdks
sdks: ## Get the official SDKs that pushes signed as the provider are tried with
	@scripts/ensure-sdks

.PHONY: test
test: tools sdks ## Run every test, the long ones in full length
	ONCEBOX_TEST_FULL=1 cargo test --workspace --no-fail-fast

.PHONY: test-quick
test-quick: tools ## Run every test, the long ones shortened
	cargo test --workspace --no-fail-fast

.PHONY: storm
storm: tools ## Send 100,000 events through each door while processes are killed; takes an hour
	ONCEBOX_TEST_STORM=100000 cargo test --release -p oncebox-server --test faults \
		effects::storm -- --test-threads=1 --nocapture

.PHONY: failover
failover: tools ## Run failovers under Patroni with nodes under load; FAULTS=20 of each kind take an hour
	@scripts/ensure-failover
	cargo build -p oncebox-server
	"$${CARGO_TARGET_DIR:-target}"/failover/python/bin/python scripts/failover.py \
		"$${CARGO_TARGET_DIR:-target}"/debug/oncebox

.PHONY: lint
lint: ## Check the format and the lints
	cargo fmt --all --check
	@scripts/ensure-tools
	cargo clippy --workspace --all-targets -- -D warnings

.PHONY: doc
doc: ## Build the documentation, private items too, without a warning
	@scripts/ensure-tools
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --document-private-items

.PHONY: deny
deny: ## Check licences, advisories and unused dependencies, where the tools are installed
	@if cargo deny --version >/dev/null 2>&1; then cargo deny check; \
	else echo "skipped cargo deny; to have it: cargo install --locked cargo-deny"; fi
	@if cargo machete --version >/dev/null 2>&1; then cargo machete; \
	else echo "skipped cargo machete; to have it: cargo install --locked cargo-machete"; fi

.PHONY: check
check: lint doc test deny ## All of the above

.PHONY: bench
bench: ## Measure; options in ARGS, such as ARGS="--json"
	@scripts/ensure-tools
	cargo run --release -- bench $(ARGS)

.PHONY: provider-pages
provider-pages: ## Make the pages of docs/providers from the catalogue
	cargo run -- providers --pages docs/providers
