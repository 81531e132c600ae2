"""GET /metrics of a real Muster, compared with what the test has done to it."""

import re
import socket
import time
import urllib.error

import chat
import pytest
from muster_proc import REPO
from prometheus import promtool_says, scrape

EU = {"fleet": "default", "region": "EU"}


def metric(world, name, **labels):
    return scrape(world.muster).get(name, **labels)


def await_metric(world, value, name, **labels):
    """Waits until it has that value; what is counted leaves a moment after what is answered."""
    world.wait(lambda: metric(world, name, **labels) == value, f"{name}{labels} == {value}")


def test_every_metric_is_there_and_promtool_is_content(world):
    page = scrape(world.muster)
    table = (REPO / "src" / "api" / "metrics.def").read_text()
    declared = dict(
        (name, kind) for kind, name in re.findall(r'^M\(\w+, (\w+),\s*"(\w+)"', table, re.M)
    )
    assert len(declared) > 60
    assert page.types == declared
    assert promtool_says(page.text) == ""


@pytest.mark.muster(dev=False)
def test_a_token_is_needed(world):
    with pytest.raises(urllib.error.HTTPError) as refused:
        scrape(world.muster)
    assert refused.value.code == 401
    token = (world.muster.data / "admin.token").read_text().strip()
    page = scrape(world.muster, token)
    assert page.sum("muster_http_requests_total", status="401") == 1
    assert promtool_says(page.text) == ""


@pytest.mark.muster(dev=False, http={"metrics": "open"})
def test_no_token_is_needed_where_the_configuration_says_so(world):
    assert scrape(world.muster).get("muster_store_read_only") == 0


def test_allocations_are_counted_one_by_one(world):
    world.server(capacity=30, on_allocate="ready")
    world.server(capacity=30, on_allocate="ready")
    chat_server = world.chat()
    n = 25
    for lobby in range(1, n + 1):
        chat_server.request(lobby)
    for lobby in range(1, n + 1):
        chat_server.placed(lobby)
    chat_server.request(1)  # a repeat is no new request
    chat_server.placed(1)
    await_metric(world, n, "muster_allocation_ready_duration_seconds_count", **EU)
    page = scrape(world.muster)
    assert page.get("muster_allocation_requests_total", **EU) == n
    assert page.get("muster_allocations_total", **EU, result="done", reason="ok") == n
    assert page.sum("muster_allocations_total", result="failed") == 0
    assert page.sum("muster_allocation_retries_total") == 0
    name = "muster_allocation_duration_seconds"
    assert page.get(f"{name}_count", **EU, result="done") == n
    assert 0 < page.get(f"{name}_sum", **EU, result="done") < n * 8
    assert page.get(f"{name}_bucket", **EU, result="done", le="30") == n
    assert page.get("muster_allocation_ack_duration_seconds_count", **EU) == n
    assert page.get("muster_allocation_chosen_load_ratio_count", **EU) == n
    assert page.get("muster_sessions_open", **EU) == n
    assert page.get("muster_slots_used", **EU) == n
    assert page.get("muster_slots_max", **EU) == 60
    assert page.get("muster_servers", **EU, status="available") == 2
    assert page.get("muster_server_load_mean_ratio", **EU) == pytest.approx(n / 60, abs=1e-5)
    assert page.get("muster_server_load_spread_ratio", **EU) < 0.05  # well balanced
    assert page.get("muster_tickets_open") == 0
    assert promtool_says(page.text) == ""


def test_failures_are_counted_by_reason_and_region(world):
    world.server(region=chat.EU)
    chat_server = world.chat(regions=(chat.EU, chat.USE))
    for lobby in (1, 2, 3):
        assert chat_server.refuse(lobby, region=chat.USE) == "No servers available"
    chat_server.allocate(4)
    use = {"fleet": "default", "region": "USE", "result": "failed"}
    await_metric(world, 3, "muster_allocations_total", **use, reason="no_servers")
    page = scrape(world.muster)
    assert page.get("muster_allocation_requests_total", fleet="default", region="USE") == 3
    assert page.get("muster_allocations_total", **EU, result="done", reason="ok") == 1
    assert page.get("muster_allocation_duration_seconds_count", **use) == 3


@pytest.mark.muster(ack_ms=2000)
def test_retries_timeouts_and_late_acknowledgements(world):
    refuses = world.server(on_allocate="refuse", cpu=0.0)
    silent = world.server(on_allocate="silent", cpu=50.0)
    chat_server = world.chat()
    assert chat_server.refuse(1) == "Server allocation timeout"
    assert refuses.was_asked(1) and silent.was_asked(1)
    silent.ack(1)
    await_metric(world, 1, "muster_late_acks_total", **EU)
    page = scrape(world.muster)
    assert page.get("muster_allocation_retries_total", **EU, reason="refused") == 1
    assert page.sum("muster_allocation_retries_total") == 1
    timeout = {**EU, "result": "failed", "reason": "allocation_timeout"}
    assert page.get("muster_allocations_total", **timeout) == 1
    assert page.get("muster_server_backoffs_total", **EU) == 2
    assert page.get("muster_servers_passed_over", **EU, reason="failing") == 2
    name = "muster_allocation_duration_seconds"
    assert page.get(f"{name}_sum", **EU, result="failed") >= 2
    assert page.get(f"{name}_bucket", **EU, result="failed", le="0.25") == 0


def test_a_cancelled_request_and_a_given_up_match(world):
    world.server(on_allocate="silent")
    chat_server = world.chat()
    chat_server.request(1)
    chat_server.cancel(1)
    cancelled = {**EU, "result": "cancelled", "reason": "ticket_cancelled"}
    await_metric(world, 1, "muster_allocations_total", **cancelled)
    assert metric(world, "muster_allocations_total", **EU, result="done", reason="ok") == 0


@pytest.mark.muster(heartbeat_ms=3000, lost_ms=500)
def test_a_killed_server_is_a_drop_a_timeout_and_a_lost_match(world):
    server = world.server()
    chat_server = world.chat()
    chat_server.allocate(1)
    assert metric(world, "muster_server_timeouts_total", **EU) == 0
    server.close()
    await_metric(world, 1, "muster_server_drops_total", **EU)
    await_metric(world, 1, "muster_server_timeouts_total", **EU)
    await_metric(world, 1, "muster_matches_lost_total", **EU)
    await_metric(world, 1, "muster_matches_ended_total", **EU, reason="server_lost")
    page = scrape(world.muster)
    assert page.get("muster_servers", **EU, status="offline") == 1
    assert page.get("muster_slots_max", **EU) == 0
    assert page.get("muster_server_cpu_mean_ratio", **EU) is None


def test_a_server_that_returns_brings_its_match_back(world):
    server = world.server()
    chat_server = world.chat()
    chat_server.allocate(1)
    server.reconnect()
    await_metric(world, 1, "muster_server_returns_total", **EU)
    server.end(1)
    await_metric(world, 1, "muster_matches_ended_total", **EU, reason="match_ended")
    page = scrape(world.muster)
    assert page.get("muster_server_registrations_total", **EU) == 1
    assert page.get("muster_server_drops_total", **EU) == 1
    assert page.get("muster_server_timeouts_total", **EU) == 0
    assert page.get("muster_sessions_open", **EU) == 0


def test_what_servers_report(world):
    world.server(cpu=20.0, memory=40.0)
    world.server(cpu=60.0, memory=80.0)
    await_metric(world, 2, "muster_servers_by_uptime", **EU, uptime="under_1m")
    page = scrape(world.muster)
    assert page.get("muster_server_cpu_mean_ratio", **EU) == pytest.approx(0.4)
    assert page.get("muster_server_memory_mean_ratio", **EU) == pytest.approx(0.6)
    assert 0 <= page.get("muster_server_uptime_mean_seconds", **EU) < 60


def test_round_trips_are_measured(world):
    """A second connection that says it is the same server has Muster PING the first."""
    first = world.server(port=20100)
    second = world.unregistered_server(port=20100)
    second.say_hello()
    assert second.refusal("SV_HANDSHAKE_RESPONSE") == "Server already registered"
    assert first.pings == 1
    page = scrape(world.muster)
    assert page.get("muster_server_round_trip_seconds_count", **EU) == 1
    assert page.get("muster_server_round_trip_seconds_bucket", **EU, le="1") == 1


def test_refusals_protocol_errors_and_spoofs(world):
    server = world.server()
    chat_server = world.chat()
    chat_server.refuse(0)
    chat_server.refuse(-5)
    several = {"fleet": "default", "region": "several"}
    await_metric(world, 2, "muster_refusals_total", **several, reason="invalid_lobby")

    stranger = world.connect("manager")
    stranger.send(chat.mgr_allocation_cancel(1))
    world.wait(lambda: stranger.closed, "end of a connection without a handshake")
    server.send(chat.sv_heartbeat(server.server_id + 1, 0, 0.0, 0.0))
    server.beats.append("told")
    assert server.refusal("SV_HEARTBEAT_ACK") == "Server not registered"
    await_metric(world, 1, "muster_spoofed_frames_total")
    page = scrape(world.muster)
    assert page.get("muster_protocol_errors_total", port="manager") == 1
    assert page.get("muster_protocol_errors_total", port="server") == 0
    assert page.get("muster_refusals_total", **EU, reason="not_registered") == 1


def test_connections_and_bytes(world):
    world.server()
    chat_server = world.chat()
    stranger = world.connect("server")
    await_metric(world, 2, "muster_connections", port="server")
    page = scrape(world.muster)
    assert page.get("muster_connections", port="manager") == 1
    assert page.get("muster_connections", port="http") >= 1
    assert page.get("muster_connections_accepted_total", port="server") == 2
    assert page.get("muster_chat_servers") == 1
    before = page.get("muster_received_bytes_total", port="manager")
    chat_server.cancel(7)
    cancel = len(chat.mgr_allocation_cancel(7))
    assert metric(world, "muster_received_bytes_total", port="manager") == before + cancel
    stranger.close()
    await_metric(world, 1, "muster_connections", port="server")
    assert metric(world, "muster_connections_accepted_total", port="server") == 2


def test_http_connections_that_are_too_many_are_counted(make_world):
    world = make_world(http={"connections_per_address": 2})
    assert metric(world, "muster_connections_refused_total", port="http") == 0
    elsewhere = [socket.create_connection(world.muster.http_address, 8, ("127.0.0.2", 0))
                 for _ in range(3)]
    assert elsewhere[2].recv(1) == b""
    for s in elsewhere:
        s.close()
    await_metric(world, 1, "muster_connections_refused_total", port="http")


def test_bans_are_counted_while_they_hold(world):
    def ban(account, seconds):
        expires = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(time.time() + seconds))
        world.api.post("/ban/issue", account=account, reason="x", expires=expires)

    ban("ann", 3600)
    ban("ben", 3)
    assert metric(world, "muster_bans") == 2
    await_metric(world, 1, "muster_bans")


def test_http_requests_are_counted(world):
    name = "muster_http_requests_total"
    before = scrape(world.muster).sum(name)
    scrape(world.muster)
    page = scrape(world.muster)
    assert page.sum(name, status="200") == before + 2
    assert page.sum("muster_http_request_duration_seconds_count") == before + 2


def test_the_store_and_the_process(world):
    world.server()
    world.chat().allocate(1)
    await_metric(world, 0, "muster_store_fold_lag_batches")
    page = scrape(world.muster)
    commits = page.get("muster_store_commit_duration_seconds_count")
    assert commits > 0
    assert page.get("muster_store_commit_duration_seconds_sum") > 0
    assert page.get("muster_store_batch_bytes_count") == commits
    assert page.get("muster_store_batch_changes_sum") >= 4  # fleet, server, ticket, session
    assert page.get("muster_store_journal_batches") == commits
    assert page.get("muster_store_journal_bytes") == page.get("muster_store_batch_bytes_sum")
    assert page.get("muster_store_fold_lag_seconds") == 0
    assert page.get("muster_store_read_only") == 0
    assert page.get("muster_store_commits_failed_total") == 0
    assert 0 <= page.get("muster_store_last_commit_age_seconds") < 60
    assert page.get("muster_loop_turn_duration_seconds_count") > 0
    assert page.get("muster_log_lines_dropped_total") == 0
    assert page.get("process_resident_memory_bytes") > 1 << 20
    assert 3 < page.get("process_open_fds") < page.get("process_max_fds")
    assert page.get("process_cpu_seconds_total") > 0
    assert page.sum("muster_build_info") == 1


def test_counters_begin_anew_and_gauges_go_on_after_a_restart(world):
    world.server()
    world.chat().allocate(1)
    await_metric(world, 1, "muster_allocations_total", **EU, result="done", reason="ok")
    world.restart()
    page = scrape(world.muster)
    assert page.get("muster_allocations_total", **EU, result="done", reason="ok") == 0
    assert page.get("muster_sessions_open", **EU) == 1
    assert page.get("muster_slots_used", **EU) == 1
