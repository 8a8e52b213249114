"""Sorting with a bounded number of records in memory."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from launchlint.trace import order
from launchlint.trace.order import Sorter


@given(st.lists(st.integers(0, 2**32 - 1)), st.integers(1, 9))
def test_the_order_is_that_of_the_numbers(numbers: list[int], piece: int) -> None:
    with pytest.MonkeyPatch.context() as patch, Sorter(4) as sorter:
        patch.setattr(order, "PIECE", piece)
        patch.setattr(order, "BUFFERS", 16)
        for number in numbers:
            sorter.add(struct.pack(">I", number))
            assert len(sorter.records) < max(piece, 2), "no more is kept in memory"
        assert [struct.unpack(">I", record)[0] for record in sorter] == sorted(numbers)
