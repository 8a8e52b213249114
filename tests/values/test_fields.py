"""Declared fields of a class: what every construction in the file gives to them."""

from __future__ import annotations

import pytest

from tests.values.probe import described

HOST = "tensor on the host"
UNKNOWN = "tensor of unknown device"
CODE = """
from dataclasses import dataclass

@dataclass
class Batch{bases}:
    lengths: torch.Tensor
    rows: torch.Tensor
{more}
def make(x: torch.Tensor, options):
    return {made}

def use(batch: Batch):
    probe(batch.lengths)
    probe(batch.rows)
"""


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        ("Batch(x.cpu(), x.cuda())", [HOST, UNKNOWN]),
        ("Batch(lengths=x.cpu(), rows=x)", [HOST, UNKNOWN]),
        ("Batch(lengths=np.zeros(3), rows=x.cpu())", [HOST, HOST]),
        ("[Batch(x.cpu(), x.cpu()), Batch(x.cpu(), x.cuda())]", [HOST, UNKNOWN]),
        ("Batch(x.cpu(), **options)", [UNKNOWN, UNKNOWN]),
        ("Batch(*options)", [UNKNOWN, UNKNOWN]),
        ("[Batch(rows=x.cpu()), Batch(x)]", [UNKNOWN, UNKNOWN]),
        ("None", [UNKNOWN, UNKNOWN]),
    ],
)
def test_all_constructions_count(made: str, expected: list[str]) -> None:
    assert described(CODE.format(made=made, bases="", more="")) == expected


def test_a_base_may_hold_earlier_fields() -> None:
    assert described(CODE.format(made="Batch(x.cpu(), rows=x.cpu())", bases="(Base)", more="")) == [UNKNOWN, HOST]


@pytest.mark.parametrize(
    "more",
    ["    def __init__(self, a, b): ...\n", "    def move(self):\n        self.lengths = self.lengths.cuda()\n"],
)
def test_a_constructor_of_its_own_and_a_later_store(more: str) -> None:
    assert described(CODE.format(made="Batch(x.cpu(), x)", bases="", more=more))[0] != HOST


def test_a_construction_that_reads_the_field_ends() -> None:
    code = CODE.format(made="Batch(x.lengths, Batch(x, x).rows)", bases="", more="").replace("x: torch.Tensor, options", "x: Batch")
    assert described(code) == [UNKNOWN, UNKNOWN]


TWINS = """
class Batch:
    lens: torch.Tensor
    lens_{end}: {kind}
    rows: torch.Tensor

def use(batch: Batch, ids: torch.Tensor, ids_{end}: {kind}, other: torch.Tensor):
    probe(batch.lens)
    probe(batch.rows)
    probe(ids)
    probe(other)
"""


@pytest.mark.parametrize(
    ("end", "kind"),
    [("cpu", "torch.Tensor | None"), ("cpu", "list[int]"), ("np", "np.ndarray"), ("host", "torch.Tensor")],
)
def test_a_tensor_beside_its_host_copy_is_on_the_device(end: str, kind: str) -> None:
    assert described(TWINS.format(end=end, kind=kind)) == ["tensor on the device", UNKNOWN, "tensor on the device", UNKNOWN]


def test_other_names_are_no_copies() -> None:
    assert described(TWINS.format(end="max", kind="int")) == [UNKNOWN] * 4


def test_what_the_constructions_give_beats_the_copy() -> None:
    more = "    lengths_cpu: torch.Tensor | None = None\n"
    assert described(CODE.format(made="Batch(x.cpu(), x)", bases="", more=more)) == [HOST, UNKNOWN]
