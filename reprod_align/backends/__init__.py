"""One module per framework, the same functions in both: `backends.torch` and `backends.paddle`.

Only the one that is imported needs its framework. Arrays that leave a backend are laid out as
PyTorch lays them out, so that both sides' parameters and gradients compare without a thought:
`paddle.nn.Linear` keeps its weight as (in, out), PyTorch as (out, in).
"""
