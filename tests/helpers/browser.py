"""Debian's headless Chromium, started once for many pages, and driven through a pipe.

Source: the Chrome DevTools Protocol, tip of tree. With ``--remote-debugging-pipe`` a message is JSON and a zero byte,
which the browser reads from its descriptor 3 and writes to 4. Time of a page is virtual: it runs to its end at once.
Leaves out: all other browsers, and several pages at once.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

__all__ = ["CHROMIUM", "Browser", "Document", "started_browser"]

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
VIRTUAL_TIME_MS = 5_000  # chosen: longer than any timer of a page
_CHUNK_BYTES = 1 << 16
# The browser reads descriptor 3 and writes 4; both ends go above 10 first, so that neither hides the other.
_MOVED = """import fcntl, os, sys
ends = [fcntl.fcntl(int(end), fcntl.F_DUPFD, 10) for end in sys.argv[1:3]]
os.dup2(ends[0], 3), os.dup2(ends[1], 4)
os.execv(sys.argv[3], sys.argv[3:])
"""


class Document(NamedTuple):
    """A page after its scripts: its HTML, and what its console said."""

    html: str
    complaints: list[str]


class Browser:
    """A running Chromium.

    Parameters
    ----------
    to_browser, from_browser : file descriptors of the pipe
    """

    def __init__(self, to_browser: int, from_browser: int) -> None:
        self._to, self._from = to_browser, from_browser
        self._rest = b""
        self._last_id = 0
        self._events: list[dict[str, Any]] = []

    def opened(self, page: Path, *, width: int = 1280, height: int = 900, theme: str = "light") -> Document:
        """What a page is after its scripts, as a new user sees it.

        Parameters
        ----------
        page : a file
        width, height : of the window, in CSS pixels
        theme : that the reader prefers, ``light`` or ``dark``
        """
        context = self._ask("Target.createBrowserContext")["browserContextId"]  # it remembers no theme of another page
        target = self._ask("Target.createTarget", url="about:blank", browserContextId=context)["targetId"]
        session = self._ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self._events.clear()
        for domain in ("Page", "Runtime", "Log"):
            self._ask(f"{domain}.enable", session)
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self._ask("Emulation.setDeviceMetricsOverride", session, **size)
        scheme = {"name": "prefers-color-scheme", "value": theme}
        self._ask("Emulation.setEmulatedMedia", session, features=[scheme])
        self._ask("Emulation.setVirtualTimePolicy", session, policy="pause")
        self._ask("Page.navigate", session, url=page.as_uri())
        advance = {"policy": "pauseIfNetworkFetchesPending", "budget": VIRTUAL_TIME_MS}
        self._ask("Emulation.setVirtualTimePolicy", session, **advance)
        self._wait_for("Emulation.virtualTimeBudgetExpired", session)
        html = self._ask("Runtime.evaluate", session, expression="document.documentElement.outerHTML")
        complaints = [text for event in self._events if (text := _complaint(event))]
        self._ask("Target.disposeBrowserContext", browserContextId=context)
        return Document(html["result"]["value"], complaints)

    def leave(self) -> None:
        """Ask the browser to end."""
        self._ask("Browser.close")

    def _ask(self, method: str, session: str | None = None, **parameters: Any) -> dict[str, Any]:
        """Send a command and read until its answer; events on the way are kept."""
        self._last_id += 1
        command: dict[str, Any] = {"id": self._last_id, "method": method, "params": parameters}
        if session is not None:
            command["sessionId"] = session
        message = json.dumps(command).encode() + b"\0"
        while message:
            message = message[os.write(self._to, message) :]
        while (answer := self._next_message()).get("id") != self._last_id:
            self._events.append(answer)
        assert "error" not in answer, f"{method}: {answer['error']}"
        result: dict[str, Any] = answer["result"]
        return result

    def _wait_for(self, method: str, session: str) -> None:
        wanted = (method, session)
        while all((event.get("method"), event.get("sessionId")) != wanted for event in self._events):
            self._events.append(self._next_message())

    def _next_message(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            chunk = os.read(self._from, _CHUNK_BYTES)
            assert chunk, "the browser has ended"
            self._rest += chunk
        text, _, self._rest = self._rest.partition(b"\0")
        message: dict[str, Any] = json.loads(text)
        return message


def _complaint(event: dict[str, Any]) -> str:
    """What a page said to its console, thrown or logged; empty for any other event."""
    details = event.get("params", {})
    match event.get("method"):
        case "Runtime.exceptionThrown":
            return json.dumps(details["exceptionDetails"])
        case "Runtime.consoleAPICalled":
            return json.dumps(details["args"])
        case "Log.entryAdded":
            return str(details["entry"]["text"])
    return ""


@contextmanager
def started_browser(profile: Path) -> Iterator[Browser]:
    """A browser with a profile of its own, which ends with the context."""
    command = [
        str(CHROMIUM), "--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe",
        "--disable-extensions", "--disable-component-update", f"--user-data-dir={profile}", "about:blank",
    ]  # fmt: skip
    read_of_browser, to_browser = os.pipe()
    from_browser, write_of_browser = os.pipe()
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", _MOVED, str(read_of_browser), str(write_of_browser), *command],
        pass_fds=(read_of_browser, write_of_browser),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(read_of_browser)
    os.close(write_of_browser)
    browser = Browser(to_browser, from_browser)
    try:
        yield browser
        browser.leave()
        process.wait(timeout=60)
    finally:
        process.kill()
        process.wait()
        os.close(to_browser)
        os.close(from_browser)
