"""Compile the names of other projects that the site links to, so that no build needs a network."""

import zlib
from pathlib import Path

Mapping = dict[str, tuple[str, tuple[str, ...]]]


def compile_inventories(listing: Path, folder: Path) -> Mapping:
    """Write an inventory for each project in a listing; return the mapping for intersphinx.

    A section begins with ``[project] address``; a line is ``domain:role name page``. A page that
    ends in ``$`` is completed by the name.
    """
    folder.mkdir(parents=True, exist_ok=True)
    mapping: Mapping = {}
    for section in listing.read_text().split("\n[")[1:]:
        heading, *lines = section.splitlines()
        project, address = heading.split("] ")
        entries = [line.split() for line in lines if line and not line.startswith("#")]
        path = folder / f"{project}.inv"
        path.write_bytes(_inventory(project, entries))
        mapping[project] = (address, (str(path),))
    return mapping


def _inventory(project: str, entries: list[list[str]]) -> bytes:
    """Return the bytes of an inventory of Sphinx, version 2."""
    header = (
        f"# Sphinx inventory version 2\n# Project: {project}\n# Version: \n"
        "# The remainder of this file is compressed using zlib.\n"
    )
    body = "".join(f"{name} {role} 1 {page} -\n" for role, name, page in entries)
    return header.encode() + zlib.compress(body.encode())
