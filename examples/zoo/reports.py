"""Bug reports for a port's maintainers: docs/zoo/PACKAGE, a text, a script and a patch each, and an index.

python -m examples.zoo.reports [WORD ...] [--run]

--run runs each script whose report's name begins with a WORD (all without one) on the release and on the
release with the patch, and keeps what both print in docs/results/reports.json. The folders are then
written from the faults and from there.
"""

import argparse
import difflib
import json
import os
import re
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from examples.zoo.chinese import SENTENCES
from examples.zoo.environments import find_python
from examples.zoo.mending import Fault, load_faults
from examples.zoo.results import GOOD, STORE, Row, load
from examples.zoo.tables import BY_KEY
from examples.zoo.transformers_table import ARCHITECTURES

FOLDER: Final = STORE.parents[1] / "zoo"
PRINTED: Final = STORE.with_name("reports.json")
ENDS: Final = (".md", "_cn.md")
_WIDTH: Final = 108
_PATIENCE: Final = 600


@dataclass(frozen=True)
class Release:
    """A release of a package, and where its files lie upstream."""

    name: str
    needs: str
    """what its scripts need, as pip takes it"""
    repository: str
    installed: str
    """what the files' paths begin with in site-packages"""
    upstream: str
    """and in the repository"""
    apply: str
    """what applies a patch in site-packages"""
    original: str
    """the package that it ports, with the release that was compared"""


# Releases with which paddlenlp 2.8.1 imports (ppdiffusers wants an older hub); pip alone chooses later ones.
_IMPORTABLE: Final = "aistudio-sdk==0.2.6 huggingface_hub==0.36.2 datasets==3.6.0 pyarrow==20.0.0"
RELEASES: Final[Mapping[str, Release]] = {
    "paddlenlp": Release(
        "PaddleNLP 2.8.1", f"paddlepaddle==3.3.1 paddlenlp==2.8.1 {_IMPORTABLE}", "PaddlePaddle/PaddleNLP",
        "paddlenlp/", "paddlenlp/", "git apply", "transformers 4.57.6",
    ),
    "paddle.vision": Release(
        "Paddle 3.3.1", "paddlepaddle==3.3.1", "PaddlePaddle/Paddle",
        "paddle/", "python/paddle/", "git apply -p2", "torchvision 0.28.0",
    ),
    "paddleclas": Release(
        "PaddleClas 2.6.0", "paddlepaddle==3.3.1 paddleclas==2.6.0", "PaddlePaddle/PaddleClas",
        "paddleclas/ppcls/", "ppcls/", "git apply --directory=paddleclas", "timm 1.0.31, torchvision 0.28.0",
    ),
    "ppdiffusers": Release(
        "ppdiffusers 0.29.0",
        f"paddlepaddle==3.3.1 ppdiffusers==0.29.0 {_IMPORTABLE.replace('0.36.2', '0.25.2')}",
        "PaddlePaddle/PaddleMIX",
        "ppdiffusers/", "ppdiffusers/ppdiffusers/", "git apply -p2", "diffusers 0.29.2",
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Report:
    """A fault of a package, and its number there."""

    key: str
    number: int
    fault: Fault

    @property
    def name(self) -> str:
        """The name of its files."""
        first = self.fault.pairs.split(", ")[0]
        words = re.sub(r"\W+", "_", first).lower()
        return f"{self.number:02}_{words}"

    @property
    def path(self) -> str:
        """Its name with its package: the key of what its script printed."""
        return f"{self.key}/{self.name}"

    @property
    def release(self) -> Release:
        """The release that has the fault."""
        return RELEASES[self.key]

    @property
    def file(self) -> str:
        """The fault's source, from site-packages on."""
        return f"{self.fault.module.replace('.', '/')}.py"

    @property
    def file_upstream(self) -> str:
        """The fault's source in its repository."""
        return self.release.upstream + self.file.removeprefix(self.release.installed)

    def make_title(self, language: int = 0) -> str:
        """Return the class and the first clause of what is wrong."""
        said = translate(self.fault.what, language)
        clause = re.split("[：；]" if language else ": |; ", said)[0]
        return f"{self.fault.within or find_class(self.fault)}{'：' if language else ': '}{clause}"

    def read_source(self) -> str:
        """Return the release's source with its own line ends. Raises ImportError if it is not installed."""
        return (find_root(self.key) / self.file).read_bytes().decode("utf-8")


def list_reports(key: str, faults: Sequence[Fault]) -> list[Report]:
    """Return the reports of a package's faults; what is so by design has none."""
    mistakes = [fault for fault in faults if not fault.design]
    return [Report(key, number, fault) for number, fault in enumerate(mistakes, 1)]


def list_known(key: str) -> list[Report]:
    """Return the reports of a package's known faults."""
    return list_reports(key, load_faults()[key])


def list_all() -> list[Report]:
    """Return the reports of every package."""
    return [report for key in RELEASES for report in list_known(key)]


def translate(text: str, language: int) -> str:
    """Return a sentence in a language: 0 English, 1 Chinese."""
    return SENTENCES[text] if language else text


def find_root(key: str) -> Path:
    """Return the folder in which a package is installed. Raises ImportError where it is not."""
    package = RELEASES[key].installed.partition("/")[0]
    environment = BY_KEY[key].environments[1]
    if not environment:
        found = (Path(folder) for folder in sys.path)
    else:
        found = find_python(environment).parents[1].glob("lib/python*/site-packages")
    for root in found:
        if (root / package / "__init__.py").exists():
            return root
    raise ImportError(f"{package} is not installed")


def find_class(fault: Fault) -> str:
    """Return the class of the port that the first pair builds; "" where no table names it."""
    name, _, head = fault.pairs.split(", ")[0].partition(" ")
    for each in ARCHITECTURES:
        if each.name == name:
            heads = dict(one.partition("=")[::2] for one in each.heads.split())
            return f"{each.paddle or each.torch}{heads[head] or head}"
    return name


# Scripts


def make_script(report: Report) -> str:
    """Return a script that prints what is expected and what is got, and exits 1 with the fault."""
    symptom = report.fault.symptom
    if symptom is None:
        raise ValueError(f"{report.path}: by design, without a symptom")
    title = textwrap.fill(f'"""{report.make_title()}."""', _WIDTH)
    body = [
        f"{title}\n# pip install {report.release.needs}",
        f"import paddle\n{_build(report)}",
        symptom.lines,
        f"got = {symptom.got}\nexpected = {symptom.expected}",
        f'print("{symptom.what}")\nprint(f"expected: {{expected}}\\ngot:      {{got}}")',
        "raise SystemExit(got != expected)",
    ]
    return "\n".join(part for part in body if part) + "\n"


def _build(report: Report) -> str:
    """Return the lines that import and build the port."""
    symptom, seed = report.fault.symptom, "\npaddle.seed(0)"
    assert symptom is not None
    if symptom.make and symptom.make.startswith("from "):
        imports, _, made = symptom.make.partition("\n")
        return f"{imports}\n{seed}\n{made.strip()}".rstrip()
    name = find_class(report.fault)
    name_of_config, settings = _configure(report)
    given = ", ".join(f"{key}={value!r}" for key, value in settings.items())
    made = f"model = {name}(config)\nmodel.eval()" if symptom.make is None else symptom.make
    lines = textwrap.wrap(given, _WIDTH - 4, break_long_words=False, break_on_hyphens=False)
    config = "\n".join(f"    {line}" for line in lines)
    imports = f"from paddlenlp.transformers import {name_of_config}, {name}"
    return f"{imports}\n{seed}\nconfig = {name_of_config}(\n{config}\n)\n{made}".rstrip()


def _configure(report: Report) -> tuple[str, dict[str, object]]:
    """Return the configuration's class and its settings."""
    symptom = report.fault.symptom
    assert symptom is not None
    name = report.fault.pairs.split()[0]
    found = next(each for each in ARCHITECTURES if each.name == name)
    settings = {**found.settings, **found.paddle_only, **symptom.settings}
    return f"{found.paddle or found.torch}Config", settings


# Patches


def make_patch(report: Report) -> str:
    """Return a patch of the file in the repository. Raises ImportError where the release is not installed."""
    source = report.read_source()
    ended = "\r\n" if "\r\n" in source else "\n"
    mended = report.fault.edit(source.replace("\r\n", "\n")).replace("\n", ended)
    both = (text.splitlines(keepends=True) for text in (source, mended))
    at = report.file_upstream
    return "".join(difflib.unified_diff(*both, f"a/{at}", f"b/{at}"))


# Texts


def make_text(report: Report, printed: Mapping[str, Mapping[str, str]], rows: Mapping[str, Row],
              patch: str, language: int) -> str:  # fmt: skip
    """Return the report, ready to be sent."""
    release, words = report.release, _WORDS[language]
    found = printed.get(report.path, {})
    shown = [name for name in report.fault.pairs.split(", ") if f"{report.key}: {name}" in rows]
    verdicts = [(name, rows[f"{report.key}: {name}"].without) for name in shown]
    good = [f"`{name}`" for name, verdict in verdicts if verdict in GOOD]
    parts = [
        f"# {report.make_title(language)}",
        words["versions"].format(release=release, file=report.file_upstream, line=report.fault.find_line()),
        f"{translate(report.fault.what, language)}{'.。'[language]}",
        f"## {words['script']}", f"```python\n{make_script(report).rstrip()}\n```",
        words["printed"], f"```text\n{found.get('release', '')}\n```",
        words["patched"], f"```text\n{found.get('patched', '')}\n```",
        f"## {words['patch']}", f"```diff\n{patch.replace(chr(13), '').rstrip()}\n```",
        words["apply"].format(release=release, name=report.name),
    ]  # fmt: skip
    if good:
        pairs = ("、" if language else ", ").join(good)
        parts.append(words["checked"].format(release=release, pairs=pairs))
    if report.fault.left:
        parts.append(words["left"].format(left=translate(report.fault.left, language)))
    return "\n\n".join(parts) + "\n"


def make_index(key: str, printed: Mapping[str, Mapping[str, str]], language: int) -> str:
    """Return the index of a package's reports."""
    reports, words, release = list_known(key), _WORDS[language], RELEASES[key]
    states = [is_proven(report, printed) for report in reports]
    twin = f"[{('中文', 'English')[language]}](README{ENDS[1 - language]})"
    head = words["index"].format(release=release, all=len(reports), proven=sum(states))
    lines = [
        f"| {report.number} | [{report.make_title(language)}]({report.name}{ENDS[language]}) | "
        f"`{report.file_upstream}:{report.fault.find_line()}` | {words['proven' if state else 'open']} |"
        for report, state in zip(reports, states, strict=True)
    ]
    title = words["title"].format(release=release)
    return "\n".join([f"# {title}", "", twin, "", head, "", words["columns"], *lines, ""])


def is_proven(report: Report, printed: Mapping[str, Mapping[str, str]]) -> bool:
    """Tell whether the script failed on the release and passed on the release with the patch."""
    found = printed.get(report.path, {})
    return (found.get("exit"), found.get("exit_patched")) == ("1", "0")


_WORDS: Final[Sequence[Mapping[str, str]]] = (
    {
        "title": "{release.name}: bug reports",
        "versions": "{release.name} (`pip install {release.needs}`), Python 3.11, Linux, CPU.\n"
        "`{file}`, line {line}. The original is {release.original}.",
        "script": "To reproduce",
        "printed": "It prints:",
        "patched": "With the patch below:",
        "patch": "Patch",
        "apply": "In a checkout of [{release.repository}](https://github.com/{release.repository}) at that "
        "release, `git apply {name}.patch`\ntakes it; in `site-packages`, `{release.apply} {name}.patch`.",
        "checked": "Checked against {release.original} with the same weights and inputs: with all patches "
        "that name the model,\noutputs and gradients of {pairs} are equal up to rounding, in eval and in train mode.",
        "left": "After the patch the two still differ elsewhere: {left}.",
        "index": "Each report has a text (`.md`), a script (`.py`) and a patch (`.patch`) of the same name. A "
        "script needs\n`pip install {release.needs}` and nothing else; it exits 1 with the mistake and 0 "
        "without it.\nA patch is against [{release.repository}](https://github.com/{release.repository}) at "
        "the release; in `site-packages`,\n`{release.apply} NAME.patch` takes it. Several patches of one file apply in this "
        "order with `-C1`.\n\n"
        "{all} reports; {proven} proven: the script fails on the release and passes with this one patch.",
        "columns": "| | report | file | |\n| --- | --- | --- | --- |",
        "open": "open",
        "proven": "proven",
    },
    {
        "title": "{release.name}：缺陷报告",
        "versions": "{release.name}（`pip install {release.needs}`），Python 3.11，Linux，CPU。\n"
        "`{file}` 第 {line} 行。对照的原始实现：{release.original}。",
        "script": "复现",
        "printed": "输出：",
        "patched": "打上下面的补丁之后：",
        "patch": "补丁",
        "apply": "在 [{release.repository}](https://github.com/{release.repository}) 对应版本的代码目录中执行\n"
        "`git apply {name}.patch`；要改已安装的包，在 `site-packages` 目录中执行\n`{release.apply} {name}.patch`。",
        "checked": "已与 {release.original} 对照（相同的权重和输入）：打上涉及该模型的全部补丁之后，\n"
        "{pairs} 在 eval 和 train 模式下的输出和梯度都一致，只差舍入误差。",
        "left": "打上补丁之后，两边在别处仍有差异：{left}。",
        "index": "每份报告有三个同名文件：正文（`.md`）、脚本（`.py`）、补丁（`.patch`）。脚本只需要\n"
        "`pip install {release.needs}`；有错时退出码为 1，修好后为 0。\n"
        "补丁针对 [{release.repository}](https://github.com/{release.repository}) 的对应版本；\n"
        "在 `site-packages` 目录中用 `{release.apply} NAME.patch` 打上。同一个文件的几个补丁，按本表的顺序加 `-C1` 打上。\n\n"
        "共 {all} 份，其中 {proven} 份已证实：脚本在发布版上失败，只打上这一个补丁就通过。",
        "columns": "| | 报告 | 文件 | |\n| --- | --- | --- | --- |",
        "open": "未证实",
        "proven": "已证实",
    },
)


# Files


def read_printed() -> dict[str, dict[str, str]]:
    """Return what the scripts printed, by the reports' paths."""
    found: dict[str, dict[str, str]] = (
        json.loads(PRINTED.read_text("utf-8")) if PRINTED.exists() else {}
    )
    return found


def make_files(report: Report, patch: str) -> Iterator[tuple[str, str]]:
    """Yield the names and the texts of a report's files."""
    printed, rows = read_printed(), load()
    yield f"{report.name}.py", make_script(report)
    yield f"{report.name}.patch", patch
    for language, end in enumerate(ENDS):
        yield f"{report.name}{end}", make_text(report, printed, rows, patch, language)


def write_folder(key: str) -> None:
    """Write a package's folder anew. Raises ImportError where the release is not installed."""
    folder = FOLDER / key
    folder.mkdir(parents=True, exist_ok=True)
    files = {f"README{end}": make_index(key, read_printed(), at) for at, end in enumerate(ENDS)}
    for report in list_known(key):
        files |= dict(make_files(report, make_patch(report)))
    for old in folder.iterdir():
        if old.name not in files:
            old.unlink()
    for name, text in files.items():
        (folder / name).write_bytes(text.encode("utf-8"))


# Runs


def run_script(report: Report, script: str, first: Path | None = None) -> tuple[str, int]:
    """Return what a report's script prints at the end, and its exit code; packages in `first` come first."""
    python = find_python(BY_KEY[report.key].environments[1])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"{report.name}.py")
        path.write_text(script, "utf-8")
        variables = {**os.environ, "PYTHONPATH": str(first or ""), "GLOG_v": "0", "HOME": folder}
        finished = subprocess.run(
            [str(python), str(path)], cwd=folder, env=variables, capture_output=True, text=True,
            timeout=_PATIENCE,
        )  # fmt: skip
    shown = finished.stdout.rpartition(f"{report.fault.symptom.what}\n")
    if not shown[1]:
        return finished.stderr.strip().splitlines()[-1], finished.returncode or 2
    return f"{shown[1]}{shown[2]}".strip(), finished.returncode


def copy_patched(report: Report, patch: str, folder: Path) -> None:
    """Make the package in a folder as links to the installed one, its one file with the patch applied."""
    root, real = find_root(report.key), Path(report.file)
    for depth in range(1, len(real.parts)):
        here = Path(*real.parts[:depth])
        (folder / here).mkdir()
        for each in (root / here).iterdir():
            if each.name not in (real.parts[depth], "__pycache__"):
                (folder / here / each.name).symlink_to(each)
    (folder / real).write_bytes((root / real).read_bytes())
    (folder / "one.patch").write_bytes(patch.encode("utf-8"))
    apply = [*report.release.apply.split(), "one.patch"]
    variables = {**os.environ, "GIT_CEILING_DIRECTORIES": str(folder.parent)}
    subprocess.run(apply, cwd=folder, env=variables, check=True, capture_output=True)


def run_both(report: Report) -> dict[str, str]:
    """Return what a script prints on the release, and on the release with the patch, and the exit codes."""
    script, patch = make_script(report), make_patch(report)
    said, code = run_script(report, script)
    with tempfile.TemporaryDirectory() as folder:
        copy_patched(report, patch, Path(folder))
        mended, code_mended = run_script(report, script, Path(folder))
    return {"release": said, "exit": str(code), "patched": mended, "exit_patched": str(code_mended)}


def main(words: Sequence[str]) -> int:
    """Run the command; 1 if a report is not proven by its script, 2 if a word names none."""
    parser = argparse.ArgumentParser(prog="python -m examples.zoo.reports")
    parser.add_argument("words", nargs="*", metavar="WORD")
    parser.add_argument("--run", action="store_true", help="run the scripts")
    options = parser.parse_args(words)
    printed = read_printed()
    chosen = [one for one in list_all() if one.path.startswith(tuple(options.words) or "")]
    if not chosen:
        print(
            f"no report's name begins with {' or '.join(options.words)}; docs/zoo has their folders"
        )
        return 2
    for report in chosen if options.run else ():
        printed[report.path] = run_both(report)
        PRINTED.write_text(
            json.dumps(printed, indent=1, ensure_ascii=False, sort_keys=True) + "\n", "utf-8"
        )
        print(
            "ok  " if is_proven(report, printed) else "OPEN",
            report.path,
            printed[report.path],
            flush=True,
        )
    for key in RELEASES:
        write_folder(key)
    return int(not all(is_proven(report, printed) for report in list_all()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
