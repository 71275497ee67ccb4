"""DeepPrivacy (Hukkelås et al. 2019, arXiv:1909.04538): an inpainter that gets keypoints and a latent code.

The method, its knobs (no torch) and its training are here; what it shares with other inpainters is in _inpainting/.
"""
