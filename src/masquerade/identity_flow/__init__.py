"""How iFADIT takes a face apart, changes its identity under a secret, and learns to do so in two phases.

``settings`` (no torch) holds the knobs, ``network`` what is trained, assembled from networks/, ``world`` the frozen
backbones around it, ``refinement`` Eq. 11, ``losses`` Eq. 12-20, ``phases`` and ``rehearsal`` one update of each
phase, ``task`` the whole training.
"""
