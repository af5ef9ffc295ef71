"""The examples of the documentation compile, and name only what the package has."""

from __future__ import annotations

import ast
import inspect
import re
import unittest
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import taskledger

ROOT = Path(__file__).resolve().parents[3]
PAGES = {
    "docs/guides/workers.md": 3,
    "docs/guides/people.md": 1,
    "docs/guides/contracts.md": 1,
    "clients/python/README.md": 8,
}
"""Pages, and how many examples each has at least."""
# What examples call the things that they were given above, or that the package hands them.
NAMED: dict[str, Any] = {
    "taskledger": taskledger,
    "client": taskledger.Client,
    "worker": taskledger.Worker,
    "ctx": taskledger.Context,
}


def examples(page: str) -> list[str]:
    text = (ROOT / page).read_text(encoding="utf-8")
    return re.findall(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


def faults(tree: ast.AST) -> Iterator[str]:
    """Names that are not there, and arguments that are not taken."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            named = node if isinstance(node, ast.Attribute) else None
            if named is not None and ast.unparse(named.value) == "taskledger":
                if not hasattr(taskledger, named.attr):
                    yield f"line {named.lineno}: `taskledger.{named.attr}` is not there"
            continue
        called = node.func
        if not (isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name)):
            continue
        owner = NAMED.get(called.value.id)
        if owner is None:
            continue
        found = getattr(owner, called.attr, None)
        if found is None:
            yield f"line {node.lineno}: `{ast.unparse(called)}` is not there"
        elif inspect.isfunction(found) or inspect.isclass(found):
            taken = inspect.signature(found).parameters
            if any(each.kind is each.VAR_KEYWORD for each in taken.values()):
                continue
            for keyword in node.keywords:
                if keyword.arg is not None and keyword.arg not in taken:
                    yield f"line {node.lineno}: `{ast.unparse(called)}` takes no `{keyword.arg}`"


class Examples(unittest.TestCase):
    def test_examples_compile_and_name_what_is_there(self) -> None:
        for page, least in PAGES.items():
            found = examples(page)
            self.assertGreaterEqual(len(found), least, page)
            for number, code in enumerate(found, 1):
                with self.subTest(page=page, number=number):
                    name = f"{page}, example {number}"
                    tree = compile(code, name, "exec", ast.PyCF_ONLY_AST)
                    compile(code, name, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
                    self.assertEqual([*faults(tree)], [])

    def test_faults_are_found(self) -> None:
        wrong = "taskledger.Nothing\nworker.method('m', limits=2)\nctx.chek()\n"
        said = [*faults(ast.parse(wrong))]
        self.assertEqual(len(said), 3, said)


if __name__ == "__main__":
    unittest.main()
