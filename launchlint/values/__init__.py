"""What a value is: tensor or not, on which device, pinned, a host list, constant for the run."""

from launchlint.values.value import Device, Kind, Origin, Value

__all__ = ["Device", "Kind", "Origin", "Value"]
