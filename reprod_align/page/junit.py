"""A page as JUnit's XML, in which a build server shows each comparison as a test."""

from collections import defaultdict
from typing import Final
from xml.etree import ElementTree

from reprod_align.errors import one_line
from reprod_align.page.content import Case, Page

_FOLLOWS: Final = "differs, as a consequence of what failed"


def render_junit(page: Page) -> str:
    """Return the XML: a suite for each stage, a test for each comparison, and the verdict last.

    A cause is one failure. Comparisons that differ in consequence of it, and the verdict where a
    case failed, are skipped tests that say so.
    """
    suites: dict[str, list[Case]] = defaultdict(list)
    follows = any(map(_is_failure, page.cases))
    verdict = Case("verdict", page.verdict, page.passed, page.sentence, consequence=follows)
    for case in (*page.cases, verdict):
        suites[case.suite].append(case)
    every = [case for cases in suites.values() for case in cases]
    root = ElementTree.Element("testsuites", _count(page.name, every))
    for name, cases in suites.items():
        suite = ElementTree.SubElement(root, "testsuite", _count(name, cases))
        for case in cases:
            names = {"classname": one_line(f"{page.name}.{name}"), "name": one_line(case.name)}
            test = ElementTree.SubElement(suite, "testcase", names)
            message = one_line(case.message)
            if _is_failure(case):
                ElementTree.SubElement(test, "failure", {"message": message}).text = message
            elif not case.passed:
                ElementTree.SubElement(test, "skipped", {"message": f"{_FOLLOWS}: {message}"})
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _count(name: str, cases: list[Case]) -> dict[str, str]:
    failures = sum(map(_is_failure, cases))
    counts = {"tests": len(cases), "failures": failures}
    counts["skipped"] = sum(not case.passed for case in cases) - failures
    return {"name": one_line(name)} | {key: str(number) for key, number in counts.items()}


def _is_failure(case: Case) -> bool:
    return not case.passed and not case.consequence
