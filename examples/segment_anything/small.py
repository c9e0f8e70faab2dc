"""Segment Anything as a fine-tuning script calls it, of a size that a test can run.

`modeling/` and `LICENSE` are those of github.com/facebookresearch/segment-anything, unchanged. The
repository's own `Sam.forward` takes no gradients; here its parts are called as that method does, so that a
port is compared in these too.
"""

from functools import partial

import numpy as np
from torch import nn

from .modeling import ImageEncoderViT, MaskDecoder, PromptEncoder, Sam, TwoWayTransformer

SIZE, PATCH, WIDTH = 32, 8, 16


class Segmenter(nn.Module):
    """Masks of an image for points and a box."""

    def __init__(self):
        """Make the model; the repository's `build_sam.py` makes its larger ones in the same way."""
        super().__init__()
        grid = SIZE // PATCH
        self.sam = Sam(
            ImageEncoderViT(
                img_size=SIZE, patch_size=PATCH, embed_dim=24, depth=2, num_heads=2, out_chans=WIDTH,
                norm_layer=partial(nn.LayerNorm, eps=1e-6), use_rel_pos=True, window_size=3,
                global_attn_indexes=(1,),
            ),
            PromptEncoder(
                embed_dim=WIDTH, image_embedding_size=(grid, grid), input_image_size=(SIZE, SIZE),
                mask_in_chans=4,
            ),
            MaskDecoder(
                transformer=TwoWayTransformer(depth=2, embedding_dim=WIDTH, num_heads=2, mlp_dim=32),
                transformer_dim=WIDTH, iou_head_hidden_dim=16,
            ),
        )  # fmt: skip

    def forward(self, image, points, labels, boxes):
        """Return masks (N, 3, SIZE, SIZE) and what their quality is expected to be (N, 3).

        image: (1, 3, SIZE, SIZE), 0 to 255; points: (N, P, 2), pixels; labels: (N, P), 1 inside and
        0 outside; boxes: (N, 4), two corners each.
        """
        sam = self.sam
        embeddings = sam.image_encoder(sam.preprocess(image))
        sparse, dense = sam.prompt_encoder(points=(points, labels), boxes=boxes, masks=None)
        masks, quality = sam.mask_decoder(
            image_embeddings=embeddings, image_pe=sam.prompt_encoder.get_dense_pe(),
            sparse_prompt_embeddings=sparse, dense_prompt_embeddings=dense, multimask_output=True,
        )  # fmt: skip
        return sam.postprocess_masks(masks, (SIZE, SIZE), (SIZE, SIZE)), quality


def make_inputs():
    """Return an image and two prompts."""
    drawn = np.random.default_rng(0)
    return {
        "image": drawn.uniform(0, 255, (1, 3, SIZE, SIZE)),
        "points": drawn.uniform(2, SIZE - 2, (2, 3, 2)),
        "labels": np.array([[1, 0, 1], [0, 0, 1]]),
        "boxes": np.array([[4.0, 5.0, 20.0, 25.0], [8.0, 2.0, 30.0, 18.0]]),
    }
