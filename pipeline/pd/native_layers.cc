// GELU, layer normalisation, masked softmax, a bias and dropout, each in few passes over memory, forward
// and backward.
//
// For Paddle on a CPU, float32 and float64; built by pipeline/pd/native_layers.py with paddle.utils.cpp_extension.
// Rows are spread over the threads of OpenMP; a row is always summed by one thread, and the sums over
// rows (gradients of a weight, a bias) are added up block by block in one order: the threads change no bit.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "paddle/extension.h"

using paddle::Tensor;

// The vector forms of erf and exp stand in libmvec from glibc 2.35 on; elsewhere the plain ones are used.
#if defined(__x86_64__) && defined(__GLIBC__) && __GLIBC_PREREQ(2, 35)
extern "C" {
__attribute__((simd("notinbranch"))) float erff(float) noexcept;
__attribute__((simd("notinbranch"))) double erf(double) noexcept;
__attribute__((simd("notinbranch"))) float expf(float) noexcept;
__attribute__((simd("notinbranch"))) double exp(double) noexcept;
}
#endif

namespace {

constexpr int64_t kBlock = 64;  // rows whose sums are taken together

inline float erf_of(float x) { return erff(x); }
inline double erf_of(double x) { return erf(x); }
inline float exp_of(float x) { return expf(x); }
inline double exp_of(double x) { return exp(x); }

void require(bool holds, const char *what) {
  if (!holds) throw std::invalid_argument(what);
}

template <typename T>
T scale_of(int64_t head_size) {
  return static_cast<T>(1 / std::sqrt(static_cast<double>(head_size)));
}

int64_t last_axis(const Tensor &x) {
  require(!x.shape().empty(), "a tensor of at least one axis is expected");
  return x.shape().back();
}

// Adds up the rows of each block by `add(row, sums)`, then the blocks in their order, into `total`.
template <typename T, typename Add>
void sum_rows(int64_t rows, int64_t width, T *total, Add add) {
  const int64_t blocks = (rows + kBlock - 1) / kBlock;
  std::vector<T> sums(blocks * width, T(0));
#pragma omp parallel for schedule(static)
  for (int64_t block = 0; block < blocks; ++block) {
    const int64_t end = std::min(rows, (block + 1) * kBlock);
    for (int64_t row = block * kBlock; row < end; ++row) add(row, sums.data() + block * width);
  }
  std::fill(total, total + width, T(0));
  for (int64_t block = 0; block < blocks; ++block) {
    const T *part = sums.data() + block * width;
#pragma omp simd
    for (int64_t i = 0; i < width; ++i) total[i] += part[i];
  }
}

template <typename T>
void gelu_forward(const T *x, T *y, int64_t size) {
  const T root_half = T(0.70710678118654752440), half = T(0.5);
#pragma omp parallel for simd schedule(static)
  for (int64_t i = 0; i < size; ++i) y[i] = half * x[i] * (T(1) + erf_of(x[i] * root_half));
}

template <typename T>
void gelu_backward(const T *x, const T *grad, T *to_x, int64_t size) {
  const T root_half = T(0.70710678118654752440), bell = T(0.39894228040143267794), half = T(0.5);
#pragma omp parallel for simd schedule(static)
  for (int64_t i = 0; i < size; ++i) {
    const T share = half * (T(1) + erf_of(x[i] * root_half));
    to_x[i] = grad[i] * (share + x[i] * bell * exp_of(-half * x[i] * x[i]));
  }
}

template <typename T>
void norm_forward(const T *x, const T *weight, const T *bias, T *y, T *mean, T *scale,
                  int64_t rows, int64_t width, T epsilon) {
#pragma omp parallel for schedule(static)
  for (int64_t row = 0; row < rows; ++row) {
    const T *in = x + row * width;
    T *out = y + row * width;
    T sum = 0, squares = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < width; ++i) sum += in[i];
    const T middle = sum / T(width);
#pragma omp simd reduction(+ : squares)
    for (int64_t i = 0; i < width; ++i) squares += (in[i] - middle) * (in[i] - middle);
    const T factor = T(1) / std::sqrt(squares / T(width) + epsilon);
#pragma omp simd
    for (int64_t i = 0; i < width; ++i) out[i] = (in[i] - middle) * factor * weight[i] + bias[i];
    mean[row] = middle;
    scale[row] = factor;
  }
}

template <typename T>
void norm_backward(const T *x, const T *weight, const T *mean, const T *scale, const T *grad,
                   T *to_x, T *to_weight, T *to_bias, int64_t rows, int64_t width) {
  std::vector<T> both(2 * width);
  sum_rows<T>(rows, 2 * width, both.data(), [&](int64_t row, T *sums) {
    const T *in = x + row * width, *g = grad + row * width;
    T *out = to_x + row * width;
    const T middle = mean[row], factor = scale[row];
    T plain = 0, along = 0;
#pragma omp simd reduction(+ : plain, along)
    for (int64_t i = 0; i < width; ++i) {
      const T unit = (in[i] - middle) * factor, product = g[i] * weight[i];
      plain += product;
      along += product * unit;
      sums[i] += g[i] * unit;
      sums[width + i] += g[i];
    }
    plain /= T(width);
    along /= T(width);
#pragma omp simd
    for (int64_t i = 0; i < width; ++i) {
      const T unit = (in[i] - middle) * factor;
      out[i] = factor * (g[i] * weight[i] - plain - unit * along);
    }
  });
  std::copy(both.begin(), both.begin() + width, to_weight);
  std::copy(both.begin() + width, both.end(), to_bias);
}

// Row `row` of scores (B, H, L, S) has the mask row of its example: mask is (B, 1, 1, S).
template <typename T>
void softmax_forward(const T *scores, const T *mask, T *probs, int64_t rows, int64_t per_example,
                     int64_t width, T scale) {
#pragma omp parallel for schedule(static)
  for (int64_t row = 0; row < rows; ++row) {
    const T *in = scores + row * width, *hidden = mask + row / per_example * width;
    T *out = probs + row * width;
    T top = -INFINITY, sum = 0;
#pragma omp simd reduction(max : top)
    for (int64_t i = 0; i < width; ++i) {
      out[i] = in[i] * scale + hidden[i];
      top = std::max(top, out[i]);
    }
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < width; ++i) {
      out[i] = exp_of(out[i] - top);
      sum += out[i];
    }
    const T factor = T(1) / sum;
#pragma omp simd
    for (int64_t i = 0; i < width; ++i) out[i] *= factor;
  }
}

template <typename T>
void softmax_backward(const T *probs, const T *grad, T *to_scores, int64_t rows, int64_t width,
                      T scale) {
#pragma omp parallel for schedule(static)
  for (int64_t row = 0; row < rows; ++row) {
    const T *p = probs + row * width, *g = grad + row * width;
    T *out = to_scores + row * width;
    T inner = 0;
#pragma omp simd reduction(+ : inner)
    for (int64_t i = 0; i < width; ++i) inner += p[i] * g[i];
#pragma omp simd
    for (int64_t i = 0; i < width; ++i) out[i] = scale * p[i] * (g[i] - inner);
  }
}

template <typename T>
void bias_forward(const T *x, const T *bias, T *y, int64_t rows, int64_t width) {
#pragma omp parallel for schedule(static)
  for (int64_t row = 0; row < rows; ++row) {
#pragma omp simd
    for (int64_t i = 0; i < width; ++i) y[row * width + i] = x[row * width + i] + bias[i];
  }
}

template <typename T>
void bias_backward(const T *grad, T *to_bias, int64_t rows, int64_t width) {
  sum_rows<T>(rows, width, to_bias, [&](int64_t row, T *sums) {
#pragma omp simd
    for (int64_t i = 0; i < width; ++i) sums[i] += grad[row * width + i];
  });
}

// The hash of a whole number: Chris Wellons' two-round function with Ellis' constants.
inline uint32_t mix(uint32_t x) {
  x = (x ^ (x >> 16)) * 0x21f0aaadu;
  x = (x ^ (x >> 15)) * 0x735a2d97u;
  return x ^ (x >> 15);
}

// Element i is kept by a hash of (seed, i) alone, so that the backward pass finds the same mask again.
template <typename T>
void dropout(const T *x, T *y, int64_t size, double p, int64_t seed) {
  const auto bound = static_cast<uint32_t>(std::min(p * 4294967296.0, 4294967295.0));
  const T factor = T(1 / (1 - p));
  constexpr int64_t kPart = int64_t(1) << 16;
#pragma omp parallel for schedule(static)
  for (int64_t part = 0; part < (size + kPart - 1) / kPart; ++part) {
    const uint32_t low = mix(static_cast<uint32_t>(seed) + mix(static_cast<uint32_t>(part)));
    const uint32_t high = mix(static_cast<uint32_t>(seed >> 32) ^ low);
    const int64_t start = part * kPart, length = std::min(kPart, size - start);
#pragma omp simd
    for (int64_t i = 0; i < length; ++i) {
      const uint32_t drawn = mix(mix(static_cast<uint32_t>(i) + low) ^ high);
      y[start + i] = drawn >= bound ? x[start + i] * factor : T(0);
    }
  }
}

}  // namespace

#define FOR_FLOATS(tensor, ...) PD_DISPATCH_FLOATING_TYPES((tensor).type(), "native", ([&] { __VA_ARGS__; }))

std::vector<Tensor> GeluForward(const Tensor &x) {
  Tensor y = paddle::empty_like(x);
  FOR_FLOATS(x, gelu_forward<data_t>(x.data<data_t>(), y.data<data_t>(), x.numel()));
  return {y};
}

std::vector<Tensor> GeluBackward(const Tensor &x, const Tensor &grad) {
  Tensor to_x = paddle::empty_like(x);
  FOR_FLOATS(x, gelu_backward<data_t>(x.data<data_t>(), grad.data<data_t>(), to_x.data<data_t>(),
                                      x.numel()));
  return {to_x};
}

std::vector<Tensor> NormForward(const Tensor &x, const Tensor &weight, const Tensor &bias,
                                const std::string &epsilon) {
  const int64_t width = last_axis(x), rows = width ? x.numel() / width : 0;
  require(weight.numel() == width && bias.numel() == width,
          "layer norm: weight and bias have one number for each feature of the last axis");
  Tensor y = paddle::empty_like(x);
  Tensor mean = paddle::empty({rows}, x.dtype(), x.place());
  Tensor scale = paddle::empty({rows}, x.dtype(), x.place());
  FOR_FLOATS(x, norm_forward<data_t>(x.data<data_t>(), weight.data<data_t>(), bias.data<data_t>(),
                                     y.data<data_t>(), mean.data<data_t>(), scale.data<data_t>(),
                                     rows, width, static_cast<data_t>(std::stod(epsilon))));
  return {y, mean, scale};
}

std::vector<Tensor> NormBackward(const Tensor &x, const Tensor &weight, const Tensor &mean,
                                 const Tensor &scale, const Tensor &grad) {
  const int64_t width = last_axis(x), rows = width ? x.numel() / width : 0;
  Tensor to_x = paddle::empty_like(x);
  Tensor to_weight = paddle::empty_like(weight), to_bias = paddle::empty_like(weight);
  FOR_FLOATS(x, norm_backward<data_t>(x.data<data_t>(), weight.data<data_t>(), mean.data<data_t>(),
                                      scale.data<data_t>(), grad.data<data_t>(),
                                      to_x.data<data_t>(), to_weight.data<data_t>(),
                                      to_bias.data<data_t>(), rows, width));
  return {to_x, to_weight, to_bias};
}

std::vector<Tensor> SoftmaxForward(const Tensor &scores, const Tensor &mask, int64_t head_size) {
  const auto shape = scores.shape();
  require(shape.size() == 4 && mask.numel() == shape[0] * shape[3],
          "masked softmax: scores (B, H, L, S) and a mask (B, 1, 1, S) are expected");
  const int64_t width = shape[3], rows = width ? scores.numel() / width : 0;
  Tensor probs = paddle::empty_like(scores);
  FOR_FLOATS(scores, softmax_forward<data_t>(scores.data<data_t>(), mask.data<data_t>(),
                                             probs.data<data_t>(), rows, shape[1] * shape[2],
                                             width, scale_of<data_t>(head_size)));
  return {probs};
}

std::vector<Tensor> SoftmaxBackward(const Tensor &probs, const Tensor &grad, int64_t head_size) {
  const int64_t width = probs.shape()[3], rows = width ? probs.numel() / width : 0;
  Tensor to_scores = paddle::empty_like(probs);
  FOR_FLOATS(probs, softmax_backward<data_t>(probs.data<data_t>(), grad.data<data_t>(),
                                             to_scores.data<data_t>(), rows, width,
                                             scale_of<data_t>(head_size)));
  return {to_scores};
}

std::vector<Tensor> BiasForward(const Tensor &x, const Tensor &bias) {
  const int64_t width = last_axis(x), rows = width ? x.numel() / width : 0;
  require(bias.numel() == width, "bias: one number for each feature of the last axis is expected");
  Tensor y = paddle::empty_like(x);
  FOR_FLOATS(x, bias_forward<data_t>(x.data<data_t>(), bias.data<data_t>(), y.data<data_t>(), rows,
                                     width));
  return {y};
}

std::vector<Tensor> BiasBackward(const Tensor &bias, const Tensor &grad) {
  const int64_t width = bias.numel(), rows = width ? grad.numel() / width : 0;
  Tensor to_bias = paddle::empty_like(bias);
  FOR_FLOATS(bias, bias_backward<data_t>(grad.data<data_t>(), to_bias.data<data_t>(), rows, width));
  return {grad, to_bias};
}

std::vector<Tensor> Dropout(const Tensor &x, const std::string &p, int64_t seed) {
  const double share = std::stod(p);
  require(0 < share && share < 1, "dropout: 0 < p < 1 is expected");
  Tensor y = paddle::empty_like(x);
  FOR_FLOATS(x, dropout<data_t>(x.data<data_t>(), y.data<data_t>(), x.numel(), share, seed));
  return {y};
}

PD_BUILD_OP(native_gelu)
    .Inputs({"X"})
    .Outputs({"Y"})
    .SetKernelFn(PD_KERNEL(GeluForward));
PD_BUILD_GRAD_OP(native_gelu)
    .Inputs({"X", paddle::Grad("Y")})
    .Outputs({paddle::Grad("X")})
    .SetKernelFn(PD_KERNEL(GeluBackward));

std::vector<std::vector<int64_t>> NormShapes(const std::vector<int64_t> &x,
                                             const std::vector<int64_t> &,
                                             const std::vector<int64_t> &, const std::string &) {
  int64_t rows = 1;
  for (size_t axis = 0; axis + 1 < x.size(); ++axis) rows *= x[axis];
  return {x, {rows}, {rows}};
}

std::vector<paddle::DataType> NormTypes(const paddle::DataType &x, const paddle::DataType &,
                                        const paddle::DataType &) {
  return {x, x, x};
}

PD_BUILD_OP(native_layer_norm)
    .Inputs({"X", "Weight", "Bias"})
    .Outputs({"Y", "Mean", "Scale"})
    .Attrs({"epsilon: std::string"})
    .SetKernelFn(PD_KERNEL(NormForward))
    .SetInferShapeFn(PD_INFER_SHAPE(NormShapes))
    .SetInferDtypeFn(PD_INFER_DTYPE(NormTypes));
PD_BUILD_GRAD_OP(native_layer_norm)
    .Inputs({"X", "Weight", "Mean", "Scale", paddle::Grad("Y")})
    .Outputs({paddle::Grad("X"), paddle::Grad("Weight"), paddle::Grad("Bias")})
    .SetKernelFn(PD_KERNEL(NormBackward));

std::vector<std::vector<int64_t>> ScoreShape(const std::vector<int64_t> &x,
                                             const std::vector<int64_t> &, const int64_t &) {
  return {x};
}

std::vector<paddle::DataType> FirstType(const paddle::DataType &x, const paddle::DataType &) {
  return {x};
}

PD_BUILD_OP(native_softmax)
    .Inputs({"Scores", "Mask"})
    .Outputs({"Probs"})
    .Attrs({"head_size: int64_t"})
    .SetKernelFn(PD_KERNEL(SoftmaxForward))
    .SetInferShapeFn(PD_INFER_SHAPE(ScoreShape))
    .SetInferDtypeFn(PD_INFER_DTYPE(FirstType));
PD_BUILD_GRAD_OP(native_softmax)
    .Inputs({"Probs", paddle::Grad("Probs")})
    .Outputs({paddle::Grad("Scores")})
    .Attrs({"head_size: int64_t"})
    .SetKernelFn(PD_KERNEL(SoftmaxBackward));

std::vector<std::vector<int64_t>> FirstShape(const std::vector<int64_t> &x,
                                             const std::vector<int64_t> &) {
  return {x};
}

PD_BUILD_OP(native_bias)
    .Inputs({"X", "Bias"})
    .Outputs({"Y"})
    .SetKernelFn(PD_KERNEL(BiasForward))
    .SetInferShapeFn(PD_INFER_SHAPE(FirstShape))
    .SetInferDtypeFn(PD_INFER_DTYPE(FirstType));
PD_BUILD_GRAD_OP(native_bias)
    .Inputs({"Bias", paddle::Grad("Y")})
    .Outputs({paddle::Grad("X"), paddle::Grad("Bias")})
    .SetKernelFn(PD_KERNEL(BiasBackward));

PD_BUILD_OP(native_dropout)
    .Inputs({"X"})
    .Outputs({"Y"})
    .Attrs({"p: std::string", "seed: int64_t"})
    .SetKernelFn(PD_KERNEL(Dropout));
PD_BUILD_GRAD_OP(native_dropout)
    .Inputs({paddle::Grad("Y")})
    .Outputs({paddle::Grad("X")})
    .Attrs({"p: std::string", "seed: int64_t"})
    .SetKernelFn(PD_KERNEL(Dropout));
