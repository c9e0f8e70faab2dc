"""The page of two traces: modules with the worst of their calls, what is unpaired, the first that differs."""

from reprod_align.page.html import render_page
from reprod_align.page.markdown import render_markdown
from reprod_align.page.outputs import render_junit
from reprod_align.report.pages import make_trace_page
from reprod_align.traces.diff import TensorDifference, TraceDiff

ROWS = (
    TensorDifference("input", "fc", 0, "", 0.0, 1e-9, False, True, ""),
    TensorDifference("output", "fc", 0, "", 1e-12, 1e-9, False, True, ""),
    TensorDifference("output", "fc", 1, "", 0.5, 1e-9, False, False, "sign"),
    TensorDifference("output", "", 0, "", 0.25, 1e-9, False, False, ""),
    TensorDifference("parameter gradient", "fc", 0, "weight", 0.125, 1e-9, False, False, ""),
)


def test_a_module_has_the_worst_of_its_calls() -> None:
    page = make_trace_page(TraceDiff(ROWS, ("output of x",), (), False), "a | b")
    layers = {layer.torch_name: layer for layer in page.layers}
    assert layers["fc"].forward is not None and layers["fc"].forward.relative == 0.5
    assert layers["fc"].backward is not None and layers["fc"].backward.relative == 0.125
    assert layers["fc"].failed and not layers[""].failed and layers["fc"].calls == 2
    assert page.diagnostics[0].module == "fc" and "first the output of fc" in page.sentence
    assert page.tables[0].failed == {2, 3, 4} and page.tables[1].failed == {0}
    assert not page.passed and "fc" in render_page(page) and "fc" in render_markdown(page)
    assert 'failures="4"' in render_junit(page)


def test_traces_that_agree() -> None:
    page = make_trace_page(TraceDiff(ROWS[:2], (), ("output of y",), True), "a | b")
    assert page.passed and not page.diagnostics and page.verdict == "aligned"
    assert not page.tables[1].failed and 'failures="0"' in render_junit(page)
