"""People in three dimensions: a head of blend shapes, skin, hair, clothes, light and places, drawn by own kernels.

The datasets synthetic_hq and synthetic_wild are drawn here; `masquerade faces` draws a sheet.
"""
