"""Cao et al. 2021: the identity vector is rotated by a password and a privacy level, and rotated back.

The method and its rotation (no torch) are here. Its networks and their training are in methods/_disentanglement/.
"""
