"""iFADIT (Yuan et al. 2025): separates identity and attributes, and changes the identity by a flow with a secret.

The method, its knobs (``settings``, no torch), the trained and the ``frozen`` networks, Eq. 11 (``refinement``), losses
(Eq. 12-20), the phases and the whole training are here. The layers are in networks/, the backbones in backbones/.
"""
