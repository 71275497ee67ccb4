"""The generator StyleGAN2: its parameters, three training phases, and the published layouts that it can adopt.

The architecture is in networks/stylegan2.py; the fakes that it generates for FALCO are in methods/latent/.
"""
