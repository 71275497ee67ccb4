"""CLIP2Protect (Shamshad et al. 2023, arXiv:2306.10008): make-up, described in words, that misleads recognizers.

The method, its knobs (no torch) and the search of the latent code are here.
"""
