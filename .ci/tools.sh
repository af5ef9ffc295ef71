# Functions that install what is missing; sourced by the scripts beside and above.

# Versions of the tools that are built, so that a new one is taken on purpose.
NEXTEST_VERSION=0.9.143
FUZZ_VERSION=0.13.2
MDBOOK_VERSION=0.5.4

# Packages of Debian and Ubuntu, for the first argument; says which when it cannot install them.
need_packages() {
    local what=$1
    shift
    local sudo=""
    if [ "$(id -u)" != 0 ]; then sudo=sudo; fi
    if ! command -v apt-get >/dev/null || { [ -n "$sudo" ] && ! command -v sudo >/dev/null; }; then
        echo "$what is needed: install what Debian calls $* and try again" >&2
        exit 1
    fi
    echo "installing $what: $*" >&2
    $sudo apt-get update -qq
    $sudo apt-get install -y -qq --no-install-recommends "$@"
}

# `cc`, for SQLite.
need_c_compiler() {
    if command -v cc >/dev/null; then return; fi
    need_packages "a C compiler" gcc libc6-dev
}

# `c++`, for the fuzzer.
need_cpp_compiler() {
    if command -v c++ >/dev/null; then return; fi
    need_packages "a C++ compiler" g++ libc6-dev
}

# The folder with `initdb` and `pg_ctl`, which Debian does not put on the path; nothing if there is none.
postgres_programs() {
    local newest
    newest=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -V | tail -n 1)
    if [ -n "$newest" ] && [ -x "$newest/initdb" ]; then
        echo "$newest"
    elif command -v initdb >/dev/null && command -v pg_ctl >/dev/null; then
        dirname "$(readlink -f "$(command -v initdb)")"
    fi
}

# A PostgreSQL server; the tests start it themselves.
need_postgres() {
    if [ -n "$(postgres_programs)" ]; then return; fi
    need_packages "PostgreSQL" postgresql
}

# The fuzzer.
need_cargo_fuzz() {
    if cargo fuzz --version >/dev/null 2>&1; then return; fi
    echo "installing cargo-fuzz $FUZZ_VERSION" >&2
    cargo install --locked --version "$FUZZ_VERSION" cargo-fuzz
}

# The test runner.
need_cargo_nextest() {
    if cargo nextest --version >/dev/null 2>&1; then return; fi
    echo "installing cargo-nextest $NEXTEST_VERSION" >&2
    cargo install --locked --version "$NEXTEST_VERSION" cargo-nextest
}

# `mdbook`, which makes a book of docs/; below target/ unless one of this version is there already.
need_mdbook() {
    local folder=$PWD/target/tools
    PATH="$folder/bin:$PATH"
    if mdbook --version 2>/dev/null | grep -qx "mdbook v$MDBOOK_VERSION"; then return; fi
    echo "installing mdbook $MDBOOK_VERSION into $folder" >&2
    # Less optimised, without its server and its search: it runs for a second.
    cargo install --locked --debug --quiet --no-default-features --version "$MDBOOK_VERSION" --root "$folder" \
        --target-dir "$folder/build" mdbook && rm -rf "$folder/build"
}

# rustfmt and clippy of the toolchain that rust-toolchain.toml names.
need_components() {
    if cargo fmt --version >/dev/null 2>&1 && cargo clippy --version >/dev/null 2>&1; then return; fi
    rustup component add rustfmt clippy
}

# Whether `node` is there and not older than its major version in the first argument.
node_since() {
    command -v node >/dev/null && [ "$(node -p 'process.versions.node.split(".")[0]')" -ge "$1" ]
}

# Node.js with npm, for clients that the tests do not make themselves, and for the package of `clients/typescript`.
need_node() {
    if node_since 20 && command -v npm >/dev/null; then return; fi
    need_packages "Node.js 20 or newer with npm" nodejs npm
    if node_since 20; then return; fi
    echo "Node.js 20 or newer is needed, this is $(node --version)" >&2
    exit 1
}

# The package of `clients/typescript`, built in place. Made anew only when it or Node.js has changed.
need_typescript_client() {
    need_node
    local folder=clients/typescript wanted
    wanted=$(cat "$folder"/package.json "$folder"/package-lock.json "$folder"/tsconfig.json "$folder"/src/*.ts \
        "$folder"/src/*/*.ts | sha256sum && node --version)
    if [ "$(cat "$folder/dist/made-from" 2>/dev/null)" = "$wanted" ]; then return; fi
    echo "building $folder" >&2
    rm -rf "$folder/dist"
    npm ci --prefix "$folder" --ignore-scripts --no-audit --no-fund --loglevel=error >&2
    npm run --silent --prefix "$folder" build >&2
    echo "$wanted" > "$folder/dist/made-from"
}

# A browser without a window.
need_chromium() {
    if command -v chromium >/dev/null; then return; fi
    need_packages "Chromium" chromium
}

# Python that can make environments of its own.
need_python() {
    if python3 -c 'import ensurepip, sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; then return; fi
    need_packages "Python 3.10 or newer with venv" python3 python3-venv
}

# Where Debian puts the sources of Go libraries.
GO_LIBRARIES=/usr/share/gocode

# Go with gRPC, and what generates its code.
need_go() {
    if command -v go >/dev/null && command -v protoc >/dev/null && command -v protoc-gen-go >/dev/null \
        && command -v protoc-gen-go-grpc >/dev/null && [ -e "$GO_LIBRARIES/src/google.golang.org/grpc/clientconn.go" ] \
        && [ -e "$GO_LIBRARIES/src/github.com/golang/protobuf/proto/proto.go" ]; then
        return
    fi
    # gRPC alone would bring version 1.3 of golang/protobuf, which cannot write messages of today's generated code.
    need_packages "Go with gRPC" golang-go golang-google-grpc-dev golang-google-protobuf-dev \
        golang-github-golang-protobuf-1-5-dev protobuf-compiler protoc-gen-go protoc-gen-go-grpc
}

# The agent of `examples/agents/go`, in `target/clients/go`, with the libraries of Debian in place of those that `go mod`
# downloads. Made anew only when it, the protocol or Go has changed.
need_go_agent() {
    need_go
    local agent=examples/agents/go protocol=crates/eventbus/proto older=tests/whole/clients/go/connect.go
    local folder=$PWD/target/clients/go module=taskledger-example-agent wanted
    wanted=$(cat "$agent"/*.go "$older" "$protocol/eventbus.proto" "$GO_LIBRARIES/src/google.golang.org/grpc/version.go" \
        | sha256sum && go version && protoc-gen-go --version && protoc-gen-go-grpc --version)
    if [ "$(cat "$folder/made-from" 2>/dev/null)" = "$wanted" ]; then return; fi
    echo "building $agent" >&2
    rm -rf "$folder/src" "$folder/made-from"
    mkdir -p "$folder/src/$module"
    cp "$agent"/*.go "$folder/src/$module"
    if ! grep -q '^func NewClient(' "$GO_LIBRARIES/src/google.golang.org/grpc/clientconn.go"; then
        cp "$older" "$folder/src/$module"
    fi
    protoc -I "$protocol" --go_out="$folder/src" --go_opt="Meventbus.proto=$module/pb" \
        --go-grpc_out="$folder/src" --go-grpc_opt="Meventbus.proto=$module/pb" eventbus.proto
    GO111MODULE=off GOFLAGS='' GOTOOLCHAIN=local GOCACHE="$folder/cache" GOPATH="$folder:$GO_LIBRARIES" \
        go build -o "$folder/agent" "$module"
    echo "$wanted" > "$folder/made-from"
}

# The official client of Agent2Agent in Rust with the steps of `tests/whole/clients/rust`, below `target/clients/rust`.
need_rust_client() {
    cargo build --quiet --locked --manifest-path tests/whole/clients/rust/Cargo.toml --target-dir target/clients/rust
}

# The library with which a test sets the clock of a server.
need_faketime() {
    if compgen -G "/usr/lib/*/faketime/libfaketimeMT.so.1" >/dev/null; then return; fi
    need_packages "libfaketime" libfaketime
}

# The clients of `tests/whole/clients`, at the versions that its locks name, in `target/clients`, where the
# tests look for them. Made anew only when a lock or an interpreter has changed.
need_clients() {
    need_typescript_client
    need_rust_client
    need_go_agent
    need_chromium
    need_python
    local locks=tests/whole/clients folder=target/clients wanted
    wanted=$(cat "$locks/package-lock.json" "$locks"/requirements*.txt && node --version && python3 --version)
    if [ "$(cat "$folder/made-from" 2>/dev/null)" = "$wanted" ]; then return; fi
    echo "installing the clients of $locks into $folder" >&2
    rm -rf "$folder/made-from" "$folder/node_modules" "$folder/python" "$folder/a2a-0.3"
    mkdir -p "$folder"
    cp "$locks/package.json" "$locks/package-lock.json" "$folder"
    npm ci --prefix "$folder" --ignore-scripts --no-audit --no-fund --loglevel=error >&2
    python3 -m venv "$folder/python"
    "$folder/python/bin/pip" install --quiet --disable-pip-version-check --no-deps --require-hashes \
        --only-binary :all: -r "$locks/requirements.txt" >&2
    "$folder/python/bin/pip" install --quiet --disable-pip-version-check --no-deps --require-hashes \
        --only-binary :all: --target "$folder/a2a-0.3" -r "$locks/requirements-a2a-0.3.txt" >&2
    echo "$wanted" > "$folder/made-from"
}

# Where tests put what they throw away: TMPDIR if it is set, else memory when it has room for it and programs may
# be run there, so that tests neither wait for other users of the disk nor wear it. They kill processes, not the
# machine.
room_for_tests() {
    if [ -n "${TMPDIR:-}" ]; then
        echo "$TMPDIR"
        return
    fi
    local memory=/dev/shm needed_kib=$((6 * 1024 * 1024)) available free
    if ! findmnt --noheadings --output OPTIONS --target "$memory" 2>/dev/null | grep -q noexec \
        && [ "$(stat -f -c %T "$memory" 2>/dev/null)" = tmpfs ] && [ -w "$memory" ]; then
        available=$(df --output=avail -k "$memory" | tail -n 1)
        free=$(sed -n 's/^MemAvailable: *\([0-9]*\) kB$/\1/p' /proc/meminfo)
        if [ "$available" -ge "$needed_kib" ] && [ "${free:-0}" -ge "$needed_kib" ]; then
            echo "$memory"
            return
        fi
    fi
    echo /tmp
}
