"""DeepPrivacy2 for faces (Hukkelås and Lindseth 2023): an inpainter that gets a random style and no keypoints.

The method, its knobs (no torch) and its training are here; what it shares with other inpainters is in _inpainting/.
"""
