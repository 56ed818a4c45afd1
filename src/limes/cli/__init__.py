"""The ``limes`` command."""
