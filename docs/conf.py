"""Configuration of the site: ``make docs`` builds it into build/docs/html."""

import os
import sys
import warnings
from pathlib import Path

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS / "extensions"))

from inventories import compile_inventories  # noqa: E402

import limes  # noqa: E402

# Written when the build begins; Sphinx looks for it before.
(DOCS / "generated" / "extra").mkdir(parents=True, exist_ok=True)

project = "limes"
author = "The limes developers"
project_copyright = author
version = release = limes.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.intersphinx",
    "numpydoc",
    "myst_parser",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
    "matplotlib.sphinxext.plot_directive",
    "api_pages",
    "mathml",
    "measured",
    "project_links",
    "sample_report",
]
# Parts of other pages.
exclude_patterns = ["benchmarks/*.md", "paper/*.md"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}

# Every reference must resolve; `make docs` turns warnings into errors.
nitpicky = True

html_theme = "pydata_sphinx_theme"
html_title = "limes"
html_favicon = "static/favicon.svg"
# Light or dark, as the reader's system has it.
html_context = {"default_mode": "auto"}
html_static_path = ["static"]
html_css_files = ["site.css"]
html_extra_path = ["generated/extra"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "show_nav_level": 1,
    "navigation_with_keys": False,
    "header_links_before_dropdown": 5,
    "navbar_align": "left",
    "logo": {"text": "limes"},
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_sidebars = {"choosing": [], "start": [], "changelog": []}

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 4

# Types stand in the sections of the docstrings.
autodoc_typehints = "none"
autodoc_member_order = "bysource"
numpydoc_show_class_members = False

intersphinx_mapping = compile_inventories(
    DOCS / "inventories.txt", DOCS.parent / "build" / "docs" / "inventories"
)

# Figures of "How it works" are drawn by the scripts in figures/.
plot_formats = [("png", 160)]
plot_html_show_formats = False
plot_html_show_source_link = False

sphinx_gallery_conf = {
    "examples_dirs": ["../examples"],
    "gallery_dirs": ["generated/gallery"],
    "filename_pattern": r"\.py$",
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_signature": False,
    "show_memory": False,
    "min_reported_time": 10_000,
    "write_computation_times": False,
    "image_srcset": ["2x"],
    "nested_sections": False,
    "copyfile_regex": r".*\.(png|json)$",
}
# Examples fit small problems, whose models agree less around the given rows.
warnings.filterwarnings("ignore", category=limes.QualityWarning)
# The same pictures on every computer: one thread changes no label, but the time of a fit.
os.environ.setdefault("OMP_NUM_THREADS", "1")
