"""The bench itself: a database that fails over, and a proxy that cuts where it says it does. What
the other tests show is worth what these are."""

import signal
import subprocess
import threading

import pytest
from pg_proxy import DOWN, FAULTS, UP, PgProxy
from postgres import PASSWORD, USER, Failed, Pair, Postgres, folder_of_programs


@pytest.fixture(scope="module")
def postgres():
    with Postgres() as server:
        server.rows("CREATE TABLE journal (n int)")
        yield server


@pytest.fixture
def proxy(postgres):
    postgres.rows("TRUNCATE journal")
    with PgProxy(("127.0.0.1", postgres.port)) as between:
        yield between


def write_through(proxy, tmp_path, commits=1, timeout_s=20):
    """Commits as a node does: prepared once, then run. Whether the writer heard that all is well."""
    script = tmp_path / "write.sql"
    script.write_text("INSERT INTO journal VALUES (1);\n")
    try:
        done = subprocess.run(
            [folder_of_programs() / "pgbench", "-n", "-M", "prepared", "-f", script, "-t", str(commits),
             "-h", "127.0.0.1", "-p", str(proxy.port), "-U", USER, "postgres"],
            env={"PGPASSWORD": PASSWORD}, capture_output=True, timeout=timeout_s)
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0


def written(postgres):
    return int(postgres.value("SELECT count(*) FROM journal"))


def test_what_passes_is_not_changed(proxy, postgres, tmp_path):
    assert write_through(proxy, tmp_path, commits=50)
    assert (written(postgres), proxy.commits, proxy.happened) == (50, 50, [])


@pytest.mark.parametrize("how", FAULTS)
def test_a_fault_is_where_it_says_it_is(proxy, postgres, tmp_path, how):
    fault = proxy.plan(how)
    assert not write_through(proxy, tmp_path, timeout_s=3 if how == "silent" else 20)
    assert fault.done.wait(5) and proxy.happened == [how]
    assert written(postgres) == (0 if how in ("before", "inside") else 1)
    assert write_through(proxy, tmp_path), "one fault is one"


@pytest.mark.parametrize("direction", [UP, DOWN])
def test_a_cut_at_a_byte(proxy, postgres, tmp_path, direction):
    assert write_through(proxy, tmp_path)
    proxy.cut_at(direction, 150)
    assert not write_through(proxy, tmp_path)
    assert proxy.happened == ["bytes"]
    assert write_through(proxy, tmp_path)


@pytest.mark.parametrize("direction", [UP, DOWN])
def test_one_way_is_silence(proxy, tmp_path, direction):
    proxy.swallow(direction)
    assert not write_through(proxy, tmp_path, timeout_s=2)
    proxy.swallow()
    assert write_through(proxy, tmp_path)


def test_a_stall_ends(proxy, postgres, tmp_path):
    proxy.stall(True)
    threading.Timer(0.5, proxy.stall, [False]).start()
    assert write_through(proxy, tmp_path)
    assert written(postgres) == 1
    proxy.refuse(True)
    assert not write_through(proxy, tmp_path)


def test_a_database_keeps_what_it_committed(postgres):
    postgres.rows("TRUNCATE journal; INSERT INTO journal VALUES (1)")
    for end in (postgres.kill9, lambda: postgres.stop(signal.SIGQUIT), postgres.stop):
        end()
        assert not postgres.running
        postgres.start()
        assert written(postgres) == 1
    assert postgres.value("SHOW fsync") == "on"


def test_a_pair_fails_over_and_loses_nothing():
    with Pair() as pair:
        pair.make_database("cell")
        pair.rows("CREATE TABLE t (n int)", "cell")
        for n in range(2):
            before = pair.primary
            pair.rows(f"INSERT INTO t VALUES ({n})", "cell")
            pair.fail_over()
            assert pair.primary is not before and not before.running
            assert pair.value("SELECT count(*) FROM t", "cell") == str(n + 1)
            pair.mend()
            assert pair.standby.is_standby
        # A commit waits for the standby: without it there is none.
        pair.standby.kill9()
        with pytest.raises(Failed):
            pair.primary.run("psql", "-X", "-h", "127.0.0.1", "-p", pair.primary.port, "-U", USER,
                             "-d", "cell", "-c", "INSERT INTO t VALUES (9)", timeout_s=2)
