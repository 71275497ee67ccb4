"""Prints the share of the statements of each room that the last tests ran. `make fast` calls it at its end."""

import sys
from collections import Counter
from pathlib import Path

import coverage

import masquerade

PACKAGE = Path(masquerade.__file__).parent


def main() -> None:
    measured = coverage.Coverage()  # the data file that pyproject.toml names
    measured.load()
    missed, total = Counter(), Counter()
    for path in map(Path, measured.get_data().measured_files()):
        _, statements, _, missing, _ = measured.analysis2(str(path))
        for room in (path.relative_to(PACKAGE).parts[0].removesuffix(".py"), "all"):
            missed[room] += len(missing)
            total[room] += len(statements)
    for room, count in sorted(total.items(), key=lambda item: (item[0] == "all", item[0])):
        if count:
            ran = count - missed[room]
            sys.stdout.write(f"{room:<10} {ran:>6} of {count:>6} statements  {100 * ran / count:>3.0f} %\n")


if __name__ == "__main__":
    main()
