#!/usr/bin/env bash
# Installs what is missing and runs all tests. Needs a Rust toolchain from rustup; on Debian and
# Ubuntu it also installs a C compiler (SQLite is compiled in).
set -euo pipefail
cd "$(dirname "$0")"
. ./.ci/tools.sh

need_c_compiler
need_cargo_nextest
cargo test --workspace --doc --locked --quiet
cargo nextest run --workspace --all-targets --locked "$@"
