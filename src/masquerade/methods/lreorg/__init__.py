"""LReOrg (anonymous 2024): keywords decide which features of a latent code are hidden and which are kept.

The class is in ``method``, its parameters in ``settings``, the replacements of features in ``anonymizers`` (all without
torch), the networks (Eq. 1-4) in ``network``, and losses (Eq. 5-10) and training in ``training``. The latent space is
methods/latent/.
"""
