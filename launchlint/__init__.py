"""launchlint: find the Python that starves a GPU.

Importing this package is cheap on purpose: every heavy module (rich, astroid, torch) is imported by the
function that needs it.
"""

__version__ = "0.1.0"
