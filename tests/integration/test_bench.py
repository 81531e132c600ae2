"""The benchmarks run, tell what they promise to tell, and leave nothing behind. How fast things are
is never a test."""

import json
import re

import pytest
from muster_proc import run
from terminal import Terminal

SMALL = {
    "allocate": ("--connections", 2, "--depth", 2, "--servers", 4, "--seconds", 1),
    "single": ("--seconds", 1),
    "connections": ("--connections", 20),
    "core": ("--few", 10, "--many", 300, "--allocations", 600),
    "store": ("--seconds", 1),
    "http": ("--connections", 4, "--seconds", 1),
    "lobby": ("--lobbies", 3, "--players", 4, "--seconds", 1),
    "nats": ("--under-way", 8, "--seconds", 1),
    "agones": ("--connections", 4, "--playing", 50, "--seconds", 1),
    "restart": ("--servers", 50, "--seats", 200),
    "footprint": (),
}


def measure(noun, *options):
    result = run("bench", noun, "--runs", 1, "--json", *options, timeout_s=120)
    assert result.returncode == 0, result.stderr
    found = json.loads(result.stdout)
    assert found["bench"] == noun
    assert found["runs"] == 1
    return found


def measure_small(noun, folder):
    on_disk = () if noun == "core" else ("--data-root", folder)
    found = measure(noun, *SMALL[noun], *on_disk)
    assert list(folder.iterdir()) == [], "a benchmark removes what it has made"
    return found


def test_allocate(tmp_path):
    found = measure_small("allocate", tmp_path)
    assert found["failed"] == 0
    assert found["n"] > 0
    assert found["allocations_per_s"] > 0
    assert found["two_hop_echo_per_s"] > 0
    assert found["ratio"] == pytest.approx(
        found["allocations_per_s"] / found["two_hop_echo_per_s"], abs=0.001
    )
    assert 0 < found["p50_us"] <= found["p99_us"]
    threads = sum(
        found[f"{name}_us_per_allocation"] for name in ("loop", "commit", "fold", "other")
    )
    assert found["cpu_us_per_allocation"] == pytest.approx(threads, rel=0.2, abs=5)
    assert found["log_level"] == "info"


def test_single(tmp_path):
    found = measure_small("single", tmp_path)
    assert 0 < found["p50_us"] <= found["p99_us"]
    assert 0 < found["bare_p50_us"] <= found["bare_p99_us"]


def test_lobby(tmp_path):
    found = measure_small("lobby", tmp_path)
    assert found["n"] > 0
    assert found["lobbies_per_s"] > 0 and found["bare_frames_per_s"] > 0
    assert found["ratio"] == pytest.approx(
        found["lobbies_per_s"] / found["bare_frames_per_s"], abs=0.002
    )
    assert 0 < found["p50_ms"] <= found["p99_ms"]
    assert 0 < found["loop_us_per_lobby"] <= found["cpu_us_per_lobby"]
    assert (found["players"], found["lobbies"]) == (4, 3)


def test_echo():
    found = measure("echo", "--connections", 2, "--depth", 2, "--hops", 3, "--seconds", 1)
    assert found["two_hop_echo_per_s"] > 0


def test_connections(tmp_path):
    found = measure_small("connections", tmp_path)
    assert found["connections"] == 20
    assert found["core_share"] > 0


def test_core(tmp_path):
    found = measure_small("core", tmp_path)
    assert found["n"] == 600
    assert found["few_us_per_allocation"] > 0
    assert found["growth"] > 0
    assert found["us_per_heartbeat"] > 0


def test_store(tmp_path):
    found = measure_small("store", tmp_path)
    for size in (1, 100, 1000):
        assert found[f"commits_{size}_per_s"] > 0
        assert found[f"changes_{size}_per_s"] == pytest.approx(
            size * found[f"commits_{size}_per_s"], abs=size
        )
        assert found[f"bare_{size}_per_s"] > 0


def test_http(tmp_path):
    found = measure_small("http", tmp_path)
    assert 0 < found["p50_us"] <= found["p99_us"]
    assert found["n"] > 0
    assert found["objects_per_s"] > 0 and found["constants_per_s"] > 0
    assert found["cpu_us_per_object"] > 0


def test_nats(tmp_path):
    found = measure_small("nats", tmp_path)
    assert found["n"] > 0
    assert found["allocations_per_s"] > 0 and found["publish_and_ack_per_s"] > 0
    assert found["ratio"] == pytest.approx(
        found["allocations_per_s"] / found["publish_and_ack_per_s"], rel=0.02, abs=0.001
    )


def test_agones(tmp_path):
    found = measure_small("agones", tmp_path)
    for how in ("", "unheld_"):
        assert found[f"{how}writes_per_allocation"] == 1
        assert found[f"{how}writes_per_move"] == 2
        assert found[f"{how}allocations_per_s"] > 0 and found[f"{how}moves_per_s"] > 0
        assert found[f"{how}cpu_us_per_allocation"] > 0
        assert 0 < found[f"{how}p50_us"] <= found[f"{how}p99_us"]
        assert found[f"{how}ratio"] == pytest.approx(
            found[f"{how}allocations_per_s"] / found[f"{how}raw_patch_per_s"], rel=0.02, abs=0.002
        )
    assert found["n"] > 0 and found["n_moves"] > 0
    assert found["conflicts"] == 0


def test_a_cluster_that_is_held_takes_no_more_writes(tmp_path):
    found = measure("agones", *SMALL["agones"], "--writes-per-s", 100, "--data-root", tmp_path)
    for rate, most in (("raw_patch_per_s", 120), ("allocations_per_s", 120), ("moves_per_s", 70)):
        assert found[rate] <= most
    assert found["unheld_raw_patch_per_s"] > 120


def test_restart(tmp_path):
    found = measure_small("restart", tmp_path)
    assert 0 < found["ready_ms"] <= found["serving_ms"]


def test_restart_again_and_again(tmp_path):
    """Muster remembers the lobbies of the start before."""
    result = run("bench", "restart", "--runs", 3, "--json", "--servers", 20, "--seats", 40,
                 "--data-root", tmp_path, timeout_s=120)
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout)["runs"] == 3


def test_footprint(tmp_path):
    found = measure_small("footprint", tmp_path)
    assert found["stripped_mb"] > 0
    assert found["start_ms"] > 0
    assert found["idle_mib"] > 0


def test_a_run_of_several_has_a_spread(tmp_path):
    result = run("bench", "footprint", "--runs", 3, "--json", "--data-root", tmp_path)
    found = json.loads(result.stdout)
    least, most = found["spread"]["start_ms"]
    assert least <= found["start_ms"] <= most


def test_a_wrong_noun_suggests_the_right_one():
    result = run("bench", "alocate")
    assert result.returncode == 2
    assert "bench allocate" in result.stderr


def test_a_folder_that_is_not_there_is_named(tmp_path):
    result = run("bench", "footprint", "--data-root", tmp_path / "nowhere")
    assert result.returncode == 1
    assert "nowhere" in result.stderr


def test_says_which_run_it_is_at():
    small = ("core", "--runs", 2, *SMALL["core"])
    result = run("bench", *small)
    assert result.stderr == "bench: run 1 of 2\nbench: run 2 of 2\n"
    with Terminal("bench", *small) as terminal:
        assert terminal.ends() == 0
        assert re.search(r"\r\x1b\[Kbench: run 1 of 2\r\x1b\[Kbench: run 2 of 2\r\x1b\[K", terminal.raw)
        assert "run 1" not in terminal.screen.text, "it is written over"
