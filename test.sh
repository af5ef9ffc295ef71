#!/usr/bin/env bash
# Installs what is missing and runs all tests. Needs a Rust toolchain from rustup; on Debian and
# Ubuntu it also installs a C compiler (SQLite is compiled in) and PostgreSQL, of which it starts a
# throwaway server on a port of its own.
set -euo pipefail
cd "$(dirname "$0")"
. ./.ci/tools.sh

need_c_compiler
need_cargo_nextest
cargo test --workspace --doc --locked --quiet
./.ci/with-postgres cargo nextest run --workspace --locked "$@"
