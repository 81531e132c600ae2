"""The files of the console: given to anybody, never run for anybody else. What the pages do is
tested in a browser, tests/browser."""

import gzip
import re

import pytest


def page(world, path="/", **headers):
    return world.api.ask("GET", path, headers={"Authorization": "", **headers})


def test_the_page_needs_no_token_and_names_only_files_of_ours(world):
    answer = page(world)
    assert answer.status == 200
    assert answer.head["content-type"] == "text/html; charset=utf-8"
    text = answer.body.decode()
    named = re.findall(r'(?:src|href)="([^"]+)"', text)
    assert len(named) == 3 and all(n.startswith("/console/") for n in named)
    for name in named:
        assert page(world, name).status == 200
    assert "<script>" not in text and "style=" not in text


def test_nothing_from_elsewhere_may_run_in_it(world):
    policy = page(world).head["content-security-policy"]
    assert "default-src 'none'" in policy and "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy and "http" not in policy
    assert page(world).head["x-content-type-options"] == "nosniff"


def test_files_with_a_name_of_their_own_are_kept_and_the_page_is_asked_for_again(world):
    script = re.search(r'src="([^"]+)"', page(world).body.decode())[1]
    assert "immutable" in page(world, script).head["cache-control"]
    answer = page(world)
    assert answer.head["cache-control"] == "no-cache"
    again = page(world, **{"If-None-Match": answer.head["etag"]})
    assert (again.status, again.body) == (304, b"")
    assert page(world, **{"If-None-Match": '"other"'}).status == 200


@pytest.mark.parametrize("accepts, packed", [
    ("gzip, deflate, br", True), ("br;q=1.0, GZIP;q=0.5", True), ("gzip", True),
    ("", False), ("identity", False), ("gzip;q=0", False), ("gzip; q=0.000", False),
    ("notgzip", False), (",,;", False)])
def test_it_is_packed_for_who_takes_that(world, accepts, packed):
    answer = page(world, **{"Accept-Encoding": accepts})
    plain = page(world).body
    assert answer.head.get("content-encoding") == ("gzip" if packed else None)
    assert (gzip.decompress(answer.body) if packed else answer.body) == plain
    assert answer.head["vary"] == "Accept-Encoding"


def test_what_is_not_there_is_an_error_of_the_api(world):
    assert page(world, "/console/nothing.js").status == 404
    assert page(world, "/console/../data").status in (400, 404)
    assert world.api.ask("POST", "/").status in (404, 405)


def test_the_licences_of_what_is_in_it_are_given(world):
    text = page(world, "/console/licences.txt").body.decode()
    assert "preact" in text and "uplot" in text and "world-atlas" in text and "MIT" in text
