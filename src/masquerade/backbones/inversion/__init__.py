"""The inversion, an encoder from pictures to the latent space W+ of the generator: parameters and training.

The architectures (e4e, pSp) are in networks/latent_encoders.py; the readers of their published files are in
generator/layouts.py.
"""
