"""The process of one side of a proof: python -I -c START FILE.py torch|paddle FD.

It answers what `pair.child` answers, and what only a proof asks: a failing layer, a checkpoint, changed
functions. The port's process hides PyTorch and listens to what the port's code asks for (`contract.guard`).
"""

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from importlib import import_module
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, cast

from reprod_align.backends.recipes import Recipe, find_recipes
from reprod_align.base import Framework
from reprod_align.base.console import quieten, without_warnings
from reprod_align.contract.guard import DottedName, Fingerprint, Guard, hide_packages, look_up
from reprod_align.errors import ReprodError
from reprod_align.model import Inputs, ModelFailure, Projection
from reprod_align.page import list_versions
from reprod_align.pair.child import Served, serve
from reprod_align.pair.file import PairFile, open_file
from reprod_align.pair.remote import Hello
from reprod_align.pair.wire import Wire
from reprod_align.randomness import KeyedDraws

_PLANTED = "planted by the proof"
_NOTHING = Projection(only=frozenset())


class ProofServed(Served):
    """A side of a proof."""

    def __init__(
        self,
        file: PairFile,
        framework: Framework,
        recipe: Recipe | None,
        before: Fingerprint | None,
    ) -> None:
        """Make the model; recipe: how it is trained; before: what stood before the file was loaded."""
        super().__init__(file, file.side(framework))
        self._before, self._recipe, self._recipes = before, recipe, find_recipes(framework)
        if recipe is not None:
            self._side.loss = lambda output: self._recipes.loss(recipe, output)

    def hello(self) -> Hello:
        """Return what is said first; a proof's file gives neither inputs nor settings."""
        return Hello(self._side.name, frozenset(), {}, {}, [], list_versions())

    def answer(self, name: str, arguments: Sequence[Any], options: Mapping[str, Any]) -> Any:
        """Return the answer to one question."""
        own: Mapping[str, Callable[..., Any]] = {
            "list_changes": self._list_changes,
            "break_layers": self._break_layers,
            "save": self._save,
            "restore": self._restore,
            "list_losses": self._list_losses,
        }
        if name in own:
            return own[name](*arguments)
        return super().answer(name, arguments, options)

    def _list_changes(self) -> list[tuple[str, str]]:
        return self._before.list_changes() if self._before is not None else []

    def _break_layers(self, inputs: Inputs, paths: Sequence[str]) -> list[str]:
        """Let each named layer raise in turn; return the layers whose exception the model swallowed."""
        modules, kept = dict(self._side.fw.modules(self._side.model)), []
        for path in paths:

            def fail(*_: object) -> None:
                raise ArithmeticError(_PLANTED)

            handle = modules[path].register_forward_pre_hook(fail)
            try:
                self._side.run(inputs, False, KeyedDraws(0, {}), "none", _NOTHING, graded=False)
                kept.append(path)
            except ModelFailure as error:
                if _PLANTED not in error.text:
                    kept.append(path)
            finally:
                handle.remove()
        return kept

    def _list_losses(
        self, batches: Sequence[Inputs], seed: int, places: Mapping[str, str]
    ) -> list[float]:
        """Train one step on each batch; return the losses."""
        assert self._recipe is not None
        side, losses = self._side, []
        optimizer = self._recipes.optimizer(self._recipe, side.model)
        for number, inputs in enumerate(batches):
            draws = KeyedDraws(seed + number, places)
            trace = side.run(inputs, True, draws, "none", take_gradients=False)
            optimizer.step()
            losses.append(float("nan") if trace.loss is None else trace.loss)
        side.set_gradients({})
        return losses

    def _save(self, path: str) -> None:
        self._recipes.save(self._side.model, path)

    def _restore(self, path: str) -> None:
        self._recipes.restore(self._side.model, path)


def main(words: Sequence[str]) -> None:
    """Serve one side until the other end is closed."""
    options, file, framework, handle = json.loads(words[0]), *words[1:4]
    recipe = Recipe(**options["recipe"]) if options["recipe"] else None
    before: Fingerprint | None = None
    refused: list[tuple[str, str]] = []
    with ExitStack() as stack:
        if options["guarded"]:
            hide_packages()
            _import_all(("paddle", "numpy", *options["packages"]))
            import_module("reprod_align.backends.paddle.side")
            guard = Guard(Path(file).parent, options["pipe"], options["packages"])
            lookups = [DottedName(*one) for one in json.loads(Path(options["lookups"]).read_text())]
            refused = [*look_up(lookups, options["packages"])]
            before = Fingerprint()
            guard.arm()
            for code, text in refused:
                guard.tell(code, text)

        def load() -> ProofServed:
            if refused:
                raise ReprodError("refused before it ran")
            opened = stack.enter_context(open_file(Path(file), PairFile))
            return ProofServed(opened, cast(Framework, framework), recipe, before)

        pipe: Connection[Any, Any] = Connection(int(handle))
        serve(load, Path(file), Wire(pipe))


def _import_all(names: Sequence[str]) -> None:
    """Import the packages that a port may use, so that what they change at import is not the port's doing."""
    for name in names:
        try:
            import_module(name)
        except ImportError as error:
            raise ReprodError(f"the port's package {name} is not installed: {error}") from error


if __name__ == "__main__":
    quieten()
    with without_warnings():
        main(sys.argv[1:])
