"""What an editor shows for a finding under the pointer: why the line is hot, and the beginning of the page of the rule."""

from __future__ import annotations

import re

from lsprotocol import types

from launchlint import registry
from launchlint.model import Finding, Meta
from launchlint.server.checker import Checked
from launchlint.server.diagnostics import page_uri
from launchlint.server.positions import Positions

_SECTION = re.compile(r"^## ", re.MULTILINE)
_RELATIVE = re.compile(r"\]\((?=\.\./)")
_LEFT_OUT = ("|", "<!--", "Confidence, by ")  # tables, and what introduces and follows them


def hover(checked: Checked, positions: Positions, position: types.Position) -> types.Hover | None:
    """The findings at a position, the innermost first; None where there is none."""
    offset = positions.offset(position)
    here = [finding for finding in checked.report.findings if finding.span.start <= offset <= finding.span.end]
    if not here:
        return None
    here.sort(key=lambda finding: finding.span.end - finding.span.start)
    text = "\n\n---\n\n".join(_text(finding) for finding in here)
    return types.Hover(types.MarkupContent(types.MarkupKind.Markdown, text), positions.range(here[0].span))


def _text(finding: Finding) -> str:
    meta = registry.load()[finding.code].meta
    parts = [f"**{meta.code} {meta.name}** ({finding.confidence} confidence)", finding.message]
    if finding.hot is not None:
        parts.append(f"Hot because {finding.hot.reason}")
        if len(finding.hot.chain) > 1:
            parts.append("Chain: " + " → ".join(f"`{name}`" for name in finding.hot.chain))
    if finding.fix is not None and finding.fix.shows:
        parts.append(f"Use instead: {finding.fix.title}\n\n```python\n{finding.fix.shows.rstrip()}\n```")
    parts.append(page_head(meta))
    if uri := page_uri(meta):
        parts.append(f"[The whole page]({uri})")
    return "\n\n".join(parts)


def page_head(meta: Meta) -> str:
    """The page of a rule up to the end of its first section, without its title and its tables; the summary where it has no page."""
    page = registry.page(meta)
    if page is None:
        return f"{meta.summary}."
    top, *sections = _SECTION.split(page)
    paragraphs = [part for part in top.split("\n\n") if part.strip() and not part.lstrip().startswith(("# ", *_LEFT_OUT))]
    if sections:
        title, _, body = sections[0].partition("\n")
        paragraphs += [f"**{title.strip()}**", body.strip()]
    text = "\n\n".join(part.strip() for part in paragraphs)
    base = (page_uri(meta) or "").rpartition("/")[0]
    return _RELATIVE.sub(lambda found: f"{found.group()}{base}/", text)
