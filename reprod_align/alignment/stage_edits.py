"""Tries edits of what trains: the loss, the schedule, the optimizer.

An edit with which a finding is gone explains it. The stages are judged again with another text of the
port's files in force, each in a copy of this process: no module makes such a difference, so that it shows
in no run on the reference's numbers.
"""

import time
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from functools import partial
from types import FunctionType
from typing import Final

from reprod_align.alignment.findings import Findings, give_lines
from reprod_align.alignment.locating.experiment import SLOW, TIMED_TWICE
from reprod_align.alignment.loss_stage import (
    compare_losses,
    compare_own_gradient,
    judge_own_gradient,
)
from reprod_align.alignment.runner import Runner
from reprod_align.alignment.training import compare_training
from reprod_align.errors import ReprodError
from reprod_align.explain.executed import Ran, note_functions
from reprod_align.explain.overlay import NotAppliedError, list_live_functions, overlaid
from reprod_align.explain.scope import Scope, Sources, find_scope
from reprod_align.explain.trials import BUDGETS, Files, Texts, Trial, TrialSearch, list_texts
from reprod_align.model.local import LocalSide, find_local, use_one_thread
from reprod_align.model.side import ModelFailure
from reprod_align.model.source import SourceLine
from reprod_align.report import Finding

_EARLIER: Final = ("weights", "forward", "backward")
_TRAINS: Final = ("loss", "schedule", "optimizer")
_MOST: Final = 2  # findings

Key = tuple[str, str, str]
"""of a finding: its stage, place and kind"""


def explain_training(runner: Runner, findings: Findings, steps: int) -> None:
    """Give findings of the loss, the schedule and the optimizer the edit with which they are gone.

    steps: of training. Where the models themselves differ, or a judgement takes long, none is tried.
    """
    found = [one for one in findings.at_stage(*_TRAINS) if one.kind != "port-raises"]
    reference, port = find_local(runner.reference), find_local(runner.port)
    if not (findings.tries_edits and found) or findings.at_stage(*_EARLIER):
        return
    if reference is None or port is None:
        return  # the code is in another process
    retrial = Retrial(replace(runner, reference=reference, port=port), port, steps)
    for finding in found[:_MOST]:
        trial = retrial.find_edit(finding)
        if trial is not None:
            edit = retrial.files.suggest(trial)
            place = SourceLine(edit.file, edit.line, edit.before)
            shown = replace(finding, edit=edit, paddle_line=None)
            findings.replace(finding, give_lines(shown, None, place))


@dataclass
class Retrial:
    """The stages that train, judged again with edits."""

    runner: Runner
    """of sides in this process"""
    port: LocalSide
    steps: int
    files: Files = field(default_factory=Files)
    live: Collection[FunctionType] = ()
    """the port's functions that exist: those in the user's calls are in no module"""
    ran: Ran | None = None
    known: Collection[Key] = ()
    """what differs with the texts as they are"""
    seconds: float = 0.0
    """that a judgement takes"""
    search: TrialSearch = field(default_factory=lambda: TrialSearch(BUDGETS["align"]))

    def find_edit(self, finding: Finding) -> Trial | None:
        """Return the first edit with which a finding is gone and none is new; None if there is none."""
        if self.ran is None:
            self._watch()
        key = _name(finding)
        if self.seconds > SLOW or key not in self.known or self.search.is_spent:
            return None
        scope = self._find_scope(finding)
        found = self.search.find_first(
            lambda: list_texts(self.files, scope, {}),
            lambda made: self._mends(key, made[1]),
            partial(use_one_thread, self.runner.reference, self.port),
            self.seconds,
        )
        return None if found is None else found[0]

    def _watch(self) -> None:
        """Judge with the texts as they are, and note what runs, what differs and how long it takes."""
        began = time.process_time()
        self.known = self._judge()
        self.seconds = time.process_time() - began
        if SLOW < self.seconds < TIMED_TWICE:
            began = time.process_time()
            self._judge()
            self.seconds = min(self.seconds, time.process_time() - began)
        self.ran = Ran() if self.seconds > SLOW else note_functions(self._judge)
        self.live = list_live_functions({file for file, _ in self.ran.port})

    def _find_scope(self, finding: Finding) -> Scope:
        runner, sources = self.runner, Sources(self.files.loaded)
        modules = runner.pairing.modules
        scope = find_scope(finding, runner.reference, self.port, modules, sources, self.ran)
        return replace(scope, regions=[one for one in scope.regions if self.files.knows(one.file)])

    def _mends(self, key: Key, texts: Texts) -> bool:
        """Tell whether a finding is gone with these texts and no other has come."""
        try:
            with overlaid(self.files.loaded, texts, self.live):
                left = self._judge()
        except (NotAppliedError, ModelFailure, ReprodError):
            return False
        return key not in left and left <= set(self.known)

    def _judge(self) -> set[Key]:
        """Return what differs in the stages that train."""
        runner, findings = self.runner, Findings()
        findings.places_only, findings.tries_edits = True, False
        if runner.reference.loss is not None:
            runs = compare_losses(runner, findings)
            own = None
            if runner.reference.optimizer is None:
                own = compare_own_gradient(runner, findings, *runs)
            if own is not None:
                judge_own_gradient(runner, findings, own)
        if runner.reference.optimizer is not None:
            compare_training(runner, findings, self.steps)
        return {_name(one) for one in findings.report.findings}


def _name(finding: Finding) -> Key:
    return finding.stage, finding.place, finding.kind
