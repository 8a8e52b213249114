"""LCH001: an ignore comment that silences nothing. Found in `launchlint.suppress`, after every other rule has run."""

from __future__ import annotations

from launchlint.model import Applicability, Meta, Policy
from launchlint.rule import Rule

rule = Rule(
    Meta(
        code="LCH001",
        name="unused-ignore",
        summary="an ignore comment that silences nothing",
        group="own",
        since="0.1.0",
        policy=Policy(()),
        fix=Applicability.SAFE,
        opt_in=True,
    )
)
