"""Write the table of the attacks that need no training."""

from masquerade.pipeline import program

given = program.arguments(__doc__, lists=("attacks",))


def work(_) -> None:
    from masquerade.core import files, fingerprints
    from masquerade.papers import attacks_table

    page = attacks_table.markdown(files.read_numbers(given.attacks), given.params, fingerprints.commit())
    files.write_text(given.outputs[0], page)


if __name__ == "__main__":
    program.main("table of attacks", given, work)
