"""Proves that a port keeps a contract that its author cannot loosen, and writes a certificate.

CONTRACT.toml is the reviewer's: the reference and its digests, the port's files, how batches are drawn, and
what must agree. Batches come from a seed that is drawn now. The port runs in a process of its own, which
ends before the reference computes anything on these batches: docs/prove.md. No sandbox is claimed:
docs/security.md says what a process on the same machine can still do.

exit 0 proven, or different as the contract documents, 1 different or refused, 2 it cannot be judged
"""

import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from pathlib import Path

from reprod_align.base.console import quieten, tell, without_warnings
from reprod_align.base.files import as_json, write_text
from reprod_align.commands import add_json_argument, add_python_arguments
from reprod_align.contract.proof import ContractProof, hold_against, read_certificate
from reprod_align.contract.prove import prove
from reprod_align.contract.terms import read_terms
from reprod_align.errors import ReprodError
from reprod_align.page.outputs import require_place


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the command's arguments."""
    add = parser.add_argument
    add("contracts", type=Path, nargs="+", metavar="CONTRACT.toml")
    add("--port", type=Path, metavar="FOLDER",
        help="where the port's files lie (default: as it says)")  # fmt: skip
    add("--digest", type=_read_digest, metavar="SHA256", help="of the contract, as agreed on")
    add("--seed", type=int, metavar="N",
        help="of the batches, to repeat a proof (default: drawn now)")  # fmt: skip
    add("--certificate", type=Path, metavar="PATH.json", help="write the certificate")
    add("--check", type=Path, metavar="PATH.json",
        help="repeat the proof of a certificate, and compare")  # fmt: skip
    add_json_argument(parser, "certificate")
    add("--markdown", action="store_true", help="print the table for a pull request")
    add_python_arguments(parser)


def run(options: Namespace) -> int:
    """Print the proofs; return 0 if the ports keep their contracts."""
    quieten()
    if options.certificate:
        require_place(options.certificate, (".json",), "--certificate")
    if len(options.contracts) > 1 and (options.certificate or options.check or options.digest):
        raise ReprodError("--certificate, --check and --digest belong to one contract: name one")
    proofs = [_prove(options, path) for path in options.contracts]
    if options.json:
        made = [proof.describe() for proof in proofs]
        print(as_json(made[0] if len(made) == 1 else made))
    else:
        for proof in proofs:
            print(proof.to_markdown() if options.markdown else proof.summary())
    if options.certificate:
        write_text(options.certificate, as_json(proofs[0].describe()) + "\n")
    return 0 if all(proof.passed for proof in proofs) else 1


def _prove(options: Namespace, path: Path) -> ContractProof:
    given = read_certificate(options.check) if options.check else None
    terms = read_terms(path, options.port)
    seed = options.seed if given is None else given["seed"]
    pythons = options.torch_python or sys.executable, options.paddle_python or sys.executable
    try:
        with without_warnings():
            proof = prove(terms, seed, options.digest or "", pythons, tell)
    finally:
        tell("")
    if given is not None:
        proof.refusals += hold_against(given, proof)
    return proof


def _read_digest(word: str) -> str:
    if len(word) != 64 or not {*word} <= {*"0123456789abcdef"}:
        raise ArgumentTypeError(
            "expected a SHA-256, 64 hexadecimal digits: sha256sum CONTRACT.toml"
        )
    return word
