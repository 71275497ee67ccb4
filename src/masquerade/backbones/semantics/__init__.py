"""The text-image model (CLIP, FaRL): its parameters, training, quality, and the readers of its published files.

The architecture comes from the package open_clip; the methods that use its features are in methods/.
"""
