"""Reads photographs and published datasets: decoding, lists and archives, face detection, and FFHQ's alignment.

The datasets that use them (celeba, ffhq, folder, lfw, ...) are one folder up; rendered faces are in rendered/.
"""
