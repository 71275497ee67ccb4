"""The report page of a scale: every table, claim and figure, and images of the faces, in one HTML file.

The page needs no network. It computes no metric: tables and verdicts come from the functions that write their files.
Template, style and script are in look/.
"""
