"""A cache folder and a network for the tests of datasets."""

from urllib.error import URLError

import pytest

from limes.datasets import download
from tests.datasets.files import Response


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """Return an empty cache folder; no other folder is searched."""
    monkeypatch.delenv("LIMES_DATA", raising=False)
    monkeypatch.setenv("LIMES_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "datasets"


@pytest.fixture
def offline(cache, monkeypatch):
    """Return an empty cache folder of a computer without a network."""

    def refuse(*_, **__):
        raise URLError("no route to host")

    monkeypatch.setattr(download, "urlopen", refuse)
    monkeypatch.setattr(download, "fetch_openml", refuse)
    return cache


@pytest.fixture
def serve(cache, monkeypatch):
    """Return a function that puts bytes on a server, by the last part of their address."""
    contents = {}

    def respond(url, timeout):
        content, announced = contents[url.rsplit("/", 1)[-1]]
        return Response(content, announced)

    def put(name, content, announced="true"):
        contents[name] = (content, len(content) if announced == "true" else announced)

    monkeypatch.setattr(download, "urlopen", respond)
    return put
