"""What can be said about a loop from its source: how many turns, what changes with each turn, how heavy a turn is."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from launchlint.facts import torch_operations
from launchlint.names import dotted, last_name
from launchlint.patterns import Pattern
from launchlint.rule import Context, Loop
from launchlint.trees import children, walk
from launchlint.values.value import Kind

FEW_TURNS = 4
_LARGE_STEP = 1024  # what walks more at a time bounds a grid or memory

# Calls that are heavy without being in the table of operations: a module, a collective, a model.
_HEAVY_NAMES = frozenset(
    {
        "all_reduce", "all_gather", "all_to_all", "all_gather_into_tensor", "reduce_scatter", "broadcast", "send", "recv",
        "isend", "irecv", "barrier", "backward", "forward", "generate", "step", "attention", "attn", "mlp", "model",
        "decoder", "encoder", "layer", "block", "expert", "experts", "module", "linear", "conv", "lm_head",
        "logits_processor", "sampler", "execute_model", "run_model",
    }
)  # fmt: skip

_HEAVY = Pattern(
    r"(^|_)forward(_|$)|(^|_)run_(\w+_)?model$|(attention|_attn)(_func|_interface|_score|_varlen|_v\d+)*$|gemm|matmul|_transform$|^interpolate$|^grid_sample$"
)

# What such an attribute of `self` holds has the model's own parts: `self.model.connector(x)` runs one of them.
_MODELS = frozenset({"model", "language_model", "visual", "vision_tower", "transformer"})
_NO_PART = Pattern(
    r"^_?(get|set|is|has|can|embed|prepare|compute|make|build|update|validate|parse|process|split|merge|pad|pack|scatter|gather)(_|$)"
)

_FACTORIES = frozenset({"zeros", "ones", "empty", "full", "zeros_like", "ones_like", "empty_like", "full_like", "clone", "pad"})
_METHODS_THAT_MAKE = frozenset({"new_zeros", "new_ones", "new_empty", "new_full", "clone"})

_SEEN_THROUGH = frozenset({"enumerate", "zip", "range", "reversed", "tqdm", "len", "list", "sorted"})

# A loop over such a thing makes as many turns as the configuration says.
_CONFIGURED = (
    "param_groups", "kv_cache_groups", "attn_groups", "num_layers", "self.layers", "n_layers", "num_heads", "kv_caches", "modules()",
    "world_size", "num_stages", "codebooks", "tp_size", "cp_size", "ep_size", "pp_size", "num_shards", "depths",
)  # fmt: skip


def turned_names(loop: Loop) -> set[str]:
    """Names that may differ from turn to turn: the loop's targets and everything its body assigns."""
    found: set[str] = set()
    pending: list[ast.AST] = []
    match loop:
        case ast.For() | ast.AsyncFor():
            _bound(loop.target, found)
            pending = list(loop.body)
        case ast.While():
            pending = list(loop.body)
        case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
            for generator in loop.generators:
                _bound(generator.target, found)
            return found
    while pending:
        node = pending.pop()
        match node:
            case ast.Assign(targets=targets):
                for target in targets:
                    _bound(target, found)
            case ast.AugAssign(target=target) | ast.AnnAssign(target=target) | ast.NamedExpr(target=target) | ast.For(target=target):
                _bound(target, found)
        pending.extend(children(node))
    return found


def _bound(target: ast.expr, found: set[str]) -> None:
    match target:
        case ast.Name(id=name):
            found.add(name)
        case ast.Tuple(elts=elements) | ast.List(elts=elements):
            for element in elements:
                _bound(element, found)
        case ast.Starred(value=inner):
            _bound(inner, found)


def mentions(expr: ast.AST, names: set[str]) -> bool:
    """True if `expr` uses one of `names`."""
    return any(isinstance(node, ast.Name) and node.id in names for node in walk(expr))


def iterated(loop: Loop) -> ast.expr | None:
    """What the loop walks over, seen through enumerate, zip, range(len(...)), reversed, tqdm; None for `while`."""
    match loop:
        case ast.For(iter=found) | ast.AsyncFor(iter=found):
            pass
        case ast.While():
            return None
        case _:
            found = loop.generators[0].iter
    while isinstance(found, ast.Call) and found.args and last_name(found.func) in _SEEN_THROUGH:
        inner = found.args[0]
        if isinstance(inner, ast.Constant) and len(found.args) > 1:
            inner = found.args[1]
        found = inner
    return found


def has_few_turns(loop: Loop, ctx: Context | None = None) -> bool:
    """True where the source shows that the loop makes at most four turns, or walks something of fixed small size; with `ctx` also
    a name that is bound to such a thing once."""
    match loop:
        case ast.While():
            return False
        case ast.For(iter=walked) | ast.AsyncFor(iter=walked):
            pass
        case _:
            walked = loop.generators[0].iter
    if ctx is not None and isinstance(walked, ast.Name):
        match ctx.assigned(walked.id):
            case [ast.Assign(value=ast.Tuple() as bound)]:  # a list may grow
                walked = bound
    match walked:
        case ast.Tuple(elts=elements) | ast.List(elts=elements) | ast.Set(elts=elements):
            return len(elements) <= 8
        case ast.Call(func=ast.Name(id="range"), args=[ast.Constant(value=int(turns))]):
            return turns <= FEW_TURNS
        case ast.Call(func=ast.Name(id="range"), args=[ast.Constant(value=int(first)), ast.Constant(value=int(last)), *_]):
            return last - first <= FEW_TURNS
        case ast.Call(func=ast.Name(id="zip" | "enumerate"), args=arguments):
            return any(isinstance(argument, (ast.Tuple, ast.List)) and len(argument.elts) <= 8 for argument in arguments)
    return False


def walks_configuration(loop: Loop) -> bool:
    """True where the loop walks a fixed set of parts: layers, groups, heads, items of a dict; the count is configuration."""
    walked = loop.iter if isinstance(loop, (ast.For, ast.AsyncFor)) else None if isinstance(loop, ast.While) else loop.generators[0].iter
    if walked is None:
        return False
    text = ast.unparse(walked) if len(list(_some(walked, 40))) < 40 else ""
    if text.endswith((".items()", ".values()", ".keys()")):
        return True
    if isinstance(walked, ast.Call) and walked.args and last_name(walked.func) in _SEEN_THROUGH:
        inner = iterated(loop)  # enumerate(sorted(table.items()))
        if isinstance(inner, ast.Call) and last_name(inner.func) in ("items", "values", "keys"):
            return True
    return any(word in text for word in _CONFIGURED) or _walks_options(loop)


def _walks_options(loop: Loop) -> bool:
    """True for `for mode in modes: if mode == "sum": ... elif mode == "mean": ...`, which names what may be walked."""
    if not isinstance(loop, ast.For) or not isinstance(loop.target, ast.Name):
        return False
    asked, pending = 0, list(loop.body)
    while pending:
        statement = pending.pop()
        if isinstance(statement, ast.If):
            pending += statement.orelse
            match statement.test:
                case ast.Compare(left=ast.Name(id=name), ops=[ast.Eq()], comparators=[ast.Constant(value=str())]) if name == loop.target.id:
                    asked += 1
    return asked > 1


def walks_what_is_kept(loop: Loop, ctx: Context) -> bool:
    """True for `range(self.n)` and `enumerate(self.parts)` where only the constructor stores them: the model's own parts, a few."""
    pending = [loop.iter if isinstance(loop, (ast.For, ast.AsyncFor)) else None if isinstance(loop, ast.While) else loop.generators[0].iter]
    found = False
    while pending:
        match pending.pop():
            case ast.Call(func=ast.Name(id=name), args=arguments) if name in _SEEN_THROUGH:
                pending += arguments
            case ast.Attribute(value=ast.Name(id="self")) as kept if ctx.is_constant(kept):
                found = True
            case ast.Constant():
                continue
            case _:
                return False
    return found


def walks_chunks(loop: Loop) -> bool:
    """True for `range(start, stop, chunk)`, `range(0, stop, 65536)` and `metadata.chunks`: such a loop bounds memory, and its turns
    are as large as they can be."""
    walked = loop.iter if isinstance(loop, (ast.For, ast.AsyncFor)) else None if isinstance(loop, ast.While) else loop.generators[0].iter
    match walked:
        case ast.Call(func=ast.Name(id="range"), args=[_, _, ast.Constant(value=step)]):
            return isinstance(step, int) and step >= _LARGE_STEP
        case ast.Call(func=ast.Name(id="range"), args=[_, _, step]):
            return not isinstance(step, ast.UnaryOp)
        case ast.Attribute(attr="chunks") | ast.IfExp(body=ast.Attribute(attr="chunks")):
            return True
        case ast.Call(func=called):
            return last_name(called).endswith("chunks")  # `row_chunks(x)`, which gives slices
    return False


def carries_tensor(loop: ast.For | ast.While, ctx: Context) -> bool:
    """True where a turn needs a tensor that the turn before made (`state = state * decay + x`): such turns cannot be batched."""
    for node in loop.body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if ctx.value(value).is_tensor:
                if (mentions(value, {name}) or _is_used(name, loop, node)) and _is_read_first(name, loop, node):
                    return True
    return False


def _is_used(name: str, loop: ast.For | ast.While, store: ast.stmt) -> bool:
    """True if a statement of the turn ahead of `store` gives `name` to a call: `drawn = draw(previous)`, then `previous = drawn`."""
    for node in loop.body:
        if node is store:
            return False
        for call in walk(node):
            if isinstance(call, ast.Call) and any(isinstance(item, ast.Name) and item.id == name for item in call.args):
                return True
    return False


def _is_read_first(name: str, loop: ast.For | ast.While, store: ast.stmt) -> bool:
    """True if no statement of the turn binds `name` before `store` does."""
    if isinstance(loop, ast.For) and mentions(loop.target, {name}):
        return False
    for node in loop.body:
        if node is store:
            return True
        if any(isinstance(item, ast.Name) and item.id == name and isinstance(item.ctx, ast.Store) for item in walk(node)):
            return False
    return True


def reads_what_it_stored(target: ast.Subscript, loop: Loop) -> bool:
    """True where a turn computes with the row that the turn before stored (`last = table[t - 1]`, then `table[t] = f(last)`): such
    turns cannot be joined. A row that is only added to is a running sum, which one `cumsum` makes."""
    turned = turned_names(loop)
    spelled = dotted(target.value)
    if not spelled or not isinstance(loop, (ast.For, ast.AsyncFor, ast.While)):
        return False
    pending: list[tuple[ast.AST, bool]] = [(node, False) for node in loop.body]
    while pending:
        node, added = pending.pop()
        match node:
            case ast.Subscript(value=read, slice=index, ctx=ast.Load()) if dotted(read) == spelled and not added:
                if _is_one_before(index, target.slice, turned):
                    return True
            case ast.Assign(targets=[ast.Subscript()], value=ast.BinOp(op=ast.Add() | ast.Sub(), left=left, right=right)):
                pending += [(left, isinstance(left, ast.Subscript)), (right, isinstance(right, ast.Subscript))]
                continue
        pending += [(child, False) for child in children(node)]
    return False


def _is_one_before(read: ast.expr, stored: ast.expr, turned: set[str]) -> bool:
    """`t - 1` where `t` is stored, and `t` where `t + 1` is; in one place of the index."""
    reads = read.elts if isinstance(read, ast.Tuple) else [read]
    stores = stored.elts if isinstance(stored, ast.Tuple) else [stored]
    for one, other in zip(reads, stores, strict=False):
        match one, other:
            case ast.BinOp(left=ast.Name(id=name), op=ast.Sub(), right=ast.Constant()), ast.Name(id=same) if name == same in turned:
                return True
            case ast.Name(id=name), ast.BinOp(left=ast.Name(id=same), op=ast.Add(), right=ast.Constant()) if name == same in turned:
                return True
    return False


def _some(expr: ast.expr, limit: int) -> Iterator[ast.AST]:
    for count, node in enumerate(walk(expr)):
        if count >= limit:
            return
        yield node


def body_of(loop: Loop) -> list[ast.AST]:
    """The code that runs each turn."""
    match loop:
        case ast.For() | ast.AsyncFor():
            return list(loop.body)
        case ast.While():
            return [*loop.body, loop.test]
        case ast.DictComp():
            return [loop.key, loop.value]
        case _:
            return [loop.elt]


def calls_in(loop: Loop) -> Iterator[ast.Call]:
    """Calls made each turn, nested functions left out."""
    return (node for node in nodes_in(loop) if isinstance(node, ast.Call))


def nodes_in(loop: Loop) -> Iterator[ast.AST]:
    """Everything in the code of a turn, nested functions left out."""
    pending = body_of(loop)
    while pending:
        node = pending.pop()
        yield node
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            pending.extend(children(node))


def heavy_call(loop: Loop, ctx: Context) -> ast.Call | None:
    """A call in the loop's body that outweighs small launches: a matmul, a module, a collective; None if there is none."""
    operations = torch_operations()
    walked = _walked_names(loop)
    for call in calls_in(loop):
        name = last_name(call.func)
        operation = operations.get(name)
        if operation is not None and operation.heavy:
            return call
        if name in _HEAVY_NAMES or _HEAVY.search(name):
            return call
        if isinstance(call.func, (ast.Subscript, ast.Call)):
            return call  # self.layers[i](x), getattr(module, name)(x)
        if isinstance(call.func, ast.Name) and call.func.id in walked:
            return call  # for norm in norms: norm(x)
        match call.func:
            case ast.Attribute(value=ast.Name(id="self"), attr=held) as called:
                if ctx.value(called).kind is Kind.OBJECT or _is_held(held, ctx):
                    return call
            case ast.Attribute(value=ast.Subscript(value=ast.Attribute(value=ast.Name(id="self")))) if operation is None:
                if not _NO_PART.search(name) and any(ctx.value(argument).is_tensor for argument in call.args):
                    return call  # self.index[i].search(x)
            case ast.Attribute(value=ast.Attribute(value=ast.Name(id="self"), attr=holder)) if holder in _MODELS:
                if not _NO_PART.search(name) and any(ctx.value(argument).is_tensor for argument in call.args):
                    return call  # self.model.connector(x)
    for node in body_of(loop):
        if any(isinstance(item, ast.BinOp) and isinstance(item.op, ast.MatMult) for item in walk(node)):
            return next(iter(calls_in(loop)), ast.Call(ast.Name("matmul"), [], []))
    return None


def walks_results(loop: Loop, ctx: Context) -> bool:
    """True where a loop walks what another made with a heavy call a turn: beside as many such calls its launches do not count."""
    return any(heavy_call(made, ctx) is not None for name in _lists_of(loop) for _, made in pieces_of(name, ctx))


def _lists_of(loop: Loop) -> Iterator[str]:
    """The names that a loop walks over: through `enumerate` and `zip`."""
    pending = [loop.iter] if isinstance(loop, (ast.For, ast.AsyncFor)) else []
    while pending:
        match pending.pop():
            case ast.Name(id=name):
                yield name
            case ast.Call(func=ast.Name(id="enumerate" | "zip" | "reversed"), args=arguments):
                pending += arguments


def pieces_of(name: str, ctx: Context) -> Iterator[tuple[ast.expr, Loop]]:
    """What loops of this function append to the list `name`, and the comprehension it is made by."""
    for statement in ctx.assigned(name):
        if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.ListComp):
            yield statement.value.elt, statement.value
    root = ctx.function.node
    if root is None:
        return
    for loop in walk(root):
        if isinstance(loop, (ast.For, ast.While)):
            for call in calls_in(loop):
                match call:
                    case ast.Call(func=ast.Attribute(value=ast.Name(id=held), attr="append"), args=[piece]) if held == name:
                        yield piece, loop


def writes_to_item(written: ast.expr, loop: Loop, ctx: Context) -> bool:
    """True where each turn writes to the item that it is about, another tensor each time: there is no whole to write at once. Rows of a
    tensor are parts of that tensor."""
    root = _root(written)
    if not isinstance(loop, ast.For) or any(ctx.value(part).is_tensor for part in walk(loop.iter) if isinstance(part, ast.expr)):
        return False
    items = {item.id for item in walk(loop.target) if isinstance(item, ast.Name)}
    return root in items or any(_root(value) in items for value in _bound_in(loop, root))


def makes_what_it_writes(written: ast.expr, loop: Loop, ctx: Context) -> bool:
    """True where each turn makes the tensor that it writes to."""
    return isinstance(loop, ast.For) and any(_makes_tensor(value, ctx) for value in _bound_in(loop, _root(written)))


def _bound_in(loop: ast.For, name: str) -> list[ast.expr]:
    """What the statements of a loop's body bind to a name."""
    found = [node for node in loop.body if isinstance(node, ast.Assign)]
    return [node.value for node in found if any(isinstance(target, ast.Name) and target.id == name for target in node.targets)]


def _root(expr: ast.expr) -> str:
    """`pool` of `pool.buffer.rows`; a subscript may be a view of what all turns share."""
    while isinstance(expr, ast.Attribute):
        expr = expr.value
    return expr.id if isinstance(expr, ast.Name) else ""


def _makes_tensor(value: ast.expr, ctx: Context) -> bool:
    if not isinstance(value, ast.Call):
        return False
    name = ctx.name(value.func)
    if name.startswith("torch."):
        return name.rpartition(".")[2] in _FACTORIES
    return last_name(value.func) in _METHODS_THAT_MAKE


def _walked_names(loop: Loop) -> set[str]:
    """The targets of a loop."""
    found: set[str] = set()
    if isinstance(loop, (ast.For, ast.AsyncFor)):
        _bound(loop.target, found)
    return found


def _is_held(attribute: str, ctx: Context) -> bool:
    """True where the constructor of the class is given what it keeps under an attribute, or announces an object of some class there:
    called like a function, it is a module."""
    owner = ctx.function.class_node
    for item in owner.body if owner is not None else ():
        if isinstance(item, ast.FunctionDef) and item.name == "__init__":
            given = {argument.arg for argument in item.args.args}
            return any(_announces(node, attribute) or _keeps(node, attribute, given) for node in item.body)
    return False


def _announces(node: ast.stmt, attribute: str) -> bool:
    """`self.transform: HadamardTransform | None = None`"""
    if not isinstance(node, ast.AnnAssign) or not isinstance(node.target, ast.Attribute) or node.target.attr != attribute:
        return False
    names = {item.id for item in walk(node.annotation) if isinstance(item, ast.Name)}
    return any(name[:1].isupper() for name in names) and not names & {"Callable", "Any", "Tensor"}


def _keeps(node: ast.stmt, attribute: str, given: set[str]) -> bool:
    """`self.norm = norm` for a parameter `norm`."""
    if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Name) or node.value.id not in given:
        return False
    return any(isinstance(target, ast.Attribute) and target.attr == attribute for target in node.targets)


def describe(loop: Loop, ctx: Context) -> str:
    """The loop in words: "item of `counts`", "turn of this loop"."""
    walked = iterated(loop)
    if walked is None:
        return "turn of this loop"
    text = ctx.text(walked)
    return f"item of `{text}`" if len(text) <= 40 and "\n" not in text else "turn of this loop"


def parameter(ctx: Context, name: str) -> ast.arg | None:
    """The parameter `name` of the function, if there is one."""
    node = ctx.function.node
    if node is None:
        return None
    arguments = node.args
    return next((item for item in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs) if item.arg == name), None)
