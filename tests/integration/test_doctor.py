"""`muster doctor`, with real faults: what it sees, what it advises, and what it exits with."""

import json
import os
import resource
import socket
import subprocess
import time

import pytest
import secure
from muster_proc import binary, run, write_config
from postgres import Postgres


def ports_of(bind="127.0.0.1", http=0, server=0):
    return {"listen": {"bind": bind, "server_port": server, "manager_port": 0, "client_port": 0},
            "http": {"bind": "127.0.0.1", "port": http}}


FREE_PORTS = ports_of()


def examine(*arguments, env=None, before=None, tmp_path=None, config=None):
    """Its findings by check, and its exit code. Ports are free ones unless the test says else."""
    settings = {**FREE_PORTS, **(config or {})}
    path = write_config(tmp_path / "doctor.yaml", settings)
    done = subprocess.run(
        [binary(), "doctor", "-o", "json", "--config", path, *map(str, arguments)],
        capture_output=True, text=True, timeout=60, env={**os.environ, **(env or {})},
        preexec_fn=before)
    answer = json.loads(done.stdout)
    found = {}
    for check in answer["checks"]:
        found.setdefault(check["check"], check)
    assert done.returncode == (1 if answer["status"] == "problem" else 0), done
    return found, done.returncode


@pytest.fixture
def doctor(tmp_path):
    (tmp_path / "data").mkdir(mode=0o700)

    def ask(*arguments, data=tmp_path / "data", **options):
        return examine("--data", data, *arguments, tmp_path=tmp_path, **options)

    return ask


def is_problem(check, *words):
    text = check["sentence"] + " " + check["advice"]
    assert check["status"] == "problem" and check["advice"], check
    assert all(word in text for word in words), check


def test_a_sound_machine_has_no_problem(doctor, tmp_path):
    found, code = doctor()
    problems = [c for c in found.values() if c["status"] == "problem"]
    assert code == 0 and not problems, problems
    assert "n = 100" in found["disk sync"]["sentence"] and "p99" in found["disk sync"]["sentence"]
    assert {"configuration", "data folder", "disk space", "open files", "clock", "kernel", "cgroups",
            "libcurl", "libarchive", "libzmq", "libnats", "muster-shim"} <= set(found)
    assert not list((tmp_path / "data").iterdir()), "it leaves nothing behind"


def test_for_people_it_is_a_table(tmp_path):
    done = run("doctor", "--data", tmp_path / "data")
    assert "what there is" not in done.stderr
    assert "data folder" in done.stdout and "checks: " in done.stdout.splitlines()[-1]
    assert run("doctor", "--nonsense").returncode == 2


def test_a_port_that_somebody_has(doctor):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        found, code = doctor(config=ports_of(server=port))
    assert code == 1
    is_problem(found["server port"], str(port), f"pid {os.getpid()}", "another port")


def test_our_own_ports(world, tmp_path):
    muster = world.muster
    config = ports_of(server=muster.server_address[1], http=muster.http_address[1])
    found, code = examine("--data", muster.data, tmp_path=tmp_path, config=config)
    assert code == 0, found
    for check in ("server port", "HTTP port"):
        assert found[check]["status"] == "ok" and f"pid {muster.pid}" in found[check]["sentence"]
    assert f"pid {muster.pid}" in found["data folder"]["sentence"]
    assert found["running Muster"]["status"] != "problem"


def test_an_address_that_is_not_ours(doctor):
    found, code = doctor(config=ports_of(bind="192.0.2.1", server=11032))
    assert code == 1
    is_problem(found["server port"], "192.0.2.1", "ip address")


def test_a_folder_that_cannot_be_written(tmp_path):
    """It is there, and then cannot be written: the second finding of that name."""
    done = run("doctor", "-o", "json", "--data", "/proc/self")
    found = [c for c in json.loads(done.stdout)["checks"] if c["check"] == "data folder"]
    assert done.returncode == 1
    is_problem(found[-1], "cannot be written", "--data")


def test_a_file_instead_of_a_folder(doctor, tmp_path):
    (tmp_path / "file").write_text("")
    found, code = doctor(data=tmp_path / "file")
    assert code == 1
    is_problem(found["data folder"], "no folder")


def test_a_tiny_disk(doctor, tmp_path):
    """In a mount namespace of its own, so that nothing stays."""
    config = write_config(tmp_path / "doctor.yaml", FREE_PORTS)
    small = tmp_path / "small"
    small.mkdir()
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", f"mount -t tmpfs -o size=1m tmpfs {small} && "
         f"{binary()} doctor -o json --config {config} --data {small}"],
        capture_output=True, text=True, timeout=60)
    if not done.stdout:
        pytest.skip(f"no mount namespaces here: {done.stderr}")
    found = {c["check"]: c for c in json.loads(done.stdout)["checks"]}
    assert done.returncode == 1
    is_problem(found["disk space"], "Make room")
    assert found["disk kind"]["status"] == "warning" and "in memory" in found["disk kind"]["sentence"]


def test_few_file_descriptors(doctor):
    found, code = doctor(before=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (512, 512)))
    assert code == 1
    is_problem(found["open files"], "512", "LimitNOFILE")


def test_a_library_that_cannot_be_loaded(doctor, tmp_path):
    broken = tmp_path / "broken"
    broken.mkdir()
    for name in ("libzmq.so.5", "libnats.so.3.4"):
        (broken / name).write_text("no library")
    found, code = doctor(env={"LD_LIBRARY_PATH": str(broken)})
    assert code == 0, "neither is needed here"
    assert found["libzmq"]["status"] == "warning" and "libzmq5" in found["libzmq"]["sentence"]
    found, code = doctor(env={"LD_LIBRARY_PATH": str(broken)},
                         config={"nats": {"urls": ["nats://127.0.0.1:4222"]}})
    assert code == 1
    is_problem(found["libnats"], "libnats3.4")


def test_a_clock_that_was_set_back(doctor, tmp_path):
    path = tmp_path / "data" / "state.db"
    path.write_text("")
    os.utime(path, (time.time() + 500,) * 2)
    found, _ = doctor()
    assert found["clock set back"]["status"] == "warning"
    assert "state.db" in found["clock set back"]["sentence"]


def test_a_configuration_with_mistakes(doctor):
    found, code = doctor(config={"no_such_key": 1})
    assert code == 1
    is_problem(found["configuration"], "no_such_key")


def certificate(tmp_path, days):
    """One that runs out after so many days."""
    pair = secure.Authority(tmp_path).issue("server", first_day=-9, last_day=days)
    return {"certificate": str(pair[0]), "key": str(pair[1])}


def test_a_certificate_that_runs_out_soon(doctor, tmp_path):
    found, _ = doctor(config={"tls": {"server": certificate(tmp_path, 5)}})
    assert found["server certificate"]["status"] == "warning", found
    assert "SIGHUP" in found["server certificate"]["advice"]


def test_a_certificate_that_has_expired(doctor, tmp_path):
    found, code = doctor(config={"tls": {"server": certificate(tmp_path, -2)}})
    assert code == 1
    is_problem(found["server certificate"], "expired")


def test_a_certificate_that_is_not_there(doctor, tmp_path):
    found, code = doctor(config={"tls": {"server": {"certificate": str(tmp_path / "no.pem"),
                                                    "key": str(tmp_path / "no.key")}}})
    assert code == 1
    is_problem(found["server certificate"], "no.pem")


# --- the database of a cell


@pytest.fixture(scope="module")
def database():
    with Postgres() as server:
        yield server


def test_the_database_of_a_cell(doctor, database, tmp_path):
    url = database.url(database.make_database("sound"))
    found, code = doctor(config={"cluster": {"store": url, "cell": "eu"}})
    assert code == 0, found
    assert found["database"]["sentence"].startswith("PostgreSQL 1")
    assert "n = 100" in found["database commits"]["sentence"]
    assert found["database safety"]["status"] == "warning"
    assert "wait for no replica" in found["database safety"]["sentence"]
    assert found["cell"]["sentence"] == "Cell eu is not there yet; 'muster serve' makes it."
    made = database.value("SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'muster%'", "sound")
    assert made == "0", "it leaves nothing behind"
    assert "database" not in doctor()[0]


def test_a_database_that_does_not_answer(doctor):
    found, code = doctor(config={"cluster": {"store": "postgres://muster:hush@127.0.0.1:1/muster"}})
    assert code == 1
    is_problem(found["database"], "127.0.0.1:1", "cluster.store")
    assert "hush" not in str(found)


def test_a_database_that_loses_what_it_stored(doctor):
    with Postgres(settings={"fsync": "off"}) as server:
        found, code = doctor(config={"cluster": {"store": server.url()}})
    assert code == 1
    is_problem(found["database safety"], "fsync is off")


def test_commits_that_wait_for_a_replica_that_is_away(doctor):
    with Postgres(settings={"synchronous_standby_names": "*"}) as server:
        found, code = doctor(config={"cluster": {"store": server.url()}})
    assert code == 1
    is_problem(found["database safety"], "none is connected")
    is_problem(found["database commits"], "A commit failed")


def test_a_database_of_the_wrong_encoding(doctor, database):
    database.rows("CREATE DATABASE latin TEMPLATE template0 ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C'")
    found, _ = doctor(config={"cluster": {"store": database.url("latin")}})
    is_problem(found["database"], "LATIN1", "CREATE DATABASE")


def test_a_user_who_may_not_make_the_cell(doctor, database):
    name = database.make_database("strict")
    database.rows("CREATE ROLE visitor LOGIN PASSWORD 'open/sesame'")
    url = database.url(name).replace("muster:", "visitor:", 1)
    found, _ = doctor(config={"cluster": {"store": url, "cell": "eu"}})
    is_problem(found["cell"], "may not make it", "CREATE SCHEMA muster_eu")
