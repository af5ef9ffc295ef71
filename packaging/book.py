#!/usr/bin/env python3
"""What mdBook does not do by itself for the documentation.

    packaging/book.py                  a preprocessor of mdBook (book.toml): links to files that are not in the book
    packaging/book.py --check FOLDER   fails if a link or an anchor of a built book leads nowhere

Pages link to files of the repository as they are seen there. In the book such a link becomes its text and the path of the
file, or a link below TASKLEDGER_REPOSITORY_URL if that is set, such as https://forge.example/taskledger/blob/main.
"""
import html
import json
import os
import posixpath
import re
import sys
from urllib.parse import quote, unquote

# Where the pages are in the repository.
SOURCE = "docs"
# A link or an image with a text of one line, perhaps with a title, and code, in which there are none. The text of a link
# may have images and code.
LINK = re.compile(
    r"""(?P<code>```.*?^[ ]*```|`[^`\n]*`)
    |(?P<image>!?)\[(?P<text>(?:!\[[^\]\n]*\]\([^)\n]*\)|`[^`\n]*`|[^\]`\n])*)\]
    \([ ]*(?P<to><[^>\n]*>|[^)\s<]+)(?P<title>[ ]+(?:"[^"\n]*"|'[^'\n]*'))?[ ]*\)""",
    re.DOTALL | re.MULTILINE | re.VERBOSE,
)
ELSEWHERE = re.compile(r"^[a-z][a-z0-9+.-]*:")


def links(page, text, base):
    """A text of a page, as it is to be in the book. `base`: where files are that are not in it."""
    return LINK.sub(lambda found: link(page, found, base), text)


def link(page, found, base):
    """A link or an image of a page, as it is to be in the book."""
    folder = posixpath.join(SOURCE, posixpath.dirname(page))
    in_book = lambda place: place.startswith(f"{SOURCE}/")
    # mdBook calls these pages so.
    named = lambda to: re.sub(r"(^|/)README\.md(?=#|$)", r"\1index.md", to)
    return led(folder, found, base, in_book, named)


def leading_elsewhere(folder, text, base, is_here):
    """A text of a page in `folder`, of whose links those lead elsewhere that lead to no file that `is_here`."""
    return LINK.sub(lambda found: led(folder, found, base, is_here, lambda to: to), text)


def led(folder, found, base, is_here, named):
    """A link or an image of a page in `folder`. An image that is not here becomes a link to it."""
    if found["code"]:
        return found[0]
    image, text, title = found["image"], found["text"], found["title"] or ""
    if not image:
        # A link within a link would end it.
        text = LINK.sub(lambda inner: led(folder, inner, None, is_here, named), text)
    to = found["to"].removeprefix("<").removesuffix(">")
    if ELSEWHERE.match(to):
        return f"{image}[{text}]({found['to']}{title})"
    path, _, anchor = to.partition("#")
    place = posixpath.normpath(posixpath.join(folder, unquote(path)))
    if not path or is_here(place):
        to = named(to)
        return f"{image}[{text}]({f'<{to}>' if ' ' in to else to}{title})"
    if base:
        return f"[{text}]({base.rstrip('/')}/{quote(place)}{'#' + anchor if anchor else ''}{title})"
    is_its_name = text.strip("`") in (place, posixpath.basename(place))
    return f"`{place}`" if is_its_name else f"{text} (`{place}`)"


def rewrite(items):
    for item in items:
        chapter = item.get("Chapter") if isinstance(item, dict) else None
        if chapter:
            page = chapter.get("source_path") or ""
            chapter["content"] = links(page, chapter["content"], os.environ.get("TASKLEDGER_REPOSITORY_URL"))
            rewrite(chapter["sub_items"])


def check(folder):
    """Names links of a built book that lead nowhere; gives how many."""
    pages = {}
    for place, _, names in os.walk(folder):
        for name in names:
            if name.endswith(".html"):
                path = os.path.join(place, name)
                with open(path, encoding="utf-8") as file:
                    pages[path] = file.read()
    anchors = {path: set(re.findall(r'\bid="([^"]+)"', text)) for path, text in pages.items()}
    bad = set()
    for path, text in pages.items():
        if os.path.basename(path) in ("print.html", "404.html", "toc.html"):
            continue # what others have, from another place
        for to in map(html.unescape, re.findall(r'(?:href|src)="([^"]+)"', text)):
            if ELSEWHERE.match(to):
                continue
            file, _, anchor = to.partition("#")
            file = os.path.normpath(os.path.join(os.path.dirname(path), unquote(file))) if file else path
            if os.path.isdir(file):
                file = os.path.join(file, "index.html")
            if not os.path.exists(file) or anchor and file in anchors and unquote(anchor) not in anchors[file]:
                bad.add(f"{os.path.relpath(path, folder)}: `{to}` leads nowhere")
    for one in sorted(bad):
        print(one, file=sys.stderr)
    if not pages:
        print(f"there is no book in {folder}", file=sys.stderr)
    return len(bad) + (not pages)


def main():
    if sys.argv[1:2] == ["supports"]:
        return 0 # every renderer
    if sys.argv[1:2] == ["--check"]:
        return 1 if check(sys.argv[2]) else 0
    _, book = json.load(sys.stdin)
    rewrite(book.get("items", book.get("sections", [])))
    json.dump(book, sys.stdout)
    return 0


if __name__ == "__main__":
    sys.exit(main())
