#!/usr/bin/env bash
# Installs what is missing and runs all tests:
#     ./test.sh          everything
#     ./test.sh --fast   what needs no PostgreSQL and no other programs: the rules, read models, the
#                        application, the log in memory and on SQLite, the doors
# Further arguments go to cargo-nextest. Needs a Rust toolchain from rustup; on Debian and Ubuntu it
# also installs a C compiler (SQLite is compiled in) and, without --fast, PostgreSQL, of which it
# starts a throwaway server on a port of its own, and the clients that are tested against: Chromium,
# Go with gRPC, and packages for Node.js, Python and Rust, below target/.
set -euo pipefail
cd "$(dirname "$0")"
. ./.ci/tools.sh

# Many tests wait for a process, a disk or a lease more than they compute; `.config/nextest.toml` says which compute.
places() {
    export NEXTEST_TEST_THREADS="${NEXTEST_TEST_THREADS:-$(($1 * $(nproc)))}"
}

need_c_compiler
need_cargo_nextest
TMPDIR=$(room_for_tests)
export TMPDIR
if [ "${1:-}" = --fast ]; then
    shift
    places 2
    # Every test program whose name does not begin with `wh`: `whole`, which takes longest to run, is not built.
    exec cargo nextest run --workspace --locked --profile fast --lib --bins --test '[!w]*' --test 'w[!h]*' "$@"
fi
places 4
need_clients
need_faketime
./.ci/with-postgres cargo nextest run --workspace --locked "$@"
