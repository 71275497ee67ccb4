"""Stage I of IdentityDP and Cao et al.: the network that separates identity and attributes of a face and fuses them.

Its parameters (``settings``, no torch), its networks, and its losses and training (Eq. 14-18) are here, for both
methods. What a method does to the identity vector (Stage II) is in its own file.
"""
