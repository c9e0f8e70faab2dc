"""Recurrent layers."""

import subprocess
import sys
from typing import Any

from reprod_align.api.entry import Convention, Entry, filled, numbers, paddle, torch

import numpy as np

CHINESE = "循环网络"

_KINDS = ("LSTM", "GRU", "RNN")


class LstmGates(Entry):
    """The gates have the same order (input, forget, cell, output), the weights the same names and layout."""

    chinese = "门的顺序相同（input、forget、cell、output），权重名与布局也相同，不转置。"
    apis = "torch.nn.LSTM", "paddle.nn.LSTM"
    keywords = "gate order weight_ih_l0 convert"

    def torch_side(self) -> Any:
        layer = filled(torch.nn.LSTM(3, 4, batch_first=True))
        output, (hidden, cell) = layer(torch.tensor(numbers(2, 5, 3)))
        return [output, hidden, cell, list(dict(layer.named_parameters()))]

    def paddle_side(self) -> Any:
        layer = filled(paddle.nn.LSTM(3, 4))
        output, (hidden, cell) = layer(paddle.to_tensor(numbers(2, 5, 3)))
        names = [name for name, _ in layer.named_parameters()]
        return [output, hidden, cell, [name for name in names if not name.startswith("0.")]]


class GruGates(Entry):
    """The gates have the same order (reset, update, new), and the reset gate is applied after the product."""

    chinese = "门的顺序相同（reset、update、new），重置门都作用在矩阵乘之后。"
    apis = "torch.nn.GRU", "paddle.nn.GRU"
    keywords = "gate order reset after"

    def torch_side(self) -> Any:
        layer = filled(torch.nn.GRU(3, 4, batch_first=True))
        return layer(torch.tensor(numbers(2, 5, 3)))

    def paddle_side(self) -> Any:
        return filled(paddle.nn.GRU(3, 4))(paddle.to_tensor(numbers(2, 5, 3)))


class RnnActivation(Entry):
    """nn.RNN is SimpleRNN in Paddle, nonlinearity is activation."""

    chinese = "nn.RNN 在 Paddle 中叫 SimpleRNN，nonlinearity 叫 activation。"
    apis = "torch.nn.RNN(nonlinearity=)", "paddle.nn.SimpleRNN(activation=)"
    keywords = "SimpleRNN tanh relu"
    conventions = {"nonlinearity": Convention("activation")}

    def torch_side(self) -> Any:
        layer = filled(torch.nn.RNN(3, 4, batch_first=True, nonlinearity="relu"))
        return layer(torch.tensor(numbers(2, 5, 3)))

    def paddle_side(self) -> Any:
        return filled(paddle.nn.SimpleRNN(3, 4, activation="relu"))(
            paddle.to_tensor(numbers(2, 5, 3))
        )

    def plain(self) -> Any:
        return filled(paddle.nn.SimpleRNN(3, 4))(paddle.to_tensor(numbers(2, 5, 3)))


class RnnBatchFirst(Entry):
    """Paddle's default is (batch, time), PyTorch's (time, batch): batch_first=False is time_major=True."""

    chinese = "Paddle 默认 (batch, time)，PyTorch 默认 (time, batch)：batch_first=False 即 time_major=True。"
    apis = "torch.nn.LSTM(batch_first=)", "paddle.nn.LSTM(time_major=)"
    keywords = "batch_first time_major layout"
    conventions = {
        "batch_first": Convention(
            "time_major", lambda first: not first, "no fault where the model transposes its tensors to match"
        )
    }  # fmt: skip
    convention_kinds = _KINDS

    def torch_side(self) -> Any:
        return filled(torch.nn.LSTM(3, 4))(torch.tensor(numbers(5, 2, 3)))[0]

    def paddle_side(self) -> Any:
        return filled(paddle.nn.LSTM(3, 4, time_major=True))(paddle.to_tensor(numbers(5, 2, 3)))[0]

    def plain(self) -> Any:
        return filled(paddle.nn.LSTM(3, 4))(paddle.to_tensor(numbers(5, 2, 3)))[0]

    def as_described(self, expected: Any, found: Any) -> bool:
        return bool(found.shape == expected.shape)


class RnnBias(Entry):
    """Without biases (bias_ih_attr=False) Paddle's layers crash the process on a CPU: freeze biases of zero."""

    chinese = "bias=False 对应 bias_ih_attr=False 等，但 CPU 上 Paddle 的循环层没有偏置会使进程崩溃：改用冻结的零偏置。"
    apis = "torch.nn.GRU(bias=)", "paddle.nn.GRU(bias_ih_attr=, bias_hh_attr=)"
    keywords = "bias False segmentation fault crash"
    conventions = {
        "bias": Convention("bias_ih_attr=bias_hh_attr", lambda present: None if present else False)
    }
    convention_kinds = (*_KINDS, "LSTMCell", "GRUCell", "RNNCell")

    def torch_side(self) -> Any:
        layer = filled(torch.nn.GRU(3, 4, batch_first=True, bias=False))
        return layer(torch.tensor(numbers(2, 5, 3)))[0]

    def paddle_side(self) -> Any:
        zero = paddle.nn.initializer.Constant(0.0)
        none = paddle.ParamAttr(initializer=zero, trainable=False)
        layer = paddle.nn.GRU(3, 4, bias_ih_attr=none, bias_hh_attr=none)
        layer.weight_ih_l0.set_value(numbers(12, 3, seed=0) / 2)
        layer.weight_hh_l0.set_value(numbers(12, 4, seed=1) / 2)
        return layer(paddle.to_tensor(numbers(2, 5, 3)))[0]

    def plain(self) -> Any:
        code = "import paddle as p; p.nn.GRU(3, 4, bias_ih_attr=False)(p.ones([2, 5, 3]))"
        return subprocess.run(
            [sys.executable, "-c", code], capture_output=True, timeout=60
        ).returncode

    def as_described(self, expected: Any, found: Any) -> bool:
        return bool(found < 0)  # ended by a signal: in this process it would have been us


class RnnBidirectional(Entry):
    """bidirectional=True is direction="bidirect"; outputs and states of the directions come in the same order."""

    chinese = 'bidirectional=True 写作 direction="bidirect"；两个方向的输出与状态顺序相同。'
    apis = "torch.nn.LSTM(bidirectional=)", "paddle.nn.LSTM(direction=)"
    keywords = "bidirect forward direction num_layers"
    conventions = {
        "bidirectional": Convention("direction", lambda both: "bidirect" if both else "forward")
    }

    def torch_side(self) -> Any:
        layer = filled(torch.nn.LSTM(3, 4, num_layers=2, batch_first=True, bidirectional=True))
        output, states = layer(torch.tensor(numbers(2, 5, 3)))
        return [output, *states]

    def paddle_side(self) -> Any:
        layer = filled(paddle.nn.LSTM(3, 4, num_layers=2, direction="bidirect"))
        output, states = layer(paddle.to_tensor(numbers(2, 5, 3)))
        return [output, *states]


class PackPaddedSequence(Entry):
    """pack_padded_sequence and pad_packed_sequence become sequence_length=; padding's outputs are zero on both."""

    chinese = "pack_padded_sequence 与 pad_packed_sequence 用 sequence_length= 代替；填充位置的输出两边都是零。"
    apis = "torch.nn.utils.rnn.pack_padded_sequence", "paddle.nn.LSTM()(x, sequence_length=)"
    sources = ("guide 4.1.1", "FAQ: pack_padded_sequence")
    keywords = "variable length pad_packed_sequence padding"

    def torch_side(self) -> Any:
        rnn, layer = (
            torch.nn.utils.rnn,
            filled(torch.nn.LSTM(3, 4, batch_first=True, bidirectional=True)),
        )
        packed = rnn.pack_padded_sequence(torch.tensor(numbers(2, 5, 3)), [5, 3], batch_first=True)
        output, (hidden, cell) = layer(packed)
        return [rnn.pad_packed_sequence(output, batch_first=True)[0], hidden, cell]

    def paddle_side(self) -> Any:
        layer = filled(paddle.nn.LSTM(3, 4, direction="bidirect"))
        lengths = paddle.to_tensor([5, 3])
        output, (hidden, cell) = layer(paddle.to_tensor(numbers(2, 5, 3)), sequence_length=lengths)
        return [output, hidden, cell]

    def plain(self) -> Any:
        layer = filled(paddle.nn.LSTM(3, 4, direction="bidirect"))
        output, (hidden, cell) = layer(paddle.to_tensor(numbers(2, 5, 3)))
        return [output, hidden, cell]

    def as_described(self, expected: Any, found: Any) -> bool:
        whole = np.allclose(found[0][0], expected[0][0])
        return bool(whole and not expected[0][1, 3:].any() and found[0][1, 3:].any())


class PadSequence(Entry):
    """Paddle has no pad_sequence: pad each to the longest and stack."""

    chinese = "Paddle 没有 pad_sequence：逐个填充到最长再 stack。"
    apis = "torch.nn.utils.rnn.pad_sequence", "paddle.stack of padded tensors"
    keywords = "padding batch collate"

    def torch_side(self) -> Any:
        rows = [torch.tensor(numbers(length)) for length in (2, 4)]
        return torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)

    def paddle_side(self) -> Any:
        rows = [paddle.to_tensor(numbers(length)) for length in (2, 4)]
        longest = max(len(row) for row in rows)
        return paddle.stack(
            [paddle.concat([row, paddle.zeros([longest - len(row)])]) for row in rows]
        )


class RnnEvalBackward(Entry):
    """Paddle's recurrent layers have no backward in eval mode: train mode with dropout 0 computes the same."""

    chinese = "eval 模式下 Paddle 的循环层不能反向：用 train 模式并把 dropout 设为 0，结果相同。"
    apis = "torch.nn.LSTM().eval()", "paddle.nn.LSTM()"
    keywords = "backward eval gradient"

    def torch_side(self) -> Any:
        layer = filled(torch.nn.LSTM(3, 4, batch_first=True)).eval()
        layer(torch.tensor(numbers(2, 5, 3)))[0].sum().backward()
        return layer.weight_ih_l0.grad

    def paddle_side(self) -> Any:
        layer = filled(paddle.nn.LSTM(3, 4))
        layer(paddle.to_tensor(numbers(2, 5, 3)))[0].sum().backward()
        return layer.weight_ih_l0.grad

    def plain(self) -> Any:
        layer = filled(paddle.nn.LSTM(3, 4))
        layer.eval()
        layer(paddle.to_tensor(numbers(2, 5, 3)))[0].sum().backward()

    raises = "RuntimeError"


class GruBidirectionalGradient(Entry):
    """With initial states and sequence_length Paddle's bidirectional GRU has wrong gradients: use BiRNN of cells."""

    chinese = "双向 GRU 同时给初始状态与 sequence_length 时 Paddle 的梯度是错的：改用由 cell 组成的 BiRNN。"
    apis = "torch.nn.GRU(bidirectional=)", 'paddle.nn.GRU(direction="bidirect")'
    keywords = "wrong gradient initial states sequence_length LSTM"

    def torch_side(self) -> Any:
        layer = filled(torch.nn.GRU(3, 4, batch_first=True, bidirectional=True))
        x = torch.tensor(numbers(2, 5, 3), requires_grad=True)
        packed = torch.nn.utils.rnn.pack_padded_sequence(x, [5, 3], batch_first=True)
        output, _ = layer(packed, torch.tensor(numbers(2, 2, 4)))
        (output.data**2).sum().backward()
        return x.grad

    def paddle_side(self) -> Any:
        cells = [paddle.nn.GRUCell(3, 4), paddle.nn.GRUCell(3, 4)]
        layer = filled(paddle.nn.BiRNN(*cells))
        x = paddle.to_tensor(numbers(2, 5, 3), stop_gradient=False)
        starts, lengths = tuple(paddle.to_tensor(numbers(2, 2, 4))), paddle.to_tensor([5, 3])
        output, _ = layer(x, starts, sequence_length=lengths)  # its padding is not zero
        ((output[0] ** 2).sum() + (output[1, :3] ** 2).sum()).backward()
        return x.grad

    def plain(self) -> Any:
        layer = filled(paddle.nn.GRU(3, 4, direction="bidirect"))
        x = paddle.to_tensor(numbers(2, 5, 3), stop_gradient=False)
        starts, lengths = paddle.to_tensor(numbers(2, 2, 4)), paddle.to_tensor([5, 3])
        starts.stop_gradient = False
        (layer(x, starts, sequence_length=lengths)[0] ** 2).sum().backward()
        return x.grad


class LstmBidirectionalGradient(Entry):
    """With initial states and sequence_length Paddle's bidirectional LSTM has wrong weight gradients: use BiRNN."""

    chinese = "双向 LSTM 同时给初始状态与 sequence_length 时 Paddle 的权重梯度是错的：改用由 cell 组成的 BiRNN。"
    apis = "torch.nn.LSTM(bidirectional=)", 'paddle.nn.LSTM(direction="bidirect")'
    keywords = "wrong gradient initial states sequence_length GRU"

    def torch_side(self) -> Any:
        layer = filled(torch.nn.LSTM(3, 4, batch_first=True, bidirectional=True))
        x, start = torch.tensor(numbers(2, 5, 3)), torch.tensor(numbers(2, 2, 4))
        packed = torch.nn.utils.rnn.pack_padded_sequence(x, [5, 3], batch_first=True)
        output, _ = layer(packed, (start, start))
        (output.data**2).sum().backward()
        return layer.weight_hh_l0.grad, layer.weight_hh_l0_reverse.grad

    def paddle_side(self) -> Any:
        cells = [paddle.nn.LSTMCell(3, 4), paddle.nn.LSTMCell(3, 4)]
        layer = filled(paddle.nn.BiRNN(*cells))
        x, start = paddle.to_tensor(numbers(2, 5, 3)), paddle.to_tensor(numbers(2, 2, 4))
        states, lengths = [(each, each) for each in start], paddle.to_tensor([5, 3])
        output, _ = layer(x, states, sequence_length=lengths)  # its padding is not zero
        ((output[0] ** 2).sum() + (output[1, :3] ** 2).sum()).backward()
        return [cell.weight_hh.grad for cell in cells]

    def plain(self) -> Any:
        layer = filled(paddle.nn.LSTM(3, 4, direction="bidirect"))
        x, start = paddle.to_tensor(numbers(2, 5, 3)), paddle.to_tensor(numbers(2, 2, 4))
        output, _ = layer(x, (start, start), sequence_length=paddle.to_tensor([5, 3]))
        (output**2).sum().backward()
        return layer.weight_hh_l0.grad, layer.weight_hh_l0_reverse.grad


class LstmCell(Entry):
    """Paddle's cell returns (h, (h, c)), PyTorch's (h, c); both take the states as (h, c)."""

    chinese = "Paddle 的 LSTMCell 返回 (h, (h, c))，PyTorch 返回 (h, c)；输入状态两边都是 (h, c)。"
    apis = "torch.nn.LSTMCell", "paddle.nn.LSTMCell"
    keywords = "cell states"

    def torch_side(self) -> Any:
        states = torch.tensor(numbers(2, 4)), torch.tensor(numbers(2, 4, seed=1))
        return filled(torch.nn.LSTMCell(3, 4))(torch.tensor(numbers(2, 3)), states)

    def paddle_side(self) -> Any:
        states = paddle.to_tensor(numbers(2, 4)), paddle.to_tensor(numbers(2, 4, seed=1))
        output, (hidden, cell) = filled(paddle.nn.LSTMCell(3, 4))(
            paddle.to_tensor(numbers(2, 3)), states
        )
        return hidden, cell

    def plain(self) -> Any:
        states = paddle.to_tensor(numbers(2, 4)), paddle.to_tensor(numbers(2, 4, seed=1))
        return filled(paddle.nn.LSTMCell(3, 4))(paddle.to_tensor(numbers(2, 3)), states)
