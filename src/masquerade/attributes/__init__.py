"""FALCO's attribute protocol: a classifier learns attributes from anonymized faces and is tested on real ones.

What it still gets right on real faces is what the anonymized ones kept (Barattin et al. 2023, section 4.1).
"""
