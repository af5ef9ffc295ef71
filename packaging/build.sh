#!/usr/bin/env bash
# Makes and describes everything that a release consists of, in target/dist: archives, packages for Debian, a software
# bill of materials, checksums, RELEASE.md.
#     packaging/build.sh                          for every target below that this toolchain can build
#     packaging/build.sh --target TRIPLE          for this one; may be repeated
#     packaging/build.sh --binary FILE            packs a program that is built already, for this machine
#     packaging/build.sh --profile NAME           another profile of Cargo.toml: `quickstart` builds in half of the time
#     packaging/build.sh --output DIR             another folder
# A target that cannot be built here is named with what is missing; the others are made. Needs cargo and python3, and
# dpkg-deb for packages; on Debian, musl-tools for static programs, gcc-aarch64-linux-gnu for ARM64 (with musl-dev:arm64 for static
# ones), and qemu-user-static to try these: docs/operating/install.md. The same source gives the same archives: times are those of
# the last commit.
set -euo pipefail
cd "$(dirname "$0")/.."

ALL="x86_64-unknown-linux-gnu x86_64-unknown-linux-musl aarch64-unknown-linux-gnu aarch64-unknown-linux-musl"
host=$(rustc -vV | sed -n 's/^host: //p')
targets="" binary="" profile=release output=target/dist
while [ $# -gt 0 ]; do
    case $1 in
        --target) targets="$targets ${2:?a target}"; shift 2 ;;
        --binary) binary=$(realpath "${2:?a file}"); shift 2 ;;
        --profile) profile=${2:?a profile}; shift 2 ;;
        --output) output=${2:?a folder}; shift 2 ;;
        *) sed -n '2,12s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
    esac
done
version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml)
commit=$(git rev-parse --short=12 HEAD 2>/dev/null || echo unknown)
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct 2>/dev/null || stat -c %Y Cargo.lock)
export SOURCE_DATE_EPOCH
date=$(date --utc --date="@$SOURCE_DATE_EPOCH" +%F)

# The newest version of glibc that a program asks for; nothing if it is static.
glibc_of() {
    grep -ao 'GLIBC_[0-9][0-9.]*' "$1" | sed 's/GLIBC_//' | sort -Vu | tail -n 1 || true
}

if [ -n "$binary" ]; then
    targets=$host
    if [ -z "$(glibc_of "$binary")" ]; then targets=${host%%-*}-unknown-linux-musl; fi
fi

# What is missing to build for a target here; nothing if it can be.
missing() {
    local target=$1 linker
    if ! echo "$ALL" | tr ' ' '\n' | grep -qx "$target"; then
        echo "it is none of: $ALL"
        return
    fi
    if [ "$target" != "$host" ] && ! rustup target list --installed 2>/dev/null | grep -qx "$target"; then
        echo "the target is not installed: rustup target add $target"
        return
    fi
    linker=$(compiler "$target")
    if ! command -v "$linker" >/dev/null; then
        echo "there is no C compiler for it: $linker"
    fi
}

# The C compiler for a target, which also links.
compiler() {
    case $1 in
        "$host") echo cc ;;
        "${host%%-*}-unknown-linux-musl") echo musl-gcc ;;
        aarch64-unknown-linux-musl) echo aarch64-linux-musl-gcc ;;
        aarch64-unknown-linux-gnu) echo aarch64-linux-gnu-gcc ;;
        x86_64-unknown-linux-gnu) echo x86_64-linux-gnu-gcc ;;
    esac
}

# Arguments of the last step, which compiles across crates and links, one a line. The linker that comes with Rust folds functions
# and constants that are the same after compiling; GNU's cannot (decision 0231).
last_step() {
    local target=$1 linkers
    # Less is copied between crates, and of what asks to be copied (decision 0231).
    printf '%s\n' -Cllvm-args=-import-instr-limit=35 -Cllvm-args=-inlinehint-threshold=100
    linkers=$(rustc --print sysroot)/lib/rustlib/$host/bin/gcc-ld
    if [ -x "$linkers/ld.lld" ]; then
        printf '%s\n' -Clink-arg=-fuse-ld=lld "-Clink-arg=-B$linkers" \
            -Clink-arg=-Wl,--icf=all,--ignore-data-address-equality
        case $target in # musl-gcc always names a loader, and only GNU's linker leaves it out of static programs
            *-musl) echo -Clink-arg=-Wl,--no-dynamic-linker ;;
        esac
    else
        echo "larger than need be: this toolchain has no $linkers/ld.lld" >&2
    fi
}

# Builds for a target and says where the program is.
build() {
    local target=$1 name linker folder flags=() last=() encoded
    linker=$(compiler "$target")
    name=$(echo "$target" | tr 'a-z-' 'A-Z_')
    read -ra flags <<<"${RUSTFLAGS:-}"
    # Less is copied into its callers than LLVM would: a fifth less program for one to five per cent more instructions (decision 0231).
    flags+=(-Cllvm-args=-inline-threshold=60)
    # Tables for unwinding are a third smaller, and profilers see who called (decision 0231).
    flags+=(-Cforce-frame-pointers=yes)
    case $target in # musl-gcc takes a static program that can lie anywhere for a dynamic one, which crashes at its start
        *-musl) flags+=(-Crelocation-model=static) ;;
    esac
    # Messages of panics name files of libraries, whose paths would differ with the home of whoever builds.
    flags+=("--remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}/registry/src=/registry")
    # Cargo splits RUSTFLAGS at blanks, which paths may have, and this form of it at the separator only.
    encoded=$(IFS=$'\x1f'; echo "${flags[*]}")
    mapfile -t last < <(last_step "$target")
    # No panic unwinds through C: what it calls back into catches them, so it has no tables for that.
    # C may compare addresses of functions and constants, so what is compiled from it is not folded: each file is one section.
    env CARGO_ENCODED_RUSTFLAGS="$encoded" "CARGO_TARGET_${name}_LINKER=$linker" \
        "CC_${target//-/_}=$linker" "CFLAGS_${target//-/_}=${CFLAGS:-} -fno-function-sections -fno-data-sections -fno-asynchronous-unwind-tables" \
        TASKLEDGER_BUILD="$commit $date" TASKLEDGER_TARGET="$target" \
        cargo rustc --profile "$profile" --locked --bin taskledger --target "$target" -- "${last[@]}" >&2 || return
    case $profile in # cargo's own profiles share two folders
        dev | test) folder=debug ;;
        bench) folder=release ;;
        *) folder=$profile ;;
    esac
    echo "${CARGO_TARGET_DIR:-target}/$target/$folder/taskledger"
}

# What runs a program for a target here: nothing more is needed for this machine's; for another machine's QEMU, with the C library
# that the cross compiler brings. Fails if QEMU is needed and not there.
runner() {
    local of=${1%%-*}
    if [ "$of" = "${host%%-*}" ]; then return; fi
    command -v "qemu-$of-static" >/dev/null || return
    echo "qemu-$of-static -L /usr/$of-linux-gnu"
}

# Without settings of whoever builds.
bare() { env -i PATH="$PATH" HOME="$work" "$@"; }

# Starts a program that was built and runs a workflow in it, so that none is packed that does not run; says so if none of its kind
# can run here.
try_out() {
    local target=$1 program=$2 run
    if ! run=$(runner "$target"); then
        echo "not tried: the program for $target; install qemu-user-static" >&2
        return
    fi
    if ! bare $run "$program" --version >"$work/tried" 2>&1 || ! bare $run "$program" run examples/hello.json >>"$work/tried" 2>&1; then
        echo "the program for $target does not run: $program" >&2
        cat "$work/tried" >&2
        exit 1
    fi
    echo "runs: the program for $target" >&2
}

# The completions and man pages, written by a program, made once for all targets: they are the same.
completions() {
    mkdir -p "$work/completions"
    "$@" completions bash > "$work/completions/taskledger.bash"
    "$@" completions zsh > "$work/completions/_taskledger"
    "$@" completions fish > "$work/completions/taskledger.fish"
    "$@" man "$work/man" >/dev/null
}

# README.md, CHANGELOG.md and docs/, whose links lead to what lies beside them.
pages() {
    [ -d "$work/pages" ] || python3 packaging/pages.py "$work/pages"
    mkdir -p "$1"
    cp -R "$work/pages/." "$1"
    chmod -R u=rwX,go=rX "$1"
}

archive() {
    local target=$1 program=$2 name="taskledger-$version-$1"
    local place="$work/$name"
    mkdir -p "$place/completions" "$place/man"
    install -m 0755 "$program" "$place/taskledger"
    pages "$place"
    mkdir -p "$place/examples"
    install -m 0644 examples/hello.json "$place/examples"
    install -m 0644 LICENSE packaging/taskledger.service packaging/taskledger.env "$place"
    install -m 0644 "$work"/completions/* "$place/completions"
    install -m 0644 "$work"/man/*.1 "$place/man"
    tar --create --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner \
        --directory "$work" "$name" | gzip --best --no-name > "$output/$name.tar.gz"
}

package() {
    local program=$1 arch=$2 glibc=$3 place="$work/deb-$2" depends=passwd
    if [ -n "$glibc" ]; then depends="libc6 (>= $glibc), libgcc-s1, passwd"; fi
    mkdir -p "$place/DEBIAN"
    install -D -m 0755 "$program" "$place/usr/bin/taskledger"
    install -D -m 0644 packaging/taskledger.service "$place/lib/systemd/system/taskledger.service"
    install -D -m 0640 packaging/taskledger.env "$place/etc/taskledger/taskledger.env"
    install -D -m 0644 "$work/completions/taskledger.bash" "$place/usr/share/bash-completion/completions/taskledger"
    install -D -m 0644 "$work/completions/_taskledger" "$place/usr/share/zsh/vendor-completions/_taskledger"
    install -D -m 0644 "$work/completions/taskledger.fish" "$place/usr/share/fish/vendor_completions.d/taskledger.fish"
    mkdir -p "$place/usr/share/man/man1"
    install -m 0644 "$work"/man/*.1 "$place/usr/share/man/man1"
    gzip --best --no-name "$place"/usr/share/man/man1/*.1
    pages "$place/usr/share/doc/taskledger"
    install -D -m 0644 LICENSE "$place/usr/share/doc/taskledger/copyright"
    mv "$place/usr/share/doc/taskledger/CHANGELOG.md" "$place/usr/share/doc/taskledger/changelog"
    ln -s changelog "$place/usr/share/doc/taskledger/CHANGELOG.md"
    install -D -m 0644 examples/hello.json "$place/usr/share/doc/taskledger/examples/hello.json"
    install -m 0755 packaging/debian/* "$place/DEBIAN"
    echo /etc/taskledger/taskledger.env > "$place/DEBIAN/conffiles"
    cat > "$place/DEBIAN/control" <<CONTROL
Package: taskledger
Version: $version
Architecture: $arch
Maintainer: The taskledger maintainers <maintainers@taskledger.invalid>
Installed-Size: $(du -sk --apparent-size "$place" | cut -f1)
Depends: $depends
Recommends: ca-certificates
Section: net
Priority: optional
Description: Task-orchestration server
 Runs trees of tasks with dependencies, durably: every step is an event in an
 append-only log. JSON-RPC, event streams, webhooks, gRPC and A2A; an embedded
 SQLite store or Postgres.
CONTROL
    find "$place" -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +
    dpkg-deb --root-owner-group -Zxz --build "$place" "$output/taskledger_${version}_$arch.deb" >&2
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
rm -rf "$output"
mkdir -p "$output"

skipped="" built=()
for target in ${targets:-$ALL}; do
    why=$(missing "$target")
    if [ -n "$binary" ]; then
        built+=("$target $binary")
    elif [ -n "$why" ]; then
        echo "not built: $target: $why" >&2
        skipped="$skipped| $target | $why |"$'\n'
    else
        program=$(build "$target")
        try_out "$target" "$program"
        built+=("$target $program")
    fi
done
if [ ${#built[@]} = 0 ]; then
    echo "no target could be built" >&2
    exit 1
fi

for one in "${built[@]}"; do
    read -r target program <<<"$one"
    # shellcheck disable=SC2046 # words
    if $(runner "$target") "$program" --version >/dev/null 2>&1; then
        completions $(runner "$target") "$program"
        break
    fi
done
if [ ! -d "$work/man" ]; then
    echo "no program runs here, so completions cannot be written: build $host too, or install qemu-user-static" >&2
    exit 1
fi

# One package for each architecture, of the static program if no other was built: the others get the C library's updates.
declare -A packaged=()
rows=""
for one in "${built[@]}"; do
    read -r target program <<<"$one"
    glibc=$(glibc_of "$program")
    needs="none, static"
    if [ -n "$glibc" ]; then needs="glibc $glibc or newer"; fi
    rows="$rows| $target | $needs | $(stat -c %s "$program") |"$'\n'
    archive "$target" "$program"
    case $target in
        x86_64-*) arch=amd64 ;;
        aarch64-*) arch=arm64 ;;
        *) continue ;;
    esac
    if [ -z "${packaged[$arch]:-}" ] || [ -n "$glibc" ]; then packaged[$arch]=$program; fi
done
for arch in $(printf '%s\n' "${!packaged[@]}" | sort); do
    if command -v dpkg-deb >/dev/null; then
        package "${packaged[$arch]}" "$arch" "$(glibc_of "${packaged[$arch]}")"
    else
        echo "not made: the package for $arch: dpkg-deb is missing" >&2
        skipped="$skipped| package for $arch | dpkg-deb is missing |"$'\n'
    fi
done

packaging/sbom.py > "$output/taskledger-$version.cdx.json"
{
    echo "# taskledger $version"
    echo
    echo "Built from commit $commit of $date with $(rustc --version)."
    echo
    echo "| target | C library | bytes of the program |"
    echo "|---|---|---|"
    printf '%s' "$rows"
    if [ -n "$skipped" ]; then
        printf '\nNot built here:\n\n| target | why |\n|---|---|\n%s' "$skipped"
    fi
    printf '\n| file | bytes | SHA-256 |\n|---|---|---|\n'
    (cd "$output" && for file in taskledger*; do
        echo "| $file | $(stat -c %s "$file") | $(sha256sum "$file" | cut -d' ' -f1) |"
    done)
} > "$work/RELEASE.md"
install -m 0644 "$work/RELEASE.md" "$output/RELEASE.md"
(cd "$output" && sha256sum taskledger* RELEASE.md > SHA256SUMS)
cat "$output/RELEASE.md"
