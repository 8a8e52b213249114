"""LCH002: a rule's name after noqa, where only codes count. Found in `launchlint.suppress`, which reads the comments."""

from __future__ import annotations

from launchlint.model import Applicability, Meta, Policy
from launchlint.rule import Rule

rule = Rule(
    Meta(
        code="LCH002",
        name="name-after-noqa",
        summary="a rule's name after noqa, which silences everything on the line",
        group="own",
        since="0.1.0",
        policy=Policy(()),
        fix=Applicability.UNSAFE,
    )
)
