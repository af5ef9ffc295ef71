#!/usr/bin/env bash
# Makes the container image of the Dockerfile from a program that is built already, as an archive that Docker and Podman
# load, and fails if it is too large.
#     packaging/image.sh PROGRAM ARCHIVE       for example target/release/taskledger taskledger.tar
#     packaging/image.sh --try PROGRAM         starts it too, and runs a workflow in it; as root
# Needs Buildah (Debian: buildah); pulls nothing. `docker load` and `podman load` take the archive.
set -euo pipefail
cd "$(dirname "$0")/.."
BYTES_MAX=$((50 * 1024 * 1024)) # compressed
NAME=localhost/taskledger:try

is_tried=""
if [ "${1:-}" = --try ]; then is_tried=1; shift; fi
if [ $# -lt 1 ] || { [ -z "$is_tried" ] && [ $# -lt 2 ]; }; then
    sed -n '2,6s/^# \{0,1\}//p' "$0" >&2
    exit 2
fi
work=$(mktemp -d)
archive=${2:-$work/image.tar}
container="" server=""
# A storage of its own; `vfs` and `chroot` work where there are no privileges for more.
storage() { buildah --root "$work/storage" --runroot "$work/run" --storage-driver vfs "$@"; }
clean() {
    if [ -n "$server" ]; then kill "$server" 2>/dev/null || true; wait "$server" 2>/dev/null || true; fi
    if [ -n "$container" ]; then storage rm "$container" >/dev/null || true; fi
    rm -rf "$work"
}
trap clean EXIT

# The stage `build` of the Dockerfile is replaced by a folder with what it would have made.
mkdir "$work/context"
packaging/image-root.sh "$1" "$work/context/image"
storage build --quiet --isolation chroot --build-context "build=$work/context" --tag "$NAME" . >/dev/null
storage push --quiet "$NAME" "docker-archive:$work/plain.tar:taskledger:latest"
mv "$work/plain.tar" "$archive"
bytes=$(gzip --stdout "$archive" | wc -c)
echo "the image has $bytes bytes, compressed"
if [ "$bytes" -gt "$BYTES_MAX" ]; then
    echo "that is too many: at most $BYTES_MAX" >&2
    exit 1
fi
if [ -z "$is_tried" ]; then exit; fi

echo "== starting it as its user, with its settings"
container=$(storage from "$NAME")
root=$(storage mount "$container")
settings() { storage inspect --type image --format "$1" "$NAME"; }
user=$(settings '{{.OCIv1.Config.User}}')
environment=$(settings '{{range .OCIv1.Config.Env}}{{.}} {{end}}')
folder=$(settings '{{.OCIv1.Config.WorkingDir}}')
command=$(settings '{{range .OCIv1.Config.Entrypoint}}{{.}} {{end}}{{range .OCIv1.Config.Cmd}}{{.}} {{end}}')
mount --bind /proc "$root/proc" 2>/dev/null && trap 'umount --lazy "$root/proc" || true; clean' EXIT
url=http://127.0.0.1:18000
# There is no shell in it, and no other program.
python3 - "$root" "$user" "$folder" "$environment TASKLEDGER_LISTEN=0.0.0.0:18000" "$command" 2>"$work/log" <<'PYTHON' &
import os, sys
root, user, folder, environment, command = sys.argv[1:]
uid, gid = user.split(":")
os.chroot(root)
os.chdir(folder)
os.setgroups([])
os.setgid(int(gid))
os.setuid(int(uid))
environment = dict(word.split("=", 1) for word in environment.split())
os.execvpe(command.split()[0], command.split(), environment)
PYTHON
server=$!
for _ in $(seq 100); do
    if curl -sf "$url/readyz" >/dev/null; then break; fi
    if ! kill -0 "$server" 2>/dev/null; then
        cat "$work/log" >&2
        exit 1
    fi
    sleep 0.1
done
curl -sf "$url/readyz"
echo
# It listens for others, so it asks for the token that its first start has written.
TASKLEDGER_TOKEN=$(cat "$root$folder/taskledger-data/admin.token")
export TASKLEDGER_TOKEN
"$1" run examples/hello.json --url "$url"
echo "== stopping"
kill "$server"
wait "$server"
server=""
