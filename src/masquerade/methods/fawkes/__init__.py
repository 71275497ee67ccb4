"""Fawkes (Shan et al. 2020, arXiv:2002.08327): a small change that moves a face away from itself in a feature space.

The method (no torch) and the search of the change are here.
"""
