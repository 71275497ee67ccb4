"""Code that identity, recogniser_a and recogniser_b share: parameters, ArcFace training and verification figures.

The backbones themselves are one folder up; published recognisers that only judge are in judges/.
"""
