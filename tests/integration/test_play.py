"""The player API without rooms: who may ask, how arguments come, bans, and where players are."""

import json
import socket
import time

import mmdb
import pytest
from http_api import Api
from players import Player, fleets, token_of

NEVER = "2099-12-31 23:59:59"


@pytest.fixture
def world(make_world):
    return make_world(fleets=fleets())


@pytest.fixture
def ann(world):
    return Player(world, "ann")


@pytest.fixture
def warden(world):
    return Player(world, "warden", scopes=("game_ban",))


# --- who may ask


def test_players_need_a_token_with_the_right_scopes(world, ann):
    nobody = Api(world.muster)
    for method, path, scope in (
            ("POST", "/create/arena/main/1.0", "game"),
            ("POST", "/join/arena/main/1.0", "game"),
            ("POST", "/room/arena/1/join", "game"),
            ("GET", "/rooms/arena/main/1.0", "game"),
            ("GET", "/regions", "game"),
            ("GET", "/player/ann", "game"),
            ("GET", "/players", "game"),
            ("POST", "/create/multi/arena/main/1.0", "game"),
            ("POST", "/join/multi/arena/main/1.0", "game"),
            ("POST", "/ban/issue", "game_ban"),
            ("GET", "/ban/1", "game_ban"),
            ("POST", "/ban/1", "game_ban"),
            ("DELETE", "/ban/1", "game_ban"),
            ("GET", "/ban/find/ann", "game_ban")):
        nobody.refused(method, path, 401, "no_access_token")
        nobody.with_token("rubbish").refused(method, path, 401, "bad_access_token")
        said = nobody.with_token(token_of(world, "eve", "muster_read")).refused(
            method, path, 403, "forbidden")
        assert said == f"This needs the scope {scope}, which the access token has not."


def test_several_are_placed_only_with_both_scopes(world, ann):
    said = ann.refused("POST", "/join/multi/arena/main/1.0", 403, "forbidden")
    assert said == "This needs the scope game_multi, which the access token has not."
    only = Player(world, "bot", scopes=("game_multi",))
    said = only.refused("POST", "/join/multi/arena/main/1.0", 403, "forbidden")
    assert said == "This needs the scope game, which the access token has not."


def test_a_token_may_be_an_argument(world, ann):
    nobody = Api(world.muster)
    query = {"access_token": ann.token}
    assert nobody.ask("GET", "/regions", query).status == 200
    answer = nobody.ask("POST", "/join/arena/main/1.0", form=query)
    assert answer.error["code"] == "no_host"


def test_status_is_for_everybody(world):
    assert Api(world.muster).get("/status") == {"rooms": 0, "players": 0}


# --- what is asked for


def test_without_a_host_there_is_no_room(ann):
    for verb in ("create", "join"):
        answer = ann.cannot(503, "no_host", verb, data={"region": "EU"})
        assert int(answer.head["retry-after"]) == answer.error["retry_after"] == 5
        assert answer.error["message"] == "No healthy host in EU: there is none."
        assert "ticket" not in answer.error  # nothing was begun
    answer = ann.cannot(503, "no_place", data={"auto_create": False})
    assert int(answer.head["retry-after"]) == answer.error["retry_after"] == 5


def test_unknown_games_servers_versions_and_rooms(ann):
    assert ann.refused("POST", "/join/chess/main/1.0", 404, "not_found") == (
        "There is no game server 'main' of a game 'chess'.")
    ann.refused("POST", "/create/arena/other/1.0", 404, "not_found")
    ann.refused("POST", "/join/arena/main/2.0", 404, "no_such_version")
    ann.refused("POST", "/join/arena/main/0.9", 410, "version_disabled")
    ann.refused("GET", "/rooms/arena/main/2.0", 404, "no_such_version")
    ann.refused("GET", "/rooms/arena/main/0.9", 410, "version_disabled")
    ann.refused("POST", "/room/arena/7/join", 404, "no_such_room")
    assert ann.rooms() == []


WRONG = [
    ("settings", "[]", "settings is a JSON object of at most 49152 bytes, not '[]'."),
    ("settings", "5", "settings is a JSON object of at most 49152 bytes, not '5'."),
    ("settings", "{", "settings is no JSON: line 1, column 1: string or '}' expected near end of file."),
    ("settings", '{"a":{"@func":"like","@value":1}}', None),
    ("settings", '{"a":{"@func":"in"}}', None),
    ("create_settings", "7", None),
    ("auto_create", "maybe", "auto_create is true or false, not 'maybe'."),
    ("my_region_only", "2", None),
    ("region", "MARS", "There is no region 'MARS'."),
    ("latencies", '{"EU":-1}', "latencies are milliseconds from 0 to 60000 by the names of regions."),
    ("latencies", '{"EU":"near"}', None),
    ("latencies", '{"EU":60001}', None),
    ("info", '"x"', None),
    ("nonsense", "1", "There is no argument 'nonsense'."),
]


@pytest.mark.parametrize("name,text,sentence", WRONG)
def test_wrong_arguments_are_named(ann, name, text, sentence):
    """The same in a form, in a query and in JSON."""
    as_json = text
    try:
        as_json = json.loads(text)
    except ValueError:
        pass
    for way in ({"form": {name: text}}, {"query": {name: text}}, {"data": {name: as_json}}):
        answer = ann.ask("POST", "/join/arena/main/1.0", **way)
        assert (answer.status, answer.error["code"]) == (400, "bad_argument"), (way, answer)
        assert answer.error["argument"] == name
        if sentence and ("data" not in way or sentence.startswith("settings is a JSON")):
            assert answer.error["message"] == sentence


def test_true_and_false_in_any_case(ann):
    for yes, no in (("True", "False"), ("TRUE", "FALSE"), ("1", "0")):
        ann.refused("POST", "/join/arena/main/1.0", 503, "no_place",
                    form={"auto_create": no, "my_region_only": yes})


def test_a_form_in_parts_is_told_what_to_be_instead(ann):
    part = b'--x\r\nContent-Disposition: form-data; name="settings"\r\n\r\n{}\r\n--x--\r\n'
    answer = ann.ask("POST", "/create/arena/main/1.0", body=part,
                     content_type="multipart/form-data; boundary=x")
    assert (answer.status, answer.error["code"]) == (415, "unsupported_type")
    assert answer.error["message"] == (
        "The body must be application/json or application/x-www-form-urlencoded.")


HOSTILE = {
    "nul in JSON": (b'{"settings":{"a":"x\\u0000y"}}', 400),
    "nul byte": (b'{"settings":{"a":"x\x00y"}}', 400),
    "not UTF-8": (b'{"settings":{"a":"\xff"}}', 400),
    "lone surrogate": (b'{"settings":{"a":"\\ud800"}}', 400),
    "a key twice": (b'{"settings":{"a":1,"a":2}}', 400),
    "too deep": (b'{"settings":' + b'{"a":' * 40 + b"1" + b"}" * 41, 400),
    "no object": (b'["settings"]', 400),
    "200 KiB": (b'{"settings":{"a":"' + b"x" * 200 * 1024 + b'"}}', 413),
    "too long for settings": (b'{"settings":{"a":"' + b"x" * 49152 + b'"}}', 400),
    "grows when it is written": (b'{"settings":{"a":"' + b"\x7f" * 100 + b"\\u0001" * 8192 + b'"}}', 400),
    "huge number": (b'{"settings":{"a":1e999}}', 400),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_hostile_settings_are_refused(ann, what):
    body, status = HOSTILE[what]
    answer = ann.ask("POST", "/create/arena/main/1.0", body=body, content_type="application/json")
    assert answer.status == status, answer
    assert ann.get("/status") == {"rooms": 0, "players": 0}


def test_forms_cannot_smuggle_a_nul(ann):
    answer = ann.ask("POST", "/create/arena/main/1.0", body=b"settings=%7B%22a%22%3A%22%00%22%7D",
                     content_type="application/x-www-form-urlencoded")
    assert (answer.status, answer.error["code"]) == (400, "bad_argument")


def test_info_has_a_limit(ann):
    ann.cannot(503, "no_host", data={"info": {"a": "x" * 4000}})
    answer = ann.cannot(400, "bad_argument", data={"info": {"a": "x" * 4096}})
    assert answer.error["argument"] == "info"


# --- several players


@pytest.fixture
def captain(world):
    return Player(world, "captain", scopes=("game", "game_multi"))


def multi(captain, accounts, verb="join"):
    return captain.ask("POST", f"/{verb}/multi/arena/main/1.0", data={"accounts": accounts})


def test_invalid_accounts_are_named_together(world, captain):
    good = token_of(world, "ann", "game")
    answer = multi(captain, [
        {"token": good, "ip": "192.0.2.1"},
        {"token": "rubbish"},
        {"token": token_of(world, "bob", "muster_read")},
        {"ip": "192.0.2.1"},
        {"token": token_of(world, "cat", "game"), "ip": "nowhere"},
        {"token": good, "ip": "192.0.2.2"},
        {"token": token_of(world, "dan", "game"), "info": 7},
        {"token": token_of(world, "eve", "game"), "admin": True},
    ])
    assert (answer.status, answer.error["code"]) == (400, "bad_argument")
    assert answer.error["argument"] == "accounts"
    named = {p["index"]: (p["account"], p["why"]) for p in answer.error["players"]}
    assert named == {
        1: (None, "it is no JWT signed with HS256, RS256 or ES256"),
        2: ("bob", "the token has not the scope game"),
        3: (None, "there is no token"),
        4: (None, "ip is no address"),
        5: ("ann", "it is there twice"),
        6: (None, "info is no object"),
        7: (None, "it has other keys than token, ip and info"),
    }


def test_too_many_or_no_accounts(world, captain):
    one = {"token": token_of(world, "ann", "game")}
    for accounts in ([], [one] * 65, [1], {}, "x", None):
        answer = multi(captain, accounts)
        assert (answer.status, answer.error["argument"]) == (400, "accounts"), accounts


def test_accounts_come_in_forms_too(world, captain):
    accounts = [{"token": token_of(world, "ann", "game")}]
    answer = captain.ask("POST", "/join/multi/arena/main/1.0",
                         form={"accounts": json.dumps(accounts)})
    assert answer.error["code"] == "no_host"


# --- bans


def issue(warden, account="ann", reason="cheats", expires=NEVER, **options):
    return warden.post("/ban/issue", account=account, reason=reason, expires=expires, **options)


def test_a_ban_is_issued_read_changed_and_lifted(warden):
    made = issue(warden)
    number = made["id"]
    assert made == {"id": number} and isinstance(number, int)
    ban = {"id": str(number), "account": "ann", "ip": None, "reason": "cheats", "expires": NEVER}
    assert warden.get(f"/ban/{number}") == ban
    assert warden.get("/ban/find/ann") == ban
    assert warden.post(f"/ban/{number}", reason="cheated", expires="2098-01-01 00:00:00") == {}
    assert warden.get(f"/ban/{number}") == {
        **ban, "reason": "cheated", "expires": "2098-01-01 00:00:00"}
    assert warden.post(f"/ban/{number}", reason="again") == {}
    assert warden.refused("POST", f"/ban/{number}", 400, "bad_argument") == (
        "reason or expires is missing: what to change.")
    assert warden.get(f"/ban/{number}")["expires"] == "2098-01-01 00:00:00"
    answer = warden.ask("DELETE", f"/ban/{number}")
    assert (answer.status, answer.json) == (200, {})
    warden.refused("GET", f"/ban/{number}", 404, "not_found")
    warden.refused("GET", "/ban/find/ann", 404, "not_found")
    warden.refused("DELETE", f"/ban/{number}", 404, "not_found")
    warden.refused("POST", f"/ban/{number}", 404, "not_found", form={"reason": "x"})


def test_a_banned_player_is_not_banned_twice(warden):
    issue(warden)
    warden.refused("POST", "/ban/issue", 406, "already_banned",
                   form={"account": "ann", "reason": "x", "expires": NEVER})
    issue(warden, account="bob")


def test_ban_arguments(warden):
    right = {"account": "ann", "reason": "x", "expires": NEVER}
    for name in right:
        answer = warden.ask("POST", "/ban/issue", form={k: v for k, v in right.items() if k != name})
        assert (answer.status, answer.error["argument"]) == (400, name)
    for name, value in (("expires", "tomorrow"), ("expires", "2099-02-30 00:00:00"),
                        ("expires", "2001-01-01 00:00:00"), ("account", ""), ("reason", "a\nb"),
                        ("reason", "x" * 256)):
        answer = warden.ask("POST", "/ban/issue", form={**right, name: value})
        assert (answer.status, answer.error["argument"]) == (400, name), value
    for value in ("tomorrow", "2099-12-31T23:59:59", "2099-02-30 00:00:00"):
        assert warden.refused("POST", "/ban/issue", 400, "bad_argument", form={**right, "expires": value}) == (
            f"expires is a date as 2026-12-31 23:59:59 in UTC, not '{value}'.")
    for number in ("0", "-1", "x", "99999999999999999999"):
        warden.refused("GET", f"/ban/{number}", 400, "bad_argument")
    warden.refused("GET", "/ban/12345", 404, "not_found")


def test_a_banned_player_may_not_play(warden, ann):
    number = issue(warden, reason="Schummelei: 100 % sicher, größer")["id"]
    for verb in ("create", "join"):
        answer = ann.cannot(423, "banned", verb)
        assert answer.head["x-ban-id"] == str(number)
        assert answer.head["x-ban-until"] == NEVER
        assert answer.head["x-ban-reason"] == "Schummelei: 100 %25 sicher, gr%C3%B6%C3%9Fer"
        assert answer.error["ban_id"] == str(number)
        assert answer.error["ban_until"] == NEVER
        assert answer.error["ban_reason"] == "Schummelei: 100 % sicher, größer"
    assert warden.get(f"/ban/{number}")["ip"] == "127.0.0.1"
    assert ann.rooms() == []  # looking is allowed


@pytest.mark.parametrize("lift", [True, False])
def test_an_address_is_banned_with_its_player(make_world, lift):
    world = make_world(fleets=fleets(), http={"trusted_proxies": ["127.0.0.1"]})
    warden = Player(world, "warden", scopes=("game_ban",))
    ann, bob = Player(world, "ann"), Player(world, "bob")
    number = issue(warden)["id"]
    there, elsewhere = ({"X-Forwarded-For": ip} for ip in ("198.51.100.7", "198.51.100.8"))
    bob.cannot(503, "no_host", headers=there)  # nobody has joined from there yet
    ann.cannot(423, "banned", headers=there)
    answer = bob.cannot(423, "banned", headers=there)
    assert answer.head["x-ban-id"] == str(number)
    assert answer.error["message"] == "The address of player bob is banned: cheats."
    bob.cannot(503, "no_host", headers=elsewhere)
    ann.cannot(423, "banned", headers=elsewhere)
    assert warden.get("/ban/find/ann")["ip"] == "198.51.100.7"  # the first, and no other
    world.crash()
    bob.cannot(423, "banned", headers=there)
    if lift:
        assert warden.ask("DELETE", f"/ban/{number}").status == 200
        bob.cannot(503, "no_host", headers=there)
        ann.cannot(503, "no_host", headers=there)


def test_an_ipv6_address_is_banned_with_its_network(make_world):
    world = make_world(fleets=fleets(), http={"trusted_proxies": ["127.0.0.1"]})
    ann, bob = Player(world, "ann"), Player(world, "bob")
    issue(Player(world, "warden", scopes=("game_ban",)))
    ann.cannot(423, "banned", headers={"X-Forwarded-For": "2001:db8:1:2::3"})
    bob.cannot(423, "banned", headers={"X-Forwarded-For": "2001:db8:1:2:ffff::1"})
    bob.cannot(503, "no_host", headers={"X-Forwarded-For": "2001:db8:1:3::3"})


def test_a_ban_ends_by_itself(world, warden, ann):
    soon = time.gmtime(time.time() + 2)
    issue(warden, expires=time.strftime("%Y-%m-%d %H:%M:%S", soon))
    ann.cannot(423, "banned")
    world.wait(lambda: ann.ask("POST", "/join/arena/main/1.0", data={}).status == 503, "end of a ban")


def test_banned_accounts_of_several_are_named(world, warden, captain):
    issue(warden, account="bob")
    issue(warden, account="dan")
    answer = multi(captain, [{"token": token_of(world, name, "game"), "ip": f"192.0.2.{i}"}
                             for i, name in enumerate(("ann", "bob", "cat", "dan"))])
    assert (answer.status, answer.error["code"]) == (423, "banned")
    assert [(p["index"], p["account"]) for p in answer.error["players"]] == [(1, "bob"), (3, "dan")]
    assert answer.head["x-ban-until"] == NEVER
    together = multi(captain, [{"token": token_of(world, name, "game"), "ip": "192.0.2.1"}
                               for name in ("ann", "bob")])  # bob's address is known by now
    assert [(p["account"], p["why"]) for p in together.error["players"]] == [
        ("ann", "his address is banned"), ("bob", "banned")]


def test_a_repeated_ban_is_one_ban(warden):
    first = issue(warden, key="k")
    assert issue(warden, key="k") == first
    warden.refused("POST", "/ban/issue", 409, "key_conflict", headers={"Idempotency-Key": "k"},
                   data={"account": "bob", "reason": "cheats", "expires": NEVER})


# --- where players are


def test_the_nearest_region_is_mine(make_world, tmp_path):
    geo = mmdb.write(tmp_path / "tiny.mmdb", {
        "192.0.2.0/24": mmdb.place(50.1, 8.7),  # Frankfurt
        "198.51.100.0/25": mmdb.place(35.7, 139.7),  # Tokyo
        "2001:db8:1::/48": mmdb.place(37.8, -122.4),  # San Francisco
        "203.0.113.0/24": {"country": {"iso_code": "DE"}},  # no place
    })
    world = make_world(
        fleets=fleets(), geo={"file": str(geo)}, http={"trusted_proxies": ["127.0.0.1"]},
        regions=[{"name": "EU", "code": 2, "latitude": 48.9, "longitude": 2.3},
                 {"name": "AS", "code": 3, "latitude": 22.3, "longitude": 114.2},
                 {"name": "USW", "code": 1, "latitude": 45.5, "longitude": -122.7}])
    ann = Player(world, "ann")

    def mine(ip, **query):
        answer = ann.ask("GET", "/regions", query, headers={"X-Forwarded-For": ip})
        assert answer.status == 200, answer
        return answer.json["my_region"]

    assert mine("192.0.2.77") == "EU"
    assert mine("198.51.100.7") == "AS"
    assert mine("2001:db8:1::5") == "USW"
    default = mine("198.51.100.200")  # beyond what the file knows
    assert mine("203.0.113.1") == mine("10.0.0.1") == default
    assert mine("192.0.2.77", latencies='{"EU": 80.5, "AS": 12, "MARS": 1}') == "AS"
    answer = ann.get("/regions")
    assert set(answer["regions"]) == {"EU", "AS", "USW"}
    assert answer["regions"]["AS"] == {"location": {"latitude": 22.3, "longitude": 114.2}}


def test_another_geo_file_at_a_reload(make_world, tmp_path):
    regions = [{"name": "EU", "code": 2, "latitude": 48.9, "longitude": 2.3},
               {"name": "AS", "code": 3, "latitude": 22.3, "longitude": 114.2}]
    path = tmp_path / "tiny.mmdb"
    options = {"fleets": fleets(), "geo": {"file": str(path)}, "regions": regions}
    mmdb.write(path, {"127.0.0.0/8": mmdb.place(35.7, 139.7)})
    world = make_world(**options)
    ann = Player(world, "ann")
    assert ann.get("/regions")["my_region"] == "AS"
    mmdb.write(tmp_path / "new.mmdb", {"127.0.0.0/8": mmdb.place(50.1, 8.7)}).rename(path)
    world.reload(**options)
    assert ann.get("/regions")["my_region"] == "EU"
    path.with_suffix(".bad").write_text("rubbish")
    path.with_suffix(".bad").rename(path)
    assert world.reload(**options)[-1]["msg"] == "configuration refused; nothing has changed"
    assert ann.get("/regions")["my_region"] == "EU"


def test_strangers_are_not_believed(make_world):
    """Without a list of proxies the socket's address counts, whatever a head says."""
    world = make_world(fleets=fleets())
    warden, ann = Player(world, "warden", scopes=("game_ban",)), Player(world, "ann")
    issue(warden)
    ann.cannot(423, "banned", headers={"X-Forwarded-For": "198.51.100.7", "X-Real-IP": "198.51.100.7"})
    assert warden.get("/ban/find/ann")["ip"] == "127.0.0.1"


def test_every_line_of_the_chain_counts(make_world):
    """Some proxies add a line to the head instead of an element to the client's."""
    world = make_world(fleets=fleets(), http={"trusted_proxies": ["127.0.0.1", "10.0.0.0/8"]})
    warden, ann = Player(world, "warden", scopes=("game_ban",)), Player(world, "ann")
    issue(warden)
    head = (b"POST /join/arena/main/1.0 HTTP/1.1\r\nHost: muster\r\nContent-Length: 0\r\n"
            b"Connection: close\r\nX-Forwarded-For: 203.0.113.1\r\n"
            b"X-Forwarded-For: 198.51.100.7, 10.0.0.1\r\nAuthorization: Bearer ")
    with socket.create_connection(world.muster.http_address, timeout=20) as connection:
        connection.sendall(head + ann.token.encode() + b"\r\n\r\n")
        assert connection.makefile("rb").read().startswith(b"HTTP/1.1 423 ")
    assert warden.get("/ban/find/ann")["ip"] == "198.51.100.7"


def test_the_audit_shows_who_is_behind_a_proxy(make_world):
    world = make_world(fleets=fleets(), http={"trusted_proxies": ["127.0.0.0/8"]})
    warden = Player(world, "warden", scopes=("game_ban",))
    answer = warden.ask("POST", "/ban/issue", headers={"X-Forwarded-For": "1.1.1.1, 198.51.100.7"},
                        data={"account": "ann", "reason": "x", "expires": NEVER})
    assert answer.status == 200
    line = next(line for line in world.api.all("/v1/audit") if line["action"] == "ban")
    assert (line["who"], line["address"]) == ("warden", "198.51.100.7")
