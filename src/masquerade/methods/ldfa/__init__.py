"""LDFA (Klemp et al. 2023, arXiv:2302.08931): a latent diffusion model draws the box of the face.

The method, its knobs (no torch), its training and its sampling are here; the networks are in networks/.
"""
