"""Disks for tests: one that can stand still, break or be full on command (gate.c does it from inside
the process), a real one that is small, and a limit for files (ulimit -f) that acts like one."""

import resource
import subprocess
from pathlib import Path

SOURCE = Path(__file__).with_name("gate.c")


def build(folder):
    library = Path(folder) / "gate.so"
    subprocess.run(
        ["cc", "-shared", "-fPIC", "-O1", "-o", library, SOURCE, "-ldl"], check=True, timeout=60
    )
    return library


class Gate:
    """Give env to the Muster whose disk it is; folder is where its data lies."""

    def __init__(self, library, folder):
        self.folder = Path(folder)
        self.path = self.folder.with_name(f"{self.folder.name}.gate")
        self.env = {
            "LD_PRELOAD": str(library),
            "MUSTER_TEST_GATE": str(self.path),
            "MUSTER_TEST_GATE_FOLDER": str(self.folder),
        }

    def sign(self, suffix):
        return Path(f"{self.path}{suffix}")

    def close(self):
        """From now on nothing becomes durable."""
        self.sign(".waiting").unlink(missing_ok=True)
        self.path.touch()

    def open(self):
        self.path.unlink(missing_ok=True)

    @property
    def somebody_waits(self):
        return self.sign(".waiting").exists()

    def break_disk(self):
        self.sign(".broken").touch()

    def mend_disk(self):
        self.sign(".broken").unlink()

    def fill(self):
        self.sign(".full").touch()

    def free(self):
        self.sign(".full").unlink()

    def keep(self):
        """From now on no folder is removed."""
        self.sign(".waiting").unlink(missing_ok=True)
        self.sign(".kept").touch()

    def let_go(self):
        self.sign(".kept").unlink()


class SmallDisk:
    """A tmpfs that a ballast file fills to the last byte. Needs the right to mount."""

    env = {}

    def __init__(self, folder, size="8m"):
        self.folder = Path(folder)
        self.ballast = self.folder / "ballast"
        subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", self.folder],
            check=True,
            capture_output=True,
            timeout=10,
        )

    def fill(self):
        with open(self.ballast, "ab", buffering=0) as file:
            for size in (1 << 16, 1):
                try:
                    while True:
                        file.write(b"x" * size)
                except OSError:
                    pass

    def free(self):
        self.ballast.unlink()

    def unmount(self):
        subprocess.run(["umount", "-l", self.folder], check=True, timeout=10)


def limit_files(pid, size=resource.RLIM_INFINITY):
    """How long a file of that process may be; one that writes beyond it gets SIGXFSZ and EFBIG."""
    hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)[1]
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (size, hard))


class SmallFiles:
    """A limit for files instead of a disk: what is there cannot grow. process is set when it runs."""

    env = {}
    process = None

    def __init__(self, folder):
        self.folder = Path(folder)

    def fill(self):
        limit_files(self.process.pid, 4096)

    def free(self):
        if self.process.running:
            limit_files(self.process.pid)
