"""What PyTorch's calls are in Paddle where name, arguments or meaning differ: one line each.

`port` writes by it, and `reprod-align api` shows it.

`torch.f(a, b=1) = paddle.g(a, axis=b)`: the left side names PyTorch's arguments, the right side is code in
them. A keyword of the right side whose arguments are not given is left out; a default on the left side is
written where the argument is not given, since Paddle's differs. `*args` takes the positions that are left.
`#` stands for 1, 2 and 3. Several rows of one name are tried in turn, after Paddle's own of the same name;
with `:=` in place of `=` before it. Arguments that no right side names (device, inplace) mean nothing to Paddle.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Final

LAYERS: Final = """
torch.nn.Module() = paddle.nn.Layer()
torch.nn.ModuleList(modules) = paddle.nn.LayerList(modules)
torch.nn.ModuleDict(modules) = paddle.nn.LayerDict(modules)
torch.nn.Linear(in_features, out_features, bias) = paddle.nn.Linear(in_features, out_features, bias_attr=None if bias else False)
torch.nn.KLDivLoss(size_average, reduce, reduction, log_target) = paddle.nn.KLDivLoss(reduction=reduction, log_target=log_target)
torch.nn.Embedding(num_embeddings, embedding_dim, padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse, _weight) = paddle.nn.Embedding(num_embeddings, embedding_dim, padding_idx=padding_idx, max_norm=max_norm, norm_type=norm_type, scale_grad_by_freq=scale_grad_by_freq, sparse=sparse, weight_attr=paddle.nn.initializer.Assign(_weight))
torch.nn.Conv#d(in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias, padding_mode) = paddle.nn.Conv#D(in_channels, out_channels, kernel_size, stride=stride, padding=padding, dilation=dilation, groups=groups, padding_mode=padding_mode, bias_attr=None if bias else False)
torch.nn.Conv#d(in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias, padding_mode) = paddle.nn.Conv#D(in_channels, out_channels, kernel_size, stride=stride, padding=kernel_size // 2, groups=groups, padding_mode=padding_mode, bias_attr=None if bias else False)
torch.nn.Conv#d(in_channels, out_channels, kernel_size, stride, padding, dilation=1, groups, bias, padding_mode) = paddle.nn.Conv#D(in_channels, out_channels, kernel_size, stride=stride, padding=dilation * (kernel_size - 1) // 2, dilation=dilation, groups=groups, padding_mode=padding_mode, bias_attr=None if bias else False)
torch.nn.Conv#d(in_channels, out_channels, kernel_size, stride, padding, dilation=1, groups, bias, padding_mode) = paddle.nn.Conv#D(in_channels, out_channels, kernel_size, stride=stride, padding=[dilation * (one - 1) // 2 for one in kernel_size], dilation=dilation, groups=groups, padding_mode=padding_mode, bias_attr=None if bias else False)
torch.nn.ConvTranspose#d(in_channels, out_channels, kernel_size, stride, padding, output_padding, groups, bias, dilation) = paddle.nn.Conv#DTranspose(in_channels, out_channels, kernel_size, stride=stride, padding=padding, output_padding=output_padding, groups=groups, bias_attr=None if bias else False, dilation=dilation)
torch.nn.BatchNorm#d(num_features, eps, momentum, affine, track_running_stats) = paddle.nn.BatchNorm#D(num_features, epsilon=eps, momentum=1 - momentum, weight_attr=None if affine else False, bias_attr=None if affine else False, use_global_stats=None if track_running_stats else False)
torch.nn.BatchNorm#d(num_features, eps, momentum, affine) = average_statistics(paddle.nn.BatchNorm#D(num_features, epsilon=eps, weight_attr=None if affine else False, bias_attr=None if affine else False))
torch.nn.SyncBatchNorm(num_features, eps, momentum, affine) = paddle.nn.SyncBatchNorm(num_features, epsilon=eps, momentum=1 - momentum, weight_attr=None if affine else False, bias_attr=None if affine else False)
torch.nn.InstanceNorm#d(num_features, eps, momentum, affine=False) = paddle.nn.InstanceNorm#D(num_features, epsilon=eps, momentum=1 - momentum, weight_attr=None if affine else False, bias_attr=None if affine else False)
torch.nn.LayerNorm(normalized_shape, eps, elementwise_affine, bias) = paddle.nn.LayerNorm(normalized_shape, epsilon=eps, elementwise_affine=elementwise_affine, bias=bias)
torch.nn.GroupNorm(num_groups, num_channels, eps, affine) = paddle.nn.GroupNorm(num_groups, num_channels, epsilon=eps, affine=affine)
torch.nn.MaxPool#d(kernel_size, stride, padding, dilation, return_indices, ceil_mode) = paddle.nn.MaxPool#D(kernel_size, stride=stride, padding=padding, return_mask=return_indices, ceil_mode=ceil_mode)
torch.nn.AvgPool1d(kernel_size, stride, padding, ceil_mode, count_include_pad=True) = paddle.nn.AvgPool1D(kernel_size, stride=stride, padding=padding, ceil_mode=ceil_mode, exclusive=not count_include_pad)
torch.nn.AvgPool2d(kernel_size, stride, padding, ceil_mode, count_include_pad=True, divisor_override) = paddle.nn.AvgPool2D(kernel_size, stride=stride, padding=padding, ceil_mode=ceil_mode, exclusive=not count_include_pad, divisor_override=divisor_override)
torch.nn.AvgPool3d(kernel_size, stride, padding, ceil_mode, count_include_pad=True, divisor_override) = paddle.nn.AvgPool3D(kernel_size, stride=stride, padding=padding, ceil_mode=ceil_mode, exclusive=not count_include_pad, divisor_override=divisor_override)
torch.nn.AdaptiveAvgPool#d(output_size) = paddle.nn.AdaptiveAvgPool#D(output_size)
torch.nn.AdaptiveMaxPool#d(output_size, return_indices) = paddle.nn.AdaptiveMaxPool#D(output_size, return_mask=return_indices)
torch.nn.MaxUnpool#d(kernel_size, stride, padding) = paddle.nn.MaxUnPool#D(kernel_size, stride=stride, padding=padding)
torch.nn.Dropout(p, inplace) = paddle.nn.Dropout(p)
torch.nn.Dropout1d(p, inplace) = paddle.nn.Dropout(p, axis=[0, 1])
torch.nn.Dropout2d(p, inplace) = paddle.nn.Dropout2D(p)
torch.nn.Dropout3d(p, inplace) = paddle.nn.Dropout3D(p)
torch.nn.AlphaDropout(p, inplace) = paddle.nn.AlphaDropout(p)
torch.nn.ReLU(inplace) = paddle.nn.ReLU()
torch.nn.ReLU6(inplace) = paddle.nn.ReLU6()
torch.nn.SiLU(inplace) = paddle.nn.Silu()
torch.nn.Mish(inplace) = paddle.nn.Mish()
torch.nn.SELU(inplace) = paddle.nn.SELU()
torch.nn.ELU(alpha, inplace) = paddle.nn.ELU(alpha)
torch.nn.CELU(alpha, inplace) = paddle.nn.CELU(alpha)
torch.nn.LeakyReLU(negative_slope, inplace) = paddle.nn.LeakyReLU(negative_slope)
torch.nn.Hardswish(inplace) = paddle.nn.Hardswish()
torch.nn.Hardsigmoid(inplace) = paddle.nn.Hardsigmoid()
torch.nn.Hardtanh(min_val, max_val, inplace) = paddle.nn.Hardtanh(min=min_val, max=max_val)
torch.nn.Threshold(threshold, value, inplace) = paddle.nn.ThresholdedReLU(threshold, value)
torch.nn.Softshrink(lambd) = paddle.nn.Softshrink(lambd)
torch.nn.PReLU(num_parameters, init) = paddle.nn.PReLU(num_parameters=num_parameters, init=init)
torch.nn.RReLU(lower, upper, inplace) = paddle.nn.RReLU(lower=lower, upper=upper)
torch.nn.Softmax(dim) = paddle.nn.Softmax(axis=dim)
torch.nn.Softmax2d() = paddle.nn.Softmax(axis=-3)
torch.nn.LogSoftmax(dim) = paddle.nn.LogSoftmax(axis=dim)
torch.nn.GLU(dim) = paddle.nn.GLU(axis=dim)
torch.nn.Flatten(start_dim, end_dim) = paddle.nn.Flatten(start_axis=start_dim, stop_axis=end_dim)
torch.nn.PixelShuffle(upscale_factor) = paddle.nn.PixelShuffle(upscale_factor)
torch.nn.Upsample(size, scale_factor, mode, align_corners) = paddle.nn.Upsample(size=size, scale_factor=scale_factor, mode=mode, align_corners=align_corners)
torch.nn.Upsample(size, scale_factor, mode, align_corners) = paddle.nn.Upsample(size=size, scale_factor=scale_factor, mode=mode, align_corners=bool(align_corners))
torch.nn.UpsamplingNearest2d(size, scale_factor) = paddle.nn.UpsamplingNearest2D(size=size, scale_factor=scale_factor)
torch.nn.UpsamplingBilinear2d(size, scale_factor) = paddle.nn.UpsamplingBilinear2D(size=size, scale_factor=scale_factor)
torch.nn.ZeroPad2d(padding) = paddle.nn.ZeroPad2D(padding)
torch.nn.ConstantPad#d(padding, value) = paddle.nn.Pad#D(padding, value=value)
torch.nn.ReflectionPad1d(padding) = paddle.nn.Pad1D(padding, mode="reflect")
torch.nn.ReflectionPad2d(padding) = paddle.nn.Pad2D(padding, mode="reflect")
torch.nn.ReflectionPad3d(padding) = paddle.nn.Pad3D(padding, mode="reflect")
torch.nn.ReplicationPad#d(padding) = paddle.nn.Pad#D(padding, mode="replicate")
torch.nn.CircularPad#d(padding) = paddle.nn.Pad#D(padding, mode="circular")
torch.nn.Unfold(kernel_size, dilation, padding, stride) = paddle.nn.Unfold(kernel_size, dilations=dilation, paddings=padding, strides=stride)
torch.nn.Fold(output_size, kernel_size, dilation, padding, stride) = paddle.nn.Fold(output_size, kernel_size, dilations=dilation, paddings=padding, strides=stride)
torch.nn.Bilinear(in1_features, in2_features, out_features, bias) = paddle.nn.Bilinear(in1_features, in2_features, out_features, bias_attr=None if bias else False)
torch.nn.CosineSimilarity(dim, eps) = paddle.nn.CosineSimilarity(axis=dim, eps=eps)
torch.nn.LSTM(input_size, hidden_size, num_layers, bias, batch_first=False, dropout, bidirectional, proj_size) = paddle.nn.LSTM(input_size, hidden_size, num_layers=num_layers, proj_size=proj_size, direction="bidirect" if bidirectional else "forward", time_major=not batch_first, dropout=dropout, bias_ih_attr=None if bias else False, bias_hh_attr=None if bias else False)
torch.nn.LSTM(input_size, hidden_size, num_layers, bias, batch_first=False, dropout, bidirectional, proj_size) = drop_biases(paddle.nn.LSTM(input_size, hidden_size, num_layers=num_layers, proj_size=proj_size, direction="bidirect" if bidirectional else "forward", time_major=not batch_first, dropout=dropout))
torch.nn.GRU(input_size, hidden_size, num_layers, bias, batch_first=False, dropout, bidirectional) = paddle.nn.GRU(input_size, hidden_size, num_layers=num_layers, direction="bidirect" if bidirectional else "forward", time_major=not batch_first, dropout=dropout, bias_ih_attr=None if bias else False, bias_hh_attr=None if bias else False)
torch.nn.GRU(input_size, hidden_size, num_layers, bias, batch_first=False, dropout, bidirectional) = drop_biases(paddle.nn.GRU(input_size, hidden_size, num_layers=num_layers, direction="bidirect" if bidirectional else "forward", time_major=not batch_first, dropout=dropout))
torch.nn.RNN(input_size, hidden_size, num_layers, nonlinearity, bias, batch_first=False, dropout, bidirectional) = paddle.nn.SimpleRNN(input_size, hidden_size, num_layers=num_layers, activation=nonlinearity, direction="bidirect" if bidirectional else "forward", time_major=not batch_first, dropout=dropout, bias_ih_attr=None if bias else False, bias_hh_attr=None if bias else False)
torch.nn.RNN(input_size, hidden_size, num_layers, nonlinearity, bias, batch_first=False, dropout, bidirectional) = drop_biases(paddle.nn.SimpleRNN(input_size, hidden_size, num_layers=num_layers, activation=nonlinearity, direction="bidirect" if bidirectional else "forward", time_major=not batch_first, dropout=dropout))
torch.nn.MultiheadAttention(embed_dim, num_heads, dropout, bias, add_bias_kv, add_zero_attn, kdim, vdim, batch_first) = paddle.compat.nn.MultiheadAttention(embed_dim, num_heads, dropout=dropout, bias=bias, add_bias_kv=add_bias_kv, add_zero_attn=add_zero_attn, kdim=kdim, vdim=vdim, batch_first=batch_first)
torch.nn.CrossEntropyLoss(weight, size_average, ignore_index, reduce, reduction, label_smoothing) = paddle.nn.CrossEntropyLoss(weight=weight, ignore_index=ignore_index, reduction=reduction, label_smoothing=label_smoothing)
torch.nn.CrossEntropyLoss(weight, size_average, ignore_index, reduce, reduction, label_smoothing) = paddle.nn.CrossEntropyLoss(weight=weight, ignore_index=ignore_index, reduction=reduction, axis=1, label_smoothing=label_smoothing)
torch.nn.NLLLoss(weight, size_average, ignore_index, reduce, reduction) = paddle.nn.NLLLoss(weight=weight, ignore_index=ignore_index, reduction=reduction)
torch.nn.MSELoss(size_average, reduce, reduction) = paddle.nn.MSELoss(reduction=reduction)
torch.nn.L1Loss(size_average, reduce, reduction) = paddle.nn.L1Loss(reduction=reduction)
torch.nn.BCELoss(weight, size_average, reduce, reduction) = paddle.nn.BCELoss(weight=weight, reduction=reduction)
torch.nn.HuberLoss(reduction, delta) = paddle.nn.SmoothL1Loss(reduction=reduction, delta=delta)
torch.nn.SmoothL1Loss(size_average, reduce, reduction, beta) = paddle.nn.SmoothL1Loss(reduction=reduction, delta=beta, is_huber=False)
"""

FUNCTIONS: Final = """
torch.nn.functional.dropout(input, p=0.5, training=True, inplace) = paddle.nn.functional.dropout(input, p=p, training=training)
torch.nn.functional.dropout1d(input, p=0.5, training=True, inplace) = paddle.nn.functional.dropout(input, p=p, axis=[0, 1], training=training)
torch.nn.functional.dropout2d(input, p=0.5, training=True, inplace) = paddle.nn.functional.dropout2d(input, p=p, training=training)
torch.nn.functional.softmax(input, dim, _stacklevel, dtype) := paddle.nn.functional.softmax(input, axis=dim, dtype=dtype)
torch.nn.functional.log_softmax(input, dim, _stacklevel, dtype) := paddle.nn.functional.log_softmax(input, axis=dim, dtype=dtype)
torch.softmax(input, dim, dtype) := paddle.nn.functional.softmax(input, axis=dim, dtype=dtype)
torch.log_softmax(input, dim, dtype) = paddle.nn.functional.log_softmax(input, axis=dim, dtype=dtype)
Tensor.softmax(dim, dtype) = paddle.nn.functional.softmax(self, axis=dim, dtype=dtype)
torch.nn.functional.log_softmax(input, dim, _stacklevel) = input - paddle.logsumexp(input, axis=dim, keepdim=True)
torch.log_softmax(input, dim) = input - paddle.logsumexp(input, axis=dim, keepdim=True)
Tensor.log_softmax(dim, dtype) = paddle.nn.functional.log_softmax(self, axis=dim, dtype=dtype)
torch.nn.functional.relu(input, inplace) = paddle.nn.functional.relu(input)
torch.nn.functional.relu6(input, inplace) = paddle.nn.functional.relu6(input)
torch.nn.functional.silu(input, inplace) = paddle.nn.functional.silu(input)
torch.nn.functional.mish(input, inplace) = paddle.nn.functional.mish(input)
torch.nn.functional.elu(input, alpha, inplace) = paddle.nn.functional.elu(input, alpha=alpha)
torch.nn.functional.elu(input, alpha=1.0, inplace) = paddle.where(input > 0, input, alpha * paddle.expm1(input.clip(max=0)))
torch.nn.functional.leaky_relu(input, negative_slope, inplace) = paddle.nn.functional.leaky_relu(input, negative_slope=negative_slope)
torch.nn.functional.hardtanh(input, min_val, max_val, inplace) = paddle.nn.functional.hardtanh(input, min=min_val, max=max_val)
torch.nn.functional.hardtanh(input, min_val=-1.0, max_val=1.0, inplace) = paddle.clip(input, min_val, max_val)
torch.nn.functional.hardswish(input, inplace) = paddle.nn.functional.hardswish(input)
torch.nn.functional.hardsigmoid(input, inplace) = paddle.nn.functional.hardsigmoid(input)
torch.nn.functional.hardsigmoid(input, inplace) = hardsigmoid_in_dtype(input)
torch.nn.functional.softshrink(input, lambd=0.5) = paddle.sign(input) * paddle.nn.functional.relu(input.abs() - lambd)
torch.nn.functional.adaptive_avg_pool1d(input, output_size) = input.mean(axis=-1, keepdim=True)
torch.nn.functional.adaptive_avg_pool2d(input, output_size) = input.mean(axis=[-2, -1], keepdim=True)
torch.nn.functional.adaptive_avg_pool3d(input, output_size) = input.mean(axis=[-3, -2, -1], keepdim=True)
torch.nn.functional.glu(input, dim) = paddle.nn.functional.glu(input, axis=dim)
torch.nn.functional.linear(input, weight, bias) = paddle.compat.nn.functional.linear(input, weight, bias)
torch.nn.functional.linear(input, weight, bias) = paddle.nn.functional.linear(input, weight, bias)
torch.nn.functional.layer_norm(input, normalized_shape, weight=None, bias=None, eps) = paddle.nn.functional.layer_norm(input, normalized_shape, weight=weight, bias=bias, epsilon=eps)
torch.nn.functional.group_norm(input, num_groups, weight=None, bias=None, eps) = paddle.nn.functional.group_norm(input, num_groups, weight=weight, bias=bias, epsilon=eps)
torch.nn.functional.layer_norm(input, normalized_shape, weight, bias, eps) = paddle.nn.functional.layer_norm(input, normalized_shape, epsilon=eps) * weight + bias
torch.nn.functional.layer_norm(input, normalized_shape, weight, bias, eps) = paddle.nn.functional.layer_norm(input, normalized_shape, epsilon=eps) * weight
torch.nn.functional.group_norm(input, num_groups, weight, bias, eps) = paddle.nn.functional.group_norm(input, num_groups, weight=paddle.ones([input.shape[1]], input.dtype), bias=paddle.zeros([input.shape[1]], input.dtype), epsilon=eps)
torch.nn.functional.batch_norm(input, running_mean, running_var, weight, bias, training=False, momentum=0.1, eps) = paddle.nn.functional.batch_norm(input, running_mean, running_var, weight, bias, training=training, momentum=1 - momentum, epsilon=eps)
torch.nn.functional.batch_norm(input, running_mean=None, running_var=None, weight=None, bias=None, training=True, momentum, eps) = paddle.nn.functional.batch_norm(input, paddle.zeros([input.shape[1]], input.dtype), paddle.ones([input.shape[1]], input.dtype), weight, bias, training=True, epsilon=eps)
torch.nn.functional.normalize(input, p, dim, eps) = paddle.nn.functional.normalize(input, p=p, axis=dim, epsilon=eps)
torch.nn.functional.normalize(input, p=2.0, dim=1, eps=1e-12) = input / paddle.linalg.norm(input, p=p, axis=dim, keepdim=True).clip(min=eps)
torch.nn.functional.max_pool#d(input, kernel_size, stride, padding, dilation, ceil_mode, return_indices) = paddle.nn.functional.max_pool#d(input, kernel_size, stride=stride, padding=padding, ceil_mode=ceil_mode, return_mask=return_indices)
torch.nn.functional.avg_pool1d(input, kernel_size, stride, padding, ceil_mode, count_include_pad=True) = paddle.nn.functional.avg_pool1d(input, kernel_size, stride=stride, padding=padding, ceil_mode=ceil_mode, exclusive=not count_include_pad)
torch.nn.functional.avg_pool2d(input, kernel_size, stride, padding, ceil_mode, count_include_pad=True, divisor_override) = paddle.nn.functional.avg_pool2d(input, kernel_size, stride=stride, padding=padding, ceil_mode=ceil_mode, exclusive=not count_include_pad, divisor_override=divisor_override)
torch.nn.functional.conv_transpose#d(input, weight, bias, stride, padding, output_padding, groups, dilation) = paddle.nn.functional.conv#d_transpose(input, weight, bias=bias, stride=stride, padding=padding, output_padding=output_padding, groups=groups, dilation=dilation)
torch.nn.functional.interpolate(input, size, scale_factor, mode, align_corners, recompute_scale_factor, antialias) := paddle.nn.functional.interpolate(input, size=size, scale_factor=scale_factor, mode=mode, align_corners=align_corners)
torch.nn.functional.interpolate(input, size, scale_factor, mode, align_corners, recompute_scale_factor, antialias) := paddle.nn.functional.interpolate(input, size=size, scale_factor=scale_factor, mode=mode, align_corners=bool(align_corners))
torch.nn.functional.interpolate(input, size, scale_factor, mode="nearest", align_corners, recompute_scale_factor, antialias) := paddle.nn.functional.interpolate(input.unsqueeze(2), scale_factor=[1, scale_factor], mode=mode).squeeze(2)
torch.nn.functional.interpolate(input, size, scale_factor, mode="nearest", align_corners, recompute_scale_factor, antialias) := paddle.nn.functional.interpolate(input.unsqueeze(2), size=[1, size], mode=mode).squeeze(2)
torch.nn.functional.interpolate(input, size, scale_factor, mode="nearest", align_corners, recompute_scale_factor, antialias) := paddle.nn.functional.interpolate(input.unsqueeze(2), size=[1, *size], mode=mode).squeeze(2)
torch.nn.functional.pad(input, pad, mode, value) = paddle.compat.nn.functional.pad(input, pad, mode=mode, value=value)
torch.nn.functional.pad(input, pad, mode, value) = paddle.nn.functional.pad(input, pad, mode=mode, value=value)
torch.nn.functional.pad(input, pad, mode, value) = paddle.compat.nn.functional.pad(input.astype("int32"), pad, mode=mode, value=value).astype("bool")
torch.nn.functional.pad(input, pad, mode, value) = pad_or_cut(input, pad, mode=mode, value=value)
torch.nn.functional.grid_sample(input, grid, mode, padding_mode, align_corners=False) = paddle.nn.functional.grid_sample(input, grid, mode=mode, padding_mode=padding_mode, align_corners=align_corners)
torch.nn.functional.affine_grid(theta, size, align_corners=False) = paddle.nn.functional.affine_grid(theta, size, align_corners=align_corners)
torch.nn.functional.unfold(input, kernel_size, dilation, padding, stride) = paddle.nn.functional.unfold(input, kernel_size, strides=stride, paddings=padding, dilations=dilation)
torch.nn.functional.fold(input, output_size, kernel_size, dilation, padding, stride) = paddle.nn.functional.fold(input, output_size, kernel_size, strides=stride, paddings=padding, dilations=dilation)
torch.nn.functional.batch_norm(input, running_mean, running_var, weight=None, bias=None, training=False, momentum=0.1, eps=1e-05) = batch_norm_in_dtype(input, running_mean, running_var, weight, bias, training, momentum, eps)
torch.nn.functional.layer_norm(input, normalized_shape, weight, bias, eps=1e-05) = standardize(input, list(range(-len(normalized_shape), 0)), eps) * weight + bias
torch.nn.functional.layer_norm(input, normalized_shape, weight, bias, eps=1e-05) = standardize(input, list(range(-len(normalized_shape), 0)), eps) * weight
torch.nn.functional.layer_norm(input, normalized_shape, weight, bias, eps=1e-05) = standardize(input, list(range(-len(normalized_shape), 0)), eps)
torch.nn.functional.instance_norm(input, running_mean, running_var, weight, bias, use_input_stats, momentum, eps=1e-05) = standardize(input, list(range(2, input.ndim)), eps)
torch.nn.functional.cosine_similarity(x1, x2, dim, eps) = paddle.nn.functional.cosine_similarity(x1, x2, axis=dim, eps=eps)
torch.nn.functional.one_hot(tensor, num_classes) = paddle.nn.functional.one_hot(tensor, num_classes).astype("int64")
torch.nn.functional.cross_entropy(input, target, weight, size_average, ignore_index, reduce, reduction, label_smoothing) := paddle.nn.functional.cross_entropy(input, target, weight=weight, ignore_index=ignore_index, reduction=reduction, label_smoothing=label_smoothing)
torch.nn.functional.cross_entropy(input, target, weight, size_average, ignore_index, reduce, reduction, label_smoothing) := paddle.nn.functional.cross_entropy(input, target, axis=1, weight=weight, ignore_index=ignore_index, reduction=reduction, label_smoothing=label_smoothing)
torch.nn.functional.nll_loss(input, target, weight, size_average, ignore_index, reduce, reduction) = paddle.nn.functional.nll_loss(input, target, weight=weight, ignore_index=ignore_index, reduction=reduction)
torch.nn.functional.mse_loss(input, target, size_average, reduce, reduction) = paddle.nn.functional.mse_loss(input, target, reduction=reduction)
torch.nn.functional.l1_loss(input, target, size_average, reduce, reduction) = paddle.nn.functional.l1_loss(input, target, reduction=reduction)
torch.nn.functional.smooth_l1_loss(input, target, size_average, reduce, reduction, beta) = paddle.nn.functional.smooth_l1_loss(input, target, reduction=reduction, delta=beta)
torch.nn.functional.binary_cross_entropy_with_logits(input, target, weight, size_average, reduce, reduction, pos_weight) = paddle.nn.functional.binary_cross_entropy_with_logits(input, target, weight=weight, reduction=reduction, pos_weight=pos_weight)
torch.nn.functional.ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, reduction, zero_infinity) = paddle.nn.functional.ctc_loss(log_probs, targets.astype("int32"), input_lengths.astype("int64"), target_lengths.astype("int64"), blank=blank, reduction=reduction)
torch.nn.functional.scaled_dot_product_attention(query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa) = paddle.compat.nn.functional.scaled_dot_product_attention(query, key, value, attn_mask=attn_mask, dropout_p=dropout_p, is_causal=is_causal, scale=scale, enable_gqa=enable_gqa)
torch.nn.functional.scaled_dot_product_attention(query, key, value) = paddle.nn.functional.softmax(query @ key.mT / query.shape[-1] ** 0.5, axis=-1) @ value
torch.nn.functional.scaled_dot_product_attention(query, key, value, scale) = paddle.nn.functional.softmax(query @ key.mT * scale, axis=-1) @ value
torch.nn.functional.embedding_bag(input, weight, offsets, max_norm, norm_type, scale_grad_by_freq, mode, sparse, per_sample_weights, include_last_offset, padding_idx) = embedding_bag(input, weight, offsets=offsets, mode=mode, per_sample_weights=per_sample_weights, include_last_offset=include_last_offset, padding_idx=padding_idx)
torch.nn.functional.gumbel_softmax(logits, tau, hard, eps, dim) = paddle.nn.functional.gumbel_softmax(logits, temperature=tau, hard=hard, axis=dim)
torch.cat(tensors, dim) := paddle.concat(tensors, axis=dim)
torch.cat(tensors, dim) := paddle.concat([one for one in tensors if one.size > 0], axis=dim)
torch.cat(tensors, dim) := paddle.concat([one.astype(tensors[0].dtype) for one in tensors], axis=dim)
torch.cat(tensors, dim) := paddle.concat([one.astype(tensors[1].dtype) for one in tensors], axis=dim)
torch.cat(tensors, axis) := paddle.concat(tensors, axis=axis)
torch.concat(tensors, dim) := paddle.concat(tensors, axis=dim)
torch.stack(tensors, dim) := paddle.stack(tensors, axis=dim)
torch.stack(tensors, dim) := paddle.stack([one.astype(tensors[0].dtype) for one in tensors], axis=dim)
torch.stack(tensors, dim) := paddle.stack([one.astype(tensors[1].dtype) for one in tensors], axis=dim)
torch.split(tensor, split_size_or_sections, dim) = paddle.compat.split(tensor, split_size_or_sections, dim=dim)
Tensor.split(split_size, dim) = paddle.compat.split(self, split_size, dim=dim)
torch.max(input, dim, keepdim) = paddle.compat.max(input, dim=dim, keepdim=keepdim)
torch.min(input, dim, keepdim) = paddle.compat.min(input, dim=dim, keepdim=keepdim)
torch.max(input, other) = paddle.maximum(input, other)
torch.min(input, other) = paddle.minimum(input, other)
Tensor.max(dim, keepdim) = paddle.compat.max(self, dim=dim, keepdim=keepdim)
Tensor.min(dim, keepdim) = paddle.compat.min(self, dim=dim, keepdim=keepdim)
torch.sort(input, dim, descending) = paddle.compat.sort(input, dim=dim, descending=descending)
Tensor.sort(dim, descending) = paddle.compat.sort(self, dim=dim, descending=descending)
torch.median(input, dim, keepdim) = paddle.compat.median(input, dim=dim, keepdim=keepdim)
Tensor.median(dim, keepdim) = paddle.compat.median(self, dim=dim, keepdim=keepdim)
torch.std(input, dim, unbiased, keepdim) = paddle.std(input, axis=dim, unbiased=unbiased, keepdim=keepdim)
torch.var(input, dim, unbiased, keepdim) = paddle.var(input, axis=dim, unbiased=unbiased, keepdim=keepdim)
Tensor.std(dim, unbiased, keepdim) = self.std(axis=dim, unbiased=unbiased, keepdim=keepdim)
Tensor.var(dim, unbiased, keepdim) = self.var(axis=dim, unbiased=unbiased, keepdim=keepdim)
torch.std(input, dim, correction, keepdim) = paddle.std(input, axis=dim, unbiased=bool(correction), keepdim=keepdim)
torch.var(input, dim, correction, keepdim) = paddle.var(input, axis=dim, unbiased=bool(correction), keepdim=keepdim)
Tensor.std(dim, correction, keepdim) = self.std(axis=dim, unbiased=bool(correction), keepdim=keepdim)
Tensor.var(dim, correction, keepdim) = self.var(axis=dim, unbiased=bool(correction), keepdim=keepdim)
Tensor.type() := self.dtype
Tensor.type(dtype) := self.astype(dtype)
Tensor.to(dtype) = self.astype(dtype)
Tensor.to(device, dtype) = self.astype(dtype)
Tensor.to(other) = self.astype(other.dtype)
Tensor.to(device) = self
Tensor.cuda() = self
Tensor.cpu() = self
Tensor.type_as(other) = self.astype(other.dtype)
Tensor.numel() = self.size
torch.numel(input) = input.size
Tensor.nelement() = self.size
Tensor.new_tensor(data) = paddle.to_tensor(data, dtype=self.dtype)
Tensor.new_tensor(data, dtype) = paddle.to_tensor(data, dtype=dtype)
Tensor.new_zeros(size) = paddle.zeros(size, dtype=self.dtype)
Tensor.new_zeros(size, dtype) = paddle.zeros(size, dtype=dtype)
Tensor.mul_(other) = self.scale_(other)
Tensor.div_(other) = self.scale_(1 / other)
Tensor.add_(other) = self.scale_(1.0, other)
Tensor.sub_(other) = self.scale_(1.0, -other)
Tensor.mul_(other) = self.multiply_(paddle.full_like(self, other))
Tensor.add_(other) = self.add_(paddle.full_like(self, other))
Tensor.add_(other, alpha) = self.add_(other.astype(self.dtype) * alpha)
Tensor.add_(other) = self.add_(other.astype(self.dtype))
Tensor.mul(other) = self * other
Tensor.add(other) = self + other
Tensor.sub(other) = self - other
Tensor.div(other) = self / other
Tensor.pow(exponent) = self ** exponent
Tensor.eq(other) = self == other
torch.eq(input, other) = input == other
Tensor.ne(other) = self != other
torch.ne(input, other) = input != other
Tensor.lt(other) = self < other
torch.lt(input, other) = input < other
Tensor.le(other) = self <= other
torch.le(input, other) = input <= other
Tensor.gt(other) = self > other
torch.gt(input, other) = input > other
Tensor.ge(other) = self >= other
torch.ge(input, other) = input >= other
Tensor.long() = self.astype("int64")
Tensor.int() = self.astype("int32")
Tensor.float() = self.astype("float32")
Tensor.double() = self.astype("float64")
Tensor.half() = self.astype("float16")
Tensor.bool() = self.astype("bool")
torch.mul(input, other) = input * other
torch.add(input, other) = input + other
torch.sub(input, other) = input - other
torch.div(input, other) = input / other
torch.div(input, other, rounding_mode) = input // other
torch.div(input, other, rounding_mode) = paddle.div(paddle.to_tensor(input), paddle.to_tensor(other), rounding_mode=rounding_mode)
torch.add(input, other, alpha) = input + alpha * other
Tensor.copy_(src) = self.set_value(src)
Tensor.copy_(src) = paddle.assign(src, self)
Tensor.copy_(src) = paddle.assign(src.astype(self.dtype).expand_as(self), self)
Tensor.gather(dim, index) = paddle.take_along_axis(self, index, axis=dim, broadcast=False)
torch.gather(input, dim, index) = paddle.take_along_axis(input, index, axis=dim, broadcast=False)
Tensor.gather(dim, index) = paddle.take_along_axis(self.astype("float64"), index, axis=dim, broadcast=False).astype(self.dtype)
Tensor.scatter(dim, index, src) = paddle.put_along_axis(self, index, src, axis=dim, broadcast=False)
Tensor.scatter_(dim, index, src) = self.put_along_axis_(index, src, axis=dim, broadcast=False)
Tensor.scatter_(dim, index, value) = self.put_along_axis_(index, value, axis=dim, broadcast=False)
torch.scatter(input, dim, index, src) = paddle.put_along_axis(input, index, src, axis=dim, broadcast=False)
torch.scatter_add(input, dim, index, src) = paddle.put_along_axis(input, index, src, axis=dim, reduce="add", broadcast=False)
Tensor.scatter_add(dim, index, src) = paddle.put_along_axis(self, index, src, axis=dim, reduce="add", broadcast=False)
Tensor.scatter_add_(dim, index, src) = self.put_along_axis_(index, src, axis=dim, reduce="add", broadcast=False)
Tensor.scatter_reduce_(dim, index, src, reduce, include_self=True) = self.put_along_axis_(index, src, axis=dim, reduce=reduce, include_self=include_self, broadcast=False)
Tensor.scatter_reduce(dim, index, src, reduce, include_self=True) = paddle.put_along_axis(self, index, src, axis=dim, reduce=reduce, include_self=include_self, broadcast=False)
Tensor.index_reduce(dim, index, source, reduce, include_self=True) = paddle.put_along_axis(self, paddle.moveaxis(index.expand(paddle.moveaxis(source, dim, -1).shape), -1, dim), source, dim, reduce=reduce, include_self=include_self, broadcast=False)
Tensor.index_reduce(dim, index, source, reduce, include_self=True) = paddle.put_along_axis(self, paddle.moveaxis(index.expand(paddle.moveaxis(source, dim, -1).shape), -1, dim), source, dim, reduce="multiply", include_self=include_self, broadcast=False)
Tensor.index_select(dim, index) = paddle.index_select(self, index, axis=dim)
torch.index_select(input, dim, index) = paddle.index_select(input, index, axis=dim)
Tensor.index_copy_(dim, index, tensor) = set_items(self, (slice(None),) * dim + (index,), tensor)
Tensor.index_add_(dim, index, source) = self.index_add_(index, dim, source)
Tensor.index_add(dim, index, source) = self.index_add(index, dim, source)
torch.nn.functional.kl_div(input, target, size_average, reduce, reduction, log_target) = kl_div(input, target, reduction=reduction, log_target=log_target)
torch.nn.functional.gaussian_nll_loss(input, target, var) = 0.5 * (paddle.log(var) + (input - target) ** 2 / var).mean()
torch.nn.functional.softmin(input, dim) = paddle.nn.functional.softmax(-input, axis=dim)
torch.unique(input, sorted, return_inverse, return_counts) = find_unique(input, return_inverse=return_inverse, return_counts=return_counts)
torch.nn.init._calculate_fan_in_and_fan_out(tensor) = count_fans(tensor)
torch.nn.init._calculate_correct_fan(tensor, mode) = count_fans(tensor)[mode == "fan_out"]
torch.nn.functional.multi_head_attention_forward(query, key, value, embed_dim_to_check, num_heads, in_proj_weight, in_proj_bias, bias_k=None, bias_v=None, add_zero_attn=False, dropout_p, out_proj_weight, out_proj_bias, training, key_padding_mask, need_weights, attn_mask, use_separate_proj_weight, q_proj_weight, k_proj_weight, v_proj_weight, static_k, static_v, average_attn_weights, is_causal) = attend_in_heads(query, key, value, num_heads, in_proj_weight, in_proj_bias, dropout_p, out_proj_weight, out_proj_bias, training=training, key_padding_mask=key_padding_mask, need_weights=need_weights, attn_mask=attn_mask, use_separate_proj_weight=use_separate_proj_weight, q_proj_weight=q_proj_weight, k_proj_weight=k_proj_weight, v_proj_weight=v_proj_weight, average_attn_weights=average_attn_weights)
torch.movedim(input, source, destination) = paddle.moveaxis(input, source, destination)
Tensor.movedim(source, destination) = paddle.moveaxis(self, source, destination)
torch.roll(input, shifts, dims) = paddle.roll(input, shifts, axis=dims)
Tensor.roll(shifts, dims) = self.roll(shifts, axis=dims)
torch.flip(input, dims) = paddle.flip(input, axis=dims)
Tensor.flip(dims) = self.flip(axis=dims)
Tensor.flip(*dims) = self.flip([*dims])
torch.tensor(data, dtype, device, requires_grad) := paddle.to_tensor(data, dtype=dtype)
torch.Tensor(data) := paddle.to_tensor(data, dtype=paddle.get_default_dtype())
torch.Tensor(*sizes) := paddle.empty([*sizes])
torch.FloatTensor(data) := paddle.to_tensor(data, dtype="float32")
torch.FloatTensor(*sizes) := paddle.empty([*sizes], dtype="float32")
torch.DoubleTensor(data) := paddle.to_tensor(data, dtype="float64")
torch.LongTensor(data) := paddle.to_tensor(data, dtype="int64")
torch.LongTensor(*sizes) := paddle.empty([*sizes], dtype="int64")
torch.IntTensor(data) := paddle.to_tensor(data, dtype="int32")
torch.BoolTensor(data) := paddle.to_tensor(data, dtype="bool")
torch.as_tensor(data, dtype, device) := paddle.to_tensor(data, dtype=dtype)
torch.as_tensor(data, dtype, device) = data.astype(dtype)
torch.as_tensor(data, dtype, device) = data
torch.from_numpy(ndarray) := paddle.to_tensor(ndarray)
torch.meshgrid(*tensors, indexing) := paddle.meshgrid(*tensors)
torch.meshgrid(*tensors, indexing) = spread_over_grid(*tensors, indexing=indexing)
torch.repeat_interleave(input, repeats, dim) = paddle.repeat_interleave(input, repeats, axis=dim)
Tensor.repeat_interleave(repeats, dim) = self.repeat_interleave(repeats, axis=dim)
torch.norm(input, p, dim, keepdim) = paddle.linalg.norm(input, p=p, axis=dim, keepdim=keepdim)
torch.norm(input, p, dim, keepdim) = paddle.linalg.vector_norm(input, p=p, axis=dim, keepdim=keepdim)
torch.outer(input, vec2) = paddle.outer(input.astype(vec2.dtype), vec2)
torch.outer(input, vec2) = paddle.outer(input, vec2.astype(input.dtype))
torch.matmul(input, other) = paddle.matmul(input.astype(other.dtype), other)
torch.matmul(input, other) = input @ other.expand([*paddle.broadcast_shape(input.shape[:-2], other.shape[:-2]), *other.shape[-2:]])
torch.matmul(input, other) = input.expand([*paddle.broadcast_shape(input.shape[:-2], other.shape[:-2]), *input.shape[-2:]]) @ other
torch.einsum(equation, operands) = paddle.einsum(equation, *operands)
torch.einsum(equation, a, b) = paddle.einsum(equation, a.astype(b.dtype), b)
torch.einsum(equation, a, b) = paddle.einsum(equation, a, b.astype(a.dtype))
torch.where(condition, input, other) = paddle.where(condition, input, paddle.full_like(input, other))
torch.where(condition, input, other) = paddle.where(condition, paddle.full_like(other, input), other)
torch.where(condition, input, other) = paddle.where(condition, input, other.astype(input.dtype))
torch.where(condition, input, other) = paddle.where(condition, float(input), float(other))
torch.pow(input, exponent) = paddle.pow(paddle.to_tensor(input, dtype=exponent.dtype), exponent)
torch.pow(input, exponent) = input ** paddle.full_like(input, exponent)
torch.pow(input, exponent) := whole_power(input, exponent)
Tensor.clamp_min(min) = self.clip(min=min)
Tensor.clamp_max(max) = self.clip(max=max)
Tensor.clamp_min_(min) = self.clip_(min=min)
torch.clamp_min(input, min) = paddle.clip(input, min=min)
torch.nn.init.dirac_(tensor, groups) = paddle.nn.init.dirac_(tensor, groups)
Tensor.bincount(minlength) = paddle.bincount(self, minlength=minlength)
torch.unsqueeze(input, dim) = paddle.unsqueeze(input, axis=dim)
torch.squeeze(input, dim) = paddle.squeeze(input, axis=dim)
Tensor.addcmul_(tensor1, tensor2, value) = self.add_(value * tensor1 * tensor2)
torch.arctanh(input) = paddle.atanh(input)
torch.lerp(input, end, weight) = input + weight * (end - input)
torch.masked_fill(input, mask, value) = paddle.where(mask, value, input)
torch.diag_embed(input) = input.unsqueeze(-1) * paddle.eye(input.shape[-1], dtype=input.dtype)
Tensor.unfold(dimension, size, step) = paddle.moveaxis(paddle.stack([paddle.slice(self, [dimension], [at], [at + size]) for at in range(0, self.shape[dimension] - size + 1, step)]), [0, dimension + 1], [dimension, -1])
Tensor.unfold(dimension, size, step) = paddle.moveaxis(paddle.stack([paddle.slice(self, [dimension], [at], [at + size]) for at in range(0, self.shape[dimension] - size + 1, step)]), [0, dimension], [dimension - 1, -1])
torch.relu(input) = paddle.nn.functional.relu(input)
torch.exp(input) = paddle.polar(paddle.exp(paddle.real(input)), paddle.imag(input))
torch.sigmoid(input) = 1 / (1 + paddle.polar(paddle.exp(-paddle.real(input)), -paddle.imag(input)))
torch.selu(input) = paddle.nn.functional.selu(input)
torch.selu(input) = 1.0507009873554805 * paddle.where(input > 0, input, 1.6732632423543772 * paddle.expm1(input.clip(max=0)))
torch.nn.functional.selu(input, inplace) = 1.0507009873554805 * paddle.where(input > 0, input, 1.6732632423543772 * paddle.expm1(input.clip(max=0)))
torch.celu(input, alpha) = paddle.nn.functional.celu(input, alpha=alpha)
torch.prelu(input, weight) = paddle.nn.functional.prelu(input, weight)
torch.relu_(input) = paddle.nn.functional.relu_(input)
torch.clamp(input, min, max) = paddle.minimum(paddle.maximum(input, min), max)
torch.clamp(input, min) = paddle.maximum(input, min)
torch.clamp(input, max) = paddle.minimum(input, max)
torch.clamp_max(input, max) = paddle.minimum(input, max)
torch.clamp_min(input, min) = paddle.maximum(input, min)
torch.addcmul(input, tensor1, tensor2) = input + tensor1 * tensor2
torch.addcmul(input, tensor1, tensor2, value) = input + value * tensor1 * tensor2
torch.addcdiv(input, tensor1, tensor2) = input + tensor1 / tensor2
torch.addcdiv(input, tensor1, tensor2, value) = input + value * tensor1 / tensor2
torch.addbmm(input, batch1, batch2, beta=1, alpha=1) = beta * input + alpha * paddle.bmm(batch1, batch2).sum(axis=0)
torch.bmm(input, mat2) = input @ mat2
torch.baddbmm(input, batch1, batch2, beta=1, alpha=1) = beta * input + alpha * paddle.bmm(batch1, batch2)
torch.cartesian_prod(*tensors) = paddle.cartesian_prod([*tensors])
torch.block_diag(*tensors) = paddle.block_diag([*tensors])
torch.chunk(input, chunks, dim=0) = paddle.compat.split(input, -(-input.shape[dim] // chunks), dim=dim)
torch.cov(input, correction=1) = paddle.linalg.cov(input, ddof=bool(correction))
torch.stft(input, n_fft, hop_length, win_length, window, center, pad_mode, normalized, onesided, return_complex) = paddle.signal.stft(input, n_fft, hop_length=hop_length, win_length=win_length, window=window, center=center, pad_mode=pad_mode, normalized=normalized, onesided=onesided)
torch.istft(input, n_fft, hop_length, win_length, window, center, normalized, onesided, length, return_complex) = paddle.signal.istft(input, n_fft, hop_length=hop_length, win_length=win_length, window=window, center=center, normalized=normalized, onesided=onesided, length=length, return_complex=return_complex)
torch.fliplr(input) = paddle.flip(input, axis=1)
torch.flipud(input) = paddle.flip(input, axis=0)
torch.std_mean(input, dim, correction, keepdim) = (paddle.std(input, axis=dim, unbiased=bool(correction), keepdim=keepdim), paddle.mean(input, axis=dim, keepdim=keepdim))
torch.std_mean(input, dim, unbiased, keepdim) = (paddle.std(input, axis=dim, unbiased=unbiased, keepdim=keepdim), paddle.mean(input, axis=dim, keepdim=keepdim))
torch.std_mean(input, unbiased) = (paddle.std(input, unbiased=unbiased), paddle.mean(input))
torch.var_mean(input, dim, correction, keepdim) = (paddle.var(input, axis=dim, unbiased=bool(correction), keepdim=keepdim), paddle.mean(input, axis=dim, keepdim=keepdim))
torch.var_mean(input, dim, unbiased, keepdim) = (paddle.var(input, axis=dim, unbiased=unbiased, keepdim=keepdim), paddle.mean(input, axis=dim, keepdim=keepdim))
torch.var_mean(input, unbiased) = (paddle.var(input, unbiased=unbiased), paddle.mean(input))
torch.std(input, unbiased) = paddle.std(input, unbiased=unbiased)
torch.var(input, unbiased) = paddle.var(input, unbiased=unbiased)
torch.aminmax(input, dim, keepdim) = (paddle.amin(input, axis=dim, keepdim=keepdim), paddle.amax(input, axis=dim, keepdim=keepdim))
torch.nn.functional.softmin(input, dim, _stacklevel, dtype) = paddle.nn.functional.softmax(-input, axis=dim, dtype=dtype)
torch.as_strided(input, size, stride, storage_offset) := stride_over(input, size, stride, storage_offset=storage_offset)
Tensor.stride() := tuple(self.contiguous().stride())
Tensor.stride(dim) := self.contiguous().stride(dim)
torch.nn.functional.adaptive_max_pool#d(input, output_size, return_indices) = paddle.nn.functional.adaptive_max_pool#d(input, output_size, return_mask=return_indices)
torch.nn.functional.upsample_nearest(input, size, scale_factor) = paddle.nn.functional.interpolate(input, size=size, scale_factor=scale_factor, mode="nearest")
torch.nn.functional.upsample_bilinear(input, size, scale_factor) = paddle.nn.functional.interpolate(input, size=size, scale_factor=scale_factor, mode="bilinear", align_corners=True)
torch.nn.functional.bilinear(input1, input2, weight, bias) = paddle.nn.functional.bilinear(input1, input2, weight, bias=bias.unsqueeze(0))
torch.nn.functional.bilinear(input1, input2, weight) = paddle.einsum("...i,kij,...j->...k", input1, weight, input2)
torch.nn.functional.bilinear(input1, input2, weight, bias) = paddle.einsum("...i,kij,...j->...k", input1, weight, input2) + bias
torch.nn.functional.embedding(input, weight, padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse) = paddle.nn.functional.embedding(input, weight, padding_idx=padding_idx)
torch.nn.functional.embedding(input, weight, padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse) = embed(input, weight, padding_idx=padding_idx)
torch.nn.functional.smooth_l1_loss(input, target, size_average, reduce, reduction, beta) = paddle.nn.functional.smooth_l1_loss(input, target, reduction=reduction, delta=beta, is_huber=False)
torch.nn.functional.smooth_l1_loss(input, target, size_average, reduce, reduction, beta) = paddle.nn.functional.smooth_l1_loss(input, target, reduction=reduction, delta=beta) / beta
torch.nn.functional.huber_loss(input, target, reduction, delta) = paddle.nn.functional.smooth_l1_loss(input, target, reduction=reduction, delta=delta)
torch.igamma(input, other) = paddle.gammainc(input, other)
torch.igammac(input, other) = paddle.gammaincc(input, other)
torch.float_power(input, exponent) = paddle.pow(input.astype("float64"), exponent)
torch.float_power(input, exponent) = paddle.pow(paddle.to_tensor(input, dtype="float64"), exponent.astype("float64"))
torch.qr(input) = paddle.linalg.qr(input)
torch.select(input, dim, index) = paddle.unbind(input, axis=dim)[index]
torch.narrow(input, dim, start, length) = paddle.slice(input, [dim], [start], [start + length])
torch.index_add(input, dim, index, source) = paddle.index_add(input, index, dim, source)
torch.index_add(input, dim, index, source, alpha) = paddle.index_add(input, index, dim, alpha * source)
torch.sort(input, dim, descending, stable) = paddle.compat.sort(input, dim=dim, descending=descending, stable=stable)
torch.renorm(input, p, dim, maxnorm) = paddle.renorm(input, float(p), dim, maxnorm)
torch.take_along_dim(input, indices, dim) = paddle.take_along_axis(input, indices, axis=dim)
torch.take_along_dim(input, indices) = paddle.take_along_axis(input.flatten(), indices.flatten(), axis=0)
torch.trapz(y, x) = paddle.trapezoid(y, x=x)
torch.trapz(y, x, dx, dim) = paddle.trapezoid(y, x=x, dx=dx, axis=dim)
torch.trapezoid(y, x, dx, dim) = paddle.trapezoid(y, x=x, dx=dx, axis=dim)
torch.erfc(input) = 1 - paddle.erf(input)
Tensor.where(condition, other) = paddle.where(condition, self, other)
torch.fft.fft(input, n, dim, norm) = paddle.fft.fft(input, n=n, axis=dim, norm=norm)
torch.fft.ifft(input, n, dim, norm) = paddle.fft.ifft(input, n=n, axis=dim, norm=norm)
torch.fft.rfft(input, n, dim, norm) = paddle.fft.rfft(input, n=n, axis=dim, norm=norm)
torch.fft.irfft(input, n, dim, norm) = paddle.fft.irfft(input, n=n, axis=dim, norm=norm)
torch.fft.fftn(input, s, dim, norm) = paddle.fft.fftn(input, s=s, axes=dim, norm=norm)
torch.fft.fftn(input, s, dim, norm) = paddle.fft.fftn(input, s=s, axes=[dim], norm=norm)
torch.fft.ifftn(input, s, dim, norm) = paddle.fft.ifftn(input, s=s, axes=dim, norm=norm)
torch.fft.ifftn(input, s, dim, norm) = paddle.fft.ifftn(input, s=s, axes=[dim], norm=norm)
torch.fft.rfftn(input, s, dim, norm) = paddle.fft.rfftn(input, s=s, axes=dim, norm=norm)
torch.fft.irfftn(input, s, dim, norm) = paddle.fft.irfftn(input, s=s, axes=dim, norm=norm)
torch.fft.rfftn(input, s, dim, norm) = paddle.fft.rfftn(input, s=s, axes=[dim], norm=norm)
torch.fft.irfftn(input, s, dim, norm) = paddle.fft.irfftn(input, s=s, axes=[dim], norm=norm)
torch.fft.fft2(input, s, dim, norm) = paddle.fft.fft2(input, s=s, axes=dim, norm=norm)
torch.fft.ifft2(input, s, dim, norm) = paddle.fft.ifft2(input, s=s, axes=dim, norm=norm)
torch.fft.rfft2(input, s, dim, norm) = paddle.fft.rfft2(input, s=s, axes=dim, norm=norm)
torch.fft.irfft2(input, s, dim, norm) = paddle.fft.irfft2(input, s=s, axes=dim, norm=norm)
torch.fft.fftshift(input, dim) = paddle.fft.fftshift(input, axes=dim)
torch.fft.ifftshift(input, dim) = paddle.fft.ifftshift(input, axes=dim)
torch.fft.fftshift(input, dim) = paddle.roll(input, [input.shape[one] // 2 for one in dim], axis=list(dim))
torch.fft.fftshift(input, dim) = paddle.roll(input, input.shape[dim] // 2, axis=dim)
torch.fft.ifftshift(input, dim) = paddle.roll(input, [-(input.shape[one] // 2) for one in dim], axis=list(dim))
torch.fft.ifftshift(input, dim) = paddle.roll(input, -(input.shape[dim] // 2), axis=dim)
torch.rot90(input, k, dims) = paddle.rot90(input, k, axes=dims)
torch.linalg.cholesky_ex(A, upper) = (paddle.linalg.cholesky(A, upper=upper), paddle.zeros(A.shape[:-2], "int32"))
torch.linalg.slogdet(A) = tuple(paddle.linalg.slogdet(A))
torch.linalg.vector_norm(x, ord, dim, keepdim) = paddle.linalg.vector_norm(x, p=float(ord), axis=dim, keepdim=keepdim)
torch.linalg.norm(A, ord, dim, keepdim) = paddle.linalg.norm(A, p=ord, axis=dim, keepdim=keepdim)
torch.linalg.norm(A, ord, dim, keepdim) = paddle.linalg.norm(A, p="fro", axis=dim, keepdim=keepdim)
torch.linalg.matrix_norm(A, ord, dim, keepdim) = paddle.linalg.matrix_norm(A, p=ord, axis=dim, keepdim=keepdim)
torch.hann_window(window_length, periodic, dtype) = paddle.audio.functional.get_window("hann", window_length, fftbins=periodic, dtype=dtype)
torch.hamming_window(window_length, periodic, dtype) = paddle.audio.functional.get_window("hamming", window_length, fftbins=periodic, dtype=dtype)
torch.blackman_window(window_length, periodic, dtype) = paddle.audio.functional.get_window("blackman", window_length, fftbins=periodic, dtype=dtype)
torch.nn.functional.cross_entropy(input, target, weight, size_average, ignore_index, reduce, reduction, label_smoothing) := paddle.nn.functional.cross_entropy(paddle.moveaxis(input, 1, -1), target, weight=weight, ignore_index=ignore_index, reduction=reduction, label_smoothing=label_smoothing)
torch.isclose(input, other, rtol, atol, equal_nan) = paddle.isclose(*paddle.broadcast_tensors([input, other]), rtol=rtol, atol=atol, equal_nan=equal_nan)
torch.addmm(input, mat1, mat2, beta=1, alpha=1) = beta * input + alpha * (mat1 @ mat2)
torch.addmv(input, mat, vec, beta=1, alpha=1) = beta * input + alpha * (mat @ vec)
torch.addr(input, vec1, vec2, beta=1, alpha=1) = beta * input + alpha * paddle.outer(vec1, vec2)
torch.allclose(input, other, rtol, atol, equal_nan) = bool(paddle.allclose(input, other, rtol=rtol, atol=atol, equal_nan=equal_nan))
torch.equal(input, other) = bool(paddle.equal_all(input, other))
torch.broadcast_tensors(*tensors) = paddle.broadcast_tensors([*tensors])
torch.corrcoef(input) = paddle.linalg.corrcoef(input)
torch.fmod(input, other) = input - other * paddle.trunc(input / other)
torch.exp2(input) = 2 ** input
torch.rsub(input, other) = other - input
torch.split_with_sizes(input, split_sizes, dim) = paddle.split(input, list(split_sizes), axis=dim)
Tensor.reshape_as(other) = self.reshape(other.shape)
Tensor.view_as(other) = self.reshape(other.shape)
torch.pinverse(input, rcond) = paddle.linalg.pinv(input, rcond=rcond)
torch.linalg.pinv(A, rtol, hermitian) = paddle.linalg.pinv(A, rcond=rtol, hermitian=hermitian)
torch.index_fill(input, dim, index, value) = paddle.index_fill(input, index, dim, value)
Tensor.index_fill_(dim, index, value) = self.index_fill_(index, dim, value)
torch.unique(input, sorted, return_inverse, return_counts, dim) = paddle.unique(input, return_inverse=return_inverse, return_counts=return_counts, axis=dim)
torch.unique(input, sorted, return_inverse, return_counts, dim) = find_unique(input, return_inverse=return_inverse, return_counts=return_counts, axis=dim)
torch.unique_consecutive(input, return_inverse, return_counts, dim) = paddle.unique_consecutive(input, return_inverse=return_inverse, return_counts=return_counts, axis=dim)
torch.scalar_tensor(s, dtype) = paddle.to_tensor(s, dtype=dtype)
torch.histc(input, bins=100, min=0, max=0) = paddle.histogram(input, bins, min, max).astype(input.dtype)
torch.nn.functional.conv#d(input, weight, bias, stride, padding, dilation, groups) = paddle.nn.functional.conv#d(input, weight, bias=bias, stride=stride, padding=padding, dilation=dilation, groups=groups)
torch.nn.functional.conv1d(input, weight, bias, stride, padding, dilation=1, groups) = paddle.nn.functional.conv1d(input, weight, bias, stride=stride, padding=dilation * (weight.shape[2] - 1) // 2, dilation=dilation, groups=groups)
torch.nn.functional.conv2d(input, weight, bias, stride, padding, dilation=1, groups) = paddle.nn.functional.conv2d(input, weight, bias, stride=stride, padding=[dilation * (one - 1) // 2 for one in weight.shape[2:]], dilation=dilation, groups=groups)
torch.nn.functional.conv3d(input, weight, bias, stride, padding, dilation=1, groups) = paddle.nn.functional.conv3d(input, weight, bias, stride=stride, padding=[dilation * (one - 1) // 2 for one in weight.shape[2:]], dilation=dilation, groups=groups)
torch.nn.functional.interpolate(input, size=None, scale_factor, mode="area", align_corners, recompute_scale_factor, antialias) = paddle.nn.functional.adaptive_avg_pool2d(input, [int(one * scale_factor) for one in input.shape[2:]])
torch.nn.functional.binary_cross_entropy(input, target, weight, size_average, reduce, reduction) = bce(input, target, weight=weight, reduction=reduction)
torch.nn.functional.binary_cross_entropy_with_logits(input, target, weight, size_average, reduce, reduction, pos_weight) = bce_with_logits(input, target, weight=weight, reduction=reduction, pos_weight=pos_weight)
torch.logaddexp2(input, other) = paddle.log2(2**input + 2**other)
torch.vdot(input, tensor) = paddle.dot(input, tensor)
torch.randint(low=0, high, size, dtype) = paddle.randint(low, high, size).astype(dtype)
torch.chain_matmul(*matrices) = paddle.linalg.multi_dot([*matrices])
torch.special.entr(input) = paddle.where(input == 0, paddle.zeros_like(input), -input * paddle.log(input))
torch.special.xlog1py(input, other) = paddle.where(input == 0, paddle.zeros_like(input), input * paddle.log1p(other))
torch.triangular_solve(input, A, upper=True, transpose=False, unitriangular=False) = (paddle.linalg.triangular_solve(A, input, upper=upper, transpose=transpose, unitriangular=unitriangular), A)
torch.xlogy(input, other) = paddle.where(input == 0, paddle.zeros_like(input), input * paddle.log(other))
torch.special.xlogy(input, other) = paddle.where(input == 0, paddle.zeros_like(input), input * paddle.log(other))
torch.special.expit(input) = paddle.nn.functional.sigmoid(input)
torch.special.softmax(input, dim, dtype) = paddle.nn.functional.softmax(input, axis=dim, dtype=dtype)
torch.special.log_softmax(input, dim, dtype) = paddle.nn.functional.log_softmax(input, axis=dim, dtype=dtype)
torch.special.ndtr(input) = 0.5 * (1 + paddle.erf(input / 2 ** 0.5))
torch.tensordot(a, b, dims) = paddle.tensordot(a, b, axes=dims)
torch.logdet(input) = paddle.linalg.slogdet(input)[1]
torch.nn.functional.threshold(input, threshold, value, inplace) = paddle.where(input > threshold, input, paddle.full_like(input, value))
torch.nn.functional.multilabel_soft_margin_loss(input, target, weight, size_average, reduce, reduction) = paddle.nn.functional.multi_label_soft_margin_loss(input, target, weight=weight, reduction=reduction)
torch.nn.functional.layer_norm(input, normalized_shape, weight, bias, eps) = paddle.nn.functional.layer_norm(input, normalized_shape, weight=weight.flatten(), bias=bias.flatten(), epsilon=eps)
torch.nn.functional.rms_norm(input, normalized_shape, weight, eps) = input * paddle.rsqrt((input * input).mean(axis=-1, keepdim=True) + eps) * weight
torch.nn.functional.rms_norm(input, normalized_shape, weight, eps) = input * paddle.rsqrt((input * input).mean(axis=-1, keepdim=True) + eps) * (1 if weight is None else weight)
torch.nn.functional.rms_norm(input, normalized_shape, weight) = input * paddle.rsqrt((input * input).mean(axis=-1, keepdim=True) + paddle.finfo(input.dtype).eps) * weight
torch.nn.functional.rms_norm(input, normalized_shape, weight, eps) = input * paddle.rsqrt(input.square().mean(axis=list(range(-len(normalized_shape), 0)), keepdim=True) + eps) * weight
torch.nn.functional.rms_norm(input, normalized_shape, weight=None, eps) = input * paddle.rsqrt(input.square().mean(axis=list(range(-len(normalized_shape), 0)), keepdim=True) + eps)
torch.nn.functional.rms_norm(input, normalized_shape, weight) = input * paddle.rsqrt(input.square().mean(axis=list(range(-len(normalized_shape), 0)), keepdim=True) + paddle.finfo(input.dtype).eps) * weight
torch.nn.functional.rms_norm(input, normalized_shape, weight=None) = input * paddle.rsqrt(input.square().mean(axis=list(range(-len(normalized_shape), 0)), keepdim=True) + paddle.finfo(input.dtype).eps)
torch.linalg.solve_triangular(A, B, upper, left, unitriangular) = paddle.linalg.triangular_solve(A, B, upper=upper, unitriangular=unitriangular)
torch.nn.functional.cross_entropy(input, target, weight, size_average, ignore_index, reduce, reduction, label_smoothing) := paddle.nn.functional.cross_entropy(input, target, weight=weight, reduction=reduction, soft_label=True, label_smoothing=label_smoothing)
torch.nn.functional.cross_entropy(input, target, weight, size_average, ignore_index, reduce, reduction, label_smoothing) := paddle.nn.functional.cross_entropy(input, target, axis=1, weight=weight, reduction=reduction, soft_label=True, label_smoothing=label_smoothing)
torch.nn.functional.ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, reduction, zero_infinity) = paddle.nn.functional.ctc_loss(log_probs, targets.astype("int32"), paddle.to_tensor(input_lengths, dtype="int64"), paddle.to_tensor(target_lengths, dtype="int64"), blank=blank, reduction=reduction)
torch.nn.functional.ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, reduction, zero_infinity) := paddle.nn.functional.ctc_loss(log_probs, lay_in_rows(targets, target_lengths).astype("int32"), input_lengths.astype("int64"), target_lengths.astype("int64"), blank=blank, reduction=reduction)
torch.cdist(x1, x2, p) = paddle.cdist(x1, x2, p=p)
torch.autocast(device_type, dtype, enabled) := paddle.amp.auto_cast(enable=enabled, dtype=dtype)
torch.amp.autocast(device_type, dtype, enabled) := paddle.amp.auto_cast(enable=enabled, dtype=dtype)
torch.cuda.amp.autocast(enabled) := paddle.amp.auto_cast(enable=enabled)
torch.amp.autocast_mode.autocast(device_type, dtype, enabled) := paddle.amp.auto_cast(enable=enabled, dtype=dtype)
torch.cuda.amp.autocast_mode.autocast(enabled) := paddle.amp.auto_cast(enable=enabled)
torch.backends.cuda.sdp_kernel(enable_flash, enable_math, enable_mem_efficient, enable_cudnn) = paddle.nn.attention.sdpa_kernel(paddle.nn.attention.SDPBackend.MATH)
torch.nn.modules.utils._single(x) = tuple(x) if hasattr(x, "__iter__") else (x,)
torch.nn.modules.utils._pair(x) = tuple(x) if hasattr(x, "__iter__") else (x,) * 2
torch.nn.modules.utils._triple(x) = tuple(x) if hasattr(x, "__iter__") else (x,) * 3
torch.jit.is_scripting() = False
torch.jit.isinstance(obj, target_type) = isinstance(obj, target_type)
torch.promote_types(type1, type2) = (paddle.ones([], type1) + paddle.ones([], type2)).dtype
torch.vmap(func, in_dims, out_dims) = vmap(func, in_dims, out_dims)
Tensor.repeat(*sizes) = self.tile([*sizes])
torch.cumsum(input, dim) = paddle.cumsum(input.astype("int64"), axis=dim)
torch.nn.functional.scaled_dot_product_attention(query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa) = attend(query, key, value, attn_mask=attn_mask, dropout_p=dropout_p, is_causal=is_causal, scale=scale, enable_gqa=enable_gqa)
torch.nn.functional.nll_loss(input, target, weight, ignore_index, reduction) = nll_loss(input, target, weight=weight, ignore_index=ignore_index, reduction=reduction)
torch.nn.functional.cross_entropy(input, target, weight, size_average, ignore_index, reduce, reduction, label_smoothing) = cross_entropy(input, target, ignore_index=ignore_index, reduction=reduction, label_smoothing=label_smoothing, weight=weight)
torch.nn.functional.cross_entropy(input, target, weight, size_average, ignore_index, reduce, reduction, label_smoothing) = cross_entropy(input, target, ignore_index=ignore_index, reduction=reduction, label_smoothing=label_smoothing, axis=1, weight=weight)
torch.nn.functional.cross_entropy(input, target) = -(target * paddle.nn.functional.log_softmax(input, axis=1)).sum(axis=1).mean()
torch.nn.functional.interpolate(input, size, scale_factor, mode, align_corners, recompute_scale_factor, antialias) = paddle.nn.functional.interpolate(input, size=[size], scale_factor=scale_factor, mode=mode, align_corners=align_corners)
torch.nn.functional.interpolate(input, size, scale_factor, mode, align_corners, recompute_scale_factor, antialias) = paddle.nn.functional.interpolate(input, size=[size, size], scale_factor=scale_factor, mode=mode, align_corners=align_corners)
torch.nn.functional.interpolate(input, size=None, scale_factor, mode, align_corners, recompute_scale_factor, antialias) = paddle.nn.functional.interpolate(input, scale_factor=[scale_factor], mode=mode, align_corners=align_corners)
torch.nn.functional.interpolate(input, size, scale_factor, mode, align_corners, recompute_scale_factor, antialias) = resize_in_dtype(input, size=size, scale_factor=scale_factor, mode=mode, align_corners=align_corners, antialias=antialias)
torch.nn.functional.adaptive_avg_pool#d(input, output_size) = adaptive_average(input, #, output_size)
torch.nn.functional.avg_pool#d(input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override) = average_pool(input, #, kernel_size, stride=stride, padding=padding, ceil_mode=ceil_mode, count_include_pad=count_include_pad, divisor_override=divisor_override)
torch.divide(input, other) = input / other
torch.true_divide(input, other) = input / other
torch.multiply(input, other) = input * other
torch.subtract(input, other) = input - other
torch.greater(input, other) = input > other
torch.greater_equal(input, other) = input >= other
torch.less(input, other) = input < other
torch.less_equal(input, other) = input <= other
torch.not_equal(input, other) = input != other
torch.inference_mode() = paddle.no_grad()
torch.inference_mode(mode) = paddle.set_grad_enabled(not mode)
torch.linalg.lstsq(A, B) = (paddle.linalg.pinv(A) @ B, *paddle.linalg.lstsq(A, B)[1:])
torch.linalg.lu(A) = paddle.linalg.lu_unpack(*paddle.linalg.lu(A))
torch.linalg.lu_factor(A) = paddle.linalg.lu(A)
torch.sparse_coo_tensor(indices, values, size, dtype) := paddle.sparse.sparse_coo_tensor(indices, values, size, dtype=dtype, stop_gradient=values.stop_gradient)
torch.sparse.FloatTensor(indices, values, size) := paddle.sparse.sparse_coo_tensor(indices, values, size, stop_gradient=values.stop_gradient)
torch.sparse.mm(sparse, dense) = multiply_sparse(sparse, dense)
torch.spmm(input, mat2) = multiply_sparse(input, mat2)
torch.mm(input, mat2) = multiply_sparse(input, mat2)
torch.matmul(input, other) = multiply_sparse(input, other)
Tensor.to(dtype) = paddle.sparse.cast(self, value_dtype=dtype)
Tensor.to_sparse() = self.to_sparse_coo(self.ndim)
Tensor._indices() = self.indices()
Tensor._values() = self.values()
torch.matrix_power(input, n) = paddle.linalg.matrix_power(input, n)
torch.cholesky_solve(input, L, upper) = paddle.linalg.cholesky_solve(input, L, upper=upper)
torch.bitwise_and(input, other) = paddle.bitwise_and(input, paddle.full_like(input, other))
torch.bitwise_or(input, other) = paddle.bitwise_or(input, paddle.full_like(input, other))
torch.bitwise_xor(input, other) = paddle.bitwise_xor(input, paddle.full_like(input, other))
Tensor.numpy(force) = self.detach().numpy()
Tensor.index_copy(dim, index, source) = paddle.scatter(self, index, source)
Tensor.index_copy(dim, index, source) = paddle.moveaxis(paddle.scatter(paddle.moveaxis(self, dim, 0), index, paddle.moveaxis(source, dim, 0)), 0, dim)
torch.cross(input, other, dim=-1) = input.roll(-1, dim) * other.roll(-2, dim) - input.roll(-2, dim) * other.roll(-1, dim)
torch.linalg.cross(input, other, dim=-1) = input.roll(-1, dim) * other.roll(-2, dim) - input.roll(-2, dim) * other.roll(-1, dim)
torch.detach(input) = input.detach()
torch._convert_indices_from_coo_to_csr(input, size, out_int32) = paddle.searchsorted(input, paddle.arange(size + 1, dtype=input.dtype), out_int32=out_int32)
torch._convert_indices_from_csr_to_coo(crow_indices, col_indices) = paddle.stack([paddle.arange(crow_indices.size - 1).repeat_interleave(crow_indices.diff()), col_indices])
torch.arctan2(input, other) = paddle.atan2(input, other)
torch.det(input) = paddle.linalg.det(input)
Tensor.det() = paddle.linalg.det(self)
Tensor.absolute() = self.abs()
Tensor.clamp_max_(max) = self.clip_(max=max)
Tensor.ge_(other) = self.greater_equal_(other)
torch.linalg.inv_ex(A) = (paddle.linalg.inv(A), paddle.zeros(A.shape[:-2], dtype="int32"))
torch.linalg.solve_ex(A, B) = (paddle.linalg.solve(A, B), paddle.zeros(A.shape[:-2], dtype="int32"))
torch.distributions.Normal(loc, scale, validate_args) = paddle.distribution.Normal(loc, scale)
torch.distributions.Normal(loc, scale, validate_args) = paddle.distribution.Normal(loc, paddle.full_like(loc, scale))
torch.distributions.Normal(loc, scale, validate_args) = paddle.distribution.Normal(paddle.full_like(scale, loc), scale)
torch.distributions.Uniform(low, high, validate_args) = paddle.distribution.Uniform(low, high)
torch.distributions.Bernoulli(probs) = paddle.distribution.Bernoulli(probs)
torch.distributions.Bernoulli(probs=None, logits) = paddle.distribution.Bernoulli(paddle.nn.functional.sigmoid(logits))
torch.distributions.Beta(concentration1, concentration0, validate_args) = paddle.distribution.Beta(concentration1, concentration0)
torch.distributions.Gumbel(loc, scale, validate_args) = paddle.distribution.Gumbel(loc, scale)
torch.distributions.Laplace(loc, scale, validate_args) = paddle.distribution.Laplace(loc, scale)
torch.distributions.Dirichlet(concentration, validate_args) = paddle.distribution.Dirichlet(concentration)
torch.distributions.Independent(base_distribution, reinterpreted_batch_ndims, validate_args) = paddle.distribution.Independent(base_distribution, reinterpreted_batch_ndims)
torch.distributions.StudentT(df, loc=0.0, scale=1.0, validate_args) = paddle.distribution.StudentT(df, loc, scale)
torch.distributions.LogNormal(loc, scale, validate_args) = paddle.distribution.LogNormal(loc, scale)
torch.distributions.Exponential(rate, validate_args) = paddle.distribution.Exponential(rate)
torch.distributions.Gamma(concentration, rate, validate_args) = paddle.distribution.Gamma(concentration, rate)
torch.distributions.Poisson(rate, validate_args) = paddle.distribution.Poisson(rate)
torch.distributions.Geometric(probs, validate_args) = paddle.distribution.Geometric(probs)
torch.distributions.Cauchy(loc, scale, validate_args) = paddle.distribution.Cauchy(loc, scale)
torch.distributions.ContinuousBernoulli(probs, validate_args) = paddle.distribution.ContinuousBernoulli(probs)
torch.distributions.Binomial(total_count=1, probs, validate_args) = paddle.distribution.Binomial(total_count, probs)
torch.distributions.Multinomial(total_count=1, probs, validate_args) = paddle.distribution.Multinomial(total_count, probs)
torch.distributions.MultivariateNormal(loc, covariance_matrix, precision_matrix, scale_tril, validate_args) = paddle.distribution.MultivariateNormal(loc, covariance_matrix=covariance_matrix, precision_matrix=precision_matrix, scale_tril=scale_tril)
torch.distributions.TransformedDistribution(base_distribution, transforms, validate_args) = paddle.distribution.TransformedDistribution(base_distribution, transforms)
torch.distributions.kl_divergence(p, q) = paddle.distribution.kl_divergence(p, q)
torch.utils.data.TensorDataset(*tensors) = paddle.io.TensorDataset([*tensors])
torch.utils.data.DataLoader(dataset, batch_size=1, shuffle, sampler, batch_sampler, num_workers, collate_fn, drop_last, timeout, worker_init_fn, multiprocessing_context, generator, prefetch_factor, persistent_workers) = paddle.io.DataLoader(dataset, batch_size=batch_size, shuffle=shuffle, num_workers=num_workers, collate_fn=collate_fn, drop_last=drop_last, worker_init_fn=worker_init_fn)
torch.cuda.amp.GradScaler(init_scale, growth_factor, backoff_factor, growth_interval, enabled=True) = paddle.amp.GradScaler(enable=enabled, init_loss_scaling=init_scale, incr_ratio=growth_factor, decr_ratio=backoff_factor, incr_every_n_steps=growth_interval)
torch.amp.GradScaler(device, init_scale, growth_factor, backoff_factor, growth_interval, enabled=True) = paddle.amp.GradScaler(enable=enabled, init_loss_scaling=init_scale, incr_ratio=growth_factor, decr_ratio=backoff_factor, incr_every_n_steps=growth_interval)
torch.jit.is_tracing() = False
torch.compiler.is_compiling() = False
torch.is_autocast_enabled() = False
torch.onnx.is_in_onnx_export() = False
torch._dynamo.is_compiling() = False
torch.is_complex(input) = input.is_complex()
torch.real(input) = input
torch._assert(condition, message) = None
torch.nn.Transformer.generate_square_subsequent_mask(sz) = paddle.triu(paddle.full([sz, sz], float("-inf")), diagonal=1)
torch.utils.checkpoint.checkpoint(function, *args, use_reentrant) = paddle.distributed.fleet.utils.recompute(function, *args)
torch.autograd.Variable(data) := data
Module.register_buffer(name, tensor, persistent) := self.register_buffer(name, tensor, persistable=persistent)
Module.to(device) = self
Module.zero_grad(set_to_none) = self.clear_gradients()
Optimizer.zero_grad(set_to_none) := self.clear_grad(set_to_zero=not set_to_none)
Optimizer.load_state_dict(state_dict) := self.set_state_dict(state_dict)
LRScheduler.get_last_lr() := [self.last_lr]
LRScheduler.load_state_dict(state_dict) := self.set_state_dict(state_dict)
torch.load(f, map_location, weights_only) = paddle.load(f)
torch.nn.Embedding.from_pretrained(embeddings, freeze, padding_idx) = embedding_from(embeddings, freeze=freeze, padding_idx=padding_idx)
torch.ao.quantization.QuantStub(qconfig) = paddle.nn.Identity()
torch.ao.quantization.DeQuantStub(qconfig) = paddle.nn.Identity()
torch.nn.utils.parametrize.register_parametrization(module, tensor_name, parametrization, unsafe) := register_parametrization(module, tensor_name, parametrization)
Conv#d._conv_forward(input, weight, bias) := paddle.nn.functional.conv#d(input, weight, bias, self._stride, self._updated_padding, self._dilation, self._groups)
Linear.reset_parameters() := redraw_parameters(self)
_ConvNd.reset_parameters() := redraw_parameters(self)
Bilinear.reset_parameters() := redraw_parameters(self)
RNNBase.reset_parameters() := redraw_parameters(self)
RNNCellBase.reset_parameters() := redraw_parameters(self)
LayerNorm.reset_parameters() := redraw_parameters(self)
GroupNorm.reset_parameters() := redraw_parameters(self)
_NormBase.reset_parameters() := redraw_parameters(self)
Embedding.reset_parameters() := redraw_parameters(self)
MultiheadAttention._reset_parameters() := redraw_parameters(self)
torch.optim.AdamW(params, lr=0.001, betas, eps, weight_decay, amsgrad) = paddle.optimizer.AdamW(learning_rate=lr, parameters=params, beta1=betas[0], beta2=betas[1], epsilon=eps, weight_decay=weight_decay, amsgrad=amsgrad)
torch.optim.Adam(params, lr=0.001, betas, eps, weight_decay, amsgrad) = paddle.optimizer.Adam(learning_rate=lr, parameters=params, beta1=betas[0], beta2=betas[1], epsilon=eps, weight_decay=weight_decay, amsgrad=amsgrad)
torch.optim.Adamax(params, lr=0.002, betas, eps, weight_decay) = paddle.optimizer.Adamax(learning_rate=lr, parameters=params, beta1=betas[0], beta2=betas[1], epsilon=eps, weight_decay=weight_decay)
torch.optim.NAdam(params, lr=0.002, betas, eps, weight_decay, momentum_decay) = paddle.optimizer.NAdam(learning_rate=lr, parameters=params, beta1=betas[0], beta2=betas[1], epsilon=eps, weight_decay=weight_decay, momentum_decay=momentum_decay)
torch.optim.RAdam(params, lr=0.001, betas, eps, weight_decay) = paddle.optimizer.RAdam(learning_rate=lr, parameters=params, beta1=betas[0], beta2=betas[1], epsilon=eps, weight_decay=weight_decay)
torch.optim.Adagrad(params, lr=0.01, lr_decay, weight_decay, initial_accumulator_value, eps=1e-10) = paddle.optimizer.Adagrad(learning_rate=lr, parameters=params, epsilon=eps, weight_decay=weight_decay, initial_accumulator_value=initial_accumulator_value)
torch.optim.RMSprop(params, lr=0.01, alpha=0.99, eps=1e-08, weight_decay, momentum, centered) = paddle.optimizer.RMSProp(learning_rate=lr, parameters=params, rho=alpha, epsilon=eps, weight_decay=weight_decay, momentum=momentum, centered=centered)
torch.optim.SGD(params, lr=0.001) = paddle.optimizer.SGD(learning_rate=lr, parameters=params)
torch.optim.SGD(params, lr=0.001, momentum=0, dampening, weight_decay, nesterov) = paddle.optimizer.Momentum(learning_rate=lr, momentum=momentum, parameters=params, use_nesterov=nesterov, weight_decay=weight_decay)
"""

NAMES: Final[Mapping[str, str]] = {
    "torch.float": "paddle.float32", "torch.double": "paddle.float64", "torch.half": "paddle.float16",
    "torch.long": "paddle.int64", "torch.int": "paddle.int32", "torch.short": "paddle.int16",
    "torch.cfloat": "paddle.complex64", "torch.cdouble": "paddle.complex128",
    "torch.LongTensor": "paddle.Tensor", "torch.FloatTensor": "paddle.Tensor",
    "torch.BoolTensor": "paddle.Tensor", "torch.IntTensor": "paddle.Tensor",
    "torch.nn.Module": "paddle.nn.Layer", "torch.nn.modules.module.Module": "paddle.nn.Layer",
    "torch.nn.ModuleList": "paddle.nn.LayerList", "torch.nn.ModuleDict": "paddle.nn.LayerDict",
    "torch.autograd.Function": "paddle.autograd.PyLayer",
    "torch.autograd.function.InplaceFunction": "paddle.autograd.PyLayer",
    "torch.nn.parameter.Parameter": "paddle.nn.Parameter", "torch.nn.Parameter": "paddle.nn.Parameter",
    "torch.Tensor": "paddle.Tensor", "torch.nn.Sequential": "paddle.nn.Sequential",
    "torch.nn.UninitializedParameter": "paddle.nn.Parameter", "torch.Generator": "paddle.base.libpaddle.Generator",
    "torch.random.manual_seed": "paddle.seed",
    "torch.device": "str", "torch.contiguous_format": "None", "torch.channels_last": "None",
    "torch.channels_last_3d": "None", "torch.preserve_format": "None", "torch.legacy_contiguous_format": "None",
    "torch.nn.modules.batchnorm._BatchNorm": "paddle.nn.layer.norm._BatchNormBase",
    "torch.nn.modules.batchnorm._NormBase": "paddle.nn.layer.norm._BatchNormBase",
    "torch.nn.modules.instancenorm._InstanceNorm": "paddle.nn.layer.norm._InstanceNormBase",
    "torch.optim.Optimizer": "paddle.optimizer.Optimizer",
    "torch.distributions.Distribution": "paddle.distribution.Distribution",
    "torch.utils.data.SequentialSampler": "paddle.io.SequenceSampler",
    **{f"torch.nn.modules.{theirs}": f"paddle.nn.layer.{ours}" for theirs, ours in {
        "activation": "activation", "batchnorm": "norm", "conv": "conv", "dropout": "common",
        "instancenorm": "norm", "linear": "common", "loss": "loss", "normalization": "norm",
        "pooling": "pooling", "rnn": "rnn",
    }.items()},
    **{f"torch.{one}": repr(one) for one in (
        "strided", "sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc",
    )},
    **{f"torch.utils.data.{one}": f"paddle.io.{one}" for one in (
        "Dataset", "IterableDataset", "ConcatDataset", "Subset", "random_split", "Sampler",
        "RandomSampler", "WeightedRandomSampler", "BatchSampler", "get_worker_info",
    )},
}  # fmt: skip
"""what is read without being called"""


ALIASES: Final[Mapping[str, str]] = {
    "cat": "concat", "clamp": "clip", "mm": "matmul", "mul": "multiply", "sub": "subtract",
    "div": "divide", "permute": "transpose", "view": "reshape", "repeat": "tile", "eq": "equal",
    "ne": "not_equal", "gt": "greater_than", "lt": "less_than", "ge": "greater_equal", "le": "less_equal",
}  # fmt: skip
"""PyTorch's functions and methods -> what Paddle's own code calls them; Paddle may take both names"""


@dataclass(frozen=True)
class ApiRow:
    """One line of the table."""

    name: str
    arguments: tuple[str, ...]
    defaults: Mapping[str, str]
    """what is written where the argument is not given"""
    target: str
    """code in the arguments; `self` is the receiver of a method"""
    star: int | None = None
    """the position of the argument that takes all the positions that are left"""
    is_first: bool = False
    """whether it is tried before Paddle's equal name"""

    def __str__(self) -> str:
        """Return it as one reads it: the call, and what it is in Paddle."""
        words = [
            f"{one}={self.defaults[one]}" if one in self.defaults else one for one in self.arguments
        ]
        if self.star is not None:
            words[self.star] = f"*{words[self.star]}"
        return f"{self.name}({', '.join(words)}) = {self.target}"


def parse_rows(text: str) -> Iterator[ApiRow]:
    """Yield the rows of a text, `#` written out."""
    for line in filter(None, text.splitlines()):
        for number in "123" if "#" in line else " ":
            left, sign, right = re.split(r"\) (:?=) ", line.replace("#", number), maxsplit=1)
            name, _, inside = left.partition("(")
            words = [word for word in inside.split(", ") if word]
            arguments, defaults = [], {}
            for word in words:
                argument, _, default = word.partition("=")
                arguments.append(argument.removeprefix("*"))
                if default:
                    defaults[argument] = default
            star = next((at for at, one in enumerate(words) if one[0] == "*"), None)
            yield ApiRow(name, tuple(arguments), defaults, right.strip(), star, sign == ":=")


@cache
def list_rows() -> tuple[ApiRow, ...]:
    """Return every row, in the order in which those of one name are tried."""
    return tuple(parse_rows(LAYERS + FUNCTIONS))


def find_rows(name: str) -> list[str]:
    """Return what is known of a name of PyTorch's, or of the last parts of one, as lines to read."""
    wanted = f".{name}"
    names = [f"{one} = {target}" for one, target in NAMES.items() if f".{one}".endswith(wanted)]
    return names + [str(row) for row in list_rows() if f".{row.name}".endswith(wanted)]
