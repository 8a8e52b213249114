"""What stays the same for the life of an object, so that building it anew every step is waste."""

from __future__ import annotations

import ast
import textwrap

import pytest

from launchlint.context import SiteContext
from launchlint.model import Heat
from launchlint.rule import FunctionFacts
from launchlint.scan import Site
from launchlint.settings import Settings
from tests.values.probe import flow_of

CLASS = """
class Runner:
    width = 4

    def __init__(self, config):
        self.size = 3
        self.config = config
        self.step_number = 0

    def step(self, n, config):
        self.step_number += 1
        probe({})
"""


def is_constant(expression: str) -> bool:
    """What a rule is told about `expression` inside `Runner.step`."""
    source, flow = flow_of(textwrap.dedent(CLASS).format(expression))
    (scope,) = [scope for scope in flow.found.scopes if scope.name == "step"]
    assert scope.node is not None
    statement = scope.node.body[-1]
    assert isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call)
    facts = FunctionFacts("Runner.step", scope.node, None, Heat.ROLE, "", ())
    site = Site(statement.value, (), None, statement)
    return SiteContext(source, Settings(), flow.found, flow, scope, facts, site).is_constant(statement.value.args[0])


@pytest.mark.parametrize(
    "expression",
    [
        "3", "-1", "[1, 2]", "(0, 1)", "3 * 4", "self.size", "self.width", "[0, self.size]", "self.size + 1", "self.config.hidden_size",
        "config.heads", "MAX_ROWS", "torch.float32", "module.MAX_ROWS",
    ],
)  # fmt: skip
def test_constant_for_the_life_of_the_object(expression: str) -> None:
    assert is_constant(expression)


@pytest.mark.parametrize(
    "expression", ["n", "self.step_number", "self.unheard_of", "[0, n]", "self.size + n", "len(self.rows)", "f()", "N"]
)
def test_not_constant(expression: str) -> None:
    assert not is_constant(expression)
