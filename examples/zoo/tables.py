"""The tables of the zoo: two packages each, and the pairs that they have in common."""

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from examples.zoo.pair import Pair


@dataclass(frozen=True)
class Table:
    """Two packages, and where their pairs are stated."""

    key: str
    title: str
    torch: str
    """the module with PyTorch's classes"""
    paddle: str
    pairs: str
    """the module of this folder that states them as PAIRS"""
    environments: tuple[str, str] = ("", "")
    """of PyTorch's side and Paddle's, by the names of `environments.PACKAGES`; "" this one"""
    faults: str = ""
    """the table whose known faults its port is held against; "" its own"""

    @property
    def faults_key(self) -> str:
        """What its known faults are kept under."""
        return self.faults or self.key

    def load_pairs(self) -> dict[str, Pair]:
        """Return the pairs by name; no framework is imported."""
        module = importlib.import_module(f"examples.zoo.{self.pairs}")
        return {pair.name: pair for pair in module.PAIRS}

    def load_torch(self) -> Any:
        """Return PyTorch's package."""
        importlib.import_module("examples.zoo.torchvision_models")  # packages import torchvision
        return importlib.import_module(self.torch)

    def load_paddle(self) -> Any:
        """Return Paddle's package."""
        return importlib.import_module(self.paddle)


TABLES: Final[Sequence[Table]] = (
    Table("paddlenlp", "transformers and PaddleNLP", "transformers", "paddlenlp.transformers",
          "transformers_table"),
    Table("paddle.nn", "torch.nn and paddle.nn", "torch.nn", "paddle.nn", "layers_table"),
    Table("ppdiffusers", "diffusers and ppdiffusers", "diffusers", "ppdiffusers",
          "diffusers_table", ("diffusers", "ppdiffusers")),
    Table("paddleclas", "timm, torchvision and PaddleClas", "timm",
          "paddleclas.ppcls.arch.backbone", "classifiers_table", ("diffusers", "paddleclas")),
    Table("paddle.vision", "torchvision and paddle.vision", "examples.zoo.torchvision_models",
          "paddle.vision.models", "vision_table"),
    Table("paddleformers", "transformers and PaddleFormers", "transformers",
          "paddleformers.transformers", "formers_table", ("", "paddleformers")),
    Table("transformers5", "transformers 5.23.0 and PaddleNLP 2.8.1", "transformers",
          "paddlenlp.transformers", "releases_table", ("transformers5", ""), "paddlenlp"),
    Table("paddlenlp3", "transformers 4.57.6 and PaddleNLP 3.0.0b4", "transformers",
          "paddlenlp.transformers", "releases_table", ("", "paddlenlp3"), "paddlenlp"),
)  # fmt: skip
BY_KEY: Final = {table.key: table for table in TABLES}


def find_pair(name: str) -> tuple[Table, Pair]:
    """Return what "table: pair" names."""
    key, _, pair = name.partition(": ")
    return BY_KEY[key], BY_KEY[key].load_pairs()[pair]


def choose(words: Sequence[str]) -> list[tuple[Table, Pair]]:
    """Return the pairs whose table or name begins with one of the words; all without words."""
    every = [(table, pair) for table in TABLES for pair in table.load_pairs().values()]
    fits: Callable[[Table, Pair], bool] = lambda table, pair: any(  # noqa: E731
        word == table.key or f"{pair.name} ".startswith(f"{word} ") for word in words
    )
    return [(table, pair) for table, pair in every if not words or fits(table, pair)]
