"""A method with its networks, a photograph or a folder of them, and their anonymized or recovered faces.

`masquerade.load` and the commands `anonymize` and `recover` both call it, so the rules of safety are here once. What is
asked on the terminal and printed there is in `cli`.
"""
