"""The steps of the graph, one module each, and the code that plans, launches and estimates them.

The folder photographs/ is for a user's own photographs: `masquerade.load` and the command line call it. Tables, figures
and the report are made in `papers`, the record of a run is in `lineage`, and the commands are in `cli`.
"""
