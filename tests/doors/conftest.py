"""The doors are tested against a fake linter; what the real one finds is the business of other tests."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest

import launchlint
from launchlint import registry, suppress
from tests.doors import fake


@pytest.fixture
def fake_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fixed catalogue in place of the real rules."""
    monkeypatch.setattr(registry, "load", lambda: dict(fake.RULES))
    suppress._own_rules.cache_clear()


@pytest.fixture
def fake_engine(monkeypatch: pytest.MonkeyPatch, fake_rules: None) -> None:
    """The fake linter in place of the engine."""
    module = ModuleType("launchlint.engine")
    module.__dict__.update(check_source=fake.check_source, check_files=fake.check_files, FEW_FILES=50)
    monkeypatch.setitem(sys.modules, "launchlint.engine", module)
    monkeypatch.setattr(launchlint, "engine", module, raising=False)
