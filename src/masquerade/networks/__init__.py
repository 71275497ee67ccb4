"""Network architectures, each with its paper, and the code that brings images to a network. Training is in training/,
backbones/ and methods/; backbones/ and judges/ choose the weights.
"""
