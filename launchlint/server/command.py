"""`launchlint server`: the editor server on standard input and output."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import argparse

DELAY = 200  # milliseconds
DESCRIPTION = """\
Speak the language server protocol on standard input and output, for an editor that starts this command. It checks the text
in the editor, saved or not, with the settings of the file's project. docs/editor.md shows how editors are set up."""


def add_parser(subparsers: Any) -> None:
    """Add the command to the parsers of the command line."""
    parser = subparsers.add_parser(
        "server",
        help="show findings in an editor (needs pygls)",
        description=DESCRIPTION,
    )
    parser.add_argument("--config", metavar="FILE", help="read settings from FILE, for every file")
    parser.add_argument("--delay", type=_delay, default=DELAY, metavar="MS", help=f"check this long after the last key (default: {DELAY})")
    parser.add_argument("--stdio", action="store_true", help="what is done anyway; some editors say so")
    parser.set_defaults(run=run)


def _delay(word: str) -> int:
    import argparse

    if not word.isdecimal() or int(word) > 60_000:
        raise argparse.ArgumentTypeError(f"milliseconds from 0 to 60000, not {word!r}")
    return int(word)


def run(options: argparse.Namespace) -> int:
    """Serve until the editor is done; 0, or 2 where pygls is missing."""
    try:
        import pygls.lsp.server  # noqa: F401
    except ImportError:
        print("launchlint: the editor server needs pygls 2: pip install 'launchlint[lsp]'", file=sys.stderr)
        return 2
    from launchlint.server.features import make_server

    stdout = sys.stdout.buffer
    sys.stdout = sys.stderr  # whatever is printed by mistake must not get between the messages
    make_server(options.delay / 1000, options.config).start_io(stdout=stdout)
    return 0
