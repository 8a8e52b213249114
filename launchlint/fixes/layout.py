"""Laying out generated code: on one line where it fits, else broken at the brackets with one argument a line."""

from __future__ import annotations

from dataclasses import dataclass

WIDTH = 88  # what most of the code that is fixed is formatted to


@dataclass(frozen=True, slots=True)
class Argument:
    """A positional argument, or a keyword argument where `name` is given."""

    value: Code
    name: str = ""

    @property
    def label(self) -> str:
        return f"{self.name}=" if self.name else ""


@dataclass(frozen=True, slots=True)
class Call:
    """A call of `function`, or of the method `method` of the value of `function`."""

    function: Code
    arguments: tuple[Argument, ...]
    method: str = ""


Code = str | Call


def call(function: Code, *positional: Code, method: str = "", **named: Code) -> Call:
    """Make a call; a keyword whose value is an empty string is left out."""
    keywords = tuple(Argument(value, name) for name, value in named.items() if value != "")
    return Call(function, tuple(Argument(value) for value in positional) + keywords, method)


def flat(code: Code) -> str:
    """`code` on one line."""
    if isinstance(code, str):
        return code
    return f"{_head(code)}({', '.join(argument.label + flat(argument.value) for argument in code.arguments)})"


def render(code: Code, indent: str = "", prefix: str = "", suffix: str = "") -> str:
    """`code` between `prefix` and `suffix` for a line that is already indented by `indent`; later lines carry theirs."""
    line = prefix + flat(code) + suffix
    if isinstance(code, str) or not code.arguments or len(indent + line) <= WIDTH:
        return line
    together = ", ".join(argument.label + flat(argument.value) for argument in code.arguments)
    opening = f"{prefix}{_head(code)}("
    if len(indent + opening) > WIDTH and not isinstance(code.function, str):
        opening = render(code.function, indent, prefix, f".{code.method}(" if code.method else "(")
        closing = f"{opening.rpartition(chr(10))[2]}{together}){suffix}"
        if len(closing) <= WIDTH:
            return f"{opening}{together}){suffix}"
    inner = indent + ("\t" if indent.endswith("\t") else "    ")
    if len(inner + together) <= WIDTH:
        lines = [inner + together]
    else:
        lines = [inner + render(argument.value, inner, argument.label, ",") for argument in code.arguments]
    return "\n".join([opening, *lines, f"{indent}){suffix}"])


def _head(code: Call) -> str:
    return flat(code.function) + (f".{code.method}" if code.method else "")
