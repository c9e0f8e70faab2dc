"""The guide's names of scripts, and ours. A script lies under each of the guide's: it says where to go."""

import shlex
import sys
from pathlib import Path
from typing import Final, NoReturn

REPOSITORY: Final = Path(__file__).resolve().parents[1]
NEW_NAMES: Final = {
    "pipeline/weights/torch_bert_weights.py": ("weights/torch_bert_weight.py",),
    "pipeline/weights/torch_bert_weight.py": ("weights/torch_bert_weight.py",),
    "pipeline/weights/torch2paddle.py": ("weights/torch2paddle.py",),
    "pipeline/classifier_weights/generate_classifier_weights.py": (
        "classifier_weights/generate_classifier_weights.py",
    ),
    "pipeline/fake_data/gen_fake_data.py": ("fake_data/gen_fake_data.py",),
    "pipeline/Step2/test_data.py": (
        "pipeline/Step2/pt_data.py",
        "pipeline/Step2/pd_data.py",
        "pipeline/Step2/check_step2.py",
    ),
    "pipeline/Step2/test_metric.py": (
        "pipeline/Step2/pt_metric.py",
        "pipeline/Step2/pd_metric.py",
        "pipeline/Step2/check_step2.py",
    ),
    "pipeline/Step3/torch_loss.py": ("pipeline/Step3/pt_loss.py",),
    "pipeline/Step3/paddle_loss.py": ("pipeline/Step3/pd_loss.py",),
    "pipeline/Step4/test_bp.py": (
        "pipeline/Step4/pt_bp.py",
        "pipeline/Step4/pd_bp.py",
        "pipeline/Step4/check_step4.py",
    ),
    "pipeline/Step4/test_lr_scheduler.py": (
        "pipeline/Step4/pt_lr_scheduler.py",
        "pipeline/Step4/pd_lr_scheduler.py",
        "pipeline/Step4/check_step4.py",
    ),
    "pipeline/Step5/bert_torch/train.py": ("pipeline/Step5/pt_train.py",),
    "pipeline/Step5/bert_paddle/train.py": ("pipeline/Step5/pd_train.py",),
    "pipeline/Step5/bert_torch/train.sh": ("pipeline/Step5/train_pt.sh",),
    "pipeline/Step5/bert_paddle/train.sh": ("pipeline/Step5/train_pd.sh",),
}
"""the guide's script -> ours, in the order in which to run them"""


def refer(script: str) -> NoReturn:
    """Print, in one line, what to run in place of a script of the guide, and exit with 2."""
    name = Path(script).resolve().relative_to(REPOSITORY).as_posix()
    words = [Path(sys.executable).name if new.endswith(".py") else "sh" for new in NEW_NAMES[name]]
    runs = (f"{word} {shlex.quote(new)}" for word, new in zip(words, NEW_NAMES[name], strict=True))
    print(
        f"{name} has another name here: from the repository's root, {' && '.join(runs)}",
        file=sys.stderr,
    )
    sys.exit(2)
