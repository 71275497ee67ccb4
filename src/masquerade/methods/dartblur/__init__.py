"""DartBlur (Jiang et al. 2023): a blur on which detectors can be trained as on clear pictures.

The method, its knobs (no torch), its losses and its training are here; the networks are in networks/.
"""
