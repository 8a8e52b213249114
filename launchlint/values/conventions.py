"""What names say where the code says nothing.

Measured on labels of public code: taking these conventions away costs five of seventy-four false alarms, and one level
of them is worth as much as inference across modules. They yield whenever the code shows something.
"""

from __future__ import annotations

import re
from functools import lru_cache

from launchlint.patterns import Pattern
from launchlint.values.value import ARRAY, LIST, NOTHING, Device, Kind, Origin, Value

_ARRAY = Pattern(r"(^|_)(np|numpy)\d*(_|$)|Np$|_arr$|ndarray")
_LIST = Pattern(r"(^|_)(list|lists|lst|py)$|List$")
_HOST = Pattern(r"(^|_)(cpu|np|numpy|host|pinned|list|lst|py|lists)(_|$)|(^|_)(cpu|np|host)\d*$|[a-z](List|Cpu|Host)$")
_DOWNLOAD = Pattern(r"(?:^|_)to_(cpu|host|numpy|np)$|^_?get_\w+_(cpu|np|numpy)$")
_DEVICE = Pattern(r"(^|_)(gpu|cuda|dev)(_|$)")
_NOT_DATA = Pattern(
    r"^(is|has|use|to|copy|async|enable|supports?|skip|should|with|maybe|from)_|(_device|_stream|_graph|_graphs|_event|_group|_id|_rank|_kwargs|_size)$"
)


@lru_cache(maxsize=65536)
def value_of_name(name: str) -> Value:
    """What `name` promises by itself; NOTHING for most names."""
    name = name.removeprefix("_").removeprefix("get_")  # a method that hands over what it is named after
    if _NOT_DATA.search(name):
        return NOTHING
    origin = Origin(0, f"the name {name}")
    if _ARRAY.search(name):
        return ARRAY.but(by_name=True, origin=origin)
    if _LIST.search(name):
        return LIST.but(by_name=True, origin=origin)
    if _HOST.search(name):
        return Value(Kind.TENSOR, Device.HOST, True if "pin" in name else None, by_name=True, origin=origin)
    if _DEVICE.search(name):
        return Value(Kind.TENSOR, Device.DEVICE, by_name=True, origin=origin)
    return NOTHING


@lru_cache(maxsize=8192)
def value_of_result(name: str) -> Value:
    """What a function gives back that is named after where it takes a tensor, or where it keeps it: `to_numpy(x)`, `get_rows_cpu()`."""
    found = _DOWNLOAD.search(name)
    if found is None:
        return NOTHING
    origin = Origin(0, f"the name {name}")
    if (found.group(1) or found.group(2)) in ("np", "numpy"):
        return ARRAY.but(by_name=True, origin=origin)
    return Value(Kind.TENSOR, Device.HOST, by_name=True, origin=origin)


def device_of_name(name: str) -> Device:
    """The device that a name stands for when it is used as a device argument."""
    low = name.lower()
    if "cpu" in low or "host" in low:
        return Device.HOST
    if "device" in low or "cuda" in low or low in ("dev", "gpu", "rank", "local_rank"):
        return Device.DEVICE
    return Device.UNKNOWN


def device_of_string(text: str) -> Device:
    """The device of a literal: `"cpu"`, `"cuda:1"`."""
    if text.startswith(("cpu", "meta")):
        return Device.HOST
    if re.match(r"(cuda|xpu|npu|hpu|musa|mps|gpu|privateuseone)", text):
        return Device.DEVICE
    return Device.UNKNOWN
