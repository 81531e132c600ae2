"""A run of checks in steps. Every step runs, whatever failed before it. At the end the run lists each
failure with the command that runs just that, and fails if there was one.

With MUSTER_UNSTEADY=FILE in the environment a failed test is run twice more, alone, when all steps
are done. A test that passes both times is unsteady: the run does not fail for it, names it, and
appends the name to FILE.
"""

import os
import shlex
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as xml
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
JOBS = int(os.environ.get("JOBS", "2"))
PYTEST = "/usr/bin/python3 -m pytest -q -p no:cacheprovider"
AGAIN = 2
AGAIN_MOST = 10  # more failures than this are no bad luck: none of them is run again


class Failure(NamedTuple):
    name: str
    command: str
    certain: bool = False  # the check is deterministic, so a second run cannot differ


def run_quietly(command, log, **env):
    """The exit code of a shell command whose output goes to a file."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as out:
        return subprocess.run(command, shell=True, cwd=ROOT, stdout=out, stderr=subprocess.STDOUT,
                              stdin=subprocess.DEVNULL, env={**os.environ, **env}).returncode


def failed_cases(report):
    """The test cases of a JUnit file that failed; none when the file is missing or cut off."""
    try:
        cases = xml.parse(report).iter("testcase")
        return [c for c in cases if c.get("status") == "fail"
                or c.find("failure") is not None or c.find("error") is not None]
    except (OSError, xml.ParseError):
        return []


class Run:
    """One run of checks; `name` is the command a person types for it."""

    def __init__(self, name):
        self.name = name
        self.started = time.monotonic()
        self.failures = []
        self.unsteady = []
        self.background = []
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))

    def seconds(self):
        return int(time.monotonic() - self.started)

    def step(self, title):
        print(f"== {title} (at {self.seconds()} s)", flush=True)

    def fail(self, *failures):
        self.failures += failures
        for failure in failures:
            print(f"FAILED: {failure.name}", flush=True)

    # ── kinds of checks ──────────────────────────────────────────────────────────────────────────

    def check(self, name, command, log, certain=True):
        """A single command; its output, which is shown when it fails."""
        log = ROOT / log
        failed = run_quietly(command, log) != 0
        said = log.read_text(errors="replace")
        if failed:
            print(said, end="")
            self.fail(Failure(name, command, certain))
        return said

    def ctest(self, folder, jobs, before=""):
        """The test programs of a build folder; how many there were."""
        report, log = ROOT / folder / "ctest.xml", ROOT / folder / "ctest.log"
        report.unlink(missing_ok=True)
        command = f"{before}ctest --test-dir {folder}"
        code = run_quietly(f"{command} -j {jobs} --output-on-failure --output-junit ctest.xml", log)
        failed = failed_cases(report)
        for case in failed:
            print(case.findtext("system-out") or "", end="")
            name = case.get("name")
            self.fail(Failure(f"{name} ({folder})", f"{command} -R '^{name}$' "
                              "--output-on-failure"))
        if code != 0 and not failed:
            print(log.read_text(errors="replace"))
            self.fail(Failure(f"test programs ({folder})", command, certain=True))
        return xml.parse(report).getroot().get("tests") if report.exists() else "0"

    def pytest(self, folder, workers, log, **env):
        """The pytest tests of a folder or file; pytest's last line."""
        log = ROOT / log
        report = log.with_suffix(".xml")
        report.unlink(missing_ok=True)
        before = "".join(f"{key}={value} " for key, value in env.items())
        command = f"{PYTEST} -n {workers} {folder}"
        code = run_quietly(f"{command} --junit-xml={report} -o junit_family=xunit1", log, **env)
        said = log.read_text(errors="replace")
        if code != 0:
            print(said)
            top = Path(folder) if (ROOT / folder).is_dir() else Path(folder).parent
            tests = {f"{top / case.get('file')}::{case.get('name')}" if case.get("file")
                     else case.get("name"): None for case in failed_cases(report)}
            self.fail(*(Failure(before + test, f"{before}{PYTEST} {shlex.quote(test)}")
                        for test in tests))
            if not tests:
                self.fail(Failure(before + folder, before + command, certain=True))
        return said.strip().splitlines()[-1] if said.strip() else ""

    def node(self, files, jobs):
        """Files of Node's test runner, so many at once; the number of tests that passed."""
        def one(file):
            log = ROOT / "build/browser" / f"{Path(file).stem}.log"
            command = f"node --test {file}"
            return file, command, run_quietly(command, log), log.read_text(errors="replace")
        passed = 0
        with ThreadPoolExecutor(jobs) as pool:
            for file, command, code, said in pool.map(one, files):
                lines = [line.strip() for line in said.splitlines()]
                passed += sum(int(n) for n in (line.removeprefix("# pass ") for line in lines
                                               if line.startswith("# pass ")))
                if code == 0:
                    continue
                print(said)
                names = [line.split(" - ", 1)[-1] for line in lines if line.startswith("not ok ")]
                own = [name for name in names if not name.endswith(Path(file).name)]
                # The tests of a file share a Muster and go on from each other, so a file is run whole.
                self.fail(Failure(f"{file}: {', '.join(own)}" if own else file, command))
        return passed

    # ── beside the steps ─────────────────────────────────────────────────────────────────────────

    def begin(self, name, command, log, certain=True):
        """Starts a command at the lowest priority, in a session of its own; `settle` waits for it."""
        out = (ROOT / log).open("wb")
        child = subprocess.Popen(["nice", "-n", "19", "sh", "-c", command], cwd=ROOT, stdout=out,
                                 stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                                 start_new_session=True)
        self.background.append((child, Failure(name, command, certain), ROOT / log))

    def settle(self):
        while self.background:
            child, failure, log = self.background[0]
            failed = child.wait() != 0
            self.background.pop(0)
            if failed:
                print(log.read_text(errors="replace"), end="")
                self.fail(failure)

    def stop_background(self):
        for child, _, _ in self.background:
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()

    # ── the end ──────────────────────────────────────────────────────────────────────────────────

    def passes_again(self, failure):
        log = ROOT / "build/again.log"
        for i in range(AGAIN):
            if run_quietly(failure.command, log) != 0:
                print(log.read_text(errors="replace"))
                print(f"failed again, alone: {failure.name}", flush=True)
                return False
            print(f"passed alone, {i + 1} of {AGAIN}: {failure.name}", flush=True)
        return True

    def second_chance(self, file):
        if len(self.failures) > AGAIN_MOST or any(failure.certain for failure in self.failures):
            return
        self.step(f"{len(self.failures)} failed; each runs {AGAIN} times more, alone")
        self.unsteady = [failure for failure in self.failures if self.passes_again(failure)]
        self.failures = [failure for failure in self.failures if failure not in self.unsteady]
        with open(file, "a") as names:
            names.writelines(f"{failure.name}\n" for failure in self.unsteady)

    def finish(self, summary):
        """Prints what failed and the closing line; the exit code of the run."""
        file = os.environ.get("MUSTER_UNSTEADY")
        if file and self.failures:
            self.second_chance(file)
        for failure in self.failures:
            print(f"failed: {failure.name}\n  run just that: {failure.command}")
        how = f"{len(self.failures)} failed" if self.failures else "all passed"
        if not self.failures and self.unsteady:
            how = "all passed in the end"
        print(f"{self.name}: {summary}; {how}; {self.seconds()} s")
        for failure in self.unsteady:
            print(f"unsteady: {failure.name}")
        sys.stdout.flush()
        return 1 if self.failures else 0


def run(name, steps):
    """Runs `steps(run)`, which returns the summary of the closing line; exits the process."""
    os.chdir(ROOT)
    this = Run(name)
    try:
        summary = steps(this)
        this.settle()
        code = this.finish(summary)
    finally:
        this.stop_background()
    sys.exit(code)
