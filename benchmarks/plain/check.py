"""The check of a step: reprod_log's comparison of what both sides saved."""

import sys

from reprod_log import ReprodDiffHelper

name, folder = sys.argv[1], f"{sys.argv[2]}/plain"
helper = ReprodDiffHelper()
torch_info = helper.load_info(f"{folder}/{name}_torch.npy")
paddle_info = helper.load_info(f"{folder}/{name}_paddle.npy")
helper.compare_info(torch_info, paddle_info)
threshold = 0.0015 if name == "train_align" else 1e-6
helper.report(path=f"{folder}/{name}_diff.log", diff_threshold=threshold)
