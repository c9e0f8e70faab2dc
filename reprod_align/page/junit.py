"""A page as JUnit's XML, in which a build server shows each comparison as a test."""

from collections import defaultdict
from xml.etree import ElementTree

from reprod_align.errors import one_line
from reprod_align.page.content import Case, Page


def render_junit(page: Page) -> str:
    """Return the XML: a suite for each stage, a test for each comparison, and the verdict last."""
    suites: dict[str, list[Case]] = defaultdict(list)
    for case in (*page.cases, Case("verdict", page.verdict, page.passed, page.sentence)):
        suites[case.suite].append(case)
    every = [case for cases in suites.values() for case in cases]
    root = ElementTree.Element("testsuites", _count(page.name, every))
    for name, cases in suites.items():
        suite = ElementTree.SubElement(root, "testsuite", _count(name, cases))
        for case in cases:
            names = {"classname": one_line(f"{page.name}.{name}"), "name": one_line(case.name)}
            test = ElementTree.SubElement(suite, "testcase", names)
            if not case.passed:
                message = one_line(case.message)
                ElementTree.SubElement(test, "failure", {"message": message}).text = message
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _count(name: str, cases: list[Case]) -> dict[str, str]:
    failures = sum(not case.passed for case in cases)
    return {"name": one_line(name), "tests": str(len(cases)), "failures": str(failures)}
