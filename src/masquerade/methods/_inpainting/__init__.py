"""What the inpainters share: the region that is hidden, its landmarks as a guide, the training, and the pasting.

An inpainter draws a face into a picture in which the face is hidden. The methods are in their own folders; the networks
are in networks/.
"""
