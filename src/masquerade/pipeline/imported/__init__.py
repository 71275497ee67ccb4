"""Imports images that another program anonymized: stores them in one file, and builds the archive of their cell.

The commands `masquerade export-faces` and `import-method` are in `cli`, and the types of the knobs in `params`.
"""
