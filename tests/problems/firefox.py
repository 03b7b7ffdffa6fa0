"""Firefox without a window, by Marionette, its protocol: playwright needs one of its own."""

import json
import socket
import subprocess
import time
from typing import Any

PREFERENCES = {
    "datareporting.policy.dataSubmissionEnabled": False,
    "browser.shell.checkDefaultBrowser": False,
    "browser.download.folderList": 2,
    "network.captive-portal-service.enabled": False,
}


class Firefox:
    """A browser that opens files, runs scripts beside those of the page, and moves the pointer."""

    def __init__(self, path, folder):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        chosen = {
            **PREFERENCES,
            "marionette.port": port,
            "browser.download.dir": str(folder / "downloads"),
        }
        lines = [f"user_pref({json.dumps(k)}, {json.dumps(v)});" for k, v in chosen.items()]
        (folder / "profile").mkdir()
        (folder / "profile" / "user.js").write_text("\n".join(lines), encoding="utf-8")
        self.process = subprocess.Popen(
            [path, "--headless", "--marionette", "--no-remote", "--profile", folder / "profile"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self.socket = self._connected(port)
        self.answers = self.socket.makefile("rb")
        self._read()
        self.count = 0
        self.ask("NewSession", capabilities={})

    def _connected(self, port, seconds=60):
        end = time.monotonic() + seconds
        while True:
            try:
                return socket.create_connection(("127.0.0.1", port))
            except OSError:
                assert time.monotonic() < end, "Firefox does not answer"
                assert self.process.poll() is None, "Firefox ended"
                time.sleep(0.1)

    def _read(self) -> Any:
        """Return one message: its length, a colon, and JSON."""
        size = b""
        while (letter := self.answers.read(1)) != b":":
            size += letter
        return json.loads(self.answers.read(int(size)))

    def ask(self, name, **parameters):
        """Return the result of a command of WebDriver."""
        self.count += 1
        message = json.dumps([0, self.count, f"WebDriver:{name}", parameters]).encode()
        self.socket.sendall(str(len(message)).encode() + b":" + message)
        _, _, error, result = self._read()
        assert error is None, error
        return result

    def open(self, path):
        self.ask("Navigate", url=path.as_uri())

    def run(self, script):
        """Return what a script returns."""
        return self.ask("ExecuteScript", script=script, args=[])["value"]

    def until(self, expression, seconds=30):
        end = time.monotonic() + seconds
        while not self.run(f"return {expression}"):
            assert time.monotonic() < end, expression
            time.sleep(0.05)

    def drag(self, *places, pause=50):
        """Press the mouse in the first place, move it through the others, and let it go."""
        moves = [{"type": "pointerMove", "x": x, "y": y, "duration": pause} for x, y in places]
        down, up = ({"type": kind, "button": 0} for kind in ("pointerDown", "pointerUp"))
        actions = [moves[0], down, *moves[1:], up]
        mouse = {"type": "pointer", "id": "mouse", "actions": actions}
        self.ask("PerformActions", actions=[mouse])

    def close(self):
        self.socket.close()
        self.process.terminate()
        self.process.wait(30)
