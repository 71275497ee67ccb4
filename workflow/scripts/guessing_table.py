"""Write the table of guessed keys."""

from masquerade.pipeline import program

given = program.arguments(__doc__, lists=("guesses",))


def work(_) -> None:
    from masquerade.core import files, fingerprints
    from masquerade.papers import guessing_table

    page = guessing_table.markdown(files.read_numbers(given.guesses), given.params, fingerprints.commit())
    files.write_text(given.outputs[0], page)


if __name__ == "__main__":
    program.main("table of guessed keys", given, work)
