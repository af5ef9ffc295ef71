#!/bin/sh
# Makes what the container image consists of. In FOLDER/root its root folder: the program, what it needs of the C library,
# certificates of public authorities, a user, and nothing else: no shell, no package manager. In FOLDER/data the data
# folder, which gets another owner: apart, because copying to a folder that exists need not change whose it is.
#     packaging/image-root.sh PROGRAM FOLDER
set -eu
umask 022 # the image's user is not the one who builds it
program=${1:?the program}
folder=${2:?the folder}
root=$folder/root

mkdir -p "$root/usr/local/bin" "$root/etc/ssl/certs" "$root/var/lib" "$root/tmp" "$folder/data/taskledger"
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
chmod 0700 "$folder/data/taskledger"
