#!/usr/bin/env python3
"""Prints the software bill of materials of the program as CycloneDX 1.5, from Cargo.lock.

sbom.py [--target TRIPLE]: what is compiled into the program for that target (this machine's unless given). The same lock
gives the same text.
"""

import argparse
import hashlib
import json
import re
import subprocess
import sys
import uuid
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROGRAM = "taskledger"


def checksums_of(lock):
    """Names, versions and checksums in the text of Cargo.lock."""
    for package in lock.split("[[package]]")[1:]:
        said = dict(re.findall(r'^(name|version|checksum) = "(.*)"$', package, re.M))
        yield (said["name"], said["version"]), said.get("checksum")


def metadata(target):
    command = ["cargo", "metadata", "--locked", "--format-version", "1", "--filter-platform", target]
    return json.loads(subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout)


def host():
    lines = subprocess.run(["rustc", "-vV"], check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
    return next(line.removeprefix("host: ") for line in lines if line.startswith("host: "))


def compiled(nodes, root):
    """The packages that the program is built from, with those that each uses. Tests are left out."""
    found, left = {}, [root]
    while left:
        package = left.pop()
        if package in found:
            continue
        uses = [d["pkg"] for d in nodes[package]["deps"] if any(k["kind"] != "dev" for k in d["dep_kinds"])]
        found[package] = sorted(set(uses))
        left.extend(uses)
    return found


def component(package, checksums):
    name, version = package["name"], package["version"]
    shown = {"type": "library", "bom-ref": f"pkg:cargo/{name}@{version}", "name": name, "version": version,
             "purl": f"pkg:cargo/{name}@{version}"}
    if package["description"]:
        shown["description"] = package["description"].strip()
    if package["license"]:
        # An old way to write OR.
        shown["licenses"] = [{"expression": package["license"].replace("/", " OR ")}]
    if checksum := checksums.get((name, version)):
        shown["hashes"] = [{"alg": "SHA-256", "content": checksum}]
    if package["repository"]:
        shown["externalReferences"] = [{"type": "vcs", "url": package["repository"]}]
    return shown


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--target", default=None)
    target = parser.parse_args().target or host()
    lock = (ROOT / "Cargo.lock").read_bytes()
    checksums = dict(checksums_of(lock.decode()))
    told = metadata(target)
    packages = {package["id"]: package for package in told["packages"]}
    nodes = {node["id"]: node for node in told["resolve"]["nodes"]}
    root = next(id for id in told["workspace_members"] if packages[id]["name"] == PROGRAM)
    graph = compiled(nodes, root)
    shown = {id: component(packages[id], checksums) for id in graph}
    program = shown.pop(root) | {"type": "application"}
    digest = hashlib.sha256(lock + target.encode()).hexdigest()
    json.dump({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_OID, digest)}",
        "version": 1,
        "metadata": {"component": program, "properties": [{"name": "cargo:target", "value": target}]},
        "components": sorted(shown.values(), key=lambda c: c["bom-ref"]),
        "dependencies": sorted(
            ({"ref": ({root: program} | shown)[id]["bom-ref"],
              "dependsOn": [shown[used]["bom-ref"] for used in uses]} for id, uses in graph.items()),
            key=lambda d: d["ref"]),
    }, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
