"""Images that another program made of the same faces: a method like every other, each program one of its variants.

`masquerade score` collects the images of a program into one file for each dataset, and writes the variant into
scales/imported/<scale>.yaml (docs/score.md shows one).

The class is in method.py. originals.py and disguises.py find originals among the images.
"""
