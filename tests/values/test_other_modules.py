"""What lives in modules that are not part of the run: functions, attributes, methods, constants, base classes."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from launchlint.settings import Settings
from launchlint.values.astroid_session import Session
from launchlint.values.astroid_values import AstroidValues
from launchlint.values.modules import Package, bases_of, make_outside, package_of
from launchlint.values.value import NOTHING, Kind, Value
from tests.values.probe import described
from tests.values.project import names_with, values_for, write_project

DEVICE = "tensor on the device"
HOST = "tensor on the host"
TENSOR = "tensor of unknown device"


@pytest.fixture(scope="module")
def linted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_project(tmp_path_factory.mktemp("project"))


@pytest.fixture(scope="module")
def values(linted: Path) -> AstroidValues:
    return values_for(linted)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("shop.base.make", DEVICE),
        ("shop.exported", DEVICE),
        ("shop.star.make", DEVICE),
        ("shop.base.on_host", HOST),
        ("shop.base.promised", TENSOR),
        ("shop.base.downloaded", HOST),
        ("shop.base.moved", DEVICE),
        ("shop.base.largest", TENSOR),
        ("shop.base.along", "tuple"),
        ("shop.base.activated", TENSOR),
        ("shop.base.array", "numpy array"),
        ("shop.base.numbers", "host list"),
        ("shop.base.rows", "host list"),  # a generator
        ("shop.base.batch", "object Batch"),
        ("shop.base.Inner", "object Inner"),
        ("neighbour.tools.make", HOST),
        # no answer
        ("shop.base.double", "unknown"),  # depends on what it is given
        ("shop.base.maybe", "unknown"),  # a number, or what nobody knows
        ("shop.base.loop", "unknown"),
        ("shop.base.later", "unknown"),
        ("shop.base.changed", "unknown"),  # a decorator may return anything
        ("shop.base.absent", "unknown"),
        ("shop.absent.make", "unknown"),
        ("nowhere_to_be_found.make", "unknown"),
        ("torch.zeros", "unknown"),
        ("os.path.join", "unknown"),
    ],
)
def test_what_a_function_returns(values: AstroidValues, name: str, expected: str) -> None:
    assert str(values.function(name)) == expected


@pytest.mark.parametrize(
    ("attribute", "expected"),
    [
        ("moved_rows", DEVICE),
        ("plain_rows", HOST),
        ("summed", DEVICE),
        ("viewed", "numpy array"),
        ("array", "numpy array"),
        ("count", "host scalar"),
        ("on_device", DEVICE),
        ("scale", "unknown"),  # its default is a number, and others may be given
        ("nothing", "unknown"),
        ("unknown", "unknown"),
        ("absent", "unknown"),
    ],
)
def test_an_attribute(values: AstroidValues, attribute: str, expected: str) -> None:
    assert str(values.attribute("Inner", attribute, names_with(Inner="shop.base.Inner"))) == expected


@pytest.mark.parametrize(
    ("field", "expected"),
    [("tokens", TENSOR), ("moved", TENSOR), ("lens", DEVICE), ("lens_cpu", TENSOR), ("names", "host list"), ("inner", "object Inner")],
)
def test_a_field_of_a_dataclass(values: AstroidValues, field: str, expected: str) -> None:
    assert str(values.attribute("Batch", field, names_with(Batch="shop.base.Batch"))) == expected


def test_a_class_that_is_known_only_by_an_answer(linted: Path) -> None:
    values = values_for(linted)
    assert values.attribute("Inner", "moved_rows", names_with()) is NOTHING
    assert values.attribute("Batch", "inner", names_with(Batch="shop.base.Batch")).class_name == "Inner"
    assert str(values.attribute("Inner", "moved_rows", names_with())) == DEVICE


def test_a_layer_moves_with_what_it_made_without_a_device(values: AstroidValues) -> None:
    names = names_with(Layer="shop.base.Layer")
    assert str(values.attribute("Layer", "weight", names)) == TENSOR
    assert str(values.attribute("Layer", "table", names)) == DEVICE


def test_a_method(values: AstroidValues) -> None:
    names = names_with(Inner="shop.base.Inner", Mine="shop.models.linted.Mine")
    assert str(values.method("Inner", "pack", names)) == DEVICE
    assert [str(part) for part in values.method("Inner", "both", names).elements] == [DEVICE, "host scalar"]
    assert str(values.method("Mine", "lookup", names)) == DEVICE  # inherited, through a star import and another name
    assert values.method("Inner", "absent", names) is NOTHING


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("shop.base.LIMIT", "host scalar"),
        ("shop.base.NAMES", "host list"),
        ("shop.base.TABLE", HOST),
        ("shop.base.WHERE", "device"),
        ("shop.base.Mode.FAST", "host scalar"),
        ("shop.base.ABSENT", "unknown"),
    ],
)
def test_a_constant(values: AstroidValues, name: str, expected: str) -> None:
    assert str(values.constant(name)) == expected


def test_an_answer_says_where_it_comes_from(values: AstroidValues) -> None:
    assert values.function("shop.base.make").origin.why == "inferred from shop.base.make"
    assert values.function("shop.base.make").origin.line == 0


def test_bases_across_modules(linted: Path) -> None:
    assert bases_of(str(linted), "Mine", Session()) == ["shop.star.Layer", "shop.base.Layer", "torch.nn.Module"]
    assert bases_of(str(linted), "Theirs", Session())[-1] == "torch.nn.Module"
    assert "elsewhere.Foreign" in bases_of(str(linted), "Theirs", Session())
    assert bases_of(str(linted), "Absent", Session()) == []


def test_the_flow_uses_the_answers(linted: Path) -> None:
    code = """
    from shop.base import Batch, Inner, make

    def f(batch: Batch, inner: Inner):
        probe(batch.inner.viewed)
        probe(make(3) + 1)
        probe(inner.pack())

    class Derived(Inner):
        def step(self):
            probe(self.plain_rows)
    """
    outside = make_outside(_Nobody(), str(linted), Settings(), Session())
    assert described(code, outside) == ["numpy array", DEVICE, DEVICE, HOST]
    assert described(code) == ["unknown", "unknown", "unknown", "unknown"]


def test_the_run_answers_first(linted: Path) -> None:
    outside = make_outside(_Always(Value(Kind.ARRAY)), str(linted), Settings(), Session())
    assert outside.function("shop.base.make").kind is Kind.ARRAY


class _Nobody:
    def attribute(self, class_name: str, attribute: str, names: object) -> Value:
        return NOTHING

    def method(self, class_name: str, method: str, names: object) -> Value:
        return NOTHING

    def function(self, dotted_name: str) -> Value:
        return NOTHING

    def constant(self, dotted_name: str) -> Value:
        return NOTHING

    def any_attribute(self, attribute: str) -> Value:
        return NOTHING


class _Always(_Nobody):
    def __init__(self, value: Value) -> None:
        self.value = value

    def function(self, dotted_name: str) -> Value:
        return self.value


# ---------------------------------------------------------------- where modules are looked for


def test_nothing_is_imported_or_run(linted: Path) -> None:
    before = set(sys.modules)
    assert str(values_for(linted).function("shop.base.make")) == DEVICE  # the module would raise if it ran
    assert not {name for name in set(sys.modules) - before if name.startswith(("shop", "torch", "numpy"))}


def test_the_project_of_a_file(linted: Path) -> None:
    root = str(linted.parents[2])
    assert package_of(str(linted)) == Package(root, "shop")
    assert package_of(str(linted.parents[1] / "__init__.py")) == Package(root, "shop")


def test_an_installed_package_sees_only_itself(tmp_path: Path) -> None:
    values = values_for(write_project(tmp_path / "site-packages"))
    assert values.package.is_installed
    assert str(values.function("shop.base.make")) == DEVICE
    assert values.function("neighbour.tools.make") is NOTHING


def test_a_folder_called_torch_does_not_take_the_place_of_ours(linted: Path, tmp_path: Path) -> None:
    path = write_project(tmp_path)
    (tmp_path / "torch.py").write_text("def zeros(n, device=None):\n    return 1\n", encoding="utf-8")
    assert str(values_for(path).function("shop.base.make")) == DEVICE


def test_a_changed_file_is_read_again(tmp_path: Path) -> None:
    path, session = write_project(tmp_path), Session()
    assert str(values_for(path, session=session).function("neighbour.tools.make")) == HOST
    (tmp_path / "neighbour/tools.py").write_text("import torch\ndef make():\n    return [1, 2, 3, 4, 5, 6]\n", encoding="utf-8")
    assert str(values_for(path, session=session).function("neighbour.tools.make")) == "host list"


@pytest.mark.parametrize("content", [b"def make(:\n", b"\xff\xfe\x00", b"x = '\0'\n", b"# coding: nonsense\n", b""], ids=repr)
def test_a_file_that_cannot_be_read_is_no_answer(tmp_path: Path, content: bytes) -> None:
    path = write_project(tmp_path)
    (tmp_path / "neighbour/tools.py").write_bytes(content)
    assert values_for(path).function("neighbour.tools.make") is NOTHING


def test_a_file_without_a_project(tmp_path: Path) -> None:
    path = tmp_path / "alone.py"
    path.write_text("import beside\n", encoding="utf-8")
    (tmp_path / "beside.py").write_text("import torch\ndef make():\n    return torch.zeros(3)\n", encoding="utf-8")
    assert str(values_for(path).function("beside.make")) == HOST
    assert package_of("<stdin>") is None or values_for(Path("<stdin>")).function("beside.make") is NOTHING
