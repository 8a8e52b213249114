"""The reference receiver of DeepEP V2: the published defect, its fix, and the forms that are better still.

See README.md. `python -m fixed_receiver validate` checks all of it on the machine at hand.
"""

from fixed_receiver.cache import IdCache
from fixed_receiver.deepep_adapter import read_dispatch
from fixed_receiver.receiver import Dispatched, ExpertRows, Received, Receiver
from fixed_receiver.spec import DispatchView, SpecError
from fixed_receiver.variants import CODES, choose, expand

__all__ = [
    "CODES",
    "DispatchView",
    "Dispatched",
    "ExpertRows",
    "IdCache",
    "Received",
    "Receiver",
    "SpecError",
    "choose",
    "expand",
    "read_dispatch",
]
