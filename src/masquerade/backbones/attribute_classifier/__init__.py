"""The classifier of face attributes, which only judges: parameters and training.

The architecture is in networks/strided_vgg.py; the judge that uses it is judges/attributes.py.
"""
