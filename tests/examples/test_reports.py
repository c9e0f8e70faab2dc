"""The zoo's bug reports: the folders are current, the scripts stand alone, and the patches fit and mend."""

import ast
import os
import random
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from examples.zoo.mending import load_faults
from examples.zoo.reports import (
    FOLDER,
    RELEASES,
    Report,
    copy_patched,
    find_root,
    is_proven,
    list_all,
    list_known,
    list_reports,
    main,
    make_files,
    make_index,
    make_patch,
    make_script,
    read_printed,
    run_both,
    run_script,
)

import pytest

REPORTS = list_all()
PACKAGES = {"paddlenlp", "paddle", "paddleclas", "ppdiffusers"}


def is_installed(key: str) -> bool:
    try:
        return find_root(key).exists()
    except ImportError:
        return False


INSTALLED = [report for report in REPORTS if is_installed(report.key)]
# Two of the seconds that a sample may take: one of a big package, one of Paddle's own.
SAMPLE = [
    random.Random(28).choice([report for report in INSTALLED if report.key == key])
    for key in ("paddlenlp", "paddle.vision")
    if is_installed(key)
]


def read_patch(report: Report) -> str:
    return (FOLDER / report.key / f"{report.name}.patch").read_bytes().decode("utf-8")


def list_imports(script: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(script)):
        if isinstance(node, ast.Import):
            yield from (name.name.partition(".")[0] for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield (node.module or "").partition(".")[0]


def test_each_mistake_has_a_report_and_a_symptom() -> None:
    faults = [fault for found in load_faults().values() for fault in found]
    assert len(REPORTS) == sum(not fault.design for fault in faults) >= 106
    assert [fault for fault in faults if (fault.symptom is None) != fault.design] == []
    assert len({report.path for report in REPORTS}) == len(REPORTS)


@pytest.mark.parametrize("key", RELEASES)
def test_a_folder_is_current(key: str) -> None:
    files = {f"README{end}": make_index(key, read_printed(), at)
             for at, end in enumerate((".md", "_cn.md"))}  # fmt: skip
    for report in list_known(key):
        patch = make_patch(report) if is_installed(key) else read_patch(report)
        files |= dict(make_files(report, patch))
    kept = {path.name: path.read_bytes().decode("utf-8") for path in (FOLDER / key).iterdir()}
    assert sorted(kept) == sorted(files)
    assert [name for name in files if kept[name] != files[name]] == [], (
        "run: python -m examples.zoo.reports"
    )


@pytest.mark.parametrize("report", REPORTS, ids=lambda report: report.path)
def test_a_script_needs_its_package_alone(report: Report) -> None:
    script = make_script(report)
    assert {*list_imports(script)} <= PACKAGES
    assert 10 <= len(script.splitlines()) <= 27


def test_every_report_is_proven() -> None:
    printed = read_printed()
    assert sorted(printed) == sorted(report.path for report in REPORTS)
    assert [report.path for report in REPORTS if not is_proven(report, printed)] == []


@pytest.mark.parametrize("report", INSTALLED, ids=lambda report: report.path)
def test_git_takes_the_patch(report: Report, tmp_path: Path) -> None:
    """In a checkout, and in site-packages as the report says."""
    source = (find_root(report.key) / report.file).read_bytes()
    for file, apply in (
        (report.file_upstream, "git apply"),
        (report.file, report.release.apply),
    ):
        folder = tmp_path / str(len([*tmp_path.iterdir()]))
        (folder / file).parent.mkdir(parents=True)
        (folder / file).write_bytes(source)
        patch = FOLDER / report.key / f"{report.name}.patch"
        variables = {**os.environ, "GIT_CEILING_DIRECTORIES": str(tmp_path)}
        finished = subprocess.run(
            [*apply.split(), "--check", str(patch)], cwd=folder, env=variables, capture_output=True
        )
        assert finished.returncode == 0, finished.stderr


@pytest.mark.parametrize("file", sorted({report.file for report in INSTALLED}))
def test_the_patches_of_a_file_apply_in_order(file: str, tmp_path: Path) -> None:
    reports = [report for report in INSTALLED if report.file == file]
    source = reports[0].read_source()
    path = tmp_path / reports[0].file_upstream
    path.parent.mkdir(parents=True)
    path.write_bytes(source.encode("utf-8"))
    mended = source.replace("\r\n", "\n")
    for report in reports:
        mended = report.fault.edit(mended)
        patch = FOLDER / report.key / f"{report.name}.patch"
        variables = {**os.environ, "GIT_CEILING_DIRECTORIES": str(tmp_path.parent)}
        subprocess.run(["git", "apply", "-C1", str(patch)], cwd=tmp_path, env=variables, check=True)
    assert path.read_bytes().decode("utf-8").replace("\r\n", "\n") == mended


def test_git_refuses_a_patch_of_another_source(tmp_path: Path) -> None:
    report = INSTALLED[0]
    with pytest.raises(subprocess.CalledProcessError):
        copy_patched(report, read_patch(report).replace("-        end", "-        start"), tmp_path)


@pytest.mark.parametrize("report", SAMPLE, ids=lambda report: report.path)
def test_a_script_prints_what_its_report_says(report: Report) -> None:
    kept = read_printed()[report.path]
    assert run_script(report, make_script(report)) == (kept["release"], int(kept["exit"]))


def test_a_patch_that_mends_nothing_proves_nothing() -> None:
    """Another fault's patch of the same file: the script still fails."""
    report = next(one for one in INSTALLED if one.path == "paddle.vision/05_squeezenet1_1")
    other = next(one for one in INSTALLED if one.path == "paddle.vision/02_squeezenet1_0")
    mixed = replace(report, fault=replace(report.fault, edits=other.fault.edits))
    assert not is_proven(mixed, {mixed.path: run_both(mixed)})


def test_the_command_refuses_a_report_that_it_does_not_know(capsys) -> None:
    assert main(["no_such_package"]) == 2
    assert "no_such_package" in capsys.readouterr().out


def test_what_is_so_by_design_has_no_report() -> None:
    fault = replace(REPORTS[0].fault, design=True)
    assert list_reports("paddlenlp", [fault, REPORTS[1].fault]) == [
        Report("paddlenlp", 1, REPORTS[1].fault)
    ]


@pytest.mark.longer
@pytest.mark.parametrize("report", INSTALLED, ids=lambda report: report.path)
def test_a_script_fails_on_the_release_and_passes_with_the_patch(report: Report) -> None:
    assert run_both(report) == read_printed()[report.path]
