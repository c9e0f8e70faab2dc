"""`fix`: the edits of a port's source that make it faithful, as a patch."""

import inspect
from typing import Any, cast

from reprod_align.mending.mend import mend_port
from reprod_align.mending.result import Mended
from reprod_align.model.local import LocalSide
from reprod_align.pair import make_pair, with_arguments_of


@with_arguments_of(make_pair)
def fix(torch_model: Any, paddle_model: Any, *given: Any, **named: Any) -> Mended:
    """Look for the edits of the Paddle model's source with which it is faithful, and prove them.

    paddle_model: the port, or a function without arguments that makes it: what its constructors say can
    be edited then.
    {arguments}

    No file is changed: the result holds a patch. Raises ReprodError as `align` does.
    """
    make = paddle_model if _makes_model(paddle_model) else lambda: paddle_model
    pair = make_pair(torch_model, make(), *given, **named)
    port = cast(LocalSide, pair.port)
    return mend_port(pair, lambda: port.with_model(make()))


def _makes_model(value: Any) -> bool:
    """Tell whether a value is a function or a class, not a model."""
    return inspect.isclass(value) or (callable(value) and not hasattr(value, "forward"))
