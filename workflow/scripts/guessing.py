"""Write the table of guessed keys."""

from masquerade import lineage, steps
from masquerade.papers import guessing

given = steps.arguments(__doc__, lists=("guesses",))


def work(_) -> None:
    found = steps.read_numbers(given.guesses)
    text = guessing.markdown(found, given.params["scale"], given.params["caution"], lineage.commit())
    steps.write_text(given.outputs[0], text)


if __name__ == "__main__":
    steps.main("table of guessed keys", given, work)
