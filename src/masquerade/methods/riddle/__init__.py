"""RiDDLE (Li et al. 2023): a transformer encrypts the latent code of a face with a password, and decrypts it.

The method, its knobs and password (no torch), losses, optimizer and training are here. The network is
networks/latent_encryptor.py; the latent space is methods/latent/.
"""
