"""One `repeat_interleave` for a loop that fills consecutive slices.

UNSAFE where the loop is provably the running-offset form over a target of exactly the right length: the values, the
dtype and the shape are the same, while timing, memory (an id vector and the counts on the device) and exceptions (a
negative count raises) may differ. Everything else that resembles it is only shown.
"""

from __future__ import annotations

import ast

from launchlint.fixes import comments
from launchlint.fixes.arguments import on_one_line
from launchlint.fixes.layout import Call, call, flat, render
from launchlint.fixes.repeats import repeat
from launchlint.fixes.staging import torch_module
from launchlint.model import Applicability, Edit, Fix, Span
from launchlint.rule import Context
from launchlint.source import LINE_END, Source
from launchlint.values import Device

from .placement import Allocation, Placement, Refused, place
from .running_offset import RunningOffset, running_offset

TITLE = "fill all slices with one torch.repeat_interleave"


def rewrite(loop: ast.stmt, ctx: Context) -> Fix | None:
    """The fix for `loop`: UNSAFE where it is provable, DISPLAY with a sketch otherwise, None if it is another form."""
    form = running_offset(loop)
    if form is None or not isinstance(loop, ast.For):
        return None
    try:
        return _replace(form, place(form, loop, ctx), ctx)
    except Refused as reason:
        return _show(form, ctx, str(reason))


def _show(form: RunningOffset, ctx: Context, reason: str) -> Fix:
    counts = on_one_line(form.counts, ctx)
    ids = on_one_line(form.ids.listed, ctx) if form.ids.listed else "ids"
    shape = call("torch.repeat_interleave", f"{ids}_on_device", "counts_on_device", output_size=f"sum({counts})")
    sketch = f"{form.target}[: sum({counts})] = {flat(shape)}"
    return Fix(f"{TITLE}; not rewritten: {reason}", (), Applicability.DISPLAY, shows=sketch)


# -------------------------------------------------------------------- the new statement


def _replace(form: RunningOffset, placement: Placement, ctx: Context) -> Fix:
    """Edits that put one statement where the loop was and take away what only the loop needed."""
    allocation = placement.allocation
    torch = torch_module(ctx.source)
    dtype, device = _dtype(allocation, torch.text, ctx), _device(allocation, ctx)
    made = repeat(form.counts, form.ids, dtype, device, on_one_line(allocation.total, ctx), ctx)
    if made is None:
        raise Refused("the configured upload is not available in this file")
    edits = _Statement(ctx.source, placement).edits(made.code, _target(placement, ctx))
    return Fix(TITLE, edits, Applicability.UNSAFE, made.imports)


def _dtype(allocation: Allocation, torch: str, ctx: Context) -> str:
    """The dtype of the target, which `repeat_interleave` takes from the ids."""
    if allocation.dtype is not None:
        return on_one_line(allocation.dtype, ctx)
    return f"{on_one_line(allocation.like, ctx)}.dtype" if allocation.like else f"{torch}.get_default_dtype()"


def _device(allocation: Allocation, ctx: Context) -> str:
    """The device of the target; empty for the default device."""
    if allocation.device is None:
        return f"{on_one_line(allocation.like, ctx)}.device" if allocation.like else ""
    if ctx.device(allocation.device) is Device.HOST:
        raise Refused("the target is in host memory, where a fill is no launch")
    return on_one_line(allocation.device, ctx)


def _target(placement: Placement, ctx: Context) -> str:
    """`target = ` as written, with its annotation; without it where the allocation stays."""
    node = placement.allocation.statement
    target = node.targets[0] if isinstance(node, ast.Assign) else node.target
    if node not in placement.before or isinstance(node, ast.Assign):
        return f"{on_one_line(target, ctx)} = "
    return f"{on_one_line(target, ctx)}: {on_one_line(node.annotation, ctx)} = "


# -------------------------------------------------------------------- the edits


class _Statement:
    """The place of the new statement: whole lines, with the comments that must not be lost."""

    def __init__(self, source: Source, placement: Placement) -> None:
        self.source = source
        self.placement = placement
        found = comments.comments(source)
        if found is None:
            raise Refused("its comments cannot be read")
        self.comments = found

    def edits(self, value: Call, target: str) -> tuple[Edit, ...]:
        """Replace the loop, and what stands directly before it with it; delete the other lines."""
        loop = self._lines(self.placement.loop)
        spans = [self._lines(node) for node in self.placement.before]
        while spans and not self._code_between(spans[-1], loop):
            loop = Span(spans.pop().start, loop.end)
        indent = self._indent(self.placement.loop)
        kept = "".join(f"{text}\n{indent}" for span in [*spans, loop] for text in self._comments(span))
        text = kept + render(value, indent, target)
        return (*(Edit(self._with_line_end(span), "") for span in spans), Edit(Span(loop.start + len(indent), loop.end), text))

    def _lines(self, node: ast.stmt) -> Span:
        """The lines of `node` without the last line end; raise Refused if other code is on them."""
        span = self.source.span(node)
        start = self.source.line_starts[self.source.position(span.start).line - 1]
        ended = LINE_END.search(self.source.text, span.end)
        end = ended.start() if ended else len(self.source.text)
        rest = self.source.text[span.end : end].strip()
        if self.source.text[start : span.start].strip() or (rest and not rest.startswith("#")):
            raise Refused("other statements are on its lines")
        return Span(start, end)

    def _with_line_end(self, span: Span) -> Span:
        ended = LINE_END.match(self.source.text, span.end)
        return Span(span.start, ended.end() if ended else span.end)

    def _indent(self, node: ast.stmt) -> str:
        start = self.source.span(node).start
        return self.source.text[self.source.line_starts[self.source.position(start).line - 1] : start]

    def _code_between(self, before: Span, after: Span) -> bool:
        text = self.source.text[before.end : after.start]
        for comment in comments.inside(self.comments, Span(before.end, after.start)) or ():
            text = text.replace(comment.text, "", 1)
        return bool(text.strip())

    def _comments(self, span: Span) -> list[str]:
        found = comments.inside(self.comments, span) or ()
        if any(comment.is_pragma for comment in found):
            raise Refused("a comment in it speaks to a tool")
        return [comment.text for comment in found]
