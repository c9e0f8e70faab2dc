"""Makes what a command line names as MODULE:CALL."""

import inspect
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from reprod_align.errors import ReprodError, describe_error


def call_named(words: str) -> Any:
    """Return what `words` make: "package.module:make_model", or with arguments "module:Model(8, bias=False)".

    CALL is a Python expression that sees the module's names; a function or class without arguments is
    called. Modules beside the present folder are found. Raises ReprodError for what cannot be
    imported or raises.
    """
    name, colon, call = words.partition(":")
    if not colon or not name or not call:
        raise ReprodError(f"{words!r}: expected MODULE:CALL, such as mine.models:make_model")
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    try:
        found = eval(call, dict(vars(import_module(name))))
        made = found() if inspect.isclass(found) or inspect.isroutine(found) else found
    except (Exception, SystemExit) as error:
        raise ReprodError(f"{words}: {describe_error(error)}") from error
    return made
