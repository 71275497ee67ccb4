"""How the face identity transformer of FIT is trained: one network that hides a face and brings it back.

Gu, Luo, Ryoo, Lee 2020 (arXiv:1911.11759). ``settings`` (no torch) holds the knobs, ``passwords`` the bits and their
draws, ``losses`` what the network is asked for, ``task`` the training; the networks are in ``networks``.
"""
