"""Let pages of the repository be pages of the site: their links between folders still work."""

import re
from pathlib import Path
from posixpath import normpath, relpath
from typing import Any

from sphinx.application import Sphinx

# Files that are no pages of their own, and the page of the site that includes each.
INCLUDED = {
    "ARCHITECTURE.md": "architecture.md",
    "CHANGELOG.md": "changelog.md",
    "CODE_OF_CONDUCT.md": "code_of_conduct.md",
    "CONTRIBUTING.md": "contributing.md",
    "README.md": "index.md",
    "SECURITY.md": "security.md",
    "docs/benchmarks/results.md": "benchmark_tables.md",
}
LINK = re.compile(r"(?<=\]\()(?!\w+:|#)([^)#\s]+)((?:#[^)\s]*)?)(?=\))")


def setup(app: Sphinx) -> dict[str, Any]:
    """Rewrite links of pages, and of files that they include."""
    app.connect("source-read", _read)
    app.connect("include-read", _read_included)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _read(app: Sphinx, page: str, source: list[str]) -> None:
    """Rewrite the links of a page under docs/."""
    folder = normpath(f"docs/{page}/..")
    source[0] = rewrite_links(source[0], folder, folder)


def _read_included(app: Sphinx, path: Any, parent: str, source: list[str]) -> None:
    """Rewrite the links of an included file: it may be in another folder than the page."""
    docs = Path(app.srcdir).resolve()
    own = (docs / path).resolve().parent.relative_to(docs.parent)
    source[0] = rewrite_links(source[0], own.as_posix(), normpath(f"docs/{parent}/.."))


def rewrite_links(text: str, own: str, folder: str) -> str:
    """Return a text of a file in ``own`` with links as seen from a page in ``folder``.

    Files that are not pages of the site become plain names.
    """

    def rewrite(match: re.Match[str]) -> str:
        target = normpath(f"{own}/{match[1]}")
        target = f"docs/{INCLUDED[target]}" if target in INCLUDED else target
        return relpath(target, folder) + match[2]

    return LINK.sub(rewrite, text)
