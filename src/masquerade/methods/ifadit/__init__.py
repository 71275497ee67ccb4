"""iFADIT (Yuan et al. 2025): separates identity and attributes, and changes the identity by a flow with a secret.

The class is in ``method``, its parameters in ``settings`` (both without torch), the trained networks in ``network``,
the frozen ones in ``frozen``, Eq. 11 and the losses (Eq. 12-20) in ``losses``, and the training in ``phases`` and
``training``.
"""
