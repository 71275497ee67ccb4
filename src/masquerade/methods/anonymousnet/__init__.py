"""AnonymousNet (Li and Lin 2019, arXiv:1904.12620): attributes of a face are chosen anew, drawn, and perturbed.

The method, its knobs (no torch) and its training are here; StarGAN's networks are in networks/.
"""
