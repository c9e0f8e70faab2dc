"""The difference at every module, split into what it made and what it was given."""

from reprod_align.alignment.locating.shares import split_differences
from tests.alignment.locating.pinned import pinned
from tests.alignment.small import PaddleNet


def test_own_code_introduces_and_the_layer_after_it_inherits() -> None:
    with pinned(paddle_model=PaddleNet(lambda x: 1.5 * x)) as (runner, _, free, _):
        shares = split_differences(free, runner.run_port(False, "all"))
    found = {(share.torch_name, share.handed_to): share for share in shares}
    handed, second = found["", "second"], found["second", ""]
    assert abs(handed.introduced - 0.5) < 1e-9
    assert second.introduced < 1e-9 < second.inherited
    assert abs(second.received - 0.5) < 1e-9
    assert found["first", ""].total < 1e-9
