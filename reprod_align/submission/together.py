"""Do the files of a submission belong together: to each other, to one run, to the manifest?"""

from collections.abc import Sequence

from reprod_align.submission.findings import Findings
from reprod_align.submission.folder import Submission
from reprod_align.submission.judged import Judged
from reprod_align.submission.manifest import check_manifest
from reprod_align.submission.numbers import check_numbers
from reprod_align.submission.results import check_results


def check_together(submission: Submission, steps: Sequence[Judged], findings: Findings) -> None:
    """Add what does not belong together to `findings`; never raises on what a file holds."""
    check_manifest(submission, findings)
    check_results(submission, steps, findings)
    check_numbers(steps, findings)
