"""The latent world that FALCO and the methods after it share: generator, inversion and semantics as one.

Codes of real pictures, the set of fakes, and who of the fakes is nearest to whom; each set in one file.
"""
