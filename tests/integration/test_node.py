"""`muster serve --store`: processes as nodes of a cell, with a real PostgreSQL. Who leads, who says
so, how long nobody does, and that whoever lost the lease neither writes nor speaks."""

import hashlib
import io
import re
import signal
import socket
import subprocess
import tarfile
import threading
import time

import chat
import pytest
import secure
from http_api import Api
from muster_proc import Muster, binary, run, write_config
from nodes import Cell, LEADING, STANDING_BY
from peers import ChatServer, Client, GameServer, Net, Peer
from postgres import Postgres


@pytest.fixture(scope="module")
def postgres():
    with Postgres() as server:
        yield server


@pytest.fixture
def cell(postgres, tmp_path, request):
    name = "t" + hashlib.sha256(request.node.nodeid.encode()).hexdigest()[:16]
    made = Cell(tmp_path, postgres.url(), name)
    yield made
    codes = made.stop()
    assert all(code == 0 for code in codes), codes


@pytest.fixture
def net():
    made = Net()
    yield made
    made.close()
    assert not made.violations


def game_server(net, node, port=20001, **script):
    return GameServer(net, node.server_address, "10.0.0.1", port, chat.EU, 4, "any", **script)


def chat_server(net, node, name="chat-1"):
    return ChatServer(net, node.manager_address, name, (chat.EU,), "any")


def refuse(arguments):
    """A start that is refused: its sentence."""
    done = run("serve", *arguments)
    assert done.returncode == 1 and done.stdout == "", done
    assert done.stderr.startswith("muster serve: "), done
    return done.stderr.strip().removeprefix("muster serve: ")


PORTS = ["--server-port", 0, "--manager-port", 0, "--client-port", 0, "--http", "127.0.0.1:0"]


# --- one node


def test_one_node_serves_and_remembers(cell, net):
    node = cell.node("a").start().await_leading()
    assert node.words() == [STANDING_BY, LEADING]
    game_server(net, node).register()
    match = chat_server(net, node).register().allocate(7)
    assert node.api.get("/v1/sessions")["items"][0]["lobby"] == 7
    assert node.term() == 0
    node.start_on_same_ports().await_leading()
    assert node.cluster()["epoch"] == 2
    again = chat_server(net, node).register().allocate(7)
    assert again.match_token == match.match_token


def test_what_a_single_node_says_of_its_cell(cell):
    node = cell.node("a").start().await_leading()
    answer = Api(node).ask("GET", "/leader")
    assert answer.status == 200 and answer.json["leader"] is True
    assert answer.json["http"] == "http://%s:%d" % node.http_address
    assert answer.json["server"] == "%s:%d" % node.server_address
    health = node.api.get("/v1/health")
    assert [f["code"] for f in health["findings"]] == ["no_standby"]
    assert health["sentence"] == (f"Cell {cell.name} has no standby: when this node fails, nobody "
                                  "takes over.")
    page = node.api.ask("GET", "/metrics").body.decode()
    assert f'muster_cell_leader{{cell="{cell.name}"}} 1' in page
    assert f'muster_cell_epoch{{cell="{cell.name}"}} 1' in page


def test_a_crash_does_not_wait_for_its_own_lease(cell):
    node = cell.node("a", lease_ms=20000).start().await_leading()
    node.kill9()
    began = time.monotonic()
    node.start().await_leading(timeout_s=5)
    assert node.led_at - began < 5


# --- what a standby says


def test_a_standby_turns_every_peer_away_with_the_leaders_address(cell, net):
    a, b = cell.pair()
    said = f"This node is a standby; the leader of cell {cell.name} is at "
    server = game_server(net, b)
    server.say_hello()
    refused = server.expect("SV_HANDSHAKE_RESPONSE", ok=0)
    assert refused.error == said + "%s:%d" % a.server_address
    server.expect_closed()
    manager = chat_server(net, b)
    manager.say_hello()
    assert manager.expect("MGR_HANDSHAKE_RESPONSE", ok=0).error == said + "%s:%d" % a.manager_address
    manager.expect_closed()
    client = Client(net, b.client_address, 5, "anything")
    client.say_hello()
    assert client.expect("CL_CONNECT_RESPONSE", ok=0).error == said + "%s:%d" % a.client_address
    client.expect_closed()


def test_a_standby_sends_requests_on(cell):
    a, b = cell.pair()
    where = "http://%s:%d" % a.http_address
    for method, path in (("GET", "/v1/servers?region=EU&x=a%20b%2Fc"), ("POST", "/v1/allocations"),
                         ("GET", "/v1/deployments/%41"), ("GET", "/nothing/there?q=%C3%A4"),
                         ("DELETE", "/v1/bans/3")):
        answer = b.api.ask(method, path)
        assert (answer.status, answer.error["code"]) == (307, "not_the_leader"), answer
        assert answer.head["location"] == where + path.replace("%41", "A"), answer.head
    assert b.api.ask("POST", "/v1/tokens/enrol", data={"role": "server"}).status == 307
    assert a.api.get("/v1/tokens")["items"] == []


def test_what_a_standby_answers_itself(cell):
    a, b = cell.pair()
    assert Api(b).ask("GET", "/healthz").status == 200
    ready = Api(b).ask("GET", "/readyz")
    assert ready.status == 200 and ready.json["store"] == "followed"
    leader = Api(b).ask("GET", "/leader")
    assert leader.status == 503 and leader.head["retry-after"] == "1"
    assert leader.json["leader"] is False and leader.json["name"] == "a"
    assert Api(b).ask("GET", "/openapi.json").status == 200
    assert b.cluster()["leader"]["name"] == "a"
    assert {n["name"]: n["state"] for n in b.cluster()["nodes"]} == {"a": "leader", "b": "standby"}
    assert Api(b).ask("GET", "/v1/cluster").status == 401
    page = b.api.ask("GET", "/metrics").body.decode()
    for line in ("leader{cell=%s} 0", "ready{cell=%s} 1", "behind_batches{cell=%s} 0",
                 "nodes{cell=%s,state=\"leader\"} 1", "standbys_ready{cell=%s} 1"):
        assert "muster_cell_" + line % f'"{cell.name}"' in page, line


def test_the_console_on_a_standby_says_where_to_go(cell):
    _, b = cell.pair()
    page = Api(b).ask("GET", "/")
    assert page.status == 200 and page.head["content-type"].startswith("text/html")


def test_cluster_status_for_people(cell):
    a, b = cell.pair()
    for node in (a, b):
        url = "http://%s:%d" % node.http_address
        said = run("cluster", "status", "--url", url, "--data", node.data)
        assert said.returncode == 0, said
        assert said.stdout.splitlines()[0] == (f"a leads cell {cell.name} in epoch 1; its standby is "
                                               "ready to take over.")
        assert re.search(r"^b +standby +yes +0 ", said.stdout, re.M), said.stdout


def test_a_standby_follows_what_the_leader_does(cell, net):
    a, b = cell.pair()
    game_server(net, a).register()
    chat_server(net, a).register().allocate(7)
    seq = a.cluster()["nodes"][0]["seq"]

    def follows():
        page = b.api.ask("GET", "/metrics").body.decode()
        return int(re.search(r"^muster_cell_batch{.*} (\d+)$", page, re.M)[1]) >= seq
    b.await_true(follows, "batch that the leader has")


# --- taking over


def test_a_leader_that_dies_is_replaced_within_three_seconds(cell, net):
    a, b = cell.pair()
    server = game_server(net, a).register()
    match = chat_server(net, a).register().allocate(7)
    a.process.kill()
    died = time.monotonic()
    b.await_leading(timeout_s=5)
    assert b.led_at - died <= 3.0
    assert b.api.get("/v1/sessions")["items"][0]["lobby"] == 7
    server.address = b.server_address
    server.reconnect()
    assert chat_server(net, b).register().allocate(7).match_token == match.match_token
    assert b.cluster()["epoch"] == 2
    a.finish()
    a.start().await_ready_to_lead()
    assert a.words() == [STANDING_BY], "who comes back stands by"


def test_stepping_down_takes_less_than_a_second(cell, net):
    a, b = cell.pair()
    since = len(a.said)
    began = time.monotonic()
    status, answer = a.step_down()
    assert status == 200 and answer["leader"]["name"] == "a"
    b.await_leading(timeout_s=5)
    assert b.led_at - began <= 1.0
    a.await_standing_by(since).await_ready_to_lead(timeout_s=20)
    assert not a.leads() and b.leads()
    audit = b.api.get("/v1/audit")["items"][0]
    assert audit["action"] == "step_down" and audit["who"] == "admin"
    # ... and back again, by the same processes on the same ports.
    b.await_standby_ready(timeout_s=20)
    since = len(a.said)
    began = time.monotonic()
    assert b.step_down()[0] == 200
    a.await_leading(since, timeout_s=5)
    assert a.led_at - began <= 1.0


def test_a_leader_that_is_told_to_end_hands_over_at_once(cell):
    a, b = cell.pair()
    began = time.monotonic()
    assert a.term() == 0
    b.await_leading(timeout_s=5)
    assert b.led_at - began <= 1.0
    names = [n["name"] for n in b.cluster()["nodes"]]
    assert names == ["b"], "who ended in order is not counted as away"


def test_a_standby_that_ends_is_not_missed(cell):
    a, b = cell.pair()
    assert b.term() == 0
    a.await_true(lambda: len(a.cluster()["nodes"]) == 1, "cell without b")
    assert a.leads() and a.words() == [STANDING_BY, LEADING]


def test_who_steps_down_without_a_standby_needs_force(cell):
    node = cell.node("a").start().await_leading()
    status, answer = node.step_down()
    assert (status, answer["error"]["code"]) == (409, "no_standby")
    assert "force" in answer["error"]["message"]
    since = len(node.said)
    assert node.step_down(force=True)[0] == 200
    node.await_standing_by(since)
    node.await_leading(since, timeout_s=10)
    assert node.cluster()["epoch"] == 2


def test_step_down_for_people(cell):
    a, b = cell.pair()
    url = "http://%s:%d" % b.http_address
    said = run("cluster", "step-down", "--url", "http://%s:%d" % a.http_address, "--data", a.data)
    assert said.returncode == 0, said
    assert re.fullmatch(rf"b leads cell {cell.name} now, in epoch 2, after 0\.\d s\n", said.stdout), said
    assert b.leads(), url


def test_no_connection_is_refused_while_the_leader_changes(cell):
    """The sockets stay open: who comes in between waits, and is answered by whoever is next."""
    a, b = cell.pair()
    seen, stop = [], threading.Event()

    def knock(node):
        while not stop.is_set():
            began = time.monotonic()
            try:
                with socket.create_connection(node.http_address, timeout=5) as s:
                    s.sendall(b"GET /leader HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
                    status = s.recv(65536).split(b" ")[1:2]
                seen.append((time.monotonic() - began, node.name, status))
            except OSError as e:
                seen.append((time.monotonic() - began, node.name, repr(e)))
    threads = [threading.Thread(target=knock, args=(n,)) for n in (a, b)]
    for t in threads:
        t.start()
    try:
        since = len(a.said)
        assert a.step_down()[0] == 200
        b.await_leading(timeout_s=5)
        a.await_standing_by(since)
    finally:
        stop.set()
        for t in threads:
            t.join()
    refused = [s for s in seen if isinstance(s[2], str) and "refused" in s[2].lower()]
    cut = [s for s in seen if s[2] == []]
    assert not refused and len(seen) > 20, (refused, len(seen))
    assert len(cut) <= 4, cut  # those that were in the middle


# --- a node that is not what it believes to be


def test_a_leader_that_was_stopped_wakes_up_fenced(cell, postgres, net):
    """SIGSTOP for longer than its lease: it answers nothing that was asked meanwhile or before, writes
    nothing, and stands by."""
    a, b = cell.pair()
    server = game_server(net, a).register()
    manager = chat_server(net, a).register()
    manager.allocate(7)
    asked = socket.create_connection(a.http_address, timeout=30)
    keep = socket.create_connection(a.http_address, timeout=30)
    keep.sendall(b"GET /leader HTTP/1.1\r\nHost: x\r\n\r\n")
    assert b"200" in keep.recv(65536)
    a.signal(signal.SIGSTOP)
    stopped = time.monotonic()
    # What waits for it when it wakes up: an allocation, a heartbeat, requests on both connections.
    manager.send(chat.mgr_server_allocation_request(8, 1, 1, chat.EU, 2, 1500))
    server.send(chat.sv_heartbeat(server.server_id, 1, 1.0, 1.0))
    asked.sendall(b"GET /leader HTTP/1.1\r\nHost: x\r\n\r\n")
    keep.sendall(b"GET /leader HTTP/1.1\r\nHost: x\r\n\r\n")
    since = len(a.said)
    b.await_leading(timeout_s=5)
    assert b.led_at - stopped <= 3.0
    time.sleep(max(0.0, 5.0 - (time.monotonic() - stopped)))
    schema = f"muster_{cell.name}"
    epochs = f"SELECT max(seq) FROM {schema}.journal WHERE epoch = 1"
    before = postgres.value(epochs)
    heard = len(manager.inbox), len(server.inbox)
    a.signal(signal.SIGCONT)
    a.await_standing_by(since)
    a.await_ready_to_lead(timeout_s=20)
    net.elapse(0.5)
    assert (len(manager.inbox), len(server.inbox)) == heard, "it answered nobody"
    assert manager.closed and server.closed
    for connection in (asked, keep):
        connection.settimeout(5)
        try:
            assert connection.recv(65536) == b"", "it answered nobody"
        except ConnectionResetError:
            pass
        connection.close()
    assert postgres.value(epochs) == before, "it wrote nothing"
    assert a.words()[-1] == STANDING_BY and not a.leads() and b.leads()
    assert a.log_lines("the lease is lost; every connection is closed")
    assert b.words() == [STANDING_BY, LEADING]


def test_a_standby_that_was_stopped_follows_again(cell, net):
    a, b = cell.pair()
    b.signal(signal.SIGSTOP)
    game_server(net, a).register()
    chat_server(net, a).register().allocate(7)
    time.sleep(3)
    assert a.leads()
    b.signal(signal.SIGCONT)
    b.await_ready_to_lead()
    a.await_standby_ready()
    assert a.leads() and b.words() == [STANDING_BY]


# --- the database


@pytest.fixture
def own_postgres():
    with Postgres() as server:
        yield server


def test_a_database_that_is_away_at_the_start(tmp_path):
    said = refuse(["--data", tmp_path / "data", "--store", "postgres://muster:hush@127.0.0.1:1/muster",
                   *PORTS])
    assert said == "PostgreSQL at 127.0.0.1:1 cannot be used: Connection refused."


def test_a_database_that_comes_and_goes(own_postgres, tmp_path):
    cell = Cell(tmp_path, own_postgres.url())
    a, b = cell.pair()
    own_postgres.stop()
    b.await_true(lambda: Api(b).ask("GET", "/readyz").status == 503, "no of /readyz")
    sentence = Api(b).refused("GET", "/readyz", 503, "not_ready")
    assert sentence.startswith("This standby does not reach the database. ")
    assert "sesame" not in sentence
    a.await_true(lambda: a.words()[-1] == STANDING_BY, "stand-by of a")
    b.await_true(lambda: Api(b).ask("GET", "/v1/servers").status == 503, "word that nobody leads")
    nobody = Api(b).refused("GET", "/v1/servers", 503, "no_leader")
    assert nobody == f"No node leads cell {cell.name} now. Ask again."
    own_postgres.start()
    a.await_true(lambda: a.leads() or b.leads(), "leader", timeout_s=15)
    assert all(node.running for node in (a, b))
    assert cell.stop() == [0, 0]


def test_a_wrong_url_is_refused_without_its_password(tmp_path):
    done = run("serve", "--data", tmp_path / "data", "--store", "postgres://muster:hu@sh@h/d")
    assert done.returncode == 2 and "%40" in done.stderr and "hu@sh" not in done.stderr
    done = run("serve", "--data", tmp_path / "data", "--store", "mysql://root@h/d")
    assert done.returncode == 2 and "postgres://user@host:5432/database" in done.stderr
    assert not (tmp_path / "data").exists()


def test_a_cell_needs_a_good_name_and_a_store(tmp_path, postgres):
    done = run("serve", "--data", tmp_path / "data", "--store", postgres.url(), "--cell", "EU")
    assert done.returncode == 2 and "a-z, 0-9 and _" in done.stderr
    done = run("serve", "--data", tmp_path / "data", "--cell", "eu")
    assert done.returncode == 1 and "give --store" in done.stderr
    for name in ("n" * 64, "", "two words", "a=b"):
        done = run("serve", "--data", tmp_path / "data", "--store", postgres.url(), "--node", name)
        assert done.returncode == 2 and "63 characters" in done.stderr
    done = run("serve", "--data", tmp_path / "data", "--store", "postgres://h/" + "d" * 1100)
    assert done.returncode == 2 and "at most 1023 bytes" in done.stderr


def test_another_secret_is_refused(cell, tmp_path):
    a = cell.node("a").start().await_leading()
    doctor = write_config(tmp_path / "d.yaml", {"cluster": {"store": cell.url, "cell": cell.name}})
    found = run("doctor", "--config", doctor, "--data", a.data).stdout
    assert re.search(rf"^ok +cell +Cell {cell.name} is there, with the secret of", found, re.M), found
    said = refuse(["--data", tmp_path / "other", "--store", cell.url, "--cell", cell.name, *PORTS])
    assert said == (f"The cell {cell.name} was made with another secret, and all its nodes must have "
                    'the same. Give this node the file "secret" of the others\' data folder, or '
                    "choose another cell.")
    found = run("doctor", "--config", doctor, "--data", tmp_path / "other").stdout
    assert re.search(rf"^problem +cell +Cell {cell.name} has another secret than", found, re.M), found


def test_a_cell_of_a_newer_version_is_refused(cell, postgres):
    node = cell.node("a").start().await_leading()
    assert node.term() == 0
    postgres.rows(f"UPDATE muster_{cell.name}.cell SET row_format = row_format + 1")
    said = refuse(["--data", node.data, "--store", cell.url, "--cell", cell.name, *PORTS])
    assert "Start the Muster version that wrote it" in said


def test_who_listens_everywhere_must_say_where_he_is(tmp_path, postgres):
    everywhere = [*PORTS[:-1], "0.0.0.0:0"]
    said = refuse(["--data", tmp_path / "data", "--store", postgres.url(), "--cell", "anywhere",
                   *everywhere])
    assert "set advertise_http" in said and "--bind" in said


def test_advertised_addresses_are_what_others_hear(cell, net):
    a = cell.node("a", dev=False, config={"cluster": {"advertise_http": "http://a.example:80/"}})
    a.start().await_leading()
    b = cell.node("b").start().await_ready_to_lead()
    assert b.cluster()["leader"]["http"] == "http://a.example:80/"
    answer = b.api.ask("GET", "/v1/servers")
    assert answer.head["location"] == "http://a.example:80/v1/servers"


# --- folders


def test_a_folder_is_a_nodes_or_has_data_of_its_own(tmp_path, cell):
    alone = Muster(tmp_path, embedded=True)
    alone.start()
    assert alone.term() == 0
    said = refuse(["--data", alone.data, "--store", cell.url, "--cell", cell.name, *PORTS])
    assert "holds data of its own" in said and "muster migrate" in said
    node = cell.node("a").start().await_leading()
    assert node.term() == 0
    said = refuse(["--data", node.data, *PORTS])
    assert said.endswith("is the folder of a node of a cell. Start it with --store and --cell, or give "
                         "another folder with --data")


def test_a_studio_that_grew_moves_its_data_into_a_cell_and_back(tmp_path, cell, net):
    """One folder all the time; game servers and chat servers notice the pause alone."""
    def allocate(muster, lobby):
        return ChatServer(net, muster.manager_address, "chat-1", (chat.EU,), "any").register() \
            .allocate(lobby)
    alone = Muster(tmp_path, embedded=True, data=tmp_path / "a" / "data")
    (tmp_path / "a").mkdir()
    alone.start()
    GameServer(net, alone.server_address, "10.0.0.1", 20001, chat.EU, 4, "any").register()
    match = allocate(alone, 7)
    assert alone.term() == 0
    moved = run("migrate", "--from", alone.data, "--to", cell.url, "--cell", cell.name)
    assert moved.returncode == 0, moved
    said = refuse(["--data", alone.data, *PORTS])
    assert f"was moved to cell {cell.name}" in said
    (tmp_path / "a").rename(tmp_path / "moved")
    node = cell.node("a")
    (tmp_path / "moved" / "data").rename(node.data)
    node.start().await_leading()
    assert allocate(node, 7).match_token == match.match_token
    assert node.term() == 0
    back = run("migrate", "--from", cell.url, "--to", node.data, "--cell", cell.name)
    assert back.returncode == 0, back
    alone = Muster(tmp_path, embedded=True, data=node.data)
    alone.start()
    assert allocate(alone, 7).match_token == match.match_token
    assert alone.term() == 0


def test_a_backup_of_a_cell_becomes_a_folder(tmp_path, cell, net):
    """The same archive as of a folder: what was in the cell goes on alone."""
    node = cell.node("a").start().await_leading()
    game_server(net, node).register()
    match = chat_server(net, node).register().allocate(7)
    path = tmp_path / "b.tar"
    done = run("backup", path, "--url", "http://%s:%d" % node.http_address, "--data", node.data)
    assert done.returncode == 0, done
    assert node.term() == 0
    alone = Muster(tmp_path, embedded=True, data=tmp_path / "restored")
    done = run("restore", path, "--data", alone.data)
    assert done.returncode == 0, done
    alone.start()
    again = chat_server(net, alone).register().allocate(7)
    assert again.match_token == match.match_token
    assert alone.term() == 0


def test_two_nodes_do_not_share_a_folder(cell):
    node = cell.node("a").start().await_leading()
    said = refuse(["--data", node.data, "--store", cell.url, "--cell", cell.name, *PORTS])
    assert "another" in said.lower() or "use" in said.lower(), said


def test_a_copied_folder_is_another_node(cell):
    """... and does not take the lease of the one it was copied from as if it were its own."""
    a = cell.node("a", lease_ms=4000).start().await_leading()
    b = cell.node("b", lease_ms=4000)
    b.data.mkdir(mode=0o700)
    for name in ("secret", "node"):
        path = b.data / name
        path.write_bytes((a.data / name).read_bytes())
        path.chmod(0o600)
    b.start().await_ready_to_lead()
    time.sleep(1)
    assert a.leads() and not b.leads()


# --- what is read again


def test_a_standby_reads_its_configuration_again_and_leads_with_it(cell):
    config = {"fleets": [{"name": "default"}], "http": {"metrics": "token"}}
    a = cell.node("a", config=config).start().await_leading()
    b = cell.node("b", config=config, dev=False).start().await_ready_to_lead()
    a.await_standby_ready()
    assert Api(b).ask("GET", "/metrics").status == 401
    config = {"fleets": [{"name": "default"}, {"name": "arena"}], "http": {"metrics": "open"}}
    write_config(b.folder / "muster.yaml", config)
    b.signal(signal.SIGHUP)
    b.await_true(lambda: b.log_lines("configuration in force"), "configuration")
    assert Api(b).ask("GET", "/metrics").status == 200
    a.process.kill()
    a.finish()
    b.await_leading(timeout_s=5)
    assert "arena" in [f["name"] for f in b.api.get("/v1/fleets")["items"]]


# --- deployments


AGENTS = {"fleets": [{"name": "default"}, {"name": "arena", "provider": "agent", "game": "g",
                                           "server": "s", "binary": "game", "max_players": 4,
                                           "versions": [{"name": "1.0"}]}]}


def archive(text):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        info = tarfile.TarInfo("game")
        info.size = len(text)
        info.mode = 0o755
        tar.addfile(info, io.BytesIO(text))
    return out.getvalue()


def deploy(node, text):
    data = archive(text)
    answer = node.api.ask("POST", "/v1/deployments", query={"fleet": "arena", "version": "1.0"},
                          body=data, content_type="application/octet-stream")
    assert answer.status == 200, answer
    return data, hashlib.sha256(data).hexdigest()


def test_a_standby_has_the_deployments_before_it_counts_as_ready(cell):
    a = cell.node("a", config=AGENTS).start().await_leading()
    first, digest = deploy(a, b"one" * 100000)
    b = cell.node("b", config=AGENTS).start().await_ready_to_lead()
    assert (b.data / "deployments" / digest).read_bytes() == first
    second, other = deploy(a, b"two")
    b.await_true((b.data / "deployments" / other).exists, "second archive")
    assert (b.data / "deployments" / other).read_bytes() == second
    b.await_ready_to_lead()
    assert sorted(p.name for p in (b.data / "deployments").iterdir()) == sorted([digest, other])
    a.process.kill()
    a.finish()
    b.await_leading(timeout_s=5)
    host = b.api.ask("POST", "/v1/access-tokens", data={"account": "h", "scopes": "game_host"})
    token = host.json["token"] if host.status == 200 else b.api.token
    got = Api(b, token).ask("GET", f"/v1/deployments/{digest}/archive")
    assert got.status == 200 and got.body == first


def test_a_standby_without_a_deployment_says_why_it_is_not_ready(cell):
    a = cell.node("a", config=AGENTS).start().await_leading()
    _, digest = deploy(a, b"one")
    (a.data / "deployments" / digest).unlink()
    b = cell.node("b", config=AGENTS).start()
    b.await_true(lambda: "404" in Api(b).ask("GET", "/readyz").body.decode(), "reason")
    said = Api(b).refused("GET", "/readyz", 503, "not_ready")
    assert said.startswith("This node lacks the archives of 1 deployment. Deployment ")
    assert digest[:16] in said and said.endswith("it answered 404.")
    a.await_true(lambda: [n for n in a.cluster()["nodes"] if n["state"] == "standby"], "standby")
    status, answer = a.step_down()
    assert (status, answer["error"]["code"]) == (409, "no_standby")


def test_a_leader_gets_what_it_lacks_from_a_standby(cell):
    """The leader dies with an archive that nobody had fetched yet; when it is back, it gives it."""
    a = cell.node("a", config=AGENTS).start().await_leading()
    b = cell.node("b", config=AGENTS).start().await_ready_to_lead()
    (b.data / "deployments").mkdir(exist_ok=True)
    b.signal(signal.SIGSTOP)
    data, digest = deploy(a, b"one")
    a.process.kill()
    a.finish()
    b.signal(signal.SIGCONT)
    b.await_leading(timeout_s=5)
    assert not (b.data / "deployments" / digest).exists()
    b.await_true(lambda: "archives_missing" in [f["code"] for f in
                                                b.api.get("/v1/health")["findings"]], "finding")
    a.start().await_ready_to_lead()
    b.await_true((b.data / "deployments" / digest).exists, "archive", timeout_s=20)
    assert (b.data / "deployments" / digest).read_bytes() == data
    b.await_true(lambda: "archives_missing" not in [f["code"] for f in
                                                    b.api.get("/v1/health")["findings"]], "relief")


def test_nodes_that_speak_tls_believe_whom_the_configuration_says(cell, tmp_path):
    authority = secure.Authority(tmp_path)
    certificate, key = authority.issue("node")
    config = {**AGENTS, "tls": {"http": {"certificate": str(certificate), "key": str(key)}}}
    trusting = {**config, "cluster": {"ca_file": str(authority.path)}}
    a = cell.node("a", config=trusting).start().await_leading()

    def curl(node, *options):
        done = subprocess.run(
            ["curl", "-s", "--max-time", "10", "--cacert", authority.path, "-H",
             "Authorization: Bearer " + (node.data / "admin.token").read_text().strip(), *options[:-1],
             "https://%s:%d%s" % (*node.http_address, options[-1])], capture_output=True, text=True)
        assert done.returncode == 0, done
        return done.stdout
    (tmp_path / "archive").write_bytes(archive(b"one"))
    curl(a, "--data-binary", f"@{tmp_path / 'archive'}", "-H", "Content-Type: application/octet-stream",
         "/v1/deployments?fleet=arena&version=1.0")
    digest = hashlib.sha256(archive_bytes := (tmp_path / "archive").read_bytes()).hexdigest()
    b = cell.node("b", config=trusting).start()
    b.await_true((b.data / "deployments" / digest).exists, "archive")
    assert (b.data / "deployments" / digest).read_bytes() == archive_bytes
    assert "followed" in curl(b, "/readyz")
    assert curl(b, "-o", "/dev/null", "-w", "%{redirect_url}", "/v1/servers") == \
        "https://%s:%d/v1/servers" % a.http_address
    c = cell.node("c", config=config).start()
    c.await_true(lambda: "cannot be fetched" in curl(c, "/readyz"), "reason")
    assert "certificate" in curl(c, "/readyz").lower()


def test_a_damaged_archive_is_none(cell):
    """What the leader gives is not what its digest says: nothing of it stays."""
    a = cell.node("a", config=AGENTS).start().await_leading()
    _, digest = deploy(a, b"one")
    path = a.data / "deployments" / digest
    path.chmod(0o600)
    path.write_bytes(b"something else")
    b = cell.node("b", config=AGENTS).start()
    b.await_true(lambda: "something else" in Api(b).ask("GET", "/readyz").body.decode(), "reason")
    assert not (b.data / "deployments" / digest).exists()
    assert not [p for p in (b.data / "deployments").iterdir() if "pull" not in p.name]
