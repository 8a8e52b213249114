"""`python -m fixed_receiver validate | bench | plot`: from a bare checkout, with nothing but torch."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

import torch

from fixed_receiver.gpu import Gpu
from fixed_receiver.plot import draw_report
from fixed_receiver.tables import show_report
from fixed_receiver.validation import SECONDS, Part, device_parts, host_parts, new_document, run_parts, timed_parts

OK, FAILED, USAGE = 0, 1, 2


def main(arguments: Sequence[str] | None = None) -> int:
    """0 if every part passed, 1 if one failed, 2 if the machine or the arguments do not allow it."""
    options = parse(arguments)
    match options.command:
        case "plot":
            return plot(options.report, options.folder)
        case "bench":
            options.device = "cuda"
    if options.device == "cuda" and not torch.cuda.is_available():
        print("fixed_receiver: torch sees no CUDA device; `validate` without --device checks what needs none", file=sys.stderr)
        return USAGE
    document = new_document(options.device)
    passed = run_parts(choose_parts(options.command, options.device, document), options.seconds, document, options.json, print)
    tables = show_report(document)
    if tables and not options.quiet:
        print(f"\n{tables}")
    print(f"\n{'passed' if passed else 'FAILED'} in {document['seconds']:.1f} s, torch {torch.__version__}, device {options.device}")
    return OK if passed else FAILED


def choose_parts(command: str, device: str, document: dict[str, object]) -> list[Part]:
    """The parts of a command; notes the device in the report."""
    if device == "cpu":
        return host_parts()
    gpu = Gpu(torch.device("cuda", torch.cuda.current_device()))
    environment = document["environment"]
    if isinstance(environment, dict):
        environment.update(gpu.describe())
    return timed_parts(gpu) if command == "bench" else device_parts(gpu)


def plot(report: str, folder: str) -> int:
    """Draw a report."""
    try:
        written = draw_report(report, folder)
    except (ImportError, OSError, ValueError) as error:
        print(f"fixed_receiver: {error}", file=sys.stderr)
        return USAGE
    print("\n".join(written) if written else "the report has no times to draw: it is not of a CUDA device")
    return OK


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Options of the command line."""
    parser = argparse.ArgumentParser(prog="python -m fixed_receiver", description="Check and time the reference receiver.")
    commands = parser.add_subparsers(dest="command", required=True)
    validate = commands.add_parser("validate", help="every check that this machine allows")
    validate.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="cuda: checks and times on a GPU")
    bench = commands.add_parser("bench", help="times on a CUDA device")
    for command in (validate, bench):
        command.add_argument("--json", default="", metavar="FILE", help="write the report here, again behind every part")
        command.add_argument("--seconds", type=float, default=SECONDS, help="start no part that would not fit (default %(default)s)")
        command.add_argument("--quiet", action="store_true", help="no tables, only a line for each part")
    draw = commands.add_parser("plot", help="figures from a report (needs matplotlib)")
    draw.add_argument("report", metavar="FILE", help="what validate or bench wrote with --json")
    draw.add_argument("--folder", default=".", help="where the figures go")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
