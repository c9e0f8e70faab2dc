"""The numbers that both sides share."""

from pathlib import Path

HERE = Path(__file__).resolve().parent
STRICT_DTYPE = "float64"
DTYPES = (STRICT_DTYPE, "float32")
SEED = 2021
BATCH_SIZE = 8
LEARNING_RATE = 1e-4  # halved after every epoch, as in the original
ITERATIONS = 10  # of the backward scripts
LENGTHS = (96, 48, 24)  # seq_len, label_len, out_len
SIZES = {"d_model": 32, "n_heads": 4, "e_layers": 2, "d_layers": 1, "d_ff": 64, "dropout": 0.05}
STACK_LAYERS = [2, 1]
STEPS = ("forward", "data", "metric", "loss", "backward", "train")  # pt_*.py, pd_*.py, check_*.py
