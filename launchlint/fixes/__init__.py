"""Applying fixes: edits to a fixed point, as a diff, and onto the disk without ever leaving a half-written file."""

from launchlint.fixes.diff import unified_diff
from launchlint.fixes.disk import WriteError, write
from launchlint.fixes.rounds import MAX_ROUNDS, Fixed, applicability, fix_source

__all__ = ["MAX_ROUNDS", "Fixed", "WriteError", "applicability", "fix_source", "unified_diff", "write"]
