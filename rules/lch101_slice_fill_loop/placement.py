"""What stands around a running-offset loop: where its target is made, and why the loop can or cannot be replaced."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from launchlint.fixes.liveness import LOOPS, Liveness
from launchlint.fixes.repeats import are_host_values, is_pure, names_of
from launchlint.rule import Context

from .running_offset import RunningOffset

EMPTY_OR_FILLED = frozenset({"empty", "zeros", "ones", "new_empty", "new_zeros", "new_ones"})
NEUTRAL_CALLS = frozenset({"sum", "len", "max", "min", "int", "any", "all", "enumerate", "range", "zip"})


class Refused(Exception):
    """The loop has the form and is still not replaced; the text is the reason."""


@dataclass(frozen=True, slots=True)
class Allocation:
    """The statement that makes the target. `dtype` and `device` are expressions, or text where they are implied."""

    statement: ast.Assign | ast.AnnAssign
    total: ast.expr
    dtype: ast.expr | None
    device: ast.expr | None
    like: ast.expr | None  # the tensor of `like.new_empty(...)`

    @property
    def expressions(self) -> list[ast.expr]:
        return [part for part in (self.total, self.dtype, self.device, self.like) if part is not None]


@dataclass(frozen=True, slots=True)
class Placement:
    """A loop that can be replaced. `before` are the statements that go with it, in order; `allocation.statement` is among
    them unless it stands further out, where it stays and serves the case of no rows."""

    loop: ast.For
    allocation: Allocation
    before: tuple[ast.stmt, ...]


def place(form: RunningOffset, loop: ast.For, ctx: Context) -> Placement:
    """Find what belongs to `loop`; raise Refused with the reason if it cannot be replaced."""
    function = ctx.function.node
    if function is None:
        raise Refused("at module level any other module may read its names")
    live = Liveness(function)
    _check_surroundings(loop, live, ctx)
    if live.is_read_after(form.locals, loop):
        raise Refused("its variables may be read outside the loop")
    allocation, before = _look_back(form, loop, live, ctx)
    _check_total(form, allocation, loop, live, ctx)
    if not are_host_values(form.counts, form.ids, ctx):
        raise Refused("the counts or ids are not on the host")
    return Placement(loop, allocation, tuple(before))


def _check_surroundings(loop: ast.For, live: Liveness, ctx: Context) -> None:
    child: ast.AST = loop
    for node in live.outer(loop):
        if isinstance(node, ast.Try) or type(node).__name__ == "TryStar":
            raise Refused("inside try, an exception in the middle would be seen")
        if isinstance(node, ast.With | ast.AsyncWith) and not all(_is_torch_call(item.context_expr, ctx) for item in node.items):
            raise Refused("inside a with statement that may swallow an exception")
        child = node
    if child is not live.function:
        raise Refused("the loop is not in this function")


def _is_torch_call(node: ast.expr, ctx: Context) -> bool:
    return isinstance(node, ast.Call) and ctx.name(node.func).startswith("torch.")


# -------------------------------------------------------------------- looking back from the loop


def _look_back(form: RunningOffset, loop: ast.For, live: Liveness, ctx: Context) -> tuple[Allocation, list[ast.stmt]]:
    """The allocation, and the statements to remove: `offset = 0`, and the allocation if it is in the same block."""
    remove: list[ast.stmt] = []
    zeroed = False
    passed: set[str] = set()  # names bound between the allocation and the loop
    for node, same_block in _preceding(form, loop, live):
        if _is_zero(node, form.offset) and not zeroed:
            zeroed = True
            if same_block:
                remove.insert(0, node)
        elif _assigned_name(node) == form.target:
            allocation = allocation_of(node, ctx)
            if allocation is None:
                raise Refused("the target is made in a way that this fix does not know")
            if not zeroed and not _zeroed_before(node, form, live):
                raise Refused("the offset does not start at 0")
            if passed & {name for part in allocation.expressions for name in names_of(part)}:
                raise Refused("what the allocation reads is bound again before the loop")
            if same_block:
                remove.insert(0, node)
            return allocation, remove
        elif bound := _neutral(node, form):
            passed |= bound
        else:
            raise Refused("something stands between the allocation and the loop")
    raise Refused("the target is not made in this function, so it may be longer than the counts or seen by others")


def _preceding(form: RunningOffset, loop: ast.For, live: Liveness) -> Iterator[tuple[ast.stmt, bool]]:
    """The statements before `loop`, nearest first, and whether they are in its block. An `if` that tests only whether
    there are rows is left towards the outside."""
    child: ast.stmt = loop
    same_block = True
    for parent in live.outer(loop):
        block = _block_of(parent, child)
        for node in reversed(block[: block.index(child)]):
            yield node, same_block
        if not isinstance(parent, ast.If) or child not in parent.body or not _tests_rows(parent.test, form):
            return
        child, same_block = parent, False


def _block_of(parent: ast.AST, child: ast.stmt) -> list[ast.stmt]:
    for _, value in ast.iter_fields(parent):
        if isinstance(value, list) and child in value:
            return value
    raise Refused("the loop is not in a block of statements")


def _tests_rows(test: ast.expr, form: RunningOffset) -> bool:
    """True for a test of names and numbers that does not read the target."""
    calls = [node for node in ast.walk(test) if isinstance(node, ast.Call)]
    return form.target not in names_of(test) and all(isinstance(node.func, ast.Name) and node.func.id in NEUTRAL_CALLS for node in calls)


def _zeroed_before(allocation: ast.stmt, form: RunningOffset, live: Liveness) -> bool:
    block = _block_of(live.parents[allocation], allocation)
    for node in reversed(block[: block.index(allocation)]):
        if _is_zero(node, form.offset):
            return True
        if not (_neutral(node, form)):
            return False
    return False


def _is_zero(node: ast.stmt, offset: str) -> bool:
    match node:
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant(value=0)):
            return name == offset
        case ast.AnnAssign(target=ast.Name(id=name), value=ast.Constant(value=0)):
            return name == offset
    return False


def _assigned_name(node: ast.stmt) -> str:
    match node:
        case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr()):
            return name
    return ""


def _neutral(node: ast.stmt, form: RunningOffset) -> set[str]:
    """What a plain assignment binds, if it has nothing to do with the loop; empty for every other statement."""
    name = _assigned_name(node)
    value = getattr(node, "value", None)
    if not name or value is None or names_of(node) & (form.locals | {form.target}):
        return set()
    calls = [part for part in ast.walk(value) if isinstance(part, ast.Call)]
    if not all(isinstance(part.func, ast.Name) and part.func.id in NEUTRAL_CALLS for part in calls):
        return set()
    read = names_of(form.counts) | names_of(form.ids.listed) | names_of(form.ids.shift)
    return set() if name in read else {name}


# -------------------------------------------------------------------- the allocation


def allocation_of(node: ast.stmt, ctx: Context) -> Allocation | None:
    """Read `target = torch.empty(total, dtype=..., device=...)` and its relatives; None for anything else."""
    if not isinstance(node, ast.Assign | ast.AnnAssign) or not isinstance(node.value, ast.Call):
        return None
    call = node.value
    if not isinstance(call.func, ast.Attribute | ast.Name):
        return None
    full_name = ctx.name(call.func)
    name = full_name.rpartition(".")[2] or (call.func.attr if isinstance(call.func, ast.Attribute) else "")
    like = None
    if name.startswith("new_"):
        if not isinstance(call.func, ast.Attribute) or not is_pure(call.func.value):
            return None
        like = call.func.value
    elif not full_name.startswith("torch."):
        return None
    if name not in EMPTY_OR_FILLED:
        return None
    named = {keyword.arg: keyword.value for keyword in call.keywords}
    size = call.args[0] if len(call.args) == 1 else (named.pop("size", None) if not call.args else None)
    if size is None or isinstance(size, ast.Starred) or not set(named) <= {"dtype", "device"}:
        return None
    if isinstance(size, ast.Tuple | ast.List):
        if len(size.elts) != 1:
            return None
        size = size.elts[0]
    dtype, device = named.get("dtype"), named.get("device")
    if not all(part is None or is_pure(part) or _is_device_call(part) for part in (dtype, device)):
        return None
    if dtype is not None and ctx.name(dtype).rpartition(".")[2] in ("bool", "complex64", "complex128", "cfloat", "cdouble"):
        return None
    return Allocation(node, size, dtype, device, like)


def _is_device_call(node: ast.expr) -> bool:
    """`torch.device("cuda")`: evaluated again, it gives the same."""
    return isinstance(node, ast.Call) and all(is_pure(part) for part in (node.func, *node.args)) and not node.keywords


# -------------------------------------------------------------------- the total and the counts


def _check_total(form: RunningOffset, allocation: Allocation, loop: ast.For, live: Liveness, ctx: Context) -> None:
    """Prove that the target has exactly as many rows as the counts add up to."""
    total = allocation.total
    since: ast.stmt = allocation.statement
    if isinstance(total, ast.Name):
        bindings = ctx.assigned(total.id)
        if len(bindings) != 1 or not isinstance(bindings[0], ast.Assign | ast.AnnAssign) or bindings[0].value is None:
            raise Refused(f"{total.id} is not known to be the sum of the counts")
        since, total = bindings[0], bindings[0].value
        if _line(since) >= _line(allocation.statement):
            raise Refused("the total is bound after the allocation")
    match total:
        case ast.Call(func=ast.Name(id="sum"), args=[summed], keywords=[]) if ast.dump(summed) == ast.dump(form.counts):
            pass
        case _:
            raise Refused("the length of the target is not known to be the sum of the counts")
    _check_not_changed(form.counts, since, loop, live)


def _check_not_changed(counts: ast.expr, since: ast.stmt, loop: ast.For, live: Liveness) -> None:
    """Raise Refused if the counts may be bound or changed in place between their sum and the end of the loop."""
    names = names_of(counts)
    repeated = [node for node in live.outer(loop) if isinstance(node, LOOPS) and node not in set(live.outer(since))]
    last = max([loop.end_lineno or loop.lineno, *(node.end_lineno or node.lineno for node in repeated if isinstance(node, ast.stmt))])
    for node in live.parents:
        if not _line(since) <= getattr(node, "lineno", 0) <= last or node is since:
            continue
        match node:
            case ast.Name(ctx=ast.Store() | ast.Del(), id=name) if name in names:
                if live.parents[node] is not since:
                    raise Refused("the counts are bound again before the loop ends")
            case ast.Attribute(ctx=ast.Store()) | ast.Subscript(ctx=ast.Store()) if names_of(node.value) & names:
                raise Refused("the counts are changed before the loop ends")
            case ast.Call(func=ast.Attribute(value=owner), args=_) if ast.dump(owner) == ast.dump(counts):
                raise Refused("a method of the counts is called before the loop ends")
            case ast.Call(args=args) if not _is_neutral_call(node) and any(ast.dump(part) == ast.dump(counts) for part in args):
                raise Refused("the counts are handed to a call that may change them")


def _is_neutral_call(node: ast.Call) -> bool:
    return isinstance(node.func, ast.Name) and node.func.id in NEUTRAL_CALLS


def _line(node: ast.stmt) -> int:
    return node.lineno
