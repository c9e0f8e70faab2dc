"""Which calls and tensors stand for each other."""

from tests.alignment.locating.pinned import pinned


def test_calls_are_paired_with_their_parents_and_leaves() -> None:
    with pinned() as (runner, _, run, _):
        assert [calls.paths for calls in run.calls] == [
            ("", ""),
            ("first", "first"),
            ("second", "second"),
        ]
        model, first, second = run.calls
        assert run.parents(model) is None and run.counterparts_around(model) is None
        around = run.parents(first)
        assert around is not None and (around.ours, around.theirs) == (model.ours, model.theirs)
        assert run.are_counterparts(around) and run.code_around(second) == ("", "")
        assert run.has_children(model.theirs) and not run.has_children(first.theirs)
        assert run.is_stock(first) and not run.is_stock(model)
        assert not run.counterparts.is_other_layer(first.theirs)
        (pair,) = run.pair_leaves(first, "outputs")
        ours, theirs = first.leaves(pair, "outputs")
        assert ours.array.shape == theirs.array.shape == (4, 5)


def test_a_module_that_is_called_more_often_has_no_counterpart() -> None:
    from tests.alignment.small import PaddleNet, TorchNet

    theirs = PaddleNet()
    theirs.between = lambda x: x + 0 * theirs.first(x[:, :3])
    with pinned(TorchNet(), theirs) as (_, _, run, _):
        assert [calls.paths for calls in run.calls] == [("", ""), ("second", "second")]
