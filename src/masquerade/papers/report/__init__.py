"""The report page of a scale: every table, claim, picture and trade-off in one HTML file that needs no network.

It computes no metric and no verdict: it reads tables and claims from their CSV files. Template, style and script are in
look/.
"""
