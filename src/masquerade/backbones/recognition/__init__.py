"""Code that identity, recognizer_a and recognizer_b share: parameters, ArcFace training and verification figures.

The backbones themselves are one folder up; published recognizers that only judge are in judges/.
"""
