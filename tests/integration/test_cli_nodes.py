"""The verbs that ask over HTTP where there are several nodes: they find whoever leads, also while that
changes, do each change once and show their token to nobody they should not."""

import contextlib
import json
import subprocess
import threading
import time

import pytest
from muster_proc import binary, run
from stand_in import StandIn


@pytest.fixture
def nodes():
    with StandIn() as first, StandIn() as second:
        yield first, second


@pytest.fixture
def real(world, nodes):
    """Both lead the way to the same Muster, as two nodes of one store would."""
    for node in nodes:
        node.behind = f"http://127.0.0.1:{world.muster.http_address[1]}"
    return world


def urls(*nodes):
    return ",".join(node.url for node in nodes)


def cli(world, *arguments, url, code=0, timeout_s=40):
    result = run(*arguments, "--url", url, "--data", world.muster.data, timeout_s=timeout_s)
    assert result.returncode == code, result
    return result


def audits(world, action):
    items = world.api.get("/v1/audit")["items"]
    return [entry for entry in items if entry["action"] == action]


def enrol(world):
    answer = world.api.ask("POST", "/v1/tokens", data={"role": "server", "fleet": "default"})
    assert answer.status in (200, 201), answer


ENROL = ["token", "enrol", "--role", "server", "--fleet", "default"]


# ── finding the leader ────────────────────────────────────────────────────────────────────────


def test_the_next_node_is_asked(real, nodes):
    first, second = nodes
    first.kill()
    assert "Muster" in cli(real, "status", url=urls(first, second)).stdout
    cli(real, *ENROL, url=urls(first, second))
    assert len(audits(real, "enrol")) == 1


def test_a_standby_sends_us_on(real, nodes):
    first, second = nodes
    first.leader = second.url
    cli(real, "servers", url=first.url)
    cli(real, *ENROL, url=first.url)
    assert len(audits(real, "enrol")) == 1
    assert second.keys()[-1]  # there are others: it could have been lost on the way


def test_one_alone_is_sent_no_key(real, nodes):
    cli(real, *ENROL, url=nodes[0].url)
    assert nodes[0].keys() == [None]


@pytest.mark.parametrize("single", [True, False])
def test_nobody_leads_for_a_moment(real, nodes, single):
    first, second = nodes
    first.leader = second.leader = ""

    def lead():
        second.wait(lambda: len(second.asked) >= 3, "question")
        second.leader = None

    thread = threading.Thread(target=lead)
    thread.start()
    cli(real, *ENROL, url=second.url if single else urls(first, second))
    thread.join()
    assert len(audits(real, "enrol")) == 1


PATIENCE_S = 10  # of a verb, when nobody leads


def test_nobody_leads_for_long(real, nodes):
    first, second = nodes
    first.leader = second.leader = ""
    began = time.monotonic()
    result = cli(real, "status", url=urls(first, second), code=1)
    assert result.stderr == "muster status: No node leads cell default now. Ask again.\n"
    assert time.monotonic() - began > PATIENCE_S
    assert len(first.asked) + len(second.asked) < 100


def test_nobody_is_there(real, nodes):
    """At once: there is nothing to wait for."""
    first, second = nodes
    first.kill()
    second.kill()
    began = time.monotonic()
    result = cli(real, "status", url=urls(first, second), code=3)
    assert "nor at another of its nodes: Connection refused" in result.stderr
    assert time.monotonic() - began < PATIENCE_S


def test_two_standbys_that_name_each_other(real, nodes):
    first, second = nodes
    first.leader, second.leader = second.url, first.url
    result = cli(real, "status", url=urls(first, second), code=1)
    assert "This node is a standby; the leader of cell default is at http" in result.stderr
    assert len(first.asked) + len(second.asked) < 200


def test_a_standby_that_names_a_dead_leader(real, nodes):
    first, second = nodes
    second.leader = first.url
    first.kill()

    def lead():
        second.wait(lambda: len(second.asked) >= 3, "question")
        second.leader = None

    thread = threading.Thread(target=lead)
    thread.start()
    cli(real, "status", url=second.url)
    thread.join()


# ── changes are done once ─────────────────────────────────────────────────────────────────────


def test_a_change_whose_answer_is_lost_is_done_once(real, nodes):
    """The first node does it and dies before it says so; the second is asked with the same key."""
    first, second = nodes
    first.dies = lambda request: request.command == "POST"
    result = cli(real, *ENROL, "-o", "json", url=urls(first, second))
    assert json.loads(result.stdout)["id"]
    assert first.keys()[-1] and first.keys()[-1] == second.keys()[-1]
    assert len(audits(real, "enrol")) == 1


def test_each_change_has_its_own_key(real, nodes):
    for _ in range(3):
        cli(real, *ENROL, url=urls(*nodes))
    assert len(set(nodes[0].keys())) == 3 and len(audits(real, "enrol")) == 3


@pytest.mark.parametrize("verb", [["stdin", "1", "quit"], ["cluster", "step-down"]])
def test_what_a_repeat_does_again_is_not_repeated(real, nodes, verb):
    first, second = nodes
    first.dies = lambda request: request.command == "POST"
    result = cli(real, *verb, url=urls(first, second), code=3)
    assert "cannot reach Muster" in result.stderr
    assert not second.asked


def test_a_leader_that_is_about_to_step_down(real, nodes):
    """It takes nothing any more; alone it is believed."""
    first, second = nodes
    first.stopping = True
    cli(real, *ENROL, url=urls(first, second))
    assert len(audits(real, "enrol")) == 1
    assert "Muster is stopping" in cli(real, *ENROL, url=first.url, code=1).stderr
    assert "stopping" in cli(real, "stdin", "1", "quit", url=urls(first, second), code=1).stderr


def test_a_question_whose_answer_is_lost_is_asked_again(real, nodes):
    first, second = nodes
    first.dies = lambda request: True
    cli(real, "status", url=urls(first, second))


# ── streams ───────────────────────────────────────────────────────────────────────────────────


@contextlib.contextmanager
def running(world, *arguments, url):
    with subprocess.Popen([binary(), *arguments, "--url", url, "--data", str(world.muster.data)],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def test_events_go_on_with_the_next_leader(real, nodes):
    """Each once, in order, also what happened while nobody could be asked."""
    first, second = nodes
    second.leader = first.url
    with running(real, "events", "--json", "--from", "0", "--kinds", "audit", "--limit", "3",
                 url=urls(first, second)) as process:
        enrol(real)
        lines = [json.loads(process.stdout.readline())]
        first.kill()
        second.leader = ""
        enrol(real)
        second.wait(lambda: second.asked, "question")
        second.leader = None
        lines.append(json.loads(process.stdout.readline()))
        enrol(real)
        lines.append(json.loads(process.stdout.readline()))
        assert process.wait(20) == 0
    assert [line["event"] for line in lines] == ["audit"] * 3
    ids = [line["id"] for line in lines]
    assert len(set(ids)) == 3
    resumed = [head.get("Last-Event-ID") for _, path, head in second.asked if "/events" in path]
    assert resumed[-1] == ids[0]


def test_a_watch_goes_on_with_the_next_leader(real, nodes):
    first, second = nodes
    with running(real, "fleets", "--watch", "-o", "json", url=urls(first, second)) as process:
        blocks = 0
        while blocks < 4:
            blocks += "default" in process.stdout.readline()
            if blocks == 1 and first.server:
                first.kill()
        assert second.asked


def log_of(lines, ends):
    """Answers with these lines; ends: the log is over, else it is cut off when the node dies."""
    def answer(request):
        if "/logs" not in request.path:
            return False
        request.send_response(200)
        request.send_header("Content-Type", "text/plain; charset=utf-8")
        request.send_header("Transfer-Encoding", "chunked")
        request.end_headers()
        for line in lines:
            piece = f"{line}\n".encode()
            request.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
        if ends:
            request.wfile.write(b"0\r\n\r\n")
        else:
            threading.Event().wait(20)
        return True
    return answer


def numbers(first, last):
    return [f"line {n} of what it printed" for n in range(first, last + 1)]


@pytest.mark.parametrize("kind", [[], ["-o", "json"]])
def test_a_log_goes_on_with_the_next_leader(real, nodes, kind):
    """No line is missing, none comes twice; the last one was half printed when the leader died."""
    first, second = nodes
    first.answer = log_of(numbers(1, 500), ends=False)
    second.answer = log_of(numbers(1, 520), ends=True)
    with running(real, "logs", "1", "-f", *kind, url=urls(first, second)) as process:
        first.wait(lambda: first.asked, "question")
        got = [process.stdout.readline() for _ in range(500)]
        first.kill()
        got += process.stdout.readlines()
        assert process.wait(20) == 0
    if kind:
        got = [json.loads(line)["line"] + "\n" for line in got]
    assert got == [line + "\n" for line in numbers(1, 520)]


def test_a_log_whose_place_is_gone_is_shown_whole(real, nodes):
    first, second = nodes
    first.answer = log_of(numbers(1, 5), ends=False)
    second.answer = log_of(numbers(900, 905), ends=False)
    with running(real, "logs", "1", "-f", url=urls(first, second)) as process:
        got = [process.stdout.readline() for _ in range(5)]
        first.kill()
        got += [process.stdout.readline() for _ in range(6)]
        process.kill()
        assert "lines may be missing" in process.stderr.read()
    assert got == [line + "\n" for line in numbers(1, 5) + numbers(900, 905)]


# ── tokens ────────────────────────────────────────────────────────────────────────────────────


def test_the_token_goes_to_nobody_whom_a_stranger_names(real, nodes):
    first, second = nodes
    with StandIn() as stranger:
        first.leader, stranger.leader = stranger.url, second.url
        cli(real, "status", url=first.url, code=1)
        assert stranger.asked[0][2]["Authorization"].startswith("Bearer ")
        assert not second.asked


def test_the_folders_token_is_for_this_machine(real, nodes, tmp_path):
    """One address of another machine in the list is enough for it to stay here."""
    first, _ = nodes
    (tmp_path / "data").symlink_to(real.muster.data)
    for url, told in [(first.url, True), (f"{first.url},http://192.0.2.1:9508", False)]:
        result = subprocess.run([binary(), "status", "--url", url], cwd=tmp_path,
                                capture_output=True, text=True, timeout=30)
        assert ("Authorization" in first.asked[-1][2]) == told, result
        assert ("only with --data DIR" in result.stderr) != told


@pytest.mark.parametrize("url, why", [
    ("http://a,", "or several with commas between them, not ''"),
    (",http://a", "not ''"),
    ("http://a,ftp://b", "not 'ftp://b'"),
    ("http://a b", "not 'http://a b'"),
    (",".join(["http://a"] * 9), "--url takes at most 8"),
])
def test_lists_that_are_none(url, why):
    result = run("status", "--url", url)
    assert result.returncode == 2
    assert why in result.stderr and result.stderr.startswith("muster status: ")
