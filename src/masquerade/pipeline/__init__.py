"""The steps of the graph, one module each, and the code that plans, launches and estimates them.

Tables, figures and the report are made in `papers`, the record of a run is in `lineage`, and the commands are in `cli`.
"""
