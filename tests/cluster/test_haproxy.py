"""Two nodes behind HAProxy, with the very file that the documentation shows: who knows HAProxy's
address alone is served by whoever leads."""

import random

from cluster_load import Caller
from haproxy import HAProxy
from history import now

SLOWER_S = 1.0  # than without it: it asks each 300 ms


def test_haproxy_finds_the_leader(postgres, make_cluster, make_bench, gate, tmp_path):
    cluster = make_cluster(postgres)
    with HAProxy(tmp_path, cluster) as proxy:
        caller = Caller(proxy.front, cluster.nodes[0].token())
        proxy.await_leader(caller)
        front = proxy.front
        front.database = cluster.database
        bench = make_bench(front, postgres)
        chance = random.Random(1)
        times_s = {"kill": [], "step down": [], "stop": []}
        for how in ["kill", "step down", "stop"] * 4:
            bench.await_more(chance.randint(5, 40))
            leader, began = cluster.leader, now()
            if how == "kill":
                leader.kill9()
            elif how == "step down":
                assert cluster.step_down(leader).status == 200
            else:
                leader.pause()
            leads = cluster.await_leader(but=leader)
            times_s[how].append(bench.first_success(leads.said[-1][0]) - began)
            if how == "kill":
                leader.start()
            elif how == "stop":
                leader.resume()
                leader.await_word("standby")
            cluster.await_standbys()
        violations = bench.violations(bench.witness)
        for how, taken in times_s.items():
            gate.write(f"behind HAProxy: {how}", len(taken), violations, taken)
        assert max(times_s["kill"] + times_s["stop"]) <= 3.0 + SLOWER_S, times_s
        assert max(times_s["step down"]) <= 1.0 + SLOWER_S, times_s
