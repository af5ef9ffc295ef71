#!/usr/bin/env bash
# What packaging/try.sh runs where the new user is: container, bare, overlay, or unpacked FOLDER.
set -euo pipefail
how=${1:?how}
here=$(cd "$(dirname "$0")" && pwd)
root=${2:-}
SECONDS_MAX=60

step() { echo "== $* ($SECONDS s)"; }

SECONDS=0
user=()
data=/var/lib/taskledger
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

step "starting what the unit starts, with its settings"
if command -v systemd-analyze >/dev/null && [ "$how" != unpacked ]; then
    systemd-analyze verify /lib/systemd/system/taskledger.service
fi
settings=$(grep -v '^#' "$root/etc/taskledger/taskledger.env" | grep . | sed "s#=/var/lib/taskledger#=$data#")
# shellcheck disable=SC2086 # one word for each setting
(cd "$data" && exec "${user[@]}" env $settings "$(command -v taskledger)" serve) 2>"$here/log" &
server=$!
trap 'kill $server 2>/dev/null || true; wait $server 2>/dev/null || true' EXIT
for _ in $(seq 100); do
    if taskledger tasks list >/dev/null 2>&1; then break; fi
    if ! kill -0 $server 2>/dev/null; then
        cat "$here/log" >&2
        exit 1
    fi
    sleep 0.1
done

step "running the example"
taskledger run "$root/usr/share/doc/taskledger/examples/hello.json" --url http://127.0.0.1:8000
step "the workflow has completed"
[ "$SECONDS" -le "$SECONDS_MAX" ]

# The blocks of sh that are not marked `no-run`.
commands() {
    awk '/^```sh$/ {on = 1; next} /^```/ {on = 0} on' "$1"
}
mkdir -p "$here/user"
cd "$here/user"
for page in README.md quickstart.md; do
    step "the commands of $page, as typed"
    commands "$here/$page" > "$here/$page.sh"
    bash -euo pipefail "$here/$page.sh" > "$here/$page.out"
    if grep -q '"error":{' "$here/$page.out"; then
        cat "$here/$page.out" >&2
        exit 1
    fi
done

step "stopping"
kill $server
wait $server
trap - EXIT
if [ "$how" != unpacked ]; then
    step "removing the package; the data stays"
    dpkg --remove taskledger >/dev/null
    test -f "$data/ledger.db"
    test ! -e /usr/bin/taskledger
fi
step "done"
