"""A disk whose syncs can be held up or made to fail (see gate.c)."""

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
    """Give env to the Muster whose disk it is."""

    def __init__(self, library, folder):
        self.path = Path(folder) / "gate"
        self.waiting_path = Path(f"{self.path}.waiting")
        self.broken_path = Path(f"{self.path}.broken")
        self.env = {"LD_PRELOAD": str(library), "MUSTER_TEST_GATE": str(self.path)}

    def close(self):
        """From now on nothing becomes durable."""
        self.waiting_path.unlink(missing_ok=True)
        self.path.touch()

    def open(self):
        self.path.unlink(missing_ok=True)

    @property
    def somebody_waits(self):
        return self.waiting_path.exists()

    def break_disk(self):
        self.broken_path.touch()

    def mend_disk(self):
        self.broken_path.unlink()
