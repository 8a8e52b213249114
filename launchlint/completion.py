"""Completion for shells, written out from the options of the command line, so that pressing Tab starts no Python."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass, field

SHELLS = ("bash", "fish", "zsh")


@dataclass(frozen=True, slots=True)
class Option:
    """One option: its spellings, whether a value follows and which, and what it does."""

    names: tuple[str, ...]
    takes_value: bool
    choices: tuple[str, ...]
    help: str


@dataclass(slots=True)
class Command:
    """A command with what may follow it."""

    name: str
    help: str
    options: list[Option] = field(default_factory=list)
    words: tuple[str, ...] = ()  # the choices of its first argument


def script(shell: str, parser: argparse.ArgumentParser, choices: dict[str, tuple[str, ...]]) -> str:
    """The script for `shell`; `choices` are values of options that the parser does not list, by the name of the option."""
    commands = list(_commands(parser, choices))
    match shell:
        case "bash":
            return _bash(commands)
        case "zsh":
            return "#compdef launchlint\nautoload -U +X bashcompinit && bashcompinit\n" + _bash(commands)
    return _fish(commands)


def _commands(parser: argparse.ArgumentParser, choices: dict[str, tuple[str, ...]]) -> Iterator[Command]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            helps = {each.dest: each.help or "" for each in action._choices_actions}
            for name, below in action.choices.items():
                yield _command(name, helps.get(name, ""), below, choices)


def _command(name: str, text: str, parser: argparse.ArgumentParser, choices: dict[str, tuple[str, ...]]) -> Command:
    command = Command(name, text)
    for action in parser._actions:
        if action.option_strings:
            known = tuple(map(str, action.choices or ())) or next((choices[one] for one in action.option_strings if one in choices), ())
            shown = (action.help or "").replace("%%", "%")
            command.options.append(Option(tuple(action.option_strings), action.nargs != 0, known, shown))
        elif action.choices:
            command.words = tuple(map(str, action.choices))
    return command


def _bash(commands: list[Command]) -> str:
    lines = [
        "# bash completion for launchlint",
        "_launchlint() {",
        "    local current previous command word IFS=$'\\n'",
        '    current="${COMP_WORDS[COMP_CWORD]}"',
        '    previous="${COMP_WORDS[COMP_CWORD-1]}"',
        '    command=""',
        '    for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do',
        '        case "$word" in -*) ;; *) command="$word"; break ;; esac',
        "    done",
        '    case "$command:$previous" in',
    ]
    for command in commands:
        for option in command.options:
            if option.takes_value:
                patterns = "|".join(f"{command.name}:{name}" for name in option.names)
                reply = _words(option.choices) if option.choices else 'compgen -f -- "$current"'
                lines.append(f"        {patterns}) COMPREPLY=($({reply})); return ;;")
    lines += ["    esac", '    case "$command" in', f'        "") COMPREPLY=($({_words([each.name for each in commands])})) ;;']
    for command in commands:
        every = [name for option in command.options for name in option.names]
        lines += [
            f"        {command.name})",
            f'            case "$current" in -*) COMPREPLY=($({_words(every)})); return ;; esac',
            f'            COMPREPLY=($({_words(command.words)}; compgen -f -- "$current")) ;;',
        ]
    return "\n".join([*lines, "    esac", "}", "complete -o filenames -F _launchlint launchlint"]) + "\n"


def _words(words: list[str] | tuple[str, ...]) -> str:
    """The words that begin with what is typed; one a line, since lines are what the script splits at."""
    listed = "\\n".join(words)
    return f"""compgen -W $'{listed}' -- "$current\""""


def _fish(commands: list[Command]) -> str:
    lines = ["# fish completion for launchlint"]
    for command in commands:
        lines.append(f"complete -c launchlint -n __fish_use_subcommand -f -a {command.name} -d {_fish_text(command.help)}")
        seen = f"-n '__fish_seen_subcommand_from {command.name}'"
        if command.words:
            lines.append(f"complete -c launchlint {seen} -a {_fish_text(' '.join(command.words))}")
        for option in command.options:
            names = " ".join(f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in option.names)
            value = f" -x -a {_fish_text(' '.join(option.choices))}" if option.choices else " -r" if option.takes_value else ""
            lines.append(f"complete -c launchlint {seen} {names}{value} -d {_fish_text(option.help)}")
    return "\n".join(lines) + "\n"


def _fish_text(text: str) -> str:
    quoted = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{quoted}'"
