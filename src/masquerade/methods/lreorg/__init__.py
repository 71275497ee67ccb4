"""LReOrg's reorganization of latent codes: keywords, swap training, and the anonymizers of single features.

The network is `masquerade.networks.cdfnet`; the method that uses all of it `masquerade.methods.lreorg`.
"""
