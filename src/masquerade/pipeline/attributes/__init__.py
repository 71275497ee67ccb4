"""FALCO's attribute protocol: a classifier learns attributes from anonymized faces and is tested on real faces.

Its accuracy shows which attributes the anonymized faces have kept (Barattin et al. 2023, section 4.1). The metrics of
these predictions are in `metrics`, and the knobs in `params.blocks`.
"""
