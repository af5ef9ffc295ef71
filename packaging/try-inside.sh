#!/usr/bin/env bash
# What packaging/try.sh runs where the new user is:
#     try-inside.sh container | bare | overlay     installs taskledger.deb, which lies beside this script
#     try-inside.sh unpacked FOLDER                the package is unpacked in FOLDER
#     try-inside.sh source FOLDER                  types what README.md says in a checkout of the source, and installs with cargo
# Then every command of README.md and of the quickstart as typed.
set -euo pipefail
how=${1:?how}
here=$(cd "$(dirname "$0")" && pwd)
root=${2:-}
SECONDS_MAX=60 SOURCE_SECONDS_MAX=300
# What a server may take to end: it drains for 30 s at most.
STOP_SECONDS_MAX=40
# The address that the pages show.
SHOWN=127.0.0.1:8000
# Where the server listens: another address where that one is taken.
address=${TASKLEDGER_TRY_ADDRESS:-$SHOWN}

step() { echo "== $* ($SECONDS s)"; }

server=""
# Whether this shell has started it, and so is told its exit code.
is_child=no

# Stops the server; fails if it does not end in time, or with an error.
stop_server() {
    local process=$server code=0
    server=""
    kill "$process"
    for _ in $(seq $((STOP_SECONDS_MAX * 10))); do
        if ! kill -0 "$process" 2>/dev/null; then
            if [ $is_child = yes ]; then wait "$process" || code=$?; fi
            if [ $code != 0 ]; then echo "the server has ended with exit code $code" >&2; fi
            return $code
        fi
        sleep 0.1
    done
    echo "the server has not ended $STOP_SECONDS_MAX s after SIGTERM" >&2
    kill -KILL "$process"
    return 1
}

# What has failed before is said already.
ended() {
    if [ -n "$server" ]; then stop_server || true; fi
}
trap ended EXIT

# The blocks of sh that are not marked `no-run`.
commands() {
    awk '/^```sh$/ {on = 1; next} /^```/ {on = 0} on' "$1"
}

# Types the commands of pages, in an empty folder.
typed() {
    local page name
    mkdir -p "$here/user"
    cd "$here/user"
    # So that commands of tasks find the server at another address, and `run` without --url needs none.
    export TASKLEDGER_CONTEXTS="$here/contexts.json"
    taskledger context add try --server "http://$address"
    for page in "$@"; do
        name=$(basename "$page")
        step "the commands of $name, as typed"
        commands "$page" | sed "s/$SHOWN/$address/g" > "$here/$name.sh"
        test -s "$here/$name.sh"
        env -u TASKLEDGER_URL bash -euo pipefail "$here/$name.sh" > "$here/$name.out"
        if grep -q '"error":{' "$here/$name.out"; then
            cat "$here/$name.out" >&2
            exit 1
        fi
    done
}

# --- from source

from_source() {
    local begin
    cd "$root"
    if ! command -v cargo >/dev/null; then
        step "installing what README.md asks for: Rust"
        apt-get update -qq
        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends ca-certificates curl >/dev/null
        curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh -s -- -y --quiet --profile minimal
        # shellcheck disable=SC1091 # the installer has written it
        . "$HOME/.cargo/env"
    fi
    if ! command -v curl >/dev/null; then
        apt-get update -qq
        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends ca-certificates curl >/dev/null
    fi

    step "./quickstart.sh"
    begin=$SECONDS
    TASKLEDGER_LISTEN=$address ./quickstart.sh | tee "$here/quickstart.out"
    server=$(sed -n 's/.*(process \([0-9]*\).*/\1/p' "$here/quickstart.out")
    test -n "$server"
    step "the workflow has completed, $((SECONDS - begin)) s after ./quickstart.sh"
    [ $((SECONDS - begin)) -le "$SOURCE_SECONDS_MAX" ]

    # CARGO_INSTALL_ROOT leaves the programs of whoever tries this on their own machine alone.
    step "cargo install --path . --locked"
    cargo install --path . --locked
    PATH="${CARGO_INSTALL_ROOT:-${CARGO_HOME:-$HOME/.cargo}}/bin:$PATH"
    taskledger --version
    typed "$root/README.md" "$root/docs/quickstart.md"
    step "stopping"
    stop_server
}

# --- from the package

user=()
data=/var/lib/taskledger

install_package() {
    case $how in
        container)
            step "installing with apt"
            apt-get update -qq
            DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$here/taskledger.deb" curl >/dev/null
            ;;
        bare)
            step "installing with apt"
            DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$here/taskledger.deb" >/dev/null
            ;;
        overlay)
            step "installing with dpkg"
            DEBIAN_FRONTEND=noninteractive dpkg --install "$here/taskledger.deb"
            ;;
        unpacked) data=$here/data ;;
    esac
    if [ "$how" != unpacked ]; then
        test "$(stat -c '%U %a' $data)" = "taskledger 700"
        test "$(stat -c '%U:%G %a' /etc/taskledger/taskledger.env)" = "root:taskledger 640"
        user=(setpriv --reuid taskledger --regid taskledger --clear-groups)
    fi
    taskledger --version
    mkdir -p "$data"
}

start_service() {
    local settings
    step "starting what the unit starts, with its settings"
    if command -v systemd-analyze >/dev/null && [ "$how" != unpacked ]; then
        systemd-analyze verify /lib/systemd/system/taskledger.service
    fi
    settings=$(grep -v '^#' "$root/etc/taskledger/taskledger.env" | grep . | sed "s#=/var/lib/taskledger#=$data#; s#$SHOWN#$address#")
    # shellcheck disable=SC2086 # one word for each setting
    (cd "$data" && exec "${user[@]}" env "TASKLEDGER_LISTEN=$address" $settings "$(command -v taskledger)" serve) 2>"$here/log" &
    server=$! is_child=yes
    for _ in $(seq 100); do
        if taskledger tasks list --url "http://$address" >/dev/null 2>&1; then return; fi
        if ! kill -0 "$server" 2>/dev/null; then break; fi
        sleep 0.1
    done
    cat "$here/log" >&2
    exit 1
}

from_package() {
    install_package
    start_service
    step "running the example"
    taskledger run "$here/hello.json" --url "http://$address"
    step "the workflow has completed"
    [ "$SECONDS" -le "$SECONDS_MAX" ]
    # An image may be told to leave out what packages have in /usr/share/doc.
    if [ -e "$root/usr/share/doc/taskledger/README.md" ]; then
        test -e "$root/usr/share/doc/taskledger/docs/quickstart.md"
    fi
    typed "$here/README.md" "$here/quickstart.md"
    step "stopping"
    stop_server
    if [ "$how" != unpacked ]; then
        step "removing the package; the data stays"
        dpkg --remove taskledger >/dev/null
        test -f "$data/ledger.db"
        test ! -e /usr/bin/taskledger
    fi
}

SECONDS=0
case $how in
    source) from_source ;;
    container | bare | overlay | unpacked) from_package ;;
    *)
        sed -n '2,7s/^# \{0,1\}//p' "$0" >&2
        exit 2
        ;;
esac
step "done"
