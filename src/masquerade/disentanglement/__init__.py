"""The network that takes a face apart into identity and attributes, and puts it together again.

IdentityDP (Wen et al. 2022) and Cao et al. 2021 train the same three parts in the same way and differ only in what
they do to the identity vector in between: so the parts, the losses and the training live here, and a method brings
its own Stage II. ``settings`` (no torch) holds the knobs, ``network`` the assembly, ``losses`` Eq. 14-18, ``task``
the training.
"""
