# Functions that install what is missing; sourced by the scripts beside and above.

# `cc`, for SQLite.
need_c_compiler() {
    if command -v cc >/dev/null; then return; fi
    local sudo=""
    if [ "$(id -u)" != 0 ]; then sudo=sudo; fi
    if ! command -v apt-get >/dev/null; then
        echo "a C compiler is needed: install gcc or clang and try again" >&2
        exit 1
    fi
    echo "installing a C compiler" >&2
    $sudo apt-get update -qq
    $sudo apt-get install -y -qq --no-install-recommends gcc libc6-dev
}

# `c++`, for the fuzzer.
need_cpp_compiler() {
    if command -v c++ >/dev/null; then return; fi
    local sudo=""
    if [ "$(id -u)" != 0 ]; then sudo=sudo; fi
    if ! command -v apt-get >/dev/null; then
        echo "a C++ compiler is needed: install g++ or clang and try again" >&2
        exit 1
    fi
    echo "installing a C++ compiler" >&2
    $sudo apt-get update -qq
    $sudo apt-get install -y -qq --no-install-recommends g++ libc6-dev
}

# The fuzzer.
need_cargo_fuzz() {
    if cargo fuzz --version >/dev/null 2>&1; then return; fi
    echo "installing cargo-fuzz" >&2
    cargo install --locked cargo-fuzz
}

# The test runner.
need_cargo_nextest() {
    if cargo nextest --version >/dev/null 2>&1; then return; fi
    echo "installing cargo-nextest" >&2
    cargo install --locked cargo-nextest
}

# rustfmt and clippy of the toolchain that rust-toolchain.toml names.
need_components() {
    if cargo fmt --version >/dev/null 2>&1 && cargo clippy --version >/dev/null 2>&1; then return; fi
    rustup component add rustfmt clippy
}
