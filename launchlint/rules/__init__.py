"""The rules, one folder each.

In a wheel the folders lie here. In a checkout they lie in the top-level folder `rules`, which must never be installed
under that name: the line below points this package there when the marker file says that it is ours.
"""

from __future__ import annotations

import os

_CHECKOUT = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "rules")
if os.path.isfile(os.path.join(_CHECKOUT, "launchlint-rules.marker")):
    __path__ = [_CHECKOUT]
