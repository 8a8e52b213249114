"""Which functions run every step, and the chain of calls that says why."""

from launchlint.hot.graph import GENERATION, Graph, Verdict
from launchlint.hot.summary import FileSummary, summarize

__all__ = ["GENERATION", "FileSummary", "Graph", "Verdict", "summarize"]
