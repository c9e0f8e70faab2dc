"""A training by Paddle, as a recipe says. `backends.torch.recipe` has the same lines."""

from typing import Any

from reprod_align.backends.paddle import side
from reprod_align.backends.recipes import Recipe, choose_outputs, draw_labels, draw_weights
from reprod_align.errors import ReprodError

import paddle


def loss(recipe: Recipe, output: Any) -> paddle.Tensor:
    """Return the loss of a model's output, a scalar."""
    outputs = choose_outputs(output, side.is_tensor, lambda one: one.is_floating_point())
    if recipe.loss == "weighted_sum":
        weights = [
            draw_weights(recipe, n, tuple(one.shape)) for n, one in enumerate(outputs.values())
        ]
        return side.weighted_sum(outputs.values(), weights)
    logits = next(iter(outputs.values()))  # (..., C)
    labels = paddle.to_tensor(draw_labels(recipe, tuple(logits.shape[:-1])))
    classes = logits.shape[-1]
    return paddle.nn.functional.cross_entropy(logits.reshape([-1, classes]), labels.reshape([-1]))


def optimizer(recipe: Recipe, model: paddle.nn.Layer) -> Any:
    """Return a new optimizer of the model's parameters."""
    trained = [one for one in model.parameters() if not one.stop_gradient]
    if recipe.optimizer == "sgd":
        return paddle.optimizer.SGD(
            recipe.rate, parameters=trained, weight_decay=recipe.weight_decay or None
        )
    return paddle.optimizer.AdamW(
        recipe.rate, epsilon=1e-8, parameters=trained, weight_decay=recipe.weight_decay
    )


def save(model: paddle.nn.Layer, path: str) -> None:
    """Write the model's state dict as .pdparams."""
    paddle.save(model.state_dict(), path)


def restore(model: paddle.nn.Layer, path: str) -> None:
    """Load a state dict. Raises ReprodError where a name is missing or left over."""
    missing, unexpected = model.set_state_dict(paddle.load(path))
    if missing or unexpected:
        raise ReprodError(f"the checkpoint lacks {missing[:3]}, and has {unexpected[:3]} too many")
