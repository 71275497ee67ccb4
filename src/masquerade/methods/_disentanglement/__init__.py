"""Stage I of IdentityDP and Cao et al.: the network that separates identity and attributes of a face and fuses them.

Knobs (``settings``, no torch), network, losses (Eq. 14-18), training and the frozen result are here, for both methods.
What a method does to the identity vector (Stage II) is in its own file or folder; layers are in networks/.
"""
