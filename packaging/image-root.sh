#!/bin/sh
# Makes the root folder of the container image: the program, what it needs of the C library, certificates of public
# authorities, a user, and nothing else: no shell, no package manager.
#     packaging/image-root.sh PROGRAM FOLDER
set -eu
program=${1:?the program}
root=${2:?the folder}

mkdir -p "$root/usr/local/bin" "$root/etc/ssl/certs" "$root/var/lib/taskledger" "$root/tmp"
cp "$program" "$root/usr/local/bin/taskledger"
# The paths of the libraries, and that of the loader, which has no `=>`. A static program has none.
ldd "$program" 2>/dev/null | sed -n 's/.*=> \(\/[^ ]*\).*/\1/p; s/^[[:space:]]*\(\/[^ ]*\).*/\1/p' |
while read -r library; do
    mkdir -p "$root$(dirname "$library")"
    cp -L "$library" "$root$library"
done
cp -L /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"
echo 'taskledger:x:65532:65532::/var/lib/taskledger:/nonexistent' > "$root/etc/passwd"
echo 'taskledger:x:65532:' > "$root/etc/group"
chmod 1777 "$root/tmp"
chmod 0700 "$root/var/lib/taskledger"
