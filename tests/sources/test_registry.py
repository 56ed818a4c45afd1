"""Sources register themselves, and the page of sources names every one of them."""

import subprocess
import sys
from pathlib import Path

import limes
from limes.sources import as_source

PAGE = Path(__file__).parents[2] / "docs" / "sources.md"


def test_every_module_of_the_folder_is_imported():
    code = (
        "import sys; from pathlib import Path; import limes.sources as sources; "
        "files = {path.stem for path in Path(sources.__file__).parent.glob('[!_]*.py')}; "
        "print(*sorted(stem for stem in files if f'limes.sources.{stem}' not in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_the_page_of_sources_names_every_registered_class():
    # Importing limes registers those of limes.agf and limes.libsvm too.
    assert limes.read_libsvm_model
    names = {cls.__name__ for cls in as_source.registry} - {"object"}
    assert {"SVC", "LogisticRegression", "LibsvmClassifier"} <= names
    table = [line for line in PAGE.read_text().splitlines() if line.startswith("|")]
    assert not {name for name in names if not any(f"`{name}`" in line for line in table)}
