"""The report page of a scale: every table, claim and figure, and images of the faces, in one HTML file.

The page needs no network. It computes no metric and no verdict: it reads tables and claims from their CSV files.
Template, style and script are in look/.
"""
