"""The sources of `benchmarks.ports`, and the port of one of them: NAME ROW.json."""

import importlib.machinery
import json
import sys
import types
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from reprod_align.base.quiet import quieten
from reprod_align.explain.code import Code
from reprod_align.model.side import Inputs
from reprod_align.porting.draft import make_draft
from reprod_align.porting.gathering.gather import write_whole
from reprod_align.porting.gathering.modules import Library
from reprod_align.porting.loop import Outcome
from reprod_align.porting.port import Bench, port
from reprod_align.porting.report import describe
from reprod_align.porting.source import Source, open_source

import numpy as np

_drawn = np.random.default_rng(0)
_normal = _drawn.standard_normal


@dataclass(frozen=True)
class PortCase:
    """A source, the call that makes its model, and inputs."""

    module: str
    call: str
    make_inputs: Callable[[], Inputs]


def _images() -> Inputs:
    return (_normal((2, 3, 32, 32)),)


def _sequences() -> Inputs:
    return (_normal((2, 16, 32)),)


def _tokens() -> Inputs:
    mask = np.array([[1] * 7, [1] * 5 + [0] * 2])
    return {"input_ids": _drawn.integers(0, 50, (2, 7)), "attention_mask": mask}


def _features() -> Inputs:
    return {"hidden_states": _normal((2, 16, 8, 8)), "temb": _normal((2, 24))}


CASES = {
    "nystrom attention": PortCase(
        "nystrom_attention.nystrom_attention",
        "Nystromformer(dim=32, dim_head=8, heads=2, depth=1, num_landmarks=4)",
        _sequences,
    ),
    "conformer block (lucidrains)": PortCase(
        "conformer.conformer",
        "ConformerBlock(dim=32, dim_head=8, heads=2, ff_mult=2, conv_kernel_size=7)",
        _sequences,
    ),
    "conformer (torchaudio)": PortCase(
        "torchaudio.models.conformer",
        "Conformer(input_dim=16, num_heads=2, ffn_dim=32, num_layers=2, depthwise_conv_kernel_size=5)",
        lambda: (_normal((2, 20, 16)), np.array([20, 14])),
    ),
    "DeepSpeech, RNN for CTC": PortCase(
        "torchaudio.models.deepspeech",
        "DeepSpeech(n_feature=16, n_hidden=24, n_class=7)",
        lambda: (_normal((2, 1, 12, 16)),),
    ),
    "ResNet (torchvision)": PortCase(
        "torchvision.models.resnet", "ResNet(BasicBlock, [1, 1, 1, 1], num_classes=5)", _images
    ),
    "DenseNet (torchvision)": PortCase(
        "torchvision.models.densenet", "DenseNet(8, (2, 2), 16, num_classes=5)", _images
    ),
    "ViT (timm)": PortCase(
        "timm.models.vision_transformer",
        "VisionTransformer(img_size=32, patch_size=8, embed_dim=32, depth=2, num_heads=2, num_classes=5)",
        _images,
    ),
    "ViT (vit-pytorch)": PortCase(
        "vit_pytorch.vit",
        "ViT(image_size=32, patch_size=8, num_classes=5, dim=16, depth=2, heads=2, mlp_dim=32, dropout=0.1)",
        _images,
    ),
    "compact transformer (vit-pytorch)": PortCase(
        "vit_pytorch.cct",
        "CCT(img_size=32, embedding_dim=32, n_conv_layers=1, kernel_size=7, stride=2, padding=3, "
        "pooling_kernel_size=3, pooling_stride=2, pooling_padding=1, num_layers=2, num_heads=2, "
        "mlp_ratio=2.0, num_classes=5)",
        _images,
    ),
    "Perceiver": PortCase(
        "perceiver_pytorch.perceiver_pytorch",
        "Perceiver(num_freq_bands=3, depth=1, max_freq=5.0, input_channels=3, num_latents=8, latent_dim=16, "
        "cross_dim_head=8, latent_dim_head=8, latent_heads=2, num_classes=5)",
        lambda: (_normal((2, 12, 12, 3)),),
    ),
    "MLP-Mixer": PortCase(
        "mlp_mixer_pytorch.mlp_mixer_pytorch",
        "MLPMixer(image_size=32, channels=3, patch_size=8, dim=16, depth=2, num_classes=5)",
        _images,
    ),
    "N-BEATS, forecasts": PortCase(
        "nbeats_pytorch.model",
        "NBeatsNet(backcast_length=10, forecast_length=5, hidden_layer_units=16)",
        lambda: (_normal((4, 10)),),
    ),
    "UNet block (diffusers)": PortCase(
        "diffusers.models.unets.unet_2d_blocks",
        "DownBlock2D(in_channels=16, out_channels=16, temb_channels=24, resnet_groups=4)",
        _features,
    ),
    "dense graph convolution (PyG)": PortCase(
        "torch_geometric.nn.dense.dense_gcn_conv",
        "DenseGCNConv(8, 5)",
        lambda: (_normal((2, 6, 8)), (_normal((2, 6, 6)) > 0).astype("float32")),
    ),
    "BERT (transformers)": PortCase(
        "transformers.models.bert.modeling_bert",
        "BertModel(BertConfig(vocab_size=50, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, "
        "intermediate_size=64))",
        _tokens,
    ),
    "decoder (x-transformers)": PortCase(
        "x_transformers.x_transformers",
        "TransformerWrapper(num_tokens=50, max_seq_len=16, attn_layers=Decoder(dim=32, depth=2, heads=2, "
        "attn_dim_head=16))",
        lambda: (_drawn.integers(0, 50, (2, 12)),),
    ),
}


def main(name: str, out: Path) -> None:
    """Port one source and write its row."""
    quieten()
    prepare_packages()
    case = CASES[name]
    path = find_file(case.module)
    source = open_source(path, f"{case.module}:{case.call}")
    inputs = case.make_inputs()
    with TemporaryDirectory() as folder:
        result = port(source, inputs, Path(folder, "out"))
    stage = {"does not import": 0, "does not build": 1}.get(result.verdict, 2)
    row = {
        "name": name,
        "passed": result.passed,
        "verdict": result.verdict,
        "edits": len(result.course.steps),
        "at_once": describe(result.course.first),
        "alone": judge_alone(source, inputs),
        "imports": stage > 0,
        "builds": stage > 1,
        "left": result.left,
    }
    out.write_text(json.dumps(row), encoding="utf-8")


def judge_alone(source: Source, inputs: Inputs) -> str:
    """Return what comes of PaConvert's own output, its relative imports written in full."""
    module = Library().open(source.name)
    assert module is not None
    package = source.name.partition(".")[0]
    draft = make_draft("alone.py", write_whole(module), package)
    if draft.left:  # their lines begin with >>>>>>, for a person to change
        return f"{len(draft.left)} lines not converted"
    with TemporaryDirectory() as folder:
        found: Outcome = Bench(source, inputs, draft, Path(folder))(Code(draft.text))
    return describe(found)


def find_file(module: str) -> Path:
    """Return where a module's source lies; no module but its packages is imported."""
    spec = find_spec(module)
    if spec is None or spec.origin is None:
        raise SystemExit(f"{module} is not installed: see benchmarks/requirements-ports.txt")
    return Path(spec.origin)


def prepare_packages() -> None:
    """Make builds for CUDA importable beside a CPU build of PyTorch: nothing compiled is used here."""
    import torch

    if torch.version.cuda is None:
        library: Any = torch.library.Library("torchvision", "DEF")
        for name in ("nms", "qnms"):
            library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        _kept.append(library)
        for name in ("torchaudio", "torchaudio.models"):  # the packages without their content
            _open_package(name)


_kept: list[Any] = []


def _open_package(name: str) -> None:
    parent, _, last = name.rpartition(".")
    found = importlib.machinery.PathFinder.find_spec(
        name, sys.modules[parent].__path__ if parent else None
    )  # type: ignore[arg-type]
    if found is not None:
        package = types.ModuleType(name)
        package.__path__, package.__spec__ = list(found.submodule_search_locations or []), found
        sys.modules[name] = package


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
