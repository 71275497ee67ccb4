"""A real headless Chromium, controlled through the DevTools protocol: pages, clicks, keys and images."""

import asyncio
import base64
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import aiohttp

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
PATIENCE = 60  # seconds; a busy machine is slow


def find() -> str | None:
    """The path of a Chromium on this machine, or None."""
    return next((path for name in PROGRAMS if (path := shutil.which(name))), None)


class Chromium:
    """One browser with one page, to use as a context manager.

    ``errors``: the errors that the page logged. ``requests``: the URLs that the page requested.
    """

    def __init__(self, program: str):
        self.program = program
        self.errors: list[str] = []
        self.requests: list[str] = []

    def __enter__(self) -> "Chromium":
        self._folder = Path(tempfile.mkdtemp(prefix="masquerade-chromium-"))
        self._process = subprocess.Popen(
            [self.program, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
             "--hide-scrollbars", "--remote-debugging-port=0", f"--user-data-dir={self._folder}", "about:blank"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        self._loop = asyncio.new_event_loop()
        self._number = 0
        self._loop.run_until_complete(self._connect())
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")
        return self

    def __exit__(self, *_) -> None:
        self._loop.run_until_complete(self._session.close())
        self._loop.close()
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)

    async def _connect(self) -> None:
        port = self._folder / "DevToolsActivePort"
        until = time.monotonic() + PATIENCE
        while not (port.is_file() and port.read_text().count("\n")):
            assert time.monotonic() < until, f"{self.program} did not start"
            assert self._process.poll() is None, f"{self.program} did not start"
            await asyncio.sleep(0.05)
        self._session = aiohttp.ClientSession()
        async with self._session.get(f"http://127.0.0.1:{port.read_text().split()[0]}/json/list") as answer:
            page = next(target for target in await answer.json() if target["type"] == "page")
        self._socket = await self._session.ws_connect(page["webSocketDebuggerUrl"], max_msg_size=0)

    def send(self, method: str, **parameters) -> dict:
        """One command of the protocol, and its result."""
        return self._loop.run_until_complete(asyncio.wait_for(self._send(method, parameters), PATIENCE))

    async def _send(self, method: str, parameters: dict) -> dict:
        self._number += 1
        await self._socket.send_json({"id": self._number, "method": method, "params": parameters})
        while True:
            message = await self._socket.receive_json()
            if message.get("id") == self._number:
                assert "error" not in message, message
                return message["result"]
            self._record(message)

    def _record(self, message: dict) -> None:
        details = message.get("params", {})
        if message.get("method") == "Runtime.exceptionThrown":
            self.errors.append(json.dumps(details["exceptionDetails"]))
        elif message.get("method") == "Log.entryAdded" and details["entry"]["level"] == "error":
            self.errors.append(details["entry"]["text"])
        elif message.get("method") == "Network.requestWillBeSent":
            self.requests.append(details["request"]["url"])

    def open(self, path: Path, scripts: bool = True) -> None:
        """Open a file, with or without JavaScript, and wait until it is loaded."""
        self.send("Emulation.setScriptExecutionDisabled", value=not scripts)
        self.send("Page.navigate", url=path.resolve().as_uri())
        self.wait("document.readyState === 'complete' && location.protocol === 'file:'")

    def wait(self, condition: str) -> None:
        """Wait until a JavaScript expression is true."""
        until = time.monotonic() + PATIENCE
        while not self.get(condition):
            assert time.monotonic() < until, f"never true: {condition}"
            time.sleep(0.05)

    def get(self, expression: str):
        """The value of a JavaScript expression. This works even if the page's own scripts are off."""
        result = self.send("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def click(self, selector: str) -> None:
        """Press and release the left button in the middle of the first element. It must be visible there."""
        quoted = json.dumps(selector)
        self.get(f"document.querySelector({quoted}).scrollIntoView({{block: 'center', behavior: 'instant'}})")
        x, y = self.get(
            f"(() => {{ const at = document.querySelector({quoted}).getBoundingClientRect();"
            " return [at.x + at.width / 2, at.y + at.height / 2]; })()"
        )
        hit = f"document.querySelector({quoted}).contains(document.elementFromPoint({x}, {y}))"
        assert self.get(hit), f"{selector} is covered by something else"
        for kind in ("mousePressed", "mouseReleased"):
            self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def press(self, key: str) -> None:
        """One key of the keyboard, such as ``Enter``, ``Escape``, ``ArrowRight``, ``Tab``."""
        codes = {"Enter": 13, "Escape": 27, "ArrowLeft": 37, "ArrowRight": 39, "Tab": 9, "End": 35}
        text = {"text": "\r"} if key == "Enter" else {}
        for kind in ("keyDown", "keyUp"):
            self.send("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=codes[key],
                      **(text if kind == "keyDown" else {}))  # fmt: skip

    def size(self, wide: int, high: int, dark: bool = False) -> None:
        """Set the size of the window, and whether the reader prefers dark colors."""
        self.send("Emulation.setDeviceMetricsOverride", width=wide, height=high, deviceScaleFactor=1, mobile=wide < 600)
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.send("Emulation.setEmulatedMedia", features=scheme)

    def picture(self) -> bytes:
        """The image of the window, as PNG."""
        return base64.b64decode(self.send("Page.captureScreenshot", format="png")["data"])
