"""The landmark network (CNN-6), which gives the 68 points of a face: parameters and training.

The architecture and the Wing loss are in networks/landmark_net.py; dlib's landmarks are in judges/dlib_face.py.
"""
