#!/usr/bin/env python3
"""Writes README.md, CHANGELOG.md and the pages of docs/ to a folder, as archives and packages have them.

    packaging/pages.py FOLDER

Links between them stay as they are. A link to a file that is not among them becomes its text and the path of the file in
the source, or a link below TASKLEDGER_REPOSITORY_URL if that is set. The same source gives the same files.
"""
import os
import posixpath
import sys

sys.dont_write_bytecode = True
from book import leading_elsewhere

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FILES = ["README.md", "CHANGELOG.md"]
FOLDER = "docs"
# What a folder of pages has beside them.
PICTURES = (".svg", ".png")


def shipped():
    """The files, as paths below the root of the source."""
    found = list(FILES)
    for place, folders, names in os.walk(os.path.join(ROOT, FOLDER)):
        folders.sort()
        below = posixpath.relpath(place, ROOT)
        found += [posixpath.join(below, name) for name in sorted(names) if name.endswith((".md", *PICTURES))]
    return found


def write(folder):
    files = shipped()
    here = set(files)
    # A link may lead to a folder of pages.
    here.update(posixpath.dirname(file) for file in files)
    base = os.environ.get("TASKLEDGER_REPOSITORY_URL")
    for file in files:
        with open(os.path.join(ROOT, file), "rb") as source:
            content = source.read()
        if file.endswith(".md"):
            text = leading_elsewhere(posixpath.dirname(file), content.decode(), base, here.__contains__)
            content = text.encode()
        to = os.path.join(folder, file)
        os.makedirs(os.path.dirname(to), exist_ok=True)
        with open(to, "wb") as target:
            target.write(content)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    write(sys.argv[1])
