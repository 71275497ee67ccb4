"""The latent space that several methods share: its frozen networks, codes of real faces, and the set of fakes.

How a method changes a code is in the method's own file or folder; the networks themselves are in backbones/.
"""
