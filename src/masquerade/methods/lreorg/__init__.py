"""LReOrg (anonymous 2024): keywords decide which features of a latent code are hidden and which are kept.

The method, its knobs (no torch), keywords, anonymizers of features, losses and training are here. The network is
networks/cdfnet.py; the latent space is methods/latent/.
"""
