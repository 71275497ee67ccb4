"""Draws synthetic faces: a person and a shot are sampled, then rendered with landmarks, mask, attributes and caption.

The datasets that use them (synthetic_hq, synthetic_wild) are one folder up; photographs are in _photographs/.
"""
