"""What records were made with."""

import platform
from datetime import UTC, datetime, timedelta
from importlib.metadata import version
from pathlib import Path

from reprod_align.records.gate import describe_making, digest, list_versions


def test_digests_and_versions(tmp_path: Path) -> None:
    (tmp_path / "weights").mkdir()
    weights, record = tmp_path / "weights" / "x.bin", tmp_path / "loss_torch.npy"
    weights.write_bytes(b"1")
    record.write_bytes(b"2")
    made = describe_making(
        {"loss_torch.npy": record}, {"torch": [weights, tmp_path / "none"], "paddle": []}
    )
    assert made["records"] == {"loss_torch.npy": digest(record)}
    assert made["sources"] == {"torch": {"weights/x.bin": digest(weights)}, "paddle": {}}
    assert made["versions"] == list_versions()
    written = datetime.strptime(made["date"], "%Y-%m-%dT%H:%M:%S%z")
    assert abs(datetime.now(UTC) - written) < timedelta(days=1)
    for package in ("numpy", "reprod_log"):
        assert list_versions()[package] == version(package)
    assert list_versions()["python"] == platform.python_version()
    assert digest(weights) == "6b86b273ff34fce19d6b804eff5a3f5747ada4eaa22f1d49c01e52ddb7875b4b"
