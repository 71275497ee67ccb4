"""CIAGAN (Maximov et al. 2020, arXiv:2005.09544): an inpainter that gets lines along landmarks and another's label.

The method, its knobs (no torch) and its training are here; what it shares with other inpainters is in _inpainting/.
"""
