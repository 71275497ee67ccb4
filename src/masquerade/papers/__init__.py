"""This room renders tables, figures, claims and the report page, with the printed value beside the measured one.

It computes no metric. The printed numbers are declared in reference/, outside the library.
"""
