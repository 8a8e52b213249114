"""The server itself: which messages it answers, and when it checks."""

from __future__ import annotations

import asyncio
import os

from lsprotocol import types
from pygls.lsp.server import LanguageServer
from pygls.workspace import TextDocument

from launchlint import __version__
from launchlint.server.actions import FIX_ALL, KINDS, Abilities, Actions
from launchlint.server.checker import Checked, Checker
from launchlint.server.diagnostics import diagnostics
from launchlint.server.hovers import hover
from launchlint.server.positions import Positions


class Session:
    """The open texts of one editor. All checking is done on the thread of the messages, one text after the other."""

    def __init__(self, server: LanguageServer, checker: Checker, delay: float) -> None:
        self.server = server
        self.checker = checker
        self.delay = delay  # seconds
        self._open: set[str] = set()
        self._checked: dict[str, Checked] = {}
        self._timers: dict[str, asyncio.TimerHandle] = {}

    def enter(self, root: str | None) -> None:
        """Work from the folder that the editor has open, so that paths mean what they mean on the command line."""
        if root is not None and os.path.isdir(root):
            os.chdir(root)

    def open(self, uri: str) -> None:
        """Check a text that the editor has just opened."""
        self._open.add(uri)
        self.check_now(uri)

    def check_soon(self, uri: str) -> None:
        """Check a text when it has not changed for a while."""
        self._stop(uri)
        self._timers[uri] = asyncio.get_running_loop().call_later(self.delay, self.check_now, uri)

    def check_now(self, uri: str) -> None:
        """Check a text and tell the editor."""
        self._stop(uri)
        checked = self.current(uri)
        found = diagnostics(uri, checked, self.positions(checked), self.abilities.related)
        self.server.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, found, checked.version))

    def close(self, uri: str) -> None:
        """Forget a text and take its findings off the screen."""
        self._stop(uri)
        self._open.discard(uri)
        self._checked.pop(uri, None)
        self.server.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, []))

    def current(self, uri: str) -> Checked:
        """What is found in the text as it is now, which may be newer than what the editor shows."""
        document = self.server.workspace.get_text_document(uri)
        known = self._checked.get(uri)
        if known is None or known.version != document.version or known.source.text != document.source:
            known = self._checked[uri] = self._check(document)
        return known

    def check_anew(self) -> None:
        """Check every text again even where it has not changed: the settings may have."""
        self._checked.clear()
        for uri in sorted(self._open):
            self.check_now(uri)

    def _check(self, document: TextDocument) -> Checked:
        return self.checker.check(_relative(document.path), document.source, document.version)

    def _stop(self, uri: str) -> None:
        if timer := self._timers.pop(uri, None):
            timer.cancel()

    def positions(self, checked: Checked) -> Positions:
        """Positions in the units that were agreed on."""
        encoding = self.server.workspace.position_encoding or types.PositionEncodingKind.Utf16
        return Positions(checked.source, encoding.value if isinstance(encoding, types.PositionEncodingKind) else encoding)

    def actions(self, uri: str) -> Actions:
        """What can be done about a text."""
        checked = self.current(uri)
        return Actions(uri, checked, self.positions(checked), self.abilities)

    @property
    def abilities(self) -> Abilities:
        """What the editor can do; an editor that says nothing can do nothing."""
        can = self.server.client_capabilities
        edits = can.workspace.workspace_edit if can.workspace else None
        action = can.text_document.code_action if can.text_document else None
        publish = can.text_document.publish_diagnostics if can.text_document else None
        resolvable = action.resolve_support.properties if action and action.resolve_support else ()
        return Abilities(
            versioned=bool(edits and edits.document_changes),
            resolves="edit" in resolvable,
            related=bool(publish and publish.related_information),
        )


def make_server(delay: float, config: str | None = None) -> LanguageServer:
    """A server that checks `delay` seconds after the last change, with the settings of each file's project or of `config`.

    Texts are sent whole: what pygls makes of parts of them counts lines at form feeds and other places where neither
    Python nor the protocol ends one.
    """
    server = LanguageServer("launchlint", __version__, types.TextDocumentSyncKind.Full)
    session = Session(server, Checker(os.path.abspath(config) if config else None), delay)
    _follow_texts(server, session)
    _answer_questions(server, session)
    return server


def _follow_texts(server: LanguageServer, session: Session) -> None:
    @server.feature(types.INITIALIZE)
    def initialize(params: types.InitializeParams) -> None:
        session.enter(server.workspace.root_path)

    @server.feature(types.TEXT_DOCUMENT_DID_OPEN)
    def opened(params: types.DidOpenTextDocumentParams) -> None:
        session.open(params.text_document.uri)

    @server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    def changed(params: types.DidChangeTextDocumentParams) -> None:
        session.check_soon(params.text_document.uri)

    @server.feature(types.TEXT_DOCUMENT_DID_SAVE)
    def saved(params: types.DidSaveTextDocumentParams) -> None:
        session.check_now(params.text_document.uri)

    @server.feature(types.WORKSPACE_DID_CHANGE_WATCHED_FILES)
    def files_changed(params: types.DidChangeWatchedFilesParams) -> None:
        session.check_anew()

    @server.feature(types.TEXT_DOCUMENT_DID_CLOSE)
    def closed(params: types.DidCloseTextDocumentParams) -> None:
        session.close(params.text_document.uri)


def _answer_questions(server: LanguageServer, session: Session) -> None:
    @server.feature(types.TEXT_DOCUMENT_CODE_ACTION, types.CodeActionOptions(code_action_kinds=[*KINDS], resolve_provider=True))
    def offered(params: types.CodeActionParams) -> list[types.CodeAction]:
        only = [str(getattr(kind, "value", kind)) for kind in params.context.only or ()]
        return session.actions(params.text_document.uri).at(params.range, only, session.checker)

    @server.feature(types.CODE_ACTION_RESOLVE)
    def resolved(params: types.CodeAction) -> types.CodeAction:
        if params.kind == FIX_ALL and isinstance(params.data, dict):
            params.edit = session.actions(params.data["uri"]).fix_all(session.checker)
        return params

    @server.feature(types.TEXT_DOCUMENT_HOVER)
    def hovered(params: types.HoverParams) -> types.Hover | None:
        checked = session.current(params.text_document.uri)
        return hover(checked, session.positions(checked), params.position)


def _relative(path: str) -> str:
    """A path as one would name it from the working directory; as it is where it lies outside."""
    here = os.path.join(os.getcwd(), "")
    return path[len(here) :] if path.startswith(here) else path
