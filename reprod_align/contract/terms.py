"""The terms of a contract: what the reviewer's TOML file says, checked word for word.

Its rules draw the batches, from a seed that nobody knew before.
"""

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, Final

from reprod_align.backends.recipes import Recipe
from reprod_align.base.blocks import Array
from reprod_align.errors import ReprodError, explain_absence
from reprod_align.records.gate import digest

import numpy as np

KINDS: Final = ("int64", "float64", "mask")
_KEYS: Final = {"shape", "kind", "low", "high", "end"}


@dataclass(frozen=True)
class Draw:
    """How one input is drawn."""

    shape: tuple[int | str, ...]
    """a length, or the name of one that all inputs share: "4-12" is drawn anew for each batch"""
    kind: str
    """int64: from low up to, not including, high; float64: normal numbers times high; mask: ones,
    then zeros"""
    low: int = 0
    high: int = 1
    end: int | None = None
    """what the last of each row is: an end token"""


def read_draw(name: str, made: Any, fault: Callable[[str], ReprodError]) -> Draw:
    """Return the rule of one input. Raises what `fault` makes of a sentence."""

    def refuse(what: str) -> ReprodError:
        return fault(f"inputs.{name}: {what}")

    if not isinstance(made, dict) or not _KEYS >= made.keys():
        raise refuse(f"expected a table of {', '.join(sorted(_KEYS))}")
    shape, kind = made.get("shape"), made.get("kind", "float64")
    if not isinstance(shape, list) or not shape or not all(map(_is_length, shape)):
        raise refuse('shape: expected lengths such as [2, "4-12"]')
    if kind not in KINDS:
        raise refuse(f"kind: expected one of {', '.join(KINDS)}")
    low, high, end = made.get("low", 0), made.get("high", 1), made.get("end")
    if not all(type(one) is int for one in (low, high, 0 if end is None else end)) or low >= high:
        raise refuse("low and high: expected whole numbers, low below high")
    return Draw(tuple(shape), kind, low, high, end)


def draw_batch(
    rules: Mapping[str, Draw], seed: int, number: int, twin: int = 0
) -> dict[str, Array]:
    """Return batch `number` of a seed: {input: array}. Equal ranges have equal lengths in a batch.

    twin: another batch of the same shapes.
    """
    source = np.random.default_rng([seed, number])
    lengths: dict[str, int] = {}
    for rule in rules.values():
        for length in rule.shape:
            if isinstance(length, str) and length not in lengths:
                low, _, high = length.partition("-")
                lengths[length] = int(source.integers(int(low), int(high) + 1))
    source = np.random.default_rng([seed, number, twin])
    return {name: _draw(rule, lengths, source) for name, rule in rules.items()}


def _draw(rule: Draw, lengths: Mapping[str, int], source: np.random.Generator) -> Array:
    shape = tuple(lengths[n] if isinstance(n, str) else n for n in rule.shape)
    if rule.kind == "float64":
        return source.standard_normal(shape) * rule.high
    if rule.kind == "mask":
        kept = source.integers(max(1, shape[-1] // 2), shape[-1] + 1, (*shape[:-1], 1))
        return (np.arange(shape[-1]) < kept).astype(np.int64)
    made = source.integers(rule.low, rule.high, shape)
    if rule.end is not None:
        made[..., -1] = rule.end
    return made


def _is_length(value: object) -> bool:
    if type(value) is int:
        return 0 < value < 2**24
    if not isinstance(value, str):
        return False
    low, dash, high = value.partition("-")
    return bool(dash) and low.isdecimal() and high.isdecimal() and 0 < int(low) <= int(high) < 2**24


OPTIMIZERS: Final = ("adamw", "sgd")
LOSSES: Final = ("cross_entropy", "weighted_sum")
_HEX: Final = frozenset("0123456789abcdef")


class ContractError(ReprodError):
    """The contract itself cannot be used: says which entry, and what was expected."""


@dataclass(frozen=True)
class TrainingTerms:
    """The training whose losses are compared."""

    steps: int
    recipe: Recipe
    """its seed is that of the proof"""


@dataclass(frozen=True)
class Tokens:
    """Greedy generation: the input that grows, and by how much."""

    count: int
    input: str = "input_ids"
    output: str = ""
    """the output that holds the logits; "" the first float one"""
    mask: str = ""
    """an input that grows along, with ones"""


@dataclass(frozen=True)
class ExpectedFailure:
    """A fault of the port that is known and documented: what of the contract it breaks."""

    stages: tuple[str, ...]
    """what the names of those stages begin with; every other stage must pass"""
    report: str
    """where the fault is described: an address, or a file seen from the contract"""
    mended: Path
    """the reviewer's file: paddle_model() of the port with that fault mended, and nothing else"""
    digest: str


@dataclass(frozen=True)
class Terms:
    """What a contract says; paths are whole."""

    path: Path
    name: str
    reference: Path
    """the file that defines torch_model()"""
    reference_files: Mapping[Path, str]
    """every file of the reference, with its SHA-256"""
    port: Path
    """the file that defines paddle_model()"""
    port_files: tuple[Path, ...]
    """every file of the port, that one first"""
    packages: tuple[str, ...]
    """what the port may import beside Paddle, numpy and harmless parts of the standard library"""
    inputs: Mapping[str, Draw]
    batches: int = 3
    tolerance: float = 1e-9
    """relative, in float64, of outputs and losses"""
    tokens: Tokens | None = None
    round_trip: bool = False
    training: TrainingTerms | None = None
    name_map: Mapping[str, str] = field(default_factory=dict)
    """PyTorch's names -> Paddle's, of tensors or modules, where names do not tell"""
    seconds: float = 600.0
    """that each process may take"""
    megabytes: int = 16384
    """of memory that each process may take"""
    outputs: tuple[str, ...] = ()
    """the reference's outputs that count; () all"""
    expected: ExpectedFailure | None = None
    """None: the port keeps every term"""
    port_folder: Path = Path()
    """the folder from which the port's files are seen"""

    @property
    def digest(self) -> str:
        """The SHA-256 of the contract's file."""
        return digest(self.path)


def read_terms(path: Path, port: Path | None = None) -> Terms:
    """Return the terms in `path`; port: the folder with the port's files, in place of the contract's.

    Raises ContractError for what is missing, unknown or of another type, MissingInputError without a file.
    """
    if not path.is_file():
        raise explain_absence(path)
    try:
        made = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ContractError(f"{path} cannot be read as TOML: {str(error)[:200]}") from error
    table = _TomlTable(path, "", made)
    reference, of_port = table.read_table("reference"), table.read_table("port")
    folder = path.resolve().parent
    own_folder = of_port.read_text("folder", ".")
    port_folder = port or folder / own_folder
    digests = reference.read_table("digests").read_texts()
    files = {_locate(reference, folder, name): _read_hex(reference, name, value)
             for name, value in digests.items()}  # fmt: skip
    main = _locate(reference, folder, reference.read_text("file"))
    if main not in files:
        raise reference.fault(f"digests: expected the SHA-256 of {main.name}: sha256sum {main}")
    terms = Terms(
        path,
        table.read_text("name", path.stem),
        main,
        files,
        _locate(of_port, port_folder, of_port.read_text("file")),
        tuple(_locate(of_port, port_folder, one)
              for one in (of_port.read_text("file"), *of_port.list_texts("files"))),
        tuple(of_port.list_texts("packages")),
        {name: read_draw(name, one, table.fault) for name, one in table.read_table("inputs").made.items()},
        table.read_whole("batches", 3),
        table.read_number("tolerance", 1e-9),
        _read_tokens(table),
        table.read_flag("round_trip"),
        _read_training(table),
        table.read_table("name_map", {}).read_texts(),
        table.read_number("seconds", 600.0),
        table.read_whole("megabytes", 16384),
        tuple(table.list_texts("outputs")),
        _read_expected(table, folder),
        port_folder.resolve(),
    )  # fmt: skip
    for one in (reference, of_port, table):
        one.close()
    return _require_sense(table, terms)


def _read_tokens(table: "_TomlTable") -> Tokens | None:
    if "tokens" not in table.made:
        return None
    inner = table.read_table("tokens")
    found = Tokens(inner.read_whole("count", 10), inner.read_text("input", "input_ids"),
                   inner.read_text("output", ""), inner.read_text("mask", ""))  # fmt: skip
    inner.close()
    return found


def _read_expected(table: "_TomlTable", folder: Path) -> ExpectedFailure | None:
    if "expected" not in table.made:
        return None
    inner = table.read_table("expected")
    found = ExpectedFailure(
        tuple(inner.list_texts("stages")),
        inner.read_text("report"),
        _locate(inner, folder, inner.read_text("mended")),
        _read_hex(inner, "digest", inner.read_text("digest")),
    )
    inner.close()
    if not found.stages:
        raise inner.fault("stages: expected what the names of the stages that fail begin with")
    if "://" not in found.report and not (folder / found.report).is_file():
        raise inner.fault(f"report: expected an address or a file, {found.report} is missing")
    return found


def _read_training(table: "_TomlTable") -> TrainingTerms | None:
    if "training" not in table.made:
        return None
    inner = table.read_table("training")
    recipe = Recipe(
        inner.read_choice("optimizer", OPTIMIZERS),
        inner.read_number("rate", 1e-3),
        inner.read_number("weight_decay", 0.0, least=0.0),
        inner.read_choice("loss", LOSSES),
        inner.read_whole("labels", 0, least=0),
        seed=0,
    )
    found = TrainingTerms(inner.read_whole("steps", 10), recipe)
    inner.close()
    if recipe.loss == "cross_entropy" and recipe.labels < 2:
        raise inner.fault("labels: expected the number of classes that cross_entropy draws from")
    return found


def _require_sense(table: "_TomlTable", terms: Terms) -> Terms:
    """Return the terms if they can be kept."""
    if not terms.inputs:
        raise table.fault("inputs: expected a table for each input of the models")
    if terms.tolerance > 0.1:
        raise table.fault("tolerance: at most 0.1")
    for name in filter(None, (terms.tokens.input, terms.tokens.mask) if terms.tokens else ()):
        if name not in terms.inputs:
            raise table.fault(f"tokens: there is no input {name!r}")
    return terms


def _locate(table: "_TomlTable", folder: Path, name: str) -> Path:
    """Return a file's whole path; its name must stay below the folder."""
    parts = PurePosixPath(name)
    if parts.is_absolute() or ".." in parts.parts or not name:
        raise table.fault(f"{name!r}: expected a file below {folder}")
    return folder.resolve() / parts


def _read_hex(table: "_TomlTable", name: str, value: str) -> str:
    if len(value) != 64 or not _HEX >= {*value}:
        raise table.fault(f"{name}: expected a SHA-256, 64 hexadecimal digits")
    return value


class _TomlTable:
    """A table of the file, which knows what was asked for; the rest is unknown."""

    def __init__(self, path: Path, place: str, made: Any) -> None:
        self.path, self.place, self.made = path, place, made
        self._asked: set[str] = set()
        if not isinstance(made, dict):
            raise ContractError(f"{path}: {place}: expected a table")

    def fault(self, what: str) -> ContractError:
        place = f"{self.place}." if self.place else ""
        return ContractError(f"{self.path}: {place}{what}")

    def get(self, name: str, default: Any, kind: str, fits: Callable[[Any], bool]) -> Any:
        self._asked.add(name)
        value = self.made.get(name, default)
        if value is None:
            raise self.fault(f"{name} is missing: expected {kind}")
        if not fits(value):
            raise self.fault(f"{name}: expected {kind}, got {str(value)[:80]!r}")
        return value

    def read_table(self, name: str, default: Any = None) -> "_TomlTable":
        made = self.get(name, default, "a table", lambda value: isinstance(value, dict))
        return _TomlTable(self.path, f"{self.place}.{name}".lstrip("."), made)

    def read_texts(self) -> dict[str, str]:
        return {name: str(self.get(name, None, "a text", _is_text)) for name in self.made}

    def read_text(self, name: str, default: str | None = None) -> str:
        return str(self.get(name, default, "a text", _is_text))

    def list_texts(self, name: str) -> list[str]:
        def fits(value: Any) -> bool:
            return isinstance(value, list) and all(map(_is_text, value))

        return list(self.get(name, [], "a list of texts", fits))

    def read_choice(self, name: str, known: tuple[str, ...]) -> str:
        first = known[-1] if name == "loss" else known[0]
        return str(self.get(name, first, f"one of {', '.join(known)}", known.__contains__))

    def read_flag(self, name: str) -> bool:
        return bool(self.get(name, False, "true or false", lambda value: isinstance(value, bool)))

    def read_whole(self, name: str, default: int, least: int = 1) -> int:
        def fits(value: Any) -> bool:
            return type(value) is int and least <= value <= 10**6

        return int(self.get(name, default, f"a whole number from {least} on", fits))

    def read_number(self, name: str, default: float, least: float = 1e-15) -> float:
        def fits(value: Any) -> bool:
            return type(value) in (int, float) and least <= value < 1e9

        return float(self.get(name, default, f"a number from {least:g} on", fits))

    def close(self) -> None:
        """Raise ContractError for an entry that nothing asked for: a misspelt one would be a gap."""
        unknown = sorted(self.made.keys() - self._asked)
        if unknown:
            known = ", ".join(sorted(self._asked))
            raise self.fault(f"{unknown[0]} is unknown; known: {known}")


def _is_text(value: object) -> bool:
    return isinstance(value, str)
