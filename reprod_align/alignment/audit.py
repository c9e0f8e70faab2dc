"""Compare what the two models' layers and optimizers are set to, before anything is computed."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Final

from reprod_align import api
from reprod_align.api.entry import Convention
from reprod_align.base import PORT, REFERENCE
from reprod_align.base.text import count
from reprod_align.model.settings import (
    FIXED_SETTINGS,
    FUSED_SIZES,
    MAY_COINCIDE,
    OPTIMIZER_WORDS,
    SYNONYMS,
    ModuleSettings,
    OptimizerSettings,
    Values,
    one_if_equal,
)

_RELATIVE: Final = 1e-12  # 1 - 0.9 is not 0.1
_ROUNDED: Final = {"weight_decay": 2.0**-24}  # Paddle's AdamW keeps it as float32
_DIMENSIONS: Final = {"dim", "start_dim", "end_dim"}
_SHOWN: Final = 3  # parameter names in a message
_ONE_SIDED: Final = ("eps", "p", "attn_dropout", "num_heads", "negative_slope")
_SAME_STEP: Final = frozenset({"Adam", "AdamW"})  # their setting `decoupled` tells them apart


@dataclass(frozen=True)
class SettingDifference:
    """One setting of a pair of layers, in PyTorch's vocabulary, that is not the same on both sides.

    `conclusive` is False where the models may still compute the same; the message says when.
    `entry` names the entry of `reprod-align api` that has the convention; "" if none does.
    """

    name: str
    torch_value: Any
    paddle_value: Any
    message: str
    conclusive: bool = True
    entry: str = ""


@dataclass(frozen=True)
class OptimizerDifference:
    """One setting that the optimizers have different for the named parameters, or for the whole model.

    `conclusive` is False where only the steps themselves can tell whether it matters.
    """

    setting: str
    torch_value: Any
    paddle_value: Any
    torch_names: tuple[str, ...]
    paddle_names: tuple[str, ...]
    message: str
    conclusive: bool = True

    @property
    def entry(self) -> str:
        """The entry of `reprod-align api` that tells of the setting; "" if none does."""
        return api.optimizer_settings().get(self.setting, "")


def describe_differences(
    differences: Iterable[SettingDifference | OptimizerDifference], already: str = ""
) -> str:
    """Return the messages in one line, and which entries of the table of APIs to read.

    already: the text that stands before, whose entries are not named again.
    """
    found = list(differences)
    text = "; ".join([*(difference.message for difference in found), *_describe_exchange(found)])
    return text + api.refer_to([difference.entry for difference in found], already)


def _describe_exchange(found: Sequence[SettingDifference | OptimizerDifference]) -> Iterator[str]:
    """Say which two settings have each other's values: numbers, since two switches differ by chance."""
    known = [
        one
        for one in found
        if isinstance(one, SettingDifference) and not isinstance(one.torch_value, (bool, str))
    ]
    for one, other in combinations(known, 2):
        crossed = (one.torch_value, other.paddle_value), (other.torch_value, one.paddle_value)
        if all(_are_equal(*pair) for pair in crossed):
            yield f"{one.name} and {other.name} are exchanged"


def compare_settings(
    torch: ModuleSettings, paddle: ModuleSettings, fused: bool = False
) -> list[SettingDifference]:
    """Return the settings in which a pair of layers differs; one that a side lacks has no effect there.

    User-written layers are compared by attribute name, where both have the attribute. fused: one
    of the layers stands for several of the other side's (query, key and value): sizes are theirs.
    """
    found = _compare_layers(torch, paddle)
    return [difference for difference in found if not (fused and difference.name in FUSED_SIZES)]


def _compare_layers(torch: ModuleSettings, paddle: ModuleSettings) -> list[SettingDifference]:
    if not torch.kind or not paddle.kind:
        return _compare_attributes(torch, paddle)
    if torch.kind != paddle.kind and not _may_coincide(torch, paddle):
        message = (
            f"kind: {_describe_kind(torch)} in {REFERENCE}, {_describe_kind(paddle)} in {PORT}"
        )
        return [SettingDifference("kind", torch.kind, paddle.kind, message)]
    return [
        _note_setting(PORT.choose(torch, paddle), name, torch.values[name], paddle.values[name])
        for name in torch.values
        if name in paddle.values and not _are_equal(torch.values[name], paddle.values[name])
    ]


def compare_optimizers(
    torch: OptimizerSettings, paddle: OptimizerSettings, names: Mapping[str, str]
) -> list[OptimizerDifference]:
    """Return how the optimizers' treatment of the paired parameters (PyTorch's name: Paddle's) differs.

    Parameters with the same difference are named together.
    """
    differences = _compare_kinds(torch, paddle) + _compare_clips(torch, paddle)
    differences += _compare_held(torch, paddle, names)
    found: dict[tuple[str, Any, Any], list[str]] = defaultdict(list)
    both = [name for name in names if name in torch.parameters and names[name] in paddle.parameters]
    for name in both:
        for difference in _compare_parameters(
            torch.parameters[name], paddle.parameters[names[name]]
        ):
            found[difference].append(name)
    return differences + [
        _note_optimizer_setting(difference, concerned, names, len(both))
        for difference, concerned in found.items()
    ]


def _may_coincide(torch: ModuleSettings, paddle: ModuleSettings) -> bool:
    kinds = {torch.kind, paddle.kind}
    return any(kinds <= group for group in MAY_COINCIDE) or (_idle(torch) and _idle(paddle))


def _idle(settings: ModuleSettings) -> bool:
    dropout = "Dropout" in settings.kind and settings.values["p"] == 0
    return settings.kind == "Identity" or dropout


def _describe_kind(settings: ModuleSettings) -> str:
    if settings.class_name.lower() == settings.kind.lower():
        return settings.kind
    return f"{settings.class_name} ({settings.kind})"


def _are_equal(torch_value: Any, paddle_value: Any, relative: float = _RELATIVE) -> bool:
    if isinstance(torch_value, tuple) and isinstance(paddle_value, tuple):
        return len(torch_value) == len(paddle_value) and all(
            _are_equal(one, other, relative)
            for one, other in zip(torch_value, paddle_value, strict=True)
        )
    if _is_number(torch_value) and _is_number(paddle_value):
        largest = max(abs(torch_value), abs(paddle_value))
        return bool(
            torch_value == paddle_value or abs(torch_value - paddle_value) <= relative * largest
        )
    return bool(torch_value == paddle_value)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _note_setting(
    in_paddle: ModuleSettings, name: str, torch_value: Any, paddle_value: Any
) -> SettingDifference:
    convention, entry = api.find_convention(in_paddle.kind, name)
    doubt = convention.doubt
    if in_paddle.convention:  # the layer writes it as PyTorch does
        convention, entry = Convention(name), ""
    if name in _DIMENSIONS and not _signs_differ(torch_value, paddle_value):
        doubt = ""
    message = _describe_setting(name, convention, torch_value, paddle_value)
    message += f" ({doubt})" if doubt else ""
    return SettingDifference(name, torch_value, paddle_value, message, not doubt, entry)


def _signs_differ(torch_dim: Any, paddle_dim: Any) -> bool:
    return torch_dim is None or (torch_dim < 0) != (paddle_dim < 0)


def _describe_setting(
    name: str, convention: Convention, torch_value: Any, paddle_value: Any
) -> str:
    argument, own = convention.argument, convention.from_torch or _as_it_is
    theirs, ours = _show(torch_value), _show(paddle_value)
    if PORT.framework == "torch":  # the values are in PyTorch's vocabulary
        written = theirs if convention.from_torch is None else _show(own(torch_value))
        written = written if argument in (name, "") else f"{argument}={written}"
        return f"{name}: Paddle {written}, PyTorch {ours}; set {name}={theirs} in PyTorch"
    if not argument:
        return f"{name}: PyTorch {theirs}, Paddle {ours}, where it cannot be set"
    advice = f"set {argument}={_show(own(torch_value))} in Paddle"
    if convention.from_torch is None:
        return f"{name}: PyTorch {theirs}, Paddle {ours}; {advice}"
    written = _show(own(paddle_value))
    written = written if argument == name else f"{argument}={written}"
    meaning = f"which means {name}={ours} in PyTorch"
    return f"{name}: PyTorch {theirs}, Paddle {written}, {meaning}; {advice}"


def _as_it_is(value: Any) -> Any:
    return value


def _show(value: Any) -> str:
    if isinstance(value, tuple) and len(value) > 8:
        return f"{len(value)} values"
    if isinstance(value, tuple):
        return "(" + ", ".join(_show(item) for item in value) + ")"
    return f"{value:.12g}" if isinstance(value, float) else repr(value)


def _compare_attributes(torch: ModuleSettings, paddle: ModuleSettings) -> list[SettingDifference]:
    user_written = not torch.kind and not paddle.kind
    settings = _pair_synonyms(torch.values, paddle.values, SYNONYMS if user_written else _ONE_SIDED)
    if user_written:
        settings |= {(name, name): name for name in torch.values if name in paddle.values}
    return [
        _attribute_difference(setting, *names, torch.values[names[0]], paddle.values[names[1]])
        for names, setting in settings.items()
        if not _are_equal(
            one_if_equal(torch.values[names[0]]), one_if_equal(paddle.values[names[1]])
        )
        and not (
            setting == "scale" and _are_inverse(torch.values[names[0]], paddle.values[names[1]])
        )
    ]


def _are_inverse(one: Any, other: Any) -> bool:
    """Tell whether one side may multiply by what the other divides by."""
    return _is_number(one) and _is_number(other) and bool(one) and _are_equal(1 / one, other)


def _pair_synonyms(
    torch: Values, paddle: Values, settings: Iterable[str]
) -> dict[tuple[str, str], str]:
    pairs = {}
    for setting in settings:
        theirs, ours = SYNONYMS[setting] & torch.keys(), SYNONYMS[setting] & paddle.keys()
        if len(theirs) == 1 and len(ours) == 1:  # with two of a kind nobody knows which is meant
            pairs[min(theirs), min(ours)] = setting
    return pairs


def _attribute_difference(
    setting: str, torch_name: str, paddle_name: str, torch_value: Any, paddle_value: Any
) -> SettingDifference:
    theirs, ours = _show(torch_value), _show(paddle_value)
    if torch_name != paddle_name:
        theirs, ours = f"{torch_name}={theirs}", f"{paddle_name}={ours}"
    doubt = _attribute_doubt(setting, torch_value, paddle_value)
    message = f"{setting}: {REFERENCE} {theirs}, {PORT} {ours}" + (f" ({doubt})" if doubt else "")
    _, entry = api.find_convention("", setting)
    return SettingDifference(setting, torch_value, paddle_value, message, not doubt, entry)


def _attribute_doubt(setting: str, torch_value: Any, paddle_value: Any) -> str:
    if not (_is_number(torch_value) and _is_number(paddle_value)):
        return "no fault where the two classes use it differently"
    if setting == "momentum" and _are_equal(torch_value, 1 - paddle_value):
        return "no fault where each class counts momentum as its framework does"
    return ""


def _compare_kinds(
    torch: OptimizerSettings, paddle: OptimizerSettings
) -> list[OptimizerDifference]:
    kinds = {torch.kind, paddle.kind}
    if len(kinds) == 1 and "" not in kinds or kinds == _SAME_STEP:
        return []
    known = "" not in kinds
    message = f"kind: {torch.class_name} in {REFERENCE}, {paddle.class_name} in {PORT}"
    message += "" if known else ": of an unknown class only the learning rate can be compared"
    return [OptimizerDifference("kind", torch.kind, paddle.kind, (), (), message, known)]


def _compare_clips(
    torch: OptimizerSettings, paddle: OptimizerSettings
) -> list[OptimizerDifference]:
    if torch.clip is None and paddle.clip is None:
        return []
    hook, known = PORT.choose((paddle.clip, torch.clip), (torch.clip, paddle.clip))
    ours = "does not clip gradients" if known is None else f"clips {_describe_clip(known)}"
    if hook is None:
        message = f"clip: Paddle's optimizer {ours}; PyTorch's side does not"
    else:
        message = (
            f"clip: PyTorch's optimizer has a {hook['kind']}, which may clip gradients and "
            f"cannot be compared; Paddle's optimizer {ours}"
        )
    conclusive = hook is None
    return [OptimizerDifference("clip", torch.clip, paddle.clip, (), (), message, conclusive)]


def _describe_clip(clip: Values) -> str:
    numbers = [f"{_show(value)}" for name, value in clip.items() if name != "kind"]
    return " ".join([f"gradients by {clip['kind']}", " to ".join(numbers)]).strip()


def _compare_held(
    torch: OptimizerSettings, paddle: OptimizerSettings, names: Mapping[str, str]
) -> list[OptimizerDifference]:
    ours = {name: paddle.parameters.get(own) for name, own in names.items()}
    theirs = {name: torch.parameters.get(name) for name in names}
    paddle_lacks = tuple(name for name in names if _trains(theirs[name]) and ours[name] is None)
    torch_lacks = tuple(name for name in names if _trains(ours[name]) and theirs[name] is None)
    differences = []
    if paddle_lacks:
        own = tuple(names[name] for name in paddle_lacks)
        message = f"missing: the {PORT} optimizer does not hold {_join_names(own)}"
        differences.append(OptimizerDifference("missing", True, False, paddle_lacks, own, message))
    if torch_lacks:
        own = tuple(names[name] for name in torch_lacks)
        message = f"missing: the {REFERENCE} optimizer does not hold {_join_names(torch_lacks)}"
        differences.append(OptimizerDifference("missing", False, True, torch_lacks, own, message))
    return differences


def _trains(settings: Values | None) -> bool:
    return settings is not None and not settings["frozen"]


def _compare_parameters(torch: Values, paddle: Values) -> list[tuple[str, Any, Any]]:
    if torch["frozen"] or paddle["frozen"]:
        return []
    return [
        (name, torch[name], paddle[name])
        for name in torch
        if name in paddle
        and not _are_equal(torch[name], paddle[name], _ROUNDED.get(name, _RELATIVE))
    ]


def _note_optimizer_setting(
    difference: tuple[str, Any, Any], concerned: Sequence[str], names: Mapping[str, str], held: int
) -> OptimizerDifference:
    setting = difference[0]
    own = tuple(names[name] for name in concerned)
    message = _describe_optimizer_setting(*difference, own, held)
    return OptimizerDifference(
        *difference, tuple(concerned), own, message, setting not in FIXED_SETTINGS
    )


def _describe_optimizer_setting(
    setting: str, torch_value: Any, paddle_value: Any, own: Sequence[str], held: int
) -> str:
    some = f"{_counted(own)} ({_join_names(own)})"
    if setting == "weight_decay" and not torch_value:
        return (
            f"weight_decay: {PORT} decays {some} by {_show(paddle_value)} that {REFERENCE} does not"
        )
    if setting == "weight_decay" and not paddle_value:
        return (
            f"weight_decay: {REFERENCE} decays {some} by {_show(torch_value)} that {PORT} does not"
        )
    argument = PORT.choose("", api.optimizer_arguments().get(setting, ""))
    theirs, ours = _say_value(setting, torch_value), _say_value(setting, paddle_value)
    values = f"{theirs} in {REFERENCE}, {ours} in {PORT}"
    message = f"{setting}: {values}" + (f" (its {argument})" if argument else "")
    return message if len(own) == held else f"{message}, for {some}"


def _say_value(setting: str, value: Any) -> str:
    return OPTIMIZER_WORDS.get((setting, value), _show(value))


def _counted(names: Sequence[str]) -> str:
    return count(len(names), "parameter")


def _join_names(names: Sequence[str]) -> str:
    return ", ".join(names[:_SHOWN]) + (", ..." if len(names) > _SHOWN else "")
