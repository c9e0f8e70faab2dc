"""The environments of packages that do not install beside the others.

python -m examples.zoo.environments makes them in .zoo/ (a name chooses one; that of paddleformers is made
only when it is named: its kernels need a GPU): each sees the packages of this interpreter's own
environment (PyTorch, Paddle, transformers, PaddleNLP), and has its own in front of them.
"""

import subprocess
import sys
import sysconfig
import venv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).resolve().parents[2] / ".zoo"
# All with --no-deps: what a package asks for beyond these belongs to parts of it that no model here uses.
PACKAGES: Final[Mapping[str, Sequence[str]]] = {
    "diffusers": ("diffusers==0.29.2", "timm==1.0.31", "torchvision==0.28.0",
                  "importlib_metadata==10.2.0", "zipp==4.1.2"),
    "ppdiffusers": ("ppdiffusers==0.29.0", "huggingface_hub==0.25.2", "einops==0.8.2",
                    "ftfy==6.3.1", "omegaconf==2.4.0", "antlr4-python3-runtime==4.9.3",
                    "parameterized==0.9.0", "requests-mock==1.12.1", "paddlesde==0.2.5",
                    "opencv-python-headless==4.14.0.94", "ligo-segments==1.4.0",
                    "hf_transfer==0.1.9", "note-seq==0.0.5", "av==18.1.0"),
    "paddleclas": ("paddleclas==2.6.0", "easydict==1.14", "faiss-cpu==1.15.1", "gast==0.3.3",
                   "opencv-python-headless==4.14.0.94", "ujson==6.1.0"),
    "paddleformers": ("paddleformers==1.2.0", "paddlefleet==0.3.0"),
    "transformers5": ("transformers==5.23.0", "huggingface_hub==2.4.0", "tokenizers==0.23.3"),
    "paddlenlp3": ("paddlenlp==3.0.0b4", "datasets==3.6.0", "pyarrow==20.0.0", "numpy==1.26.4",
                   "pandas==2.3.3", "ml_dtypes==0.6.0", "omegaconf==2.4.0",
                   "antlr4-python3-runtime==4.9.3"),
}  # fmt: skip
NEEDS_GPU: Final = "paddleformers"


def find_python(name: str) -> Path:
    """Return the interpreter of an environment; of "" this one."""
    if not name:
        return Path(sys.executable)
    return FOLDER / name / "bin" / "python"


def make_environment(name: str) -> None:
    """Make an environment with its packages; nothing is downloaded twice."""
    python = find_python(name)
    if not python.exists():
        venv.create(FOLDER / name)
        paths = {"base": str(FOLDER / name), "platbase": str(FOLDER / name)}
        own = Path(sysconfig.get_path("purelib", "venv", vars=paths))
        (own / "shared.pth").write_text(sysconfig.get_path("purelib") + "\n")
    command = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet"]
    subprocess.run([*command, "--no-deps", *PACKAGES[name]], check=True)


if __name__ == "__main__":
    for each in sys.argv[1:] or [name for name in PACKAGES if name != NEEDS_GPU]:
        make_environment(each)
