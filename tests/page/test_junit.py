"""JUnit's XML: a test for each comparison, the verdict among them, nothing that XML cannot hold."""

from xml.etree import ElementTree

from reprod_align.page import Case, Page
from reprod_align.page.outputs import render_junit
from tests.page.pages import HOSTILE


def read(page: Page) -> ElementTree.Element:
    return ElementTree.fromstring(render_junit(page).encode())


def test_each_comparison_is_a_test_and_the_verdict_too() -> None:
    cases = [Case("forward", "outputs", True), Case("loss", "loss", False, "differs by 1")]
    root = read(Page("a.py", "diverges", False, "1 finding", cases=cases))
    assert (root.get("tests"), root.get("failures"), root.get("skipped")) == ("3", "1", "1")
    verdict = root.find(".//testcase[@name='diverges']/skipped")
    assert verdict is not None and "as a consequence" in (verdict.get("message") or "")
    assert [suite.get("name") for suite in root] == ["forward", "loss", "verdict"]
    failure = root.find(".//testcase[@name='loss']/failure")
    assert failure is not None and failure.get("message") == "differs by 1"
    assert root.find(".//testcase[@name='outputs']/failure") is None


def test_a_page_that_failed_without_a_failing_case_fails_by_its_verdict() -> None:
    root = read(Page("a", "not compared", False, cases=[Case("x", "y", True)]))
    assert root.get("failures") == "1"
    assert read(Page("a", "faithful", True)).get("failures") == "0"


def test_one_cause_is_one_failure_and_its_consequences_are_listed() -> None:
    """Of eight comparisons that differ, seven follow from the eighth."""
    rows = [Case("forward", f"row {number}", False, "1.0", consequence=True) for number in range(7)]
    rows.append(Case("forward", "fine", True, consequence=True))
    root = read(Page("a", "diverges", False, cases=[*rows, Case("findings", "norm", False, "eps")]))
    assert (root.get("tests"), root.get("failures"), root.get("skipped")) == ("10", "1", "8")
    said = [one.get("message") or "" for one in root.iter("skipped")]
    assert len(said) == 8 and all("consequence of what failed: " in one for one in said)


def test_hostile_names_are_text() -> None:
    root = read(
        Page(HOSTILE, "v", False, cases=[Case(HOSTILE, HOSTILE + "\x00\ud800", False, HOSTILE)])
    )
    name = root.findall(".//testcase")[0].get("name") or ""
    assert "</script>" in name and "\\x1b" in name and "\\x00\\ud800" in name
