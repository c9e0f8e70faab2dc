"""The 40 sources that were scored last, once, before anybody looked at them; docs/porting_scores.md has the scores.

24 modules in the order of `random.Random(20271129)`, four of small packages, and twelve files written for it.
"""

from benchmarks.port_latest import hub, packages, written_1, written_2

LATEST = hub.CASES | packages.CASES | written_1.CASES | written_2.CASES
