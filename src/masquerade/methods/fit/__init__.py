"""FIT (Gu et al. 2020, arXiv:1911.11759): one network anonymizes a face under a password and recovers it.

The method, its knobs and passwords (no torch), losses and training are here; the network's layers are in networks/.
"""
