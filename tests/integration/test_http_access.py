"""Access tokens end to end: who is let in, with which scopes, and the known ways to cheat."""

import base64
import hashlib
import hmac
import json
import re
import time

import jwt
import pytest
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from http_api import Api, admin_token
from test_clock import WallClock


def public_pem(key):
    return key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)


@pytest.fixture(scope="session")
def keys():
    return {
        "RS256": rsa.generate_private_key(public_exponent=65537, key_size=2048),
        "ES256": ec.generate_private_key(ec.SECP256R1()),
    }


def write_keys(folder, keys):
    written = []
    for algorithm, key in keys.items():
        path = folder / f"{algorithm}.pem"
        path.write_bytes(public_pem(key))
        written.append({"name": algorithm.lower(), "algorithm": algorithm, "file": str(path)})
    return written


@pytest.fixture
def world(make_world, keys, tmp_path):
    return make_world(access={"gamespace": "7", "keys": write_keys(tmp_path, keys)})


def claims(**changes):
    now = int(time.time())
    good = {"acc": "ann", "gms": "7", "sco": "muster_read", "iat": now, "exp": now + 600}
    return {k: v for k, v in {**good, **changes}.items() if v is not None}


def sign(keys, algorithm="RS256", **changes):
    return jwt.encode(claims(**changes), keys[algorithm], algorithm=algorithm)


def segment(data):
    raw = data if isinstance(data, bytes) else json.dumps(data).encode()
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def sign_by_hand(header, payload, secret):
    """What a library refuses to make."""
    text = f"{segment(header)}.{segment(payload)}"
    mac = hmac.new(secret, text.encode(), hashlib.sha256).digest()
    return f"{text}.{segment(mac)}"


def why_not(world, token):
    why = Api(world.muster, token).refused("GET", "/v1/servers", 401, "bad_access_token")
    return why.removeprefix("The access token is not valid: ")


@pytest.mark.parametrize("algorithm", ["RS256", "ES256"])
def test_token_of_a_configured_key_is_taken(world, keys, algorithm):
    token = sign(keys, algorithm)
    for _ in range(2):
        assert Api(world.muster, token).get("/v1/servers") == {"items": [], "next": None}


def test_dates_and_gamespace_may_be_text_or_numbers(world, keys):
    now = int(time.time())
    token = sign(keys, acc=4711, gms=7, iat=str(now), exp=str(now + 60))
    Api(world.muster, token).get("/v1/servers")


def test_token_may_come_as_an_argument(world, keys):
    token = sign(keys, sco="muster_admin")
    api = Api(world.muster)
    assert api.ask("GET", "/v1/servers", {"access_token": token}).status == 200
    wanted = {"account": "x", "scopes": ["game"], "access_token": token}
    assert api.ask("POST", "/v1/access-tokens", data=wanted).status == 200
    form = {**wanted, "scopes": "game"}
    assert api.ask("POST", "/v1/access-tokens", form=form).status == 200
    api.refused("GET", "/v1/servers", 401, "bad_access_token", query={"access_token": "x"})


def test_no_token(world):
    answer = Api(world.muster).ask("GET", "/v1/servers")
    assert answer.status == 401 and answer.error["code"] == "no_access_token"
    assert answer.head["www-authenticate"] == "Bearer"
    answer = Api(world.muster).ask("GET", "/v1/servers", headers={"Authorization": "Basic eDp5"})
    assert answer.status == 401 and answer.error["code"] == "bad_access_token"


def test_a_token_says_who_it_is(world, keys):
    token = sign(keys, acc="ann", sco="muster_admin,elsewhere", exp=2000000000)
    assert Api(world.muster, token).get("/v1/me") == {
        "account": "ann", "scopes": ["muster_read", "muster_admin"],
        "expires_at": "2033-05-18T03:33:20.000Z", "gamespace": "7"}
    player = Api(world.muster, sign(keys, sco="game")).get("/v1/me")
    assert player["scopes"] == ["game"]
    assert Api(world.muster, sign(keys, sco="")).get("/v1/me")["scopes"] == []
    Api(world.muster).refused("GET", "/v1/me", 401, "no_access_token")
    Api(world.muster, token + "x").refused("GET", "/v1/me", 401, "bad_access_token")


# --- attacks


@pytest.mark.parametrize("name", ["none", "None", "NONE", ""])
def test_algorithm_none(world, name):
    for signature in ("", segment(b"x")):
        token = f"{segment({'alg': name, 'typ': 'JWT'})}.{segment(claims())}.{signature}"
        assert why_not(world, token) == "it is no JWT signed with HS256, RS256 or ES256."


@pytest.mark.parametrize("algorithm", ["RS256", "ES256"])
@pytest.mark.parametrize("ending", ["as it is", "without newline", "twice"])
def test_public_key_as_the_secret_of_hs256(world, keys, algorithm, ending):
    pem = public_pem(keys[algorithm])
    secret = {"as it is": pem, "without newline": pem.rstrip(), "twice": pem * 2}[ending]
    token = sign_by_hand({"alg": "HS256", "typ": "JWT"}, claims(sco="muster_admin"), secret)
    assert why_not(world, token) == "no key we know has signed it."


@pytest.mark.parametrize("algorithm", ["HS384", "HS512", "RS384", "PS256", "ES384"])
def test_other_algorithms(world, keys, algorithm):
    header = {"alg": algorithm, "typ": "JWT"}
    token = sign_by_hand(header, claims(), public_pem(keys["RS256"]))
    assert why_not(world, token) == "it is no JWT signed with HS256, RS256 or ES256."


def test_empty_and_guessed_secrets(world):
    for secret in (b"", b"\0" * 32, b"secret", b"admin"):
        token = sign_by_hand({"alg": "HS256", "typ": "JWT"}, claims(), secret)
        assert why_not(world, token) == "no key we know has signed it."


def test_key_that_the_token_brings_itself(world):
    own = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    jwk = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(own.public_key()))
    for header in ({"jwk": jwk}, {"jku": "http://127.0.0.1/keys"}, {"kid": "../../dev/null"}):
        token = jwt.encode(claims(), own, algorithm="RS256", headers=header)
        assert why_not(world, token) == "no key we know has signed it."


def test_key_of_somebody_else(world):
    others = {
        "RS256": rsa.generate_private_key(public_exponent=65537, key_size=2048),
        "ES256": ec.generate_private_key(ec.SECP256R1()),
    }
    for algorithm in others:
        assert why_not(world, sign(others, algorithm)) == "no key we know has signed it."


def test_token_of_another_muster(world, make_world):
    other = make_world(access={"gamespace": "7"})
    assert why_not(world, admin_token(other.muster)) == "no key we know has signed it."


def test_changed_claims(world, keys):
    head, _, signature = sign(keys).split(".")
    forged = f"{head}.{segment(claims(sco='muster_admin'))}.{signature}"
    assert why_not(world, forged) == "no key we know has signed it."
    head, body, _ = sign(keys).split(".")
    assert why_not(world, f"{head}.{body}.") == "it is no JWT signed with HS256, RS256 or ES256."


@pytest.mark.parametrize("changes, why", [
    ({"exp": 1_000_000_000}, "it has expired."),
    ({"exp": "1000000000"}, "it has expired."),
    ({"iat": 4_000_000_000, "exp": 4_000_000_600}, "it was issued in the future."),
    ({"nbf": 4_000_000_000, "exp": 4_000_000_600}, "it is not valid yet."),
    ({"gms": "8"}, "it is for another gamespace."),
    ({"gms": "07"}, "it is for another gamespace."),
    ({"gms": None}, "its claim gms names no gamespace."),
    ({"gms": ["7"]}, "its claim gms names no gamespace."),
    ({"acc": None}, "its claim acc names no account."),
    ({"acc": ""}, "its claim acc names no account."),
    ({"acc": "x" * 65}, "its claim acc names no account."),
    ({"sco": None}, "its claim sco is no list of scopes."),
    ({"sco": ["muster_admin"]}, "its claim sco is no list of scopes."),
    ({"exp": None}, "its claim exp is no date."),
    ({"exp": True}, "its claim exp is no date."),
    ({"exp": -1}, "its claim exp is no date."),
    ({"exp": 1e30}, "its claim exp is no date."),
    ({"iat": None}, "its claim iat is no date."),
])
def test_claims(world, keys, changes, why):
    """Signed by hand: a library refuses some of these."""
    signed = f"{segment({'alg': 'RS256', 'typ': 'JWT'})}.{segment(claims(**changes))}"
    signature = keys["RS256"].sign(signed.encode(), padding.PKCS1v15(), hashes.SHA256())
    assert why_not(world, f"{signed}.{segment(signature)}") == why


@pytest.mark.parametrize("token", [
    "x", "..", "a.b.c", "e30.e30.e30", "ey" * 5000, "\x7f", "eyJhbGciOiJIUzI1NiJ9..",
    segment({"alg": ["RS256"]}) + ".e30.e30", segment(b"[" * 2000) + ".e30.e30",
])
def test_rubbish(world, token):
    why_not(world, token)


def test_token_expires_while_it_is_used(make_world, tmp_path):
    clock = WallClock(tmp_path)
    world = make_world(env=clock.env)
    token = world.api.post(
        "/v1/access-tokens", account="bob", scopes=["muster_read"], expires_in_s=600)["token"]
    api = Api(world.muster, token)
    api.get("/v1/servers")
    clock.step(590)
    api.get("/v1/servers")
    clock.step(610)
    assert why_not(world, token) == "it has expired."


def test_admin_token_is_renewed_before_it_expires(make_world, tmp_path):
    clock = WallClock(tmp_path)
    world = make_world(env=clock.env)
    first = admin_token(world.muster)
    clock.step(330 * 86400)
    world.muster.restart()
    assert admin_token(world.muster) == first
    clock.step(336 * 86400)
    world.muster.restart()
    assert admin_token(world.muster) != first
    world.api.get("/v1/servers")


# --- scopes

SCOPES = ["muster_read", "muster_admin", "muster_allocate", "game_host", "game", "game_multi", "game_ban"]


def guarded_routes(api):
    """(method, path with values, scopes) of every route that needs a token, by its description."""
    values = {"name": "EU", "fleet": "default", "digest": "0" * 64}
    for path, ways in api.get("/openapi.json")["paths"].items():
        where = re.sub(r"{(\w+)}", lambda found: values.get(found[1], "1"), path)
        for method, operation in ways.items():
            if operation["security"]:
                yield method.upper(), where, operation["security"][0]["bearer"]


def enough_for_oneself(api, method, path):
    """Scopes that let somebody in where it is about himself; the handler looks closer."""
    for where, ways in api.get("/openapi.json")["paths"].items():
        if re.fullmatch(re.sub(r"{\w+}", "[^/]+", where), path) and method.lower() in ways:
            ways = ways[method.lower()]["security"]
            return {scope for way in ways[2:] for scopes in way.values() for scope in scopes}
    return set()


def test_every_route_asks_for_its_scope(make_world, keys, tmp_path):
    world = make_world(dev=False, access={"gamespace": "7", "keys": write_keys(tmp_path, keys)})
    anonymous = Api(world.muster)
    everything = set(SCOPES)
    routes = list(guarded_routes(anonymous))
    assert len(routes) > 50
    for method, path, scopes in routes:
        upload = method == "POST" and path == "/v1/deployments"
        kind = {"content_type": "application/octet-stream"} if upload else {}
        anonymous.refused(method, path, 401, "no_access_token", **kind)
        if not scopes:
            assert Api(world.muster, sign(keys, sco="profile")).ask(method, path).status == 200
            continue  # any token will do
        others = everything - set(scopes) - enough_for_oneself(anonymous, method, path)
        if "muster_read" in scopes:
            others -= {"muster_admin"}  # which includes it
        without = Api(world.muster, sign(keys, sco=",".join(sorted(others | {"profile"}))))
        why = without.refused(method, path, 403, "forbidden", **kind)
        assert any(scope in why for scope in scopes), (path, why)
        if path == "/v1/events":
            continue  # its answer has no end
        allowed = Api(world.muster, sign(keys, sco=",".join(scopes))).ask(
            method, path, **kind)
        assert allowed.status not in (401, 403), (path, allowed)


def test_a_scope_alone_is_not_enough_where_two_are_needed(make_world, keys, tmp_path):
    world = make_world(dev=False, access={"gamespace": "7", "keys": write_keys(tmp_path, keys)})
    several = [(m, p, s) for m, p, s in guarded_routes(Api(world.muster)) if len(s) > 1]
    assert several
    for method, path, scopes in several:
        for scope in scopes:
            Api(world.muster, sign(keys, sco=scope)).refused(method, path, 403, "forbidden")


def test_admin_scope_includes_reading(world, keys):
    Api(world.muster, sign(keys, sco="muster_admin")).get("/v1/servers")


def test_no_token_is_in_the_log(world, keys):
    token = sign(keys, sco="muster_admin")
    api = Api(world.muster, token)
    made = api.post("/v1/tokens", role="server", fleet="default")["token"]
    issued = api.post("/v1/access-tokens", account="x", scopes=["game"])["token"]
    api.ask("GET", "/v1/servers", {"access_token": token})
    assert world.muster.term() == 0
    for secret in (token, made, issued, admin_token(world.muster)):
        assert secret not in world.muster.log() and secret.split(".")[-1] not in world.muster.log()
