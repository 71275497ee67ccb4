"""Write the table of backbones from their quality figures."""

from masquerade import lineage, steps
from masquerade.papers import backbones

given = steps.arguments(__doc__, lists=("qualities",))


def work(_) -> None:
    qualities = steps.read_numbers(given.qualities)
    text = backbones.markdown(qualities, given.params["scale"], given.params["caution"], lineage.commit())
    steps.write_text(given.outputs[0], text)


if __name__ == "__main__":
    steps.main("table of backbones", given, work)
