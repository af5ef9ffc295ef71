#!/usr/bin/env bash
# Plays a new user on a bare Debian.
#     packaging/try.sh [FOLDER]       installs the package in the folder that packaging/build.sh has made (target/dist), starts
#                                     the server as the service would, runs a workflow, then removes the package
#     packaging/try.sh --source       from a copy of the committed source instead: installs Rust, types ./quickstart.sh, then
#                                     `cargo install --path . --locked`
# With either, then types every command of README.md and the quickstart.
# In a container if Docker or Podman work here and have the image. Else the package is tried, as root and without a network, on
# a bare Debian if there is debootstrap, or on a copy of this machine's system whose changes are thrown away (overlay); else it
# is unpacked and the program started from there. The source is then built on this machine, with its Rust, and installed
# into a folder that is thrown away. Needs curl. TASKLEDGER_TRY_ADDRESS is another address than 127.0.0.1:8000 for the server.
# Fails if a step fails, or if the workflow has not completed after 60 s (from source 300 s after ./quickstart.sh).
set -euo pipefail
cd "$(dirname "$0")/.."
RELEASE=bookworm
IMAGE=debian:$RELEASE-slim

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

engine=""
for one in docker podman; do
    if command -v "$one" >/dev/null && "$one" info >/dev/null 2>&1 && "$one" run --rm "$IMAGE" true >/dev/null 2>&1; then
        engine=$one
        break
    fi
done

if [ "${1:-}" = --source ]; then
    mkdir "$work/source"
    git archive HEAD | tar --extract --directory "$work/source"
    cp packaging/try-inside.sh "$work"
    if [ -n "$engine" ]; then
        echo "== from source, in a container ($engine, $IMAGE)"
        "$engine" run --rm -v "$work:/try" "$IMAGE" bash /try/try-inside.sh source /try/source
    else
        echo "== from source, on this machine"
        env -u CARGO_TARGET_DIR CARGO_INSTALL_ROOT="$work/cargo" bash "$work/try-inside.sh" source "$work/source"
    fi
    exit
fi

dist=${1:-target/dist}
package=$(ls "$dist"/taskledger_*_"$(dpkg --print-architecture)".deb)
cp "$package" "$work/taskledger.deb"
cp packaging/try-inside.sh README.md docs/quickstart.md examples/hello.json "$work"

if [ -n "$engine" ]; then
    echo "== in a container ($engine, $IMAGE)"
    "$engine" run --rm -v "$work:/try" "$IMAGE" bash /try/try-inside.sh container
elif [ "$(id -u)" = 0 ] && unshare --mount --net true 2>/dev/null; then
    how=overlay lower=/
    if command -v debootstrap >/dev/null; then
        echo "== fetching a bare Debian ($RELEASE)"
        if debootstrap --variant=minbase --include=ca-certificates,curl "$RELEASE" "$work/bare" >"$work/debootstrap.log" 2>&1; then
            how=bare lower=$work/bare
        else
            tail -n 3 "$work/debootstrap.log" >&2
        fi
    fi
    if [ $how = overlay ]; then echo "== on a copy of this system, whose changes are thrown away"; fi
    unshare --mount --net --pid --fork --kill-child bash -euo pipefail -c '
        work=$1 how=$2 lower=$3
        mkdir "$work/layer"
        mount -t tmpfs tmpfs "$work/layer"
        mkdir "$work/layer/upper" "$work/layer/work" "$work/layer/root"
        root=$work/layer/root
        mount -t overlay overlay -o "lowerdir=$lower,upperdir=$work/layer/upper,workdir=$work/layer/work" "$root"
        mount -t proc proc "$root/proc"
        mount --rbind /dev "$root/dev"
        mount -t tmpfs tmpfs "$root/tmp"
        mount -t tmpfs tmpfs "$root/run"
        mkdir "$root/try"
        cp "$work"/*.deb "$work"/*.sh "$work"/*.md "$work"/*.json "$root/try"
        ip link set lo up 2>/dev/null || python3 -c "
import fcntl, socket, struct
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
fcntl.ioctl(s, 0x8914, struct.pack(\"16sh\", b\"lo\", 0x49))"
        exec env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 \
            chroot "$root" bash /try/try-inside.sh "$how"
    ' try "$work" "$how" "$lower"
else
    echo "== unpacked into a folder"
    dpkg-deb --extract "$work/taskledger.deb" "$work/root"
    PATH="$work/root/usr/bin:$PATH" bash "$work/try-inside.sh" unpacked "$work/root"
fi
