"""List the public names of limes: those in the ``__all__`` of a module."""

import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pkgutil import walk_packages
from typing import Any

import limes

# The compiled core and the code of the measurements are used through commands.
PRIVATE = ("limes._core", "limes.research")


@dataclass(frozen=True)
class PublicName:
    """A name under which something is imported, the first if it has several."""

    module: str
    name: str
    value: Any

    @property
    def path(self) -> str:
        """The whole name, such as ``limes.files.read_rows``."""
        return f"{self.module}.{self.name}"

    def members(self) -> list[str]:
        """Return the public methods and properties of a class, also those of its base classes."""
        if not inspect.isclass(self.value):
            return []
        own = [base for base in self.value.__mro__ if base.__module__.startswith("limes.")]
        names = {
            name: None
            for base in own
            for name, member in vars(base).items()
            if not name.startswith("_") and _is_member(member)
        }
        return list(names)


def public_names() -> Iterator[PublicName]:
    """Yield every public name once, those of ``limes`` itself first."""
    seen = set()
    for module in ["limes", *sorted(info.name for info in _modules())]:
        for name in sorted(getattr(import_module(module), "__all__", ())):
            value = getattr(import_module(module), name)
            # A function of another package is documented there.
            is_own = getattr(value, "__module__", "limes").startswith("limes")
            if is_own and id(value) not in seen:
                seen.add(id(value))
                yield PublicName(module, name, value)


def _modules() -> Iterator[Any]:
    """Yield the modules that may have public names."""
    for info in walk_packages(limes.__path__, "limes."):
        if not info.name.startswith(PRIVATE) and not info.name.endswith("__main__"):
            yield info


def _is_member(member: Any) -> bool:
    """Return whether an attribute of a class is a method or a property."""
    kinds = (classmethod, staticmethod, property)
    return inspect.isfunction(member) or isinstance(member, kinds)
