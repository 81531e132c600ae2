"""Pages that no program writes are still true: their tables match the code, and their links lead somewhere."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([ROOT / "README.md", *ROOT.glob("docs/**/*.md"), *ROOT.glob("sdk/*/README.md")])
ERROR = re.compile(r'^X\(\w+,\s*"([^"]+)",\s*"([^"]*)",\s*(\d+)\)', re.M)


def test_every_error_is_in_its_page_and_no_other():
    table = ERROR.findall((ROOT / "src/base/errors.def").read_text())
    assert len(table) > 50
    page = (ROOT / "docs/errors.md").read_text()
    said = re.findall(r"^\| `(\w+)` \| (\d+) \| (.+?) \| .+ \|$", page, re.M)
    assert [(code, sentence, status) for code, status, sentence in said] == table


def anchors(page):
    """As they are made of headings."""
    heads = re.findall(r"^#+ (.+)$", page.read_text(), re.M)
    return {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in heads}


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.S)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if "://" in target:
            continue
        name, _, anchor = target.partition("#")
        there = (page.parent / name).resolve() if name else page
        assert there.exists(), f"{page.name} leads to {target}"
        if anchor and there.suffix == ".md":
            assert anchor in anchors(there), f"{page.name} leads to {target}"
