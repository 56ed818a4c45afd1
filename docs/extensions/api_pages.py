"""Write the pages of the API reference: one for each public name, and a list by module."""

import inspect
from collections import defaultdict
from importlib import import_module
from pathlib import Path
from typing import Any

from public_names import PublicName, public_names
from sphinx.application import Sphinx

FOLDER = "generated/api"


def setup(app: Sphinx) -> dict[str, Any]:
    """Write the pages before Sphinx looks for them."""
    app.connect("builder-inited", lambda app: write_pages(Path(app.srcdir) / FOLDER))
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def write_pages(folder: Path) -> None:
    """Write all pages, and remove those of names that no longer exist."""
    folder.mkdir(parents=True, exist_ok=True)
    by_module: dict[str, list[PublicName]] = defaultdict(list)
    for public in public_names():
        by_module[public.module].append(public)
    pages = {"index.rst": _index(by_module)}
    for names in by_module.values():
        pages |= {f"{public.path}.rst": _page(public) for public in names}
    for old in set(folder.glob("*.rst")) - {folder / name for name in pages}:
        old.unlink()
    for name, text in pages.items():
        _write_if_changed(folder / name, text)


def _index(by_module: dict[str, list[PublicName]]) -> str:
    """Return the list of names, by module, with the first sentence of each docstring."""
    intro = (
        "Names on these pages are public: they are in the ``__all__`` of their module. Everything "
        "else may change without notice. Examples are run by the tests."
    )
    parts = [_heading("API reference", "="), f"{intro}\n"]
    for module, names in by_module.items():
        parts += [_heading(module, "-"), f"{_summary(import_module(module))}\n"]
        parts += [".. list-table::\n   :widths: 35 65\n   :class: names\n"]
        rows = [
            f"   * - :doc:`{public.name} <{public.path}>`\n     - {_summary_of(public)}"
            for public in names
        ]
        parts += ["\n".join(rows) + "\n"]
        entries = "\n".join(f"   {public.name} <{public.path}>" for public in names)
        parts += [f".. toctree::\n   :hidden:\n\n{entries}\n"]
    return "\n".join(parts)


def _page(public: PublicName) -> str:
    """Return the page of a name: its docstring, with those of its methods."""
    title = _heading(public.path, "=")
    scope = f".. currentmodule:: {public.module}\n"
    if inspect.isclass(public.value):
        members = ", ".join(public.members())
        options = f"   :members: {members}\n" if members else ""
        return f"{title}\n{scope}\n.. autoclass:: {public.name}\n{options}"
    kind = "autofunction" if callable(public.value) else "autodata"
    return f"{title}\n{scope}\n.. {kind}:: {public.name}\n"


def _heading(text: str, line: str) -> str:
    return f"{text}\n{line * len(text)}\n"


def _summary(value: Any) -> str:
    """Return the first sentence of a docstring, on one line."""
    return " ".join((inspect.getdoc(value) or "").split("\n\n")[0].split())


def _summary_of(public: PublicName) -> str:
    """Return what the list says of a name: the value of a constant, else its first sentence."""
    if callable(public.value):
        return _summary(public.value)
    return ", ".join(f"``{item}``" for item in public.value)


def _write_if_changed(path: Path, text: str) -> None:
    """Leave a page alone that is the same, so that Sphinx does not read it again."""
    if not path.exists() or path.read_text() != text:
        path.write_text(text)
