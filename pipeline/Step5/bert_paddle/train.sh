#!/bin/sh
# The guide's name; the line below says ours.
echo "pipeline/Step5/bert_paddle/train.sh has another name here: from the repository's root, sh pipeline/Step5/train_pd.sh" >&2
exit 2
