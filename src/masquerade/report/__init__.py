"""The page that a lab shows: every table, claim, picture and trade-off of a scale in one HTML file without network.

`reading` takes tables and claims back from their CSV files, `meaning` says what a difference means, `addresses` names a
number as ``masquerade lineage show`` does, `chain` follows it to its raw data, `explorer` and `tradeoff` prepare
pictures and plots, and `page` lays everything out with what stands in look/ (template, style, script).
"""
