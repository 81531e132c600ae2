"""A terminal for tests: a command runs in a pseudo-terminal, and the escape codes that Muster uses are
understood well enough to tell what a person would see. An unknown code is an error."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time

from muster_proc import binary

CODE = re.compile(r"\x1b\[(\??)([0-9;]*)([A-Za-z])")
LINK = re.compile(r"\x1b\]8;;([^\x1b]*)\x1b\\")


class Screen:
    """What stands on a terminal after some output. `alternate` is the screen programs take over."""

    def __init__(self, columns, rows):
        self.columns = columns
        self.rows = rows
        self.main = [""]
        self.alternate = None
        self.styled = False  # some text had a colour
        self.links = set()  # what opens when somebody clicks
        self.cursor_shown = True
        self.wraps = True
        self.row = self.column = 0
        self.resized = False  # the frame that comes may still be for the old size
        self.misfit = False  # this frame is
        self.rest = ""

    @property
    def lines(self):
        return self.main if self.alternate is None else self.alternate

    @property
    def text(self):
        return "\n".join(line.rstrip() for line in self.lines)

    def feed(self, text):
        text = self.rest + text
        self.rest = ""
        at = 0
        while at < len(text):
            if text[at] == "\x1b":
                link = LINK.match(text, at)
                if link:
                    self.links |= {link[1]} - {""}
                    at = link.end()
                    continue
                code = CODE.match(text, at)
                if not code and text[at : at + 2] == "\x1b]" and len(text) - at < 2048:
                    self.rest = text[at:]
                    return
                if not code:
                    assert len(text) - at < 16, f"unknown code {text[at:at + 20]!r}"
                    self.rest = text[at:]
                    return
                self.obey(code[1], code[2], code[3])
                at = code.end()
            else:
                self.put(text[at])
                at += 1

    def obey(self, private, numbers, letter):
        if private:
            self.set_mode(numbers, letter == "h")
        elif letter == "m":
            self.styled = self.styled or numbers not in ("", "0")
        elif letter == "H" and not numbers:
            self.row = self.column = 0
        elif letter == "K" and not numbers:
            self.lines[self.row] = self.lines[self.row][: self.column]
        elif letter == "J" and not numbers:
            self.lines[self.row] = self.lines[self.row][: self.column]
            del self.lines[self.row + 1 :]
        elif letter == "J" and numbers == "2":
            self.lines[:] = [""] * (self.row + 1)
        else:
            raise AssertionError(f"unknown code {numbers}{letter}")

    def set_mode(self, number, on):
        if number == "1049":
            self.alternate = [""] if on else None
            self.row = 0 if on else len(self.main) - 1
            self.column = 0 if on else len(self.main[-1])
        elif number == "25":
            self.cursor_shown = on
        elif number == "7":
            self.wraps = on
        else:
            assert number == "2026", f"unknown mode {number}"
            self.frame(on)

    def frame(self, begins):
        if not begins and not self.misfit:
            self.resized = False
        self.misfit = False

    def too_large(self):
        assert self.resized, "what is drawn does not fit"
        self.misfit = True

    def put(self, character):
        if character == "\n":
            self.row += 1
            if self.row == len(self.lines):
                self.lines.append("")
            if self.alternate is not None and self.row >= self.rows:
                self.too_large()
        elif character == "\r":
            self.column = 0
        else:
            assert character.isprintable(), f"raw control character {character!r}"
            if self.alternate is not None and self.column >= self.columns:
                self.too_large()
            line = self.lines[self.row].ljust(self.column)
            self.lines[self.row] = line[: self.column] + character + line[self.column + 1 :]
            self.column += 1


class Terminal:
    """A muster command on a terminal of its own. Use it in a with block."""

    def __init__(self, *arguments, columns=100, rows=30, env=None, program=None):
        """program: what runs instead of muster; arguments are its."""
        self.screen = Screen(columns, rows)
        self.raw = ""
        self.master, slave = pty.openpty()
        self.mode = termios.tcgetattr(slave)
        self.set_size(columns, rows)
        self.process = subprocess.Popen(
            [program or binary(), *map(str, arguments)],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
            env={**os.environ, "TERM": "xterm", **(env or {})},
        )
        self.slave = slave

    def size(self, columns, rows):
        """Another size; waits until what is drawn fits it."""
        self.set_size(columns, rows)
        self.screen.resized = True
        self.wait(lambda: not self.screen.resized, f"screen of {columns} x {rows}")

    def set_size(self, columns, rows):
        self.screen.columns, self.screen.rows = columns, rows
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def read(self, timeout_s):
        """Takes what there is; False when the time is up or nobody writes any more."""
        if not select.select([self.master], [], [], timeout_s)[0]:
            return False
        try:
            data = os.read(self.master, 65536)
        except OSError:
            return False
        text = data.decode(errors="replace").replace("\r\n", "\n").replace("\n", "\r\n")
        self.raw += text
        self.screen.feed(text)
        return True

    def wait(self, look, what, timeout_s=20):
        deadline = time.monotonic() + timeout_s
        while not look():
            left = deadline - time.monotonic()
            assert left > 0, f"no {what} within {timeout_s} s; the screen:\n{self.screen.text}"
            self.read(min(left, 0.2))
        return self.screen.text

    def shows(self, pattern, timeout_s=20):
        """Waits until the screen shows it."""
        return self.wait(lambda: re.search(pattern, self.screen.text), repr(pattern), timeout_s)

    def press(self, keys):
        os.write(self.master, keys.encode())

    def ends(self, timeout_s=20):
        """Waits for its end and returns the exit code; what it still said has been read."""
        self.wait(lambda: self.process.poll() is not None, "end", timeout_s)
        while self.read(0.05):
            pass
        return self.process.returncode

    def is_as_before(self):
        """The terminal is given back as it was."""
        s = self.screen
        same = termios.tcgetattr(self.slave) == self.mode
        return s.alternate is None and s.cursor_shown and s.wraps and same

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(15)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        os.close(self.master)
        os.close(self.slave)
