"""What the older documents use and is gone."""

import importlib
import tempfile
from pathlib import Path
from typing import Any

from reprod_align.api.entry import Entry, datasets, numbers, paddle, paddlenlp, torch, transformers

import numpy as np

CHINESE = "旧文档使用而今已不存在的接口"


class LoadMetric(Entry):
    """datasets.load_metric is gone since datasets 3: use the evaluate package, torchmetrics, or a line of numpy."""

    chinese = (
        "datasets.load_metric 自 datasets 3 起已移除：用 evaluate、torchmetrics 或一行 numpy。"
    )
    apis = "datasets.load_metric", "paddle.metric.Accuracy"
    sources = ("quick start 5.1.1, 5.1.2", "guide 3.3")
    keywords = "huggingface metric accuracy.py evaluate"
    obsolete = True
    raises = "AttributeError: load_metric"
    tolerance = 1e-7
    because = "paddle.metric computes in float32"

    def torch_side(self) -> Any:
        logits, labels = torch.tensor(numbers(7, 3)), torch.arange(7) % 3
        return float((logits.argmax(-1) == labels).double().mean())

    def paddle_side(self) -> Any:
        metric = paddle.metric.Accuracy()
        metric.update(metric.compute(paddle.to_tensor(numbers(7, 3)), paddle.arange(7) % 3))
        return float(metric.accumulate())

    def plain(self) -> Any:
        return datasets.load_metric("accuracy")


class TransformersAdamw(Entry):
    """transformers.AdamW is gone since transformers 4.50 or so: use torch.optim.AdamW and set eps (it had 1e-6)."""

    chinese = "transformers.AdamW 已移除：用 torch.optim.AdamW 并显式设置 eps（旧类为 1e-6）。"
    apis = "transformers.AdamW", "paddle.optimizer.AdamW"
    sources = ("quick start 1.1, 5.3, 5.5",)
    keywords = "AdamW optimizer eps"
    obsolete = True
    raises = "AttributeError: AdamW"

    def torch_side(self) -> Any:
        return torch.optim.AdamW([torch.nn.Parameter(torch.ones(1))], eps=1e-6).defaults["eps"]

    def paddle_side(self) -> Any:
        held = [paddle.create_parameter([1], "float64")]
        return paddle.optimizer.AdamW(epsilon=1e-6, parameters=held)._epsilon

    def plain(self) -> Any:
        return transformers.AdamW


class CrossEntropyClass(Entry):
    """paddle.nn.CrossEntropy does not exist: use CrossEntropyLoss."""

    chinese = "没有 paddle.nn.CrossEntropy 这个类：应写 CrossEntropyLoss。"
    apis = "torch.nn.CrossEntropyLoss", "paddle.nn.CrossEntropyLoss"
    sources = ("quick start 5.5", "guide 3.8")
    keywords = "criterion loss class"
    obsolete = True
    raises = "AttributeError: CrossEntropy"

    def torch_side(self) -> Any:
        return torch.nn.CrossEntropyLoss()(torch.tensor(numbers(2, 3)), torch.tensor([0, 2]))

    def paddle_side(self) -> Any:
        labels = paddle.to_tensor([0, 2])
        return paddle.nn.CrossEntropyLoss()(paddle.to_tensor(numbers(2, 3)), labels)

    def plain(self) -> Any:
        return paddle.nn.CrossEntropy()


class Fluid(Entry):
    """paddle.fluid is gone: ParamAttr is paddle.ParamAttr, the rest is in paddle, paddle.nn and paddle.static."""

    chinese = "paddle.fluid 已移除：ParamAttr 在 paddle.ParamAttr，其余在 paddle、paddle.nn、paddle.static。"
    apis = "torch.nn.Parameter", "paddle.ParamAttr"
    sources = ("FAQ: not training a layer",)
    keywords = "fluid param_attr ParamAttr"
    obsolete = True
    raises = "AttributeError: fluid"

    def torch_side(self) -> Any:
        return torch.nn.Parameter(torch.ones(1), requires_grad=False).requires_grad

    def paddle_side(self) -> Any:
        return paddle.ParamAttr(trainable=False).trainable

    def plain(self) -> Any:
        return importlib.import_module("paddle").fluid.ParamAttr(trainable=False)


class PyReader(Entry):
    """py_reader is gone: a predictor takes arrays by its input handles, a loader feeds it."""

    chinese = "py_reader 已移除：预测时通过输入句柄传入数组，由 DataLoader 供数。"
    apis = "torch.utils.data.DataLoader", "paddle.io.DataLoader"
    sources = ("FAQ: load_inference_model and py_reader",)
    keywords = "py_reader load_inference_model inference"
    obsolete = True

    def torch_side(self) -> Any:
        return list(torch.utils.data.DataLoader(np.arange(3), batch_size=3))

    def paddle_side(self) -> Any:
        return [paddle.to_tensor(np.arange(3))]

    def plain(self) -> Any:
        places = ("io", "static", "reader")
        return any(hasattr(getattr(paddle, place), "py_reader") for place in places)

    def as_described(self, expected: Any, found: Any) -> bool:
        return not found


class DatasetScripts(Entry):
    """datasets refuses loading scripts such as glue.py since version 4: load files, or a set without a script."""

    chinese = "datasets 4 起不再运行 glue.py 之类的加载脚本：改为加载文件或不含脚本的数据集。"
    apis = 'datasets.load_dataset("glue.py")', "paddlenlp.datasets.load_dataset"
    sources = ("quick start 2.3, 1.1", "guide 3.2")
    keywords = "load_dataset glue chnsenticorp script trust_remote_code"
    obsolete = True
    raises = "RuntimeError: scripts are no longer supported"

    def torch_side(self) -> Any:
        return datasets.Dataset.from_dict({"label": [1, 0]})["label"][0]

    def paddle_side(self) -> Any:
        return paddlenlp.datasets.load_dataset(
            lambda: iter([{"label": 1}, {"label": 0}]), lazy=False
        )[0]["label"]

    def plain(self) -> Any:
        with tempfile.TemporaryDirectory() as folder:
            script = Path(folder) / "glue.py"
            script.write_text("import datasets\n")
            return datasets.load_dataset(str(script))
