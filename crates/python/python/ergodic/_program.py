"""The program: where it is, and how it is called."""

from __future__ import annotations

import codecs
import fcntl
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import sysconfig
import tempfile
import termios
import time
from pathlib import Path
from typing import Any


class Error(Exception):
    """The program's own message: an error of a script with its place, or what is wrong with a folder or a parameter.

    `code` is the exit code of the program (1 an error of a script or an input, 2 wrong options, 3 every chain failed, 130 interrupted), `line` the line of the script
    that the message names, `folder` that of the results, if there are any, and `value` the table of a grid of which some cells failed.
    """

    __module__ = "ergodic"

    def __init__(self, message: str, code: int = 1, folder: Path | None = None, value: Any = None):
        super().__init__(message)
        place = re.search(r"^ *--> .*:(\d+):\d+$", message, re.MULTILINE)
        self.code, self.folder, self.value, self.line = code, folder, value, int(place[1]) if place else None


def path() -> str:
    """The program: the one that the environment variable ERGODIC names, or else the one installed with this package."""
    named = os.environ.get("ERGODIC")
    if named:
        found = shutil.which(named)
        if not found:
            raise Error(f"the environment variable ERGODIC names {named!r}, which is not a program that can be run")
        return os.path.abspath(found)
    # Beside the package, in an environment (PREFIX/lib/python3.x/site-packages/ergodic) or in a folder of `pip install --target`; then where this Python has its scripts.
    above = Path(__file__).resolve().parents
    folders = [folder / "bin" for folder in [*above[4:5], above[1]]]
    folders += [Path(sysconfig.get_path("scripts")), Path(sysconfig.get_path("scripts", sysconfig.get_preferred_scheme("user")))]
    for folder in folders:
        if os.access(folder / "ergodic", os.X_OK):
            return str(folder / "ergodic")
    looked = ", ".join(dict.fromkeys(map(str, folders)))
    raise Error(
        f"the program is not installed for {sys.executable}: there is no 'ergodic' in {looked}; install it with `pip install --force-reinstall ergodic`, "
        "or name one with the environment variable ERGODIC"
    )


# The program gets a terminal of its own, so that it draws its bars, and so that it hears of it, and saves its run, if this Python ends, however it does.
# Ctrl-C reaches it once: of two it would leave at once.
START = """import fcntl, os, sys, termios
os.setsid()
try:
    fcntl.ioctl(2, termios.TIOCSCTTY, 0)
except OSError:
    pass
os.execv(sys.argv[1], sys.argv[1:])"""

#: Seconds between two pictures of a bar where they stand one below the other.
BETWEEN_LINES = 20.0

#: How the program's last message begins.
ENDS = ("error: ", "interrupted: ", "interrupted; ")


def call(arguments: list[str], progress: bool, hidden: str | None = None) -> tuple[int, bool, str, str]:
    """Call the program with standard error relayed as it comes: its exit code, whether it was interrupted from here, its standard output, and its message.

    Of `hidden`, the path of a script that is a text, messages say "script".
    """
    words = [sys.executable, "-I", "-S", "-c", START, path(), *arguments]
    screen = Screen(progress, hidden)
    master, slave = os.openpty()
    with tempfile.TemporaryFile() as out:
        try:
            fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("4H", 24, screen.width, 0, 0))
            process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=out, stderr=slave, env=os.environ | {"TERM": "xterm"})
        except BaseException:
            os.close(master)
            raise
        finally:
            os.close(slave)
        interrupted, going = False, True
        try:
            while going:
                try:
                    going = screen.read(master)
                except KeyboardInterrupt:
                    process.send_signal(signal.SIGINT)
                    interrupted = True
        finally:
            # Where it still runs, because something went wrong here, it hears that and saves.
            os.close(master)
            code = process.wait()
            screen.live("")
            if code == 0:
                screen.release()
        out.seek(0)
        return code, interrupted, out.read().decode(errors="replace"), screen.message(code)


class Screen:
    """Shows lines for good and a picture of the bar in its place: on a terminal, in a notebook, or in a file, where a picture comes now and then."""

    def __init__(self, shows: bool, hidden: str | None):
        ipython = sys.modules.get("IPython")
        self.notebook = hasattr(ipython and ipython.get_ipython(), "kernel")
        self.file = sys.stdout if self.notebook else sys.stderr
        self.terminal = not self.notebook and self.file is not None and self.file.isatty()
        self.width = shutil.get_terminal_size().columns if self.terminal else 100
        self.shows, self.hidden, self.handle, self.picture, self.when = shows, hidden, None, "", time.monotonic()
        self.decoder, self.rest = codecs.getincrementaldecoder("utf-8")("replace"), ""
        # The last lines; from the last error on, all.
        self.lines: list[str] = []

    def read(self, terminal: int) -> bool:
        """Show what has come; false at the end."""
        try:
            data = os.read(terminal, 1 << 16)
        except OSError:  # what Linux says when the other side is closed
            data = b""
        text = self.rest + self.decoder.decode(data)
        text += "\n" if plain(text) and not data else ""
        *parts, self.rest = re.split(r"(?<=\n)|\r(?!\n)(?=.)", text, flags=re.DOTALL)
        for part in parts:
            if part.endswith("\n"):
                self.line(plain(part))
        if plain(self.rest):
            self.live(plain(self.rest))
        return bool(data)

    def line(self, text: str) -> None:
        text = text.replace(self.hidden, "script") if self.hidden else text
        if text.startswith(ENDS):
            self.release()
            self.lines = []
        elif len(self.lines) > 20 and not self.lines[0].startswith(ENDS):
            del self.lines[0]
        self.lines.append(text)
        if not self.holds():
            self.show(text)

    def holds(self) -> bool:
        """Whether lines wait: an error is shown by the exception."""
        return bool(self.lines) and self.lines[0].startswith("error: ")

    def release(self) -> None:
        """Show the lines that wait: a script has printed them."""
        for text in self.lines if self.holds() else []:
            self.show(text)

    def show(self, text: str) -> None:
        if self.shows and self.file:
            if not self.notebook:
                self.live("")
            print(text, file=self.file, flush=True)

    def live(self, text: str) -> None:
        if not self.shows or not self.file or text == self.picture:
            return
        if self.notebook:
            from IPython.display import display

            picture = {"text/plain": text}
            if self.handle:
                self.handle.update(picture, raw=True)
            else:
                self.handle = display(picture, raw=True, display_id=True)
        elif self.terminal:
            print(f"\r\x1b[2K{text}", end="", file=self.file, flush=True)
        elif text and time.monotonic() - self.when > BETWEEN_LINES:
            print(text, file=self.file, flush=True)
            self.when = time.monotonic()
        self.picture = text

    def message(self, code: int) -> str:
        """The last error; where the program was killed without one, the last lines."""
        text = "\n".join(self.lines).strip()
        return text.removeprefix("error: ") if text.startswith(ENDS) else f"the program ended with code {code}\n{text}".strip()


def plain(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text).rstrip()
