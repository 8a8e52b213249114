"""A language client of a few lines: it starts the server, speaks JSON-RPC over pipes and applies edits as an editor does."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

ROOT = Path(__file__).parents[2]
PATIENCE = 60.0  # seconds
CAPABILITIES: dict[str, Any] = {
    "workspace": {"workspaceEdit": {"documentChanges": True}},
    "textDocument": {
        "publishDiagnostics": {"relatedInformation": True, "versionSupport": True},
        "codeAction": {"resolveSupport": {"properties": ["edit"]}, "dataSupport": True},
    },
}


class Client:
    """One editor with one server."""

    def __init__(self, folder: Path, *options: str, capabilities: Mapping[str, Any] = CAPABILITIES) -> None:
        self.folder = folder
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "launchlint", "server", *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=folder,
            env=environment,
        )
        self.published: list[dict[str, Any]] = []  # parameters of every publishDiagnostics, in order
        self._messages: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self._number = 0
        threading.Thread(target=self._listen, daemon=True).start()
        root = folder.as_uri()
        self.server = self.ask("initialize", {"processId": os.getpid(), "rootUri": root, "capabilities": capabilities})
        self.tell("initialized", {})

    def __enter__(self) -> Client:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if kind is None:
            self.ask("shutdown", None)
            self.tell("exit", None)
        else:
            self.process.kill()
        _, self.errors = self.process.communicate(timeout=PATIENCE)

    # ---------------------------------------------------------------- messages

    def ask(self, method: str, params: Any) -> Any:
        """Send a request and return its result."""
        self._number += 1
        self._send({"jsonrpc": "2.0", "id": self._number, "method": method, "params": params})
        while True:
            message = self._next()
            if message.get("id") == self._number and "method" not in message:
                assert "error" not in message, message
                return message["result"]

    def tell(self, method: str, params: Any) -> None:
        """Send a notification."""
        self._send({"jsonrpc": "2.0", "method": method, "params": params})

    def _send(self, message: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        body = json.dumps(message).encode()
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        self.process.stdin.flush()

    def _listen(self) -> None:
        stream = self.process.stdout
        assert stream is not None
        while header := stream.readline():
            length = int(header.split(b":")[1])
            while stream.readline().strip():
                pass
            self._messages.put(json.loads(stream.read(length)))
        self._messages.put(None)

    def _next(self, patience: float = PATIENCE) -> dict[str, Any]:
        message = self._messages.get(timeout=patience)
        assert message is not None, "the server has gone"
        if message.get("method") == "textDocument/publishDiagnostics":
            self.published.append(message["params"])
        return message

    # ---------------------------------------------------------------- texts

    def open(self, name: str, text: str) -> Text:
        """Open a text that need not lie on the disk."""
        opened = Text(self, (self.folder / name).as_uri(), text)
        item = {"uri": opened.uri, "languageId": "python", "version": opened.version, "text": text}
        self.tell("textDocument/didOpen", {"textDocument": item})
        return opened

    def wait(self, uri: str, version: int | None) -> list[dict[str, Any]]:
        """The diagnostics of one version of a text."""
        limit = time.monotonic() + PATIENCE
        while time.monotonic() < limit:
            for params in self.published:
                if params["uri"] == uri and params.get("version") == version:
                    found: list[dict[str, Any]] = params["diagnostics"]
                    return found
            self._next()
        raise AssertionError(f"no diagnostics for version {version}")


class Text:
    """A text as the editor has it."""

    def __init__(self, client: Client, uri: str, text: str) -> None:
        self.client = client
        self.uri = uri
        self.text = text
        self.version = 1

    def change(self, text: str) -> None:
        """Type: the whole text is sent, as the server asks for."""
        self.version += 1
        self.text = text
        identifier = {"uri": self.uri, "version": self.version}
        self.client.tell("textDocument/didChange", {"textDocument": identifier, "contentChanges": [{"text": text}]})

    def save(self) -> None:
        self.client.tell("textDocument/didSave", {"textDocument": {"uri": self.uri}})

    def close(self) -> None:
        self.client.tell("textDocument/didClose", {"textDocument": {"uri": self.uri}})

    @property
    def diagnostics(self) -> list[dict[str, Any]]:
        """What the server says of the text as it is now."""
        return self.client.wait(self.uri, self.version)

    def actions(self, range_: Mapping[str, Any], only: Sequence[str] | None = None) -> list[dict[str, Any]]:
        """The actions that are offered for a range."""
        context: dict[str, Any] = {"diagnostics": []}
        if only is not None:
            context["only"] = list(only)
        asked = {"textDocument": {"uri": self.uri}, "range": range_, "context": context}
        return list(self.client.ask("textDocument/codeAction", asked) or [])

    def hover(self, line: int, character: int) -> str | None:
        """The text of what is shown at a place."""
        asked = {"textDocument": {"uri": self.uri}, "position": {"line": line, "character": character}}
        shown = self.client.ask("textDocument/hover", asked)
        return None if shown is None else str(shown["contents"]["value"])

    def at(self, position: Mapping[str, int]) -> int:
        """The offset of a position in UTF-16 units, worked out without any code of launchlint."""
        lines = self.text.split("\n")
        line = lines[position["line"]].encode("utf-16-le")[: 2 * position["character"]].decode("utf-16-le")
        return sum(len(each) + 1 for each in lines[: position["line"]]) + len(line)

    def cut(self, range_: Mapping[str, Any]) -> str:
        """The text of a range."""
        return self.text[self.at(range_["start"]) : self.at(range_["end"])]

    def applied(self, edit: Mapping[str, Any]) -> str:
        """The text after a workspace edit, which must be for this version of it."""
        (change,) = edit["documentChanges"]
        assert change["textDocument"] == {"uri": self.uri, "version": self.version}
        return self.edited(change["edits"])

    def edited(self, edits: Sequence[Mapping[str, Any]]) -> str:
        """The text after edits."""
        text = self.text
        for each in sorted(edits, key=lambda each: self.at(each["range"]["start"]), reverse=True):
            text = text[: self.at(each["range"]["start"])] + each["newText"] + text[self.at(each["range"]["end"]) :]
        return text
