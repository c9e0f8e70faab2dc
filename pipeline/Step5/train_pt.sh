#!/bin/sh
# Fine-tune on SST-2, torch side: train_pt.sh --data-dir DIR. Stopped, by SIGTERM, kill -9 or a power cut, the same
# command goes on where it was. Options of your own come last and win: train_pt.sh --data-dir DIR --epochs 1
# NPROC=4 in the environment: in four processes, a GPU each with --device gpu. LAUNCH holds the launcher's other options.
set -eu
launch=
[ "${NPROC:-1}" = 1 ] || launch="-m torch.distributed.run --nproc_per_node $NPROC ${LAUNCH:-}"
exec python $launch "$(dirname "$0")/pt_train_many.py" \
    --epochs 3 --batch-size 32 --max-length 128 \
    --lr 3e-5 --weight-decay 0.01 --scheduler linear --warmup 0.1 --clip 1.0 \
    --seed 42 --dtype float32 --device cpu \
    --log-every 1 --save-every 200 --output runs/sst2 \
    "$@"
