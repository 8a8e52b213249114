"""What the rules about reading back share: whether an operand is on the device, and where the host already has the value."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from launchlint.model import Level, Span
from launchlint.names import dotted, last_name
from launchlint.patterns import Pattern
from launchlint.rule import Context, Hit, Silence
from launchlint.trees import walk
from launchlint.uploads import destination
from launchlint.values import Device, Kind, Value
from launchlint.values.conventions import value_of_name

REDUCTIONS = frozenset({"any", "all", "max", "min", "sum", "argmax", "argmin", "amax", "amin", "count_nonzero", "prod", "mean", "norm"})
READS = frozenset({"item", "tolist", "cpu", "numpy"})
CAPTURES = frozenset({"torch.cuda.graph", "torch.accelerator.graph"})
_TWINS = ("_cpu", "_np", "_list", "_host", "_cpu_upper_bound")
_FUNCTIONAL = ("torch", "torch.nn.functional")
_HOST_NAME = Pattern(r"(^|_)(cpu|np|numpy|host|pinned|list|lst|py|shape)(_tensor|_buf|_buffer|_upper_bound)?\d*$|^(cpu|host|pinned|np)_")
_ASKS_FOR_HOST = Pattern(r"(^|_)(has|have|use|with|from)_(cpu|host)(_|$)")
_LIST = re.compile(r"_(list|lst)$")
_SAME_TENSOR = frozenset({"T", "mT", "H", "data", "values", "indices", "real"})
_MADE_FROM = frozenset({"tensor", "as_tensor", "asarray", "from_numpy", "Tensor", "LongTensor", "IntTensor", "FloatTensor"})
_MOVES = frozenset({"to", "cuda", "long", "int", "float", "contiguous", "flatten", "view", "reshape", "pin_memory", "clone", "detach"})
_CALL_AT_ONCE = frozenset({"map", "filter", "sorted", "sort", "max", "min", "reduce", "tree_map", "apply", "apply_", "map_"})
_FIGURES = Pattern(r"metrics|stats$|statistics|(^|_)logs$|log_dict")
_SIMPLE = (ast.Assign, ast.AnnAssign, ast.Expr, ast.Return)
_MANY = 40  # characters of source that a message still quotes


def is_reduction(expr: ast.expr) -> bool:
    """`x.any()`, `torch.max(x)`: a call that makes one number of a tensor."""
    return isinstance(expr, ast.Call) and isinstance(expr.func, ast.Attribute) and expr.func.attr in REDUCTIONS


def operand(call: ast.Call, ctx: Context) -> ast.expr | None:
    """The tensor that `torch.f(x)` or `x.f()` works on."""
    if ctx.name(call.func).rpartition(".")[0] in _FUNCTIONAL:
        return call.args[0] if call.args else None
    return call.func.value if isinstance(call.func, ast.Attribute) else None


def is_foreign(call: ast.Call, ctx: Context) -> bool:
    """True for functions of other libraries: `np.unique(x)`, `tl.where(x)`."""
    name = ctx.name(call.func)
    if name and not name.startswith("torch"):
        return True
    root = dotted(call.func).partition(".")[0]
    return root in ("np", "numpy", "cp", "tl", "jnp", "mx", "math")


def in_loop(ctx: Context) -> bool:
    """True inside a loop or comprehension of the same function."""
    return bool(ctx.loops())


def is_number(value: Value) -> bool:
    """A Python number, or a tensor of no dimensions."""
    return value.kind is Kind.SCALAR or (value.is_tensor and value.scalar)


# ---------------------------------------------------------------- is it on the device?


def level(expr: ast.expr, ctx: Context, unknown: Level = Level.UNKNOWN) -> Level:
    """How sure we are that `expr` is on the device; a name that says host (`seq_lens_cpu`) outweighs an inference."""
    found = ctx.value(expr).device_level(unknown)
    return Level.NO if found > Level.NO and says_host(expr, ctx) else found


def says_host(expr: ast.expr, ctx: Context) -> bool:
    """True if a tensor that `expr` is computed from has a name that says host: operands of one operation share a device."""
    return any(_is_host_name(name) for name in bases(expr, ctx))


def _is_host_name(name: str) -> bool:
    return bool(_HOST_NAME.search(name)) or value_of_name(name).on_host


def bases(expr: ast.expr, ctx: Context) -> list[str]:
    """The last names of what `expr` is computed from: `x` for `x[1:].max()`, `a` and `b` for `(a > b).any()`."""
    found: list[str] = []
    pending = [expr]
    while pending:
        match pending.pop():
            case ast.Call(func=ast.Attribute(attr="to" | "cuda" | "cpu")):
                continue  # what it is copied from says nothing of where it is now
            case ast.Call() as call:
                inner = operand(call, ctx)
                pending += [inner] if inner is not None else []
            case ast.Subscript(value=ast.Name(id=held) as several) if _holds_tensors(several, ctx):
                found.append(_LIST.sub("", held))
            case ast.Subscript(value=inner) | ast.UnaryOp(operand=inner):
                pending.append(inner)
            case ast.Compare(left=left, comparators=others):
                pending += [left, *others]
            case ast.BinOp(left=left, right=right):
                pending += [left, right]
            case ast.Attribute(value=inner, attr=name):
                if name in _SAME_TENSOR:
                    pending.append(inner)
                elif name not in ("shape", "dtype", "device"):
                    found.append(name)
            case ast.Name(id=name):
                match _walked(name, ctx):
                    case None:
                        found.append(name)
                    case ast.Name(id=held) as several if _holds_tensors(several, ctx):
                        found.append(_LIST.sub("", held))
                    case walked:
                        pending.append(walked)
    return found


def _holds_tensors(several: ast.Name, ctx: Context) -> bool:
    """True where the name of a list says that it is one and the code shows what is put into it: tensors may live anywhere."""
    if _LIST.search(several.id) is None:
        return False
    item = ctx.value(several).element
    return item is not None and item.is_tensor and not item.by_name


def _walked(name: str, ctx: Context) -> ast.expr | None:
    """`xs` where `name` is an element of `xs` in a loop around the place: through `enumerate` and `zip`, and unpacked."""
    for loop in ctx.loops():
        pairs = [(loop.target, loop.iter)] if isinstance(loop, (ast.For, ast.AsyncFor)) else []
        if not isinstance(loop, (ast.For, ast.AsyncFor, ast.While)):
            pairs = [(generator.target, generator.iter) for generator in loop.generators]
        for target, walked in pairs:
            if (found := _element_of(target, walked, name)) is not None:
                return None if isinstance(found, ast.Name) and found.id == name else found
    return None


def _element_of(target: ast.expr, walked: ast.expr, name: str) -> ast.expr | None:
    match target, walked:
        case ast.Name(id=bound), _:
            return walked if bound == name else None
        case ast.Tuple(elts=[_, inner]), ast.Call(func=ast.Name(id="enumerate"), args=[counted, *_]):
            return _element_of(inner, counted, name)
        case ast.Tuple(elts=elements), ast.Call(func=ast.Name(id="zip"), args=several):
            parts = (_element_of(element, each, name) for element, each in zip(elements, several, strict=False))
            return next((part for part in parts if part is not None), None)
        case ast.Tuple(elts=elements), _:
            return walked if any(isinstance(element, ast.Name) and element.id == name for element in elements) else None
    return None


def is_chained(read: ast.expr) -> bool:
    """True if `read` is already a read: `x.cpu()` of `x.cpu().numpy()` is the one that waits."""
    while isinstance(read, ast.Call) and isinstance(read.func, ast.Attribute):
        if read.func.attr in ("cpu", "tolist", "numpy"):
            return True
        read = read.func.value
    return False


def follows_tensor(node: ast.Call, ctx: Context) -> bool:
    """True for `x.to(y.device)` and `x.to(y)`, unless the name of `y` says host: a guess where `y` lives is no evidence of a read."""
    where = next((item.value for item in node.keywords if item.arg == "device"), node.args[0] if node.args else None)
    match where:
        case ast.Attribute(value=other, attr="device"):
            return not says_host(other, ctx)
        case ast.Name() | ast.Attribute() if ctx.value(where).is_tensor:
            return not says_host(where, ctx)
    return False


def is_argument_of_forward(expr: ast.expr, ctx: Context) -> bool:
    """True if `expr` is computed from an argument of a module's `forward` alone: such tensors are on the device by convention."""
    function = ctx.function.node
    if function is None or function.name != "forward" or ctx.function.class_node is None:
        return False
    arguments = function.args
    known = {item.arg for item in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)} - {"self"}
    pending, seen = [expr], 0
    while pending and seen < _MANY:
        seen += 1
        base = base_of(pending.pop(), ctx)
        if not isinstance(base, ast.Name):
            return False
        made = ctx.assigned(base.id)
        if not made and base.id not in known:
            return False
        for statement in made:
            if not isinstance(statement, ast.Assign) or len(statement.targets) != 1 or not isinstance(statement.targets[0], ast.Name):
                return False
            if base_of(statement.value, ctx) is not base:
                pending.append(statement.value)
    return not pending


def makes_mask(expr: ast.expr, ctx: Context) -> bool:
    """True if `expr` is a mask on the device, or may be one."""
    value = ctx.value(expr)
    return value.is_tensor and value.boolean and value.device is not Device.HOST and not says_host(expr, ctx)


def compares_enumeration(test: ast.expr) -> bool:
    """`scope == Scope.BLOCK`: an enumeration and no tensor, whatever the names say."""
    if not isinstance(test, ast.Compare):
        return False
    for side in (test.left, *test.comparators):
        spelled = dotted(side)
        owner, _, member = spelled.rpartition(".")
        if owner and member and owner.rpartition(".")[2][:1].isupper() and not owner.rpartition(".")[2].isupper():
            return True
    return False


def under_capture(ctx: Context) -> bool:
    """True inside `with torch.cuda.graph(...)`: what waits there is an error of its own (LCH403)."""
    return any(isinstance(frame.node, ast.With) and frame.part == "body" and captures(frame.node, ctx) for frame in ctx.frames())


def captures(region: ast.With, ctx: Context) -> bool:
    """True for `with torch.cuda.graph(g):` and its relatives."""
    return any(isinstance(item.context_expr, ast.Call) and ctx.name(item.context_expr.func) in CAPTURES for item in region.items)


def is_deferred(node: ast.AST, ctx: Context) -> bool:
    """True in a `lambda` that is handed to a call other than `map` and its kind: the text of a check, a comparison made once."""
    above = ctx.parent(node)
    while isinstance(above, ast.expr | ast.keyword | ast.comprehension):
        if isinstance(above, ast.Lambda):
            taker = ctx.parent(above)
            taker = ctx.parent(taker) if isinstance(taker, ast.keyword) else taker
            return isinstance(taker, ast.Call) and last_name(taker.func) not in _CALL_AT_ONCE
        above = ctx.parent(above)
    return False


def is_fallback(node: ast.AST, ctx: Context) -> bool:
    """True where the read only makes up for a host copy that is missing: `if x_cpu is None: x_cpu = x.cpu()`."""
    for frame in ctx.frames():
        match frame.node, frame.part:
            case ((ast.If(test=test) | ast.IfExp(test=test)), ("body" | "orelse" as part)):
                if _misses_host_copy(test, part == "body") or (part == "orelse" and _has_host_copy(test)):
                    return True
        match frame.node, frame.part:
            case ast.IfExp(test=test, body=kept), "orelse" if _is_kept_number(test, kept):
                return True
    return _left_without_host_copy(node, ctx)


def _has_host_copy(test: ast.expr) -> bool:
    """`self._has_cpu_metadata(batch)` and `use_host_lengths`: a test that says by its name that the host has it."""
    called = test.func if isinstance(test, ast.Call) else test
    return bool(_ASKS_FOR_HOST.search(last_name(called)))


def _is_kept_number(test: ast.expr, kept: ast.expr) -> bool:
    """`int(self.longest) if self.longest else ...`: the object keeps the number on the host, and the other branch makes up for it."""
    match test:
        case ast.Compare(left=ast.Attribute() as asked, ops=[ast.IsNot()], comparators=[ast.Constant(value=None)]):
            pass
        case ast.Attribute() as asked:
            pass
        case _:
            return False
    held = kept.args[0] if isinstance(kept, ast.Call) and last_name(kept.func) == "int" and len(kept.args) == 1 else kept
    return dotted(asked).startswith("self.") and dotted(held) == dotted(asked)


def _left_without_host_copy(node: ast.AST, ctx: Context) -> bool:
    """What is left of a function behind `if x_cpu is not None: return ...`, for a read of `x`."""
    for statement in before(ctx):
        match statement:
            case ast.If(test=test, body=[*_, ast.Return()], orelse=[]) if _misses_host_copy(test, False):
                copy = _asked_copy(test)
                stem = next((copy.removesuffix(ending) for ending in _TWINS if copy.endswith(ending)), "")
                return any(isinstance(item, (ast.Name, ast.Attribute)) and last_name(item) == stem for item in walk(node))
    return False


def is_in_case(read: ast.expr, ctx: Context) -> bool:
    """True for `if x.is_cuda: x = x.cpu()`: the code works on the host and is ready for a caller who forgot."""
    base = base_of(read, ctx)
    spelled = dotted(base) if base is not None else ""
    frame = ctx.frame
    if not spelled or frame is None or frame.part != "body" or not isinstance(frame.node, (ast.If, ast.IfExp)):
        return False
    match ctx.statement:
        case ast.Assign(targets=[target]) if dotted(target) == spelled:
            return any(isinstance(node, ast.Attribute) and _asks_where(node, spelled) for node in walk(frame.node.test))
    return False


def is_moved_later(node: ast.AST, read: ast.expr, ctx: Context) -> bool:
    """True for a parameter that is read and only then goes to the device, under its own name: `lengths = lengths.to(device)`."""
    base = base_of(read, ctx)
    function = ctx.function.node
    if not isinstance(base, ast.Name) or function is None or base.id not in {argument.arg for argument in function.args.args}:
        return False
    first = next(iter(ctx.assigned(base.id)), None)
    match first:
        case ast.Assign(value=ast.Call(func=ast.Attribute(value=ast.Name(id=moved), attr="to")) as move) if moved == base.id:
            return first.lineno > node.lineno and destination(move, ctx) is Device.DEVICE  # type: ignore[attr-defined]
    return False


def _asks_where(node: ast.Attribute, spelled: str) -> bool:
    return node.attr in ("is_cuda", "device") and dotted(node.value) == spelled


def _misses_host_copy(test: ast.expr, holds: bool) -> bool:
    """True where a host copy may be missing, because `test` holds or because it does not: `x_cpu is None`, `x_cpu is not None and ...`."""
    return bool(_asked_copy(test, holds))


def _asked_copy(test: ast.expr, holds: bool = False) -> str:
    """The last name of the host copy that is missing where `test` holds, or does not; or an empty string."""
    match test:
        case ast.BoolOp(op=ast.And() | ast.Or() as op, values=values) if isinstance(op, ast.Or) is holds:
            tests = values
        case _:
            tests = [test]
    for each in tests:
        match each:
            case ast.Compare(left=left, ops=[ast.Is() | ast.IsNot() as asked], comparators=[ast.Constant(value=None)]):
                if isinstance(asked, ast.Is) is holds and _HOST_NAME.search(last_name(left)):
                    return last_name(left)
    return ""


def outcome(
    node: ast.expr | ast.stmt,
    read: ast.expr,
    found: Level,
    message: str,
    ctx: Context,
    related: tuple[tuple[ast.expr | ast.stmt | Span, str], ...] = (),
    group: str = "",
    doubt: str = "",
    wider: str = "",
) -> Hit | Silence:
    """The end of every check: silent on the host and under capture, less sure for a fallback, with the host twin in the message."""
    if under_capture(ctx):
        return Silence(node, "inside a graph capture, which is LCH403's")
    if found is Level.NO:
        return Silence(node, "its name says that it is on the host" if says_host(read, ctx) else f"it reads a {ctx.value(read)}")
    if is_deferred(node, ctx):
        return Silence(node, "it stands in a function that is handed over, and nothing says that it is called each time")
    by_type = found is Level.INFERRED and is_only_a_type_check(read, ctx)
    if by_type or is_fallback(node, ctx) or is_in_case(read, ctx) or is_moved_later(node, read, ctx):
        found = min(found, Level.UNKNOWN)
    return Hit(node, message + advice(read, ctx), found, related, group=group or statement_group(ctx), doubt=doubt, wider=wider)


def _keeps_figure(statement: ast.stmt) -> bool:
    """`self._metrics["train"]["kl"].append(kl.item())` and `stats["kl"] = kl.item()`: a number kept to be logged."""
    match statement:
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=holder, attr="append" | "extend"))):
            pass
        case ast.Assign(targets=[ast.Subscript(value=holder)]):
            pass
        case _:
            return False
    while isinstance(holder, ast.Subscript):
        holder = holder.value
    return _FIGURES.search(dotted(holder).rpartition(".")[2]) is not None


def statement_group(ctx: Context) -> str:
    """One name for the reads of one statement, and of simple statements that read one after the other, outside loops.

    After the first wait nothing is queued, so the others are short, and one cure serves all.
    """
    if ctx.loops():
        return ""
    first = ctx.statement
    if ctx.function.node is not None and _keeps_figure(first):
        return f"LCH3:figures:{ctx.function.node.lineno}"  # a project's custom: one finding for each function
    if isinstance(first, _SIMPLE):
        parent = ctx.parent(first)
        for block in ("body", "orelse", "finalbody"):
            statements = getattr(parent, block, None)
            if isinstance(statements, list) and first in statements:
                first = _first_of_run(statements, statements.index(first))
    return f"LCH3:from:{first.lineno}:{first.col_offset}"


def _first_of_run(statements: list[ast.stmt], index: int) -> ast.stmt:
    first = index
    while index and isinstance(statements[index - 1], _SIMPLE):
        index -= 1
        if _holds_read(statements[index]):
            first = index
        elif not _is_text(statements[index]):
            break
    return statements[first]


def _is_text(statement: ast.stmt) -> bool:
    """A string on a line of its own does nothing."""
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _holds_read(statement: ast.stmt) -> bool:
    return any(isinstance(node, ast.Attribute) and node.attr in READS for node in ast.walk(statement))


def is_only_a_type_check(expr: ast.expr, ctx: Context) -> bool:
    """True where `isinstance(x, torch.Tensor)` is all that says that `x` is a tensor: such code takes lists as well, and is given both."""
    base = base_of(expr, ctx)
    if base is None or ctx.value(base).device is not Device.UNKNOWN:
        return False
    spelled = dotted(base)
    for frame in ctx.frames():
        match frame.node, frame.part:
            case ((ast.If(test=test) | ast.IfExp(test=test)), "body") if _checks_type(test, spelled):
                return True
    return any(isinstance(statement, ast.Assert) and _checks_type(statement.test, spelled) for statement in before(ctx))


def _checks_type(test: ast.expr, spelled: str) -> bool:
    match test:
        case ast.BoolOp(op=ast.And(), values=values):
            return any(_checks_type(value, spelled) for value in values)
        case ast.Call(func=ast.Name(id="isinstance"), args=[checked, kind]):
            return dotted(checked) == spelled and last_name(kind).endswith("Tensor")
        case ast.Call(func=function, args=[checked]):
            return last_name(function) == "is_tensor" and dotted(checked) == spelled
    return False


# ---------------------------------------------------------------- where the host has it


def advice(expr: ast.expr, ctx: Context) -> str:
    """`; the host has it in \\`x_cpu\\`` where it has, else nothing."""
    twin = host_twin(expr, ctx)
    if twin:
        return f"; `{twin}` holds it on the host"
    made_from = host_source(expr, ctx)
    return f"; it was made from `{made_from}`, which the host has" if made_from else ""


def host_twin(expr: ast.expr, ctx: Context) -> str:
    """A name that holds the same value on the host by now: `seq_lens_cpu` for `seq_lens.max()`; or an empty string.

    Names that the read itself or a later line binds do not count, and nothing does where the read is the fallback for
    a missing host copy.
    """
    base = base_of(expr, ctx)
    if base is None or ctx.function.node is None or is_fallback(expr, ctx):
        return ""
    earlier = _read_before(base, ctx)
    if earlier:
        return earlier
    name = last_name(base)
    known = _names_so_far(ctx)
    for wanted in _twins_of(name, expr):
        if wanted != name and wanted in known:
            return wanted
    return ""


def base_of(expr: ast.expr, ctx: Context) -> ast.Name | ast.Attribute | None:
    """The name that a chain starts from: `batch.seq_lens` for `batch.seq_lens[:n].max()`."""
    while True:
        match expr:
            case ast.Call():
                inner = operand(expr, ctx)
                if inner is None:
                    return None
                expr = inner
            case ast.Subscript(value=inner):
                expr = inner
            case ast.Attribute(value=inner, attr=name) if name in _SAME_TENSOR:
                expr = inner
            case ast.Name() | ast.Attribute():
                return expr
            case _:
                return None


def _twins_of(name: str, expr: ast.expr) -> Iterator[str]:
    stem = name.removesuffix("_gpu").removesuffix("_device").removesuffix("_tensor").removesuffix("_cuda")
    for suffix in _TWINS:
        yield stem + suffix
    calls = {node.func.attr for node in walk(expr) if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)}
    if "sum" in calls:
        yield from (f"{stem}_sum", f"total_{stem}")
    if calls & {"max", "amax"}:
        singular = stem.removesuffix("s")
        yield from (f"max_{stem}", f"max_{singular}", f"{stem}_max", f"{stem}_cpu_max")


def _names_so_far(ctx: Context) -> set[str]:
    """Names that have a value where the read stands: parameters, attributes that are read, and what earlier lines bind."""
    function = ctx.function.node
    assert function is not None
    line = ctx.statement.lineno
    arguments = function.args
    found = {item.arg for item in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}
    late: set[str] = set()
    loaded: set[str] = set()
    for node in walk(function):
        if isinstance(node, ast.Attribute):
            if node.lineno < line:
                found.add(node.attr)
            elif isinstance(node.ctx, ast.Store):
                late.add(node.attr)
            else:
                loaded.add(node.attr)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.lineno < line:
            found.add(node.id)
    own = {last_name(node) for node in walk(ctx.statement) if isinstance(getattr(node, "ctx", None), ast.Store)}
    return (found | (loaded - late)) - own


def _read_before(base: ast.Name | ast.Attribute, ctx: Context) -> str:
    """The name that an earlier line has read the same tensor into, if that line always runs before this one."""
    spelled = dotted(base)
    for statement in before(ctx):
        match statement:
            case ast.Assign(targets=[ast.Name() | ast.Attribute() as target], value=value):
                if _reads_whole(value, spelled):
                    return dotted(target)
                if spelled in (dotted(target), dotted(target).partition(".")[0]):
                    return ""
            case ast.Assign() | ast.AugAssign() | ast.AnnAssign():
                if any(dotted(node) == spelled for node in walk(statement) if isinstance(getattr(node, "ctx", None), ast.Store)):
                    return ""
    return ""


def _reads_whole(value: ast.expr, spelled: str) -> bool:
    match value:
        case ast.Call(func=ast.Attribute(value=inner, attr="tolist" | "cpu" | "numpy")):
            return dotted(inner) == spelled or _reads_whole(inner, spelled)
    return False


def before(ctx: Context) -> Iterator[ast.stmt]:
    """The statements that have run whenever this one runs, nearest first: what stands above it in its own and the outer blocks."""
    current: ast.AST | None = ctx.statement
    while current is not None and current is not ctx.function.node:
        parent = ctx.parent(current)
        for block in ("body", "orelse", "finalbody"):
            statements = getattr(parent, block, None)
            if isinstance(statements, list) and current in statements:
                yield from reversed(statements[: statements.index(current)])
        current = parent


def host_source(expr: ast.expr, ctx: Context) -> str:
    """The list or number that the tensor behind `expr` was made from in this function, where the host still has it."""
    base = base_of(expr, ctx)
    if not isinstance(base, ast.Name):
        return ""
    since: set[str] = set()  # names that have got another value since then
    for statement in before(ctx):
        stored = _stored_in(statement)
        if base.id not in stored:
            since |= stored
            continue
        match statement:
            case ast.Assign(targets=[ast.Name()], value=made):
                data = uploaded(made, ctx)
                if data is None or not _is_short(data, ctx) or _names_in(data) & (since | stored):
                    return ""
                return ctx.text(data)
        return ""
    return ""


def _stored_in(statement: ast.stmt) -> set[str]:
    """The names that a statement, or one inside it, binds."""
    return {node.id for node in walk(statement) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}


def _names_in(expr: ast.expr) -> set[str]:
    return {node.id for node in walk(expr) if isinstance(node, ast.Name)}


def uploaded(made: ast.expr, ctx: Context) -> ast.expr | None:
    """`counts` of `torch.tensor(counts, device=d)` and of `torch.tensor(counts).to(d)`; None for anything else."""
    while (
        isinstance(made, ast.Call)
        and isinstance(made.func, ast.Attribute)
        and made.func.attr in _MOVES
        and not ctx.name(made.func).startswith("torch.")
    ):
        made = made.func.value
    if not isinstance(made, ast.Call) or not made.args or ctx.name(made.func).rpartition(".")[2] not in _MADE_FROM:
        return None
    if not ctx.name(made.func).startswith("torch."):
        return None
    data = made.args[0]
    return data if ctx.value(data).kind in (Kind.LIST, Kind.TUPLE, Kind.ARRAY, Kind.SCALAR) else None


def _is_short(data: ast.expr, ctx: Context) -> bool:
    text = ctx.text(data)
    return (
        isinstance(data, (ast.Name, ast.Attribute, ast.Subscript, ast.Call)) and len(text) <= _MANY and "\n" not in text and "`" not in text
    )
