"""Write the table of backbones from their quality figures."""

from masquerade.pipeline import program

arguments = program.parse_arguments(__doc__, lists=("qualities",))


def work(_) -> None:
    from masquerade.core import files, fingerprints
    from masquerade.papers import backbones_table

    page = backbones_table.markdown(
        files.read_numbers(arguments.qualities), arguments.params, fingerprints.describe_commit()
    )
    files.write_text(arguments.outputs[0], page)


if __name__ == "__main__":
    program.main("table of backbones", arguments, work)
