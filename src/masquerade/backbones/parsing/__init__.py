"""The face parser (BiSeNet), which gives each pixel a class: parameters, training and the published weights.

The architecture is in networks/bisenet.py; the names of the classes are in core/annotations.py.
"""
