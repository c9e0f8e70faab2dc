"""From PyTorch source to a proven Paddle port: draft, weights, proof, and the edits in between."""
