"""How RiDDLE's latent encryptor (networks/latent_encryptor.py) is trained, loaded and given its password.

``settings`` (no torch) holds the knobs, ``password`` (no torch) makes z of a key, ``optimiser`` is Ranger, ``losses``
are the terms, ``task`` is the training.
"""
