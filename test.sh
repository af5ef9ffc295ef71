#!/usr/bin/env bash
# Installs what is missing and runs all tests. Needs a Rust toolchain from rustup; on Debian and
# Ubuntu it also installs a C compiler (SQLite is compiled in), PostgreSQL, of which it starts a
# throwaway server on a port of its own, and the clients that are tested against: Chromium, and
# packages for Node.js and Python, below target/.
set -euo pipefail
cd "$(dirname "$0")"
. ./.ci/tools.sh

need_c_compiler
need_cargo_nextest
need_clients
cargo test --workspace --doc --locked --quiet
./.ci/with-postgres cargo nextest run --workspace --locked "$@"
