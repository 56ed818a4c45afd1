"""Downloads: bytes from an address, with their number checked and shown as they come."""

import http.client
import sys
from collections.abc import Callable
from urllib.request import urlopen

__all__ = ["Progress", "download", "show_progress"]

# Called with what is fetched, the bytes so far and the bytes in all (None: not known).
Progress = Callable[[str, int, int | None], None]

CHUNK = 1 << 16
TIMEOUT = 60.0  # seconds without a byte
BAR = 30  # characters


def download(url: str, progress: Progress) -> bytes:
    """Return what is at an address, or raise an ``OSError`` if less comes than announced."""
    parts: list[bytes] = []
    n_bytes = 0
    try:
        with urlopen(url, timeout=TIMEOUT) as response:
            announced = response.headers.get("Content-Length")
            total = int(announced) if announced else None
            while part := response.read(CHUNK):
                parts.append(part)
                n_bytes += len(part)
                progress(url, n_bytes, total)
    except http.client.HTTPException as error:
        raise OSError(f"{url} broke off: {error}") from error
    if total is not None and n_bytes != total:
        raise OSError(f"{url} broke off after {n_bytes} of {total} bytes")
    progress(url, n_bytes, n_bytes)
    return b"".join(parts)


def show_progress(what: str, n_bytes: int, total: int | None) -> None:
    """Draw a bar on the terminal; nothing where stderr is not one."""
    if not sys.stderr.isatty():
        return
    name = what.rsplit("/", 1)[-1]
    share = n_bytes / total if total else 0.0
    bar = "#" * int(BAR * share)
    end = "\n" if n_bytes == total else ""
    sys.stderr.write(f"\r{name:<24} [{bar:<{BAR}}] {n_bytes / 1e6:6.1f} MB{end}")
    sys.stderr.flush()
