"""Pictures that another program anonymized: taken in once, named by their hash, and held against their originals.

The command line stores them; the graph makes an archive of them, like that of any other cell.
"""
