"""Every setting that a `pt_*` script and its `pd_*` twin must have in common. Imports nothing."""

SEED = 42
STRICT_DTYPE = "float64"  # of the records that the strict verdict compares
DTYPES = (STRICT_DTYPE, "float32")  # float64 first: Paddle reuses its memory for float32
FAKE_SHAPE = (4, 64)  # sentences, tokens
FAKE_LABELS = (0, 1, 1, 0)
NUM_LABELS = 2

MAX_LENGTH = 128  # tokens; longer sentences are cut
EVAL_BATCH_SIZE = 6  # does not divide the 32 demo sentences: a short last batch must be kept
TRAIN_BATCH_SIZE = 16  # nor this the 330 training sentences
ORDER_EPOCHS = 2  # how many epochs of the training order Step 2 compares

# The losses of Step 3, beside the plain cross entropy
LABEL_SMOOTHING = 0.1
CLASS_WEIGHTS = (0.3, 1.7)
IGNORE_INDEX = -100
SOFT_LABELS = ((0.9, 0.1), (0.2, 0.8), (0.4, 0.6), (0.7, 0.3))  # a row for each fake sentence

# AdamW, in Steps 4 and 5. The epsilon is the reference's (transformers' former AdamW); neither
# framework's own default may be left to chance: torch.optim.AdamW has 1e-8.
LEARNING_RATE = 3e-5
BETAS = (0.9, 0.999)
EPSILON = 1e-6
WEIGHT_DECAY = 1e-2
NO_DECAY = ("bias", "LayerNorm.weight")  # parameters with one of these in their name do not decay
BP_ITERATIONS = 10

# The learning-rate curves of Step 4
SCHEDULE_STEPS = 1024
SCHEDULE_WARMUP = 345
STEP_SIZE = 100
GAMMA = 0.5

WARMUP_PROPORTION = 0.1  # of the training steps, in Step 5
ACCURACY_THRESHOLD = 0.0015  # guide, section 3.11: an SST-2 accuracy may differ by 0.15 %
